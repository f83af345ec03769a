"""Names and units of device counters, over DCGM, its exporter and nvidia-smi."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

MIB = 1024 * 1024
_BLANK = Decimal(2_147_483_632)
"""From here on DCGM writes that a field has no value, or none that may be read."""
PERCENT, SHARE = Decimal("0.01"), Decimal(1)


@dataclass(frozen=True)
class Counter:
    """Column of ``gpu_sample``, and what a value is multiplied by. A higher rank is preferred."""

    column: str
    factor: Decimal
    rank: int = 0


_USED, _TRAFFIC = "gpu_used_ratio", "memory_traffic_ratio"
EXPORTER = {
    "DCGM_FI_DEV_GPU_UTIL": Counter(_USED, PERCENT),
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": Counter(_USED, SHARE, 1),
    "DCGM_FI_PROF_DRAM_ACTIVE": Counter("memory_busy_ratio", SHARE),
    "DCGM_FI_DEV_MEM_COPY_UTIL": Counter(_TRAFFIC, PERCENT),
    "DCGM_FI_PROF_SM_ACTIVE": Counter("sm_active_ratio", SHARE),
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": Counter("tensor_active_ratio", SHARE),
    "DCGM_FI_DEV_FB_USED": Counter("memory_used_bytes", Decimal(MIB)),
    "DCGM_FI_DEV_FB_TOTAL": Counter("memory_total_bytes", Decimal(MIB)),
    "DCGM_FI_DEV_POWER_USAGE": Counter("power_w", SHARE),
    "DCGM_FI_DEV_SM_CLOCK": Counter("sm_clock_hz", Decimal(1_000_000)),
    "DCGM_FI_DEV_GPU_TEMP": Counter("temperature_c", SHARE),
}
DMON = {
    "GRACT": EXPORTER["DCGM_FI_PROF_GR_ENGINE_ACTIVE"],
    "GPUTL": EXPORTER["DCGM_FI_DEV_GPU_UTIL"],
    "SMACT": EXPORTER["DCGM_FI_PROF_SM_ACTIVE"],
    "TENSO": EXPORTER["DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"],
    "DRAMA": EXPORTER["DCGM_FI_PROF_DRAM_ACTIVE"],
    "MCUTL": EXPORTER["DCGM_FI_DEV_MEM_COPY_UTIL"],
    "FBUSD": EXPORTER["DCGM_FI_DEV_FB_USED"],
    "FBTTL": EXPORTER["DCGM_FI_DEV_FB_TOTAL"],
    "POWER": EXPORTER["DCGM_FI_DEV_POWER_USAGE"],
    "SMCLK": EXPORTER["DCGM_FI_DEV_SM_CLOCK"],
    "TMPTR": EXPORTER["DCGM_FI_DEV_GPU_TEMP"],
}
"""Short names of ``dcgmi dmon``."""
SMI_DMON = {
    "pwr": Counter("power_w", SHARE),
    "gtemp": Counter("temperature_c", SHARE),
    "temp": Counter("temperature_c", SHARE),
    "sm": Counter(_USED, PERCENT),
    "mem": Counter(_TRAFFIC, PERCENT),
    "pclk": Counter("sm_clock_hz", Decimal(1_000_000)),
    "fb": Counter("memory_used_bytes", Decimal(MIB)),
}
"""Columns of ``nvidia-smi dmon``."""
SMI = {
    "utilization.gpu": Counter(_USED, PERCENT),
    "utilization.memory": Counter(_TRAFFIC, PERCENT),
    "memory.used": Counter("memory_used_bytes", Decimal(MIB)),
    "memory.total": Counter("memory_total_bytes", Decimal(MIB)),
    "power.draw": Counter("power_w", SHARE),
    "power.draw.average": Counter("power_w", SHARE),
    "power.draw.instant": Counter("power_w", SHARE, 1),
    "clocks.sm": Counter("sm_clock_hz", Decimal(1_000_000)),
    "clocks.current.sm": Counter("sm_clock_hz", Decimal(1_000_000)),
    "temperature.gpu": Counter("temperature_c", SHARE),
}
"""Fields of ``nvidia-smi --query-gpu``."""


def measured(counter: Counter, value: Decimal | None) -> float | int | None:
    """A value in the unit of its column; None where the source says it has none."""
    if value is None or not value.is_finite() or value < 0 or value >= _BLANK:
        return None
    found = value * counter.factor
    if counter.column.endswith("_bytes"):
        return int(found)
    return None if counter.column.endswith("_ratio") and found > 1 else float(found)
