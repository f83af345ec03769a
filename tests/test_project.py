"""The promises of the files around the code: version, README, Makefile, lock files."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from shared import SHARED

import analyzer

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
LOCKS = ("requirements.lock", "requirements-check.lock")
SECONDS = 300

# First words of a console line that are run; of make only targets that change nothing outside.
PROGRAMS = {"analyze", "cat", "head", "tail", "wc", "ls", "echo", "grep", "python", "python3"}
MAKE_TARGETS = {"make", "make help", "make demo"}


def git_files() -> list[Path]:
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("needs git and a checkout, to know what belongs to the project")
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [ROOT / name for name in sorted(names.split("\0")) if name and (ROOT / name).is_file()]


def readme() -> str:
    if not (ROOT / "README.md").exists():
        pytest.skip("there is no README.md yet")
    return (ROOT / "README.md").read_text(encoding="utf-8")


def test_version_is_told_once():
    version = PROJECT["project"]["version"]
    assert analyzer.__version__ == version
    headings = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)
    assert version in headings, "CHANGELOG.md has no heading for this version"


def test_locks_pin_every_dependency_and_name_no_place():
    for lock in LOCKS:
        text = (ROOT / lock).read_text(encoding="utf-8")
        assert "://" not in text, lock
        rest = re.sub(r"--hash=\S+", "", text)
        assert not re.findall(r"^\s*(?:--?[a-z]|[./]).*", rest, re.M), "an option or a path"
    pinned = {
        match.lower().replace("_", "-")
        for lock in LOCKS
        for match in re.findall(r"^([\w.-]+)==", (ROOT / lock).read_text(encoding="utf-8"), re.M)
    }
    groups = PROJECT["dependency-groups"]
    asked = [*PROJECT["project"]["dependencies"], *groups["dev"], *groups["check"]]
    names = {re.match(r"[\w.-]+", one)[0].lower() for one in asked}
    assert names <= pinned, "run: make lock"


# --- README ------------------------------------------------------------------------------------


def commands(block: str) -> list[tuple[str, str]]:
    """(command, shown output) of each ``$`` line of a console block."""
    steps: list[tuple[str, list[str]]] = []
    continued = False
    for line in block.splitlines():
        if line.startswith("$ "):
            steps.append((line[2:], []))
        elif continued:
            command, shown = steps[-1]
            steps[-1] = (command.removesuffix("\\") + line.strip(), shown)
        elif steps:
            steps[-1][1].append(line)
        continued = bool(steps) and not steps[-1][1] and steps[-1][0].endswith("\\")
    return [(command, "\n".join(shown).strip()) for command, shown in steps]


def pattern_of(shown: str) -> re.Pattern[str]:
    """``...`` matches anything; space at the end of lines does not count."""
    lines = "\n".join(line.rstrip() for line in shown.splitlines())
    return re.compile(re.escape(lines).replace(re.escape("..."), ".*?"), re.DOTALL)


def is_run(command: str) -> bool:
    if command.split()[0] == "make":
        return command in MAKE_TARGETS
    return command.split()[0] in PROGRAMS


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of the project with ``analyze`` and ``python`` on a path of its own."""
    folder = tmp_path_factory.mktemp("readme") / "copy"
    for file in git_files():
        target = folder / file.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, target)
    tools = folder.parent / "bin"
    tools.mkdir()
    start = 'import sys; sys.argv[0] = "analyze"; from analyzer.cli import main; main()'
    for name, arguments in (("python", ""), ("python3", ""), ("analyze", f" -c '{start}'")):
        script = tools / name
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}"{arguments} "$@"\n')
        script.chmod(0o755)
    if (Path(sys.prefix) / ".ready").exists():
        # `make demo` finds the environment ready: these must look older than it.
        (folder / ".venv").symlink_to(sys.prefix, target_is_directory=True)
        for name in ("requirements.lock", "pyproject.toml"):
            os.utime(folder / name, (0, 0))
    return folder


def test_readme_commands(copy):
    blocks = re.findall(r"^```console\n(.*?)^```", readme(), re.M | re.S)
    steps = [step for block in blocks for step in commands(block)]
    # Of the make that runs the tests; and what is compiled once need not be for each command.
    outer = {"MAKEFLAGS", "MAKELEVEL", "MFLAGS", "PYTHONDONTWRITEBYTECODE"}
    env = {key: value for key, value in os.environ.items() if key not in outer} | {
        "PATH": f"{copy.parent / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(copy), "NO_COLOR": "1", "COLUMNS": "80", "TERM": "dumb",
    }  # fmt: skip
    code = 0
    for number, (command, shown) in enumerate(steps):
        ready = (copy / ".venv").exists() or not command.startswith("make demo")
        if not is_run(command) or not ready:
            continue
        done = subprocess.run(
            ["bash", "-c", f"(exit {code})\n{command}"], cwd=copy, env=env, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
            timeout=SECONDS,
        )  # fmt: skip
        code = done.returncode
        output = "\n".join(line.rstrip() for line in done.stdout.strip().splitlines())
        if shown and not pattern_of(shown).fullmatch(output):
            pytest.fail(
                f"README: $ {command}\n--- shown\n{shown}\n--- now\n{output}", pytrace=False
            )
        told = number + 1 < len(steps) and steps[number + 1][0] == "echo $?"
        assert code == 0 or told, f"README: $ {command}\nended with {code}\n{output}"


def test_console_blocks_are_understood():
    block = "$ analyze a \\\n    b\none\n...\n\n$ echo $?\n2\n"
    assert commands(block) == [("analyze a b", "one\n..."), ("echo $?", "2")]
    assert pattern_of("one ...\nlast").fullmatch("one x\ny\nlast")
    assert not pattern_of("one\nlast").fullmatch("one\nmore\nlast")
    assert is_run("make demo")
    assert not is_run("make test")


def test_make_targets_named_in_documents_exist():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    for file in git_files():
        if file.suffix == ".md":
            text = file.read_text(encoding="utf-8")
            code = re.findall(r"^```.*?^```|`[^`\n]+`", text, re.M | re.S)
            named = {t for part in code for t in re.findall(r"(?:^|[`\n $])make ([a-z-]+)", part)}
            assert named <= targets, file.relative_to(ROOT)


def test_make_without_a_target_lists_the_targets():
    if shutil.which("make") is None:
        pytest.skip("needs make")
    out = subprocess.run(
        ["make", "-s", "-C", ROOT], capture_output=True, text=True, check=True
    ).stdout
    for target in ("setup", "demo", "test", "check"):
        assert f"make {target} " in out


def test_no_file_names_a_place_on_this_machine():
    places = [
        str(path).encode() for path in (ROOT, SHARED, Path(sys.prefix)) if len(path.parts) > 2
    ]
    named = [
        f"{file.relative_to(ROOT)}: {place.decode()}"
        for file in git_files()
        for place in places
        if re.search(re.escape(place) + rb"(?![\w.-])", file.read_bytes())
    ]
    assert not named
