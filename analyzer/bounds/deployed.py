"""Which deployment ran: what files, logs, options and the catalogs say of it, as one setting.

Facts are merged by rank: options beat a deployment file, that beats logs, and all of them beat the
catalogs. What is left is a plain mapping (it travels as JSON), from which :func:`setting_of` makes
the setting whose bounds are asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from analyzer.bounds.ask import Ask, Setting, resolve
from analyzer.bounds.hardware import accelerator
from analyzer.bounds.models import Model, catalogued, model
from analyzer.bounds.precision import Precision, bits_of
from analyzer.bounds.shape import FeedForward, Layer, Shape
from analyzer.errors import AnalyzerError

OPTIONS, NAMED_FILE, FILE, LOG = 3, 2, 1, 0
"""Ranks: who beats whom."""

_ONE_LOAD = ("gpu_weight_bytes", "cpu_weight_bytes", "gpu_layers", "offloadable_layers")
_READ_A_STEP = ("params", "weight_bytes", "gpu_weight_bytes", "weight_bytes_per_rank")
"""Ways to say what a step reads, the most exact first; of those of one rank the first is taken."""
_ROUNDING_BYTES = 1 << 20
"""Loaders print MiB with two digits, summed over devices."""
_EMBEDDING_SHARE = 0.1
"""Largest share of the weights that an input embedding of unknown size is taken for in strict."""
_MOSTLY = 0.25
"""Share of the weights in main memory up to which they can be an embedding alone."""


@dataclass(frozen=True)
class Facts:
    """What is known of a deployment, where each value is from, and what was taken for granted."""

    values: Mapping[str, Any]
    sources: Mapping[str, str]
    notes: tuple[str, ...] = ()

    @property
    def told(self) -> list[str]:
        """Each value with its source, and the notes."""
        values = (f"{k} {_shown(self.values[k])}: {source}" for k, source in self.sources.items())
        return [*values, *self.notes]


def _shown(value: Any) -> str:  # noqa: ANN401 - number or text
    return f"{value:,.15g}" if isinstance(value, int | float) else str(value)


def merged(
    rows: Sequence[Mapping[str, Any]], options: Mapping[str, Any], served_model: str | None = None
) -> Facts:
    """Facts of one deployment.

    ``rows``: columns of table ``deployment`` with ``path`` and ``rank``, in the order they were
    read. ``served_model``: what the requests call their model, of use where nothing names another.
    """
    rows, notes = _one_load(rows)
    best: dict[str, tuple[int, Any, str]] = {}
    for row in rows:
        for name, value in row.items():
            if value is None or name in {"path", "rank", "name"}:
                continue
            if name not in best or row["rank"] >= best[name][0]:
                best[name] = (row["rank"], value, row["path"])
    for name, value in options.items():
        if value is not None:
            best[name] = (OPTIONS, value, "options")
    if "model" in best and best["model"][0] == LOG and not _known(best["model"][1]):
        # A loader's own title is no name of a catalog; the name that clients use may be.
        best.pop("model")
    if "model" not in best and served_model and _known(served_model):
        best["model"] = (LOG, served_model, "the requests' model, by the catalog")
    notes += _keep_best_weights(best)
    values = {name: best[name][1] for name in sorted(best)}
    sources = {name: best[name][2] for name in values}
    if best.get("model", (LOG,))[0] == OPTIONS:
        values["model_is_typed"] = True
    return Facts(values, sources, tuple(notes))


def _one_load(rows: Sequence[Mapping[str, Any]]) -> tuple[list[Mapping[str, Any]], list[str]]:
    """Of several loads in the logs the last, unless they are of several models."""
    loads = [row for row in rows if row["rank"] == LOG and _places(row)]
    if len(loads) < 2:
        return list(rows), []
    others = [row for row in rows if row not in loads]
    names = {row.get("model") for row in loads}
    if len(names) > 1:
        return others, ["the logs load several models: which of them ran is not told"]
    return [*others, loads[-1]], [f"the last of {len(loads)} loads in the logs"]


def _places(row: Mapping[str, Any]) -> bool:
    return any(row.get(name) is not None for name in _ONE_LOAD)


def _keep_best_weights(best: dict[str, tuple[int, Any, str]]) -> list[str]:
    ways = [name for name in _READ_A_STEP if name in best]
    if not ways:
        return []
    chosen = max(ways, key=lambda name: (best[name][0], -_READ_A_STEP.index(name)))
    dropped = [name for name in ways if name != chosen and name != "gpu_weight_bytes"]
    for name in dropped:
        best.pop(name)
    return [f"{name} is not used: {chosen} says it already" for name in dropped]


def _known(name: object) -> bool:
    try:
        catalogued(str(name))
    except AnalyzerError:
        return False
    return True


# --- facts to a setting --------------------------------------------------------------------------


def setting_of(values: Mapping[str, Any]) -> Setting:
    """The setting; :class:`AnalyzerError` says what is missing to make one."""
    part, notes = _part(values)
    found = _model(values)
    asked: dict[str, Any] = part | {
        "kv": values.get("kv"),
        "count": values.get("gpu_count"),
        **{name: values.get(name) for name in ("tp", "dp")},
        "pp": _stages(values, notes),
        **{name: values.get(name) for name in ("drafts", "acceptance", "tokens_per_step")},
    }
    if values.get("params"):
        at = _of_params(values, asked, found, notes)
    elif held := _held_bytes(values):
        at = _of_bytes(values, asked, found, held, notes)
    elif found is not None:
        # The ask names the model as it was told: the name may tell the precision too.
        at = resolve(Ask(**asked, model=values["model"], weights=_format(values)), found)
    else:
        raise AnalyzerError(
            "what a step reads is not told",
            "name a model of the catalog, or params and weight_bytes_per_param, in deployment.json",
        )
    at = _with_kv(at, values)
    at = _with_host(at, values, notes)
    if not at.ask.count and not at.ask.tp:
        notes.append("one GPU: gpu_count is not told")
    kept = [text for text in at.assumed if not text.startswith("context ")]
    return replace(at, assumed=(*kept, *notes))


def _stages(values: Mapping[str, Any], notes: list[str]) -> int | None:
    """Stages as told; a loader that counts layers gives each device some of them."""
    count, layers = values.get("gpu_count") or 1, values.get("gpu_layers")
    if count > 1 and layers and not any(values.get(name) for name in ("tp", "pp", "dp")):
        notes.append(f"its {count} GPUs have layers of their own, a token passes them in turn: pp")
        return int(count)
    return values.get("pp")


def _part(values: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Options of the part; a name that no catalog has needs its bandwidth."""
    rate, memory = values.get("memory_bandwidth_bytes_per_s"), values.get("memory_bytes")
    figures = {"memory_bandwidth_bytes_s": rate or None, "memory_bytes": memory or None}
    name = values.get("gpu")
    if name is None:
        if not rate:
            raise AnalyzerError(
                "which GPU ran is not told",
                'deployment.json: {"gpu": "NVIDIA H100 80GB HBM3", "gpu_count": 1}, '
                "or memory_bandwidth_gb_s",
            )
        return figures, ["no rate of computing is known without the GPU's name"]
    try:
        accelerator(str(name))
    except AnalyzerError as error:
        if not rate:
            hint = f"{error.hint}, or memory_bandwidth_gb_s in deployment.json"
            raise AnalyzerError(error.message, hint) from None
        return figures, [f"{error.message}: only its bandwidth is known, no rate of computing"]
    return figures | {"gpu": str(name)}, []


