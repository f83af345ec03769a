"""Merges what is told of a deployment and looks its names up in the catalogs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from analyzer.bounds import deployed
from analyzer.bounds.ask import Setting
from analyzer.errors import AnalyzerError

_OF_REQUESTS = frozenset({"label", "served_model", "requests", "told"})
_PROVENANCE = frozenset({"source_id", "record", "is_file"})
_UNKNOWN = (None,) * 9
"""Model, part, devices, layout, weights, bits of the cache, bytes of the weights, expert layers."""
_HOW = "add a deployment.json, or give analyze bounds its options"


def rows(told: list[dict[str, Any]]) -> Iterator[tuple[Any, ...]]:
    """One row a group; ``told`` has one a group and deployment row, in order."""
    groups = [
        (label, model, list(group))
        for (label, model), group in groupby(told, lambda one: (one["label"], one["served_model"]))
    ]
    served = {_plain(model) for _, model, _ in groups}
    for label, model, group in groups:
        options = deployed.options_of(json.loads(group[0]["told"] or "{}"))
        everything = [_row(one) for one in group if one["source_id"] is not None]
        others = served - {_plain(model), ""}
        mine = [row for row in everything if _plain(str(row.get("model", ""))) not in others]
        facts = deployed.merged(mine, options, model or None)
        # What is told of a model that others of these requests ask for is theirs alone.
        foreign = next((str(row["model"]) for row in everything if row not in mine), None)
        yield _group(label, model, group[0]["requests"], facts, foreign)


def _row(one: dict[str, Any]) -> dict[str, Any]:
    """Columns of the deployment with its rank; what is not above 0 is no figure."""
    rank = deployed.LOG
    if one["is_file"]:
        rank = deployed.FILE if one["name"] is None else deployed.NAMED_FILE
    columns = {k: v for k, v in one.items() if k not in _OF_REQUESTS | _PROVENANCE}
    figures = {
        k: v
        for k, v in columns.items()
        if isinstance(v, str) or (v is not None and (v > 0 or k == "gpu_layers"))
    }
    return figures | {"rank": rank}


def _plain(name: str) -> str:
    return name.lower().rpartition("/")[2]


def _group(
    label: str, model: str, requests: int, facts: deployed.Facts, foreign: str | None
) -> tuple[Any, ...]:
    values = dict(facts.values)
    by_requests = "the requests' model" in facts.sources.get("model", "")
    unit = label or (model if by_requests or foreign else "")
    head = (label, model, unit, requests)
    at, why = _setting(values)
    if at is None:
        why = f"the deployment runs {foreign}, not this model" if foreign else why
        known = (deployed.is_offloaded(values), False, json.dumps(facts.told))
        return (*head, False, why, json.dumps(values), *_UNKNOWN, 1, *known)
    return (*head, True, None, json.dumps(values), *_of(at, values, facts))


def _setting(values: dict[str, Any]) -> tuple[Setting | None, str]:
    """The setting, or why there is none."""
    try:
        at = deployed.setting_of(values)
    except (AnalyzerError, ArithmeticError, ValueError) as error:
        return None, f"{error}: {getattr(error, 'hint', None) or _HOW}"
    if not at.part.bandwidth_bytes_s * at.precision.dense_bytes > 0:
        return None, f"its figures give no time: {_HOW}"
    return at, ""


def _of(at: Setting, values: dict[str, Any], facts: deployed.Facts) -> tuple[Any, ...]:
    by_bytes = at.model.key == "inline" and not values.get("params")
    return (
        at.model.key,
        at.part.key,
        at.layout.devices,
        at.layout_name,
        at.precision.name,
        8 * at.precision.kv_bytes,
        at.precision.fixed_bytes(at.shape) + at.shape.routed_params * at.precision.expert_bytes,
        at.ask.cpu_weight_bytes or 0.0,
        sum(count for _, count in at.shape.expert_kinds),
        at.replicas,
        deployed.is_offloaded(values),
        by_bytes,
        json.dumps([*facts.told, *at.assumed]),
    )
