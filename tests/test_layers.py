"""Who may import whom. A folder is a layer; nothing runs back."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = sorted((ROOT / "analyzer").rglob("*.py"))

# layer -> (layers of ours it may import, third-party packages it may import)
RULES: dict[str, tuple[set[str], set[str]]] = {
    "contract": (set(), {"pyarrow", "msgspec"}),
    "errors": (set(), set()),
    "readers": ({"contract", "errors"}, {"pyarrow", "polars", "msgspec", "zstandard", "isal"}),
    "store": ({"contract", "errors"}, {"duckdb", "pyarrow", "polars"}),
    "engines": ({"contract", "errors", "store"}, {"duckdb", "pyarrow", "polars"}),
    "analyses": ({"contract", "errors", "bounds", "catalogs", "bridging"}, {"polars"}),
    "runbook": ({"contract", "errors", "engines"}, {"msgspec"}),
    "catalogs": ({"contract", "errors"}, {"genai_prices"}),
    # markupsafe is jinja2's own type of escaped text
    "report": ({"contract", "errors"}, {"jinja2", "markupsafe"}),
    "simulate": ({"contract", "errors", "bounds"}, set()),
    "intake": ({"contract", "errors", "readers", "store"}, set()),
    "worlds": ({"contract", "errors", "engines", "store", "questions", "simulate"}, set()),
    "questions": (
        {"contract", "errors", "engines", "readers", "bounds", "formulas", "bridging"}, {"polars"},
    ),
    "formulas": (set(), set()),
    "bridging": (set(), set()),
    "bounds": ({"catalogs", "errors"}, set()),
    "api": (
        {
            "contract", "errors", "readers", "store", "engines", "analyses", "runbook", "catalogs",
            "report", "intake", "questions", "formulas", "bounds", "worlds", "__init__",
        },
        set(),
    ),
    "cli": ({"contract.types", "errors", "report", "__init__"}, {"click"}),
    "__init__": ({"api"}, set()),
    "__main__": ({"cli"}, set()),
}  # fmt: skip

# (file below analyzer/, import) -> why it may, against the rule
EXCEPTIONS: dict[tuple[str, str], str] = {
    ("readers/_sqlite.py", "adbc_driver_sqlite"): "the one place that scans databases",
    ("report/charts/_svg.py", "vl_convert"): "the one place that draws",
    ("report/charts/device.py", "altair"): "the one place that draws",
    ("report/charts/lanes.py", "altair"): "the one place that draws",
    ("report/charts/points.py", "altair"): "the one place that draws",
    ("report/charts/stack.py", "altair"): "the one place that draws",
    ("report/charts/waterfall.py", "altair"): "the one place that draws",
}

NETWORK = (
    "socket",
    "urllib.request",
    "http.client",
    "requests",
    "httpx",
    "aiohttp",
    "ftplib",
    "smtplib",
)
HEAVY = ("altair", "polars", "duckdb", "pyarrow")
MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 60


def name_of(file: Path) -> str:
    return file.relative_to(ROOT / "analyzer").as_posix()


def layer_of(file: Path) -> str:
    return name_of(file).split("/")[0].removesuffix(".py")


@cache
def tree_of(file: Path) -> ast.Module:
    return ast.parse(file.read_bytes())


@cache
def imports(file: Path) -> list[tuple[int, str, bool]]:
    """Line, dotted module and whether it stands inside a function, of each import.

    ``from a import b`` counts as ``a.b``, for b may be a module.
    """
    return list(_imports(file, tree_of(file)))


def _imports(file: Path, tree: ast.Module) -> Iterator[tuple[int, str, bool]]:
    inner = {
        id(node)
        for function in ast.walk(tree)
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
        for node in ast.walk(function)
    }
    package = ["analyzer", *file.relative_to(ROOT / "analyzer").parts[:-1]]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name, id(node) in inner) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                yield node.lineno, f"{module}.{alias.name}", id(node) in inner


def target_of(module: str) -> str:
    """Layer of one of our modules; ``analyzer.__version__`` and the like are the package itself."""
    parts = module.split(".")[1:]
    known = parts and (parts[0] in RULES or (ROOT / "analyzer" / parts[0]).exists())
    return parts[0] if known else "__init__"


def is_allowed(file: Path, module: str, *, inside: bool) -> bool:
    if any((name_of(file), part) in EXCEPTIONS for part in (module, module.split(".")[0])):
        return True
    layer, top = layer_of(file), module.split(".")[0]
    ours, third_party = RULES[layer]
    if top == "analyzer":
        target = target_of(module)
        if layer == "cli" and target == "api":
            return inside
        dotted = module.removeprefix("analyzer.")
        listed = any(f"{dotted}.".startswith(f"{name}.") for name in ours)
        return target == layer or target in ours or listed
    return top in third_party or top in sys.stdlib_module_names


def test_every_layer_has_a_rule():
    assert not {layer_of(file) for file in FILES} - RULES.keys(), "name the layer in RULES"


def test_imports():
    wrong = [
        f"{name_of(file)} ({layer_of(file)}), line {line}: {module}"
        for file in FILES
        for line, module, inside in imports(file)
        if not is_allowed(file, module, inside=inside)
    ]
    assert not wrong, "these layers may not import these; see RULES"


def test_nothing_opens_a_socket():
    wrong = [
        f"{name_of(file)}, line {line}: {module}"
        for file in FILES
        for line, module, _ in imports(file)
        if any(f"{module}.".startswith(f"{name}.") for name in NETWORK)
    ]
    assert not wrong, "no code path of analyze opens a socket"


def test_no_file_is_long():
    suffixes = {".py", ".sql", ".md", ".html", ".css", ".js"}
    files = [file for file in (ROOT / "analyzer").rglob("*") if file.suffix in suffixes]
    counts = {name_of(file): len(file.read_bytes().splitlines()) for file in files}
    assert not {name: lines for name, lines in counts.items() if lines > MAX_FILE_LINES}


def test_no_function_is_long():
    long = [
        f"{name_of(file)}, {node.name}: {lines} lines"
        for file in FILES
        for node in ast.walk(tree_of(file))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and (lines := (node.end_lineno or 0) - node.lineno + 1) > MAX_FUNCTION_LINES
    ]
    assert not long


def test_exceptions_are_still_needed():
    used = {
        (name_of(file), part)
        for file in FILES
        for _, module, _ in imports(file)
        for part in (module, module.split(".")[0])
    }
    present = {name_of(file) for file in FILES}
    stale = [key for key in EXCEPTIONS if key[0] in present and key not in used]
    assert not stale


def test_the_command_line_starts_without_the_heavy_libraries():
    if not any(layer_of(file) == "cli" for file in FILES):
        pytest.skip("there is no analyzer/cli yet")
    code = f"import sys, analyzer.cli; print([m for m in {HEAVY} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


def test_each_name_of_the_api_is_listed_and_there():
    code = (
        "from analyzer import api; print(set(api.__all__) - set(dir(api)),"
        " all(callable(getattr(api, name)) for name in api.__all__))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == ("set() True", "")