def _model(values: Mapping[str, Any]) -> Model | None:
    """Only who types a path may mean a file; a name in a log or a file is looked up."""
    name = values.get("model")
    if name and values.get("model_is_typed"):
        return model(str(name))
    return catalogued(str(name)) if name and _known(name) else None


def _format(values: Mapping[str, Any]) -> str | None:
    """Weight format of the options, or the size that a file tells."""
    if values.get("weights"):
        return str(values["weights"])
    if each := values.get("weight_bytes_per_param"):
        return f"{8 * each:.6g}bpw"
    told = values.get("weight_format")
    try:
        return str(told) if told and bits_of(str(told)) else None
    except AnalyzerError:  # an engine's own word, such as compressed-tensors, tells no size
        return None


def _of_params(
    values: Mapping[str, Any], asked: dict[str, Any], found: Model | None, notes: list[str]
) -> Setting:
    """Parameters read a step, as they are told; the cache by figures, else by the model."""
    figures = {name: values.get(name) for name in ("layers", "kv_heads", "head_dim", "hidden")}
    known = all(figures[name] for name in ("layers", "kv_heads", "head_dim"))
    if not _format(values):
        notes.append("2 bytes a parameter: weight_bytes_per_param is not told")
    if not known:
        figures = dict.fromkeys(figures)
    at = resolve(Ask(**asked, params=values["params"], weights=_format(values), **figures))
    if known or found is None:
        return at
    notes.append(f"KV cache of {found.key}")
    read = FeedForward(round(values["params"]))
    return replace(at, model=replace(at.model, shape=_cached_like(found.shape, read)))


def _cached_like(shape: Shape, read: FeedForward) -> Shape:
    """The cache of a model around parameters that are told otherwise."""
    caches = [replace(one, params=0) for one in shape.attention]
    layers = [Layer(one, None, 0) for one in caches] + [Layer(None, read, 0)]
    return Shape("inline", shape.hidden, 0, tied=True, layers=tuple(layers), final_norm=0)


def _held_bytes(values: Mapping[str, Any]) -> float:
    """All weights in all memories."""
    if values.get("weight_bytes"):
        return float(values["weight_bytes"])
    if values.get("weight_bytes_per_rank"):
        ranks = (values.get("tp") or 1) * (values.get("pp") or 1)
        return float(values["weight_bytes_per_rank"] * ranks)
    placed = values.get("gpu_weight_bytes") or 0
    return float(placed + (values.get("cpu_weight_bytes") or 0)) if placed else 0.0


