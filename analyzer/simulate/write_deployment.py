"""The deployment file: what a replica is, as its operators know it."""

from __future__ import annotations

import json
from pathlib import Path

from analyzer.simulate.outcome import Base
from analyzer.simulate.steps import blocks_of, setting_of
from analyzer.simulate.world import Log, World


def recorder(folder: Path, log: Log, world: World) -> Base:
    """Of the replica that the log names, else of the engine that all have; ``options`` are added.

    Where steps are told part by part there is no GPU behind them, and none is named.
    """
    setup = world.engine
    if log.replica is not None:
        named = next((one for one in world.replicas if one.name == log.replica), world.replicas[0])
        setup = world.engine_of(named)
    told: dict[str, object] = {
        "name": log.replica, "model": setup.model, "max_running": setup.max_running,
        "kv_capacity_tokens": blocks_of(setup) * setup.block_tokens,
    }  # fmt: skip
    if setup.step is None:
        one = setting_of(setup)
        told |= {
            "gpu": one.part.device_names[0] if one.part.device_names else setup.gpu,
            "gpu_count": one.layout.devices,
            "tp": setup.tp,
            "memory_bandwidth_gb_s": one.part.bandwidth_bytes_s / 1e9,
        }
    told |= log.options
    fields = {
        key: value for key, value in told.items() if value is not None and key not in log.missing
    }
    text = json.dumps(fields, indent=2) + "\n"
    (folder / (log.file or "deployment.json")).write_text(text, encoding="utf-8", newline="\n")
    return Base()