def _of_bytes(
    values: Mapping[str, Any], asked: dict[str, Any], found: Model | None, held: float,
    notes: list[str],
) -> Setting:  # fmt: skip
    """Bytes of the weights as they were loaded; the input embedding is looked up, never read."""
    embedding = values.get("input_embedding_bytes")
    if found is not None:
        at = resolve(Ask(**asked, model=values["model"], weights=_format(values)), found)
        told = at.assumed if values.get("weights") else tuple(
            text for text in at.assumed if not text.startswith("weights ")
        )  # fmt: skip
        notes.append("the bytes that were loaded are spread as the parameters are")
        shape, precision = at.shape, at.precision
        if embedding:
            size = precision.of_file(shape, max(held - embedding, 1.0), 0.0)
            return replace(at, precision=size, strict_precision=size, assumed=told)
        each = held / shape.total_params
        return replace(
            at,
            precision=precision.of_file(shape, held, each),
            strict_precision=precision.of_file(shape, held, max(each, 2.0)),
            assumed=told,
        )
    read = held - (embedding or 0)
    figures = {name: values.get(name) for name in ("layers", "kv_heads", "head_dim", "hidden")}
    if not all(figures[name] for name in ("layers", "kv_heads", "head_dim")):
        figures = dict.fromkeys(figures)
    # As many parameters as could be the fewest; only the rate of computing depends on it.
    at = resolve(Ask(**asked, params=max(read, 2.0) / 2, weights="bf16", **figures))
    notes.append("all loaded weights are read for each token: of experts fewer would be")
    least = at.precision
    if not embedding:
        notes.append("the loaded weights may hold an input embedding: a tenth less in strict")
        least = _scaled(least, 1 - _EMBEDDING_SHARE)
    return replace(at, precision=replace(at.precision, name="as loaded"), strict_precision=least)


def _scaled(precision: Precision, factor: float) -> Precision:
    sizes = ("attention_bytes", "dense_bytes", "expert_bytes", "head_bytes", "other_bytes")
    return replace(precision, **{name: getattr(precision, name) * factor for name in sizes})


def _with_kv(at: Setting, values: Mapping[str, Any]) -> Setting:
    size = values.get("kv_bytes_per_value")
    if not size or values.get("kv"):
        return at
    if not 0 < size <= 4:
        raise AnalyzerError(f"kv_bytes_per_value {size:g} is no size of a value", "give 2, 1, ...")
    return replace(
        at,
        precision=replace(at.precision, kv_bytes=size, kv_told=True),
        strict_precision=replace(at.strict_precision, kv_bytes=size, kv_told=True),
        assumed=tuple(text for text in at.assumed if not text.startswith("KV cache: 8 bits")),
    )


def _with_host(at: Setting, values: Mapping[str, Any], notes: list[str]) -> Setting:
    """Weights that a step reads from main memory, where its bandwidth is told."""
    read = _host_bytes(values, notes)
    if not read:
        return at
    rate = values.get("cpu_memory_bandwidth_bytes_per_s")
    if not rate:
        notes.append(
            "weights in main memory are taken to be read at the GPU's speed: "
            "cpu_memory_bandwidth_gb_s is not told"
        )
        return at
    ask = replace(at.ask, cpu_weight_bytes=read, cpu_bandwidth_bytes_s=rate)
    notes.append(f"{read / 1e9:.3g} GB of weights are read from main memory, and add to the step")
    return replace(at, ask=ask)


def _host_bytes(values: Mapping[str, Any], notes: list[str]) -> float:
    """Of the weights in main memory those that are read: not the rows of the input embedding."""
    if values.get("host_read_bytes"):
        return float(values["host_read_bytes"])
    held = float(values.get("cpu_weight_bytes") or 0)
    if not held:
        return 0.0
    on_gpu, layers = values.get("gpu_layers"), values.get("offloadable_layers")
    if embedding := values.get("input_embedding_bytes"):
        notes.append("the input embedding lies in main memory, and one row a token is read")
        rest = held - embedding
        return rest if rest >= _ROUNDING_BYTES else 0.0
    if on_gpu is None or layers is None:
        return held
    placed = float(values.get("gpu_weight_bytes") or 0)
    if on_gpu >= layers and held <= _MOSTLY * (held + placed):
        notes.append("what lies in main memory is taken for the input embedding")
        return 0.0
    if 0 < on_gpu < layers:
        notes.append("the input embedding's size is not told: layers are taken to be alike")
        return min(held, placed / float(on_gpu) * float(layers - on_gpu))
    return held


def is_offloaded(values: Mapping[str, Any]) -> bool:
    """Whether weights that a step reads lie in main memory, its bandwidth told or not."""
    return _host_bytes(values, []) > 0


def options_of(told: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of an :class:`Ask` by the names that facts have."""
    names = {
        "memory_bandwidth_bytes_s": "memory_bandwidth_bytes_per_s",
        "cpu_bandwidth_bytes_s": "cpu_memory_bandwidth_bytes_per_s",
        "cpu_weight_bytes": "host_read_bytes",  # the option means what is read, no embedding
        "count": "gpu_count",
    }
    asked = {field.name for field in fields(Ask)} - {"batch", "context", "prompt", "cached"}
    return {names.get(k, k): v for k, v in told.items() if v is not None and k in asked}
