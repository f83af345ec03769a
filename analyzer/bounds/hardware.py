"""An accelerator as a bound sees it: memory, bandwidth, peak rates. SI units, dense rates."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files

from analyzer.errors import AnalyzerError, near

_GB = 1e9
_TERA = 1e12


@dataclass(frozen=True)
class Accelerator:
    """Peaks of one device. A rate that no source gives is None; nothing stands in for it.

    ``flops_16bit`` accumulates in fp32, ``flops_16bit_fast`` in fp16, which GeForce parts do at
    twice the rate. ``confidence`` is high, medium or low, as the sources agree.
    """

    key: str
    vendor: str
    device_names: tuple[str, ...]
    memory_bytes: float
    bandwidth_bytes_s: float
    flops_16bit: float | None = None
    flops_16bit_fast: float | None = None
    flops_fp8: float | None = None
    ops_int8: float | None = None
    flops_fp4: float | None = None
    link_bytes_s: float | None = None
    note: str = ""
    sources: str = ""
    confidence: str = ""

    def fastest(self, weight_bits: float) -> float | None:
        """Highest rate a kernel could use for weights of that width; for a bound nothing beats."""
        rates = [self.flops_16bit, self.flops_16bit_fast]
        if weight_bits <= 9:
            rates += [self.flops_fp8, self.ops_int8]
        if weight_bits <= 5:
            rates.append(self.flops_fp4)
        return max((rate for rate in rates if rate), default=None)

    def usual(self, weight_bits: float, *, four_bit: bool = False) -> float | None:
        """Rate of the common kernels: weight-only 4 bits compute in 16, 8 bits in 8.

        ``four_bit``: the format is one that new parts multiply in 4 bits (NVFP4, MXFP4).
        """
        if four_bit and weight_bits <= 5 and self.flops_fp4:
            return self.flops_fp4
        if 7 <= weight_bits <= 9:
            return self.flops_fp8 or self.ops_int8 or self.flops_16bit
        return self.flops_16bit


@cache
def accelerators() -> dict[str, Accelerator]:
    """Key -> accelerator, of the catalog that ships with the package."""
    text = files("analyzer.catalogs").joinpath("accelerators.csv").read_text(encoding="utf-8")
    return {row["key"]: _of_row(row) for row in csv.DictReader(text.splitlines())}


def _of_row(row: dict[str, str]) -> Accelerator:
    def number(name: str, unit: float) -> float | None:
        return float(row[name]) * unit if row[name] else None

    return Accelerator(
        key=row["key"],
        vendor=row["vendor"],
        device_names=tuple(filter(None, map(str.strip, row["device_names"].split(";")))),
        memory_bytes=float(row["memory_gb"]) * _GB,
        bandwidth_bytes_s=float(row["bandwidth_gb_s"]) * _GB,
        flops_16bit=number("tflops_16bit", _TERA),
        flops_16bit_fast=number("tflops_16bit_fp16_accumulate", _TERA),
        flops_fp8=number("tflops_fp8", _TERA),
        ops_int8=number("tops_int8", _TERA),
        flops_fp4=number("tflops_fp4", _TERA),
        link_bytes_s=number("link_gb_s", _GB),
        note=row["note"],
        sources=row["sources"],
        confidence=row["confidence"],
    )


def accelerator(name: str) -> Accelerator:
    """Accelerator of a catalog key, or of the name a driver, trace or ``nvidia-smi`` prints.

    Names are compared whole: an A10G is no A10, and the 480GB of a GH200 are not its HBM. Raises
    :class:`AnalyzerError` where the name is not known, or stands for several parts.
    """
    catalog = accelerators()
    if name.lower() in catalog:
        return catalog[name.lower()]
    wanted = _normal(name)
    found = [one for one in catalog.values() if wanted in map(_normal, one.device_names)]
    if not found:
        found = [one for one in catalog.values() if wanted == _normal(one.key)]
    if len(found) == 1:
        return found[0]
    if found:
        keys = " or ".join(one.key for one in found)
        raise AnalyzerError(f"{name!r} stands for several parts", f"name one: {keys}")
    raise _unknown(name)


def _unknown(name: str) -> AnalyzerError:
    spelled = {one.key: one.key for one in accelerators().values()}
    for one in accelerators().values():
        spelled |= {_normal(text): one.key for text in one.device_names}
    meant = dict.fromkeys(spelled[text] for text in near(_normal(name), spelled))
    did = f"did you mean {' or '.join(meant)}? Or give" if meant else "give"
    return AnalyzerError(
        f"no accelerator {name!r} in the catalog",
        f"{did} its figures to analyze bounds: --memory-bandwidth 3350GB/s, --memory 80GB",
    )


def _normal(name: str) -> str:
    """Vendors add and drop their own name, (R), dashes and spaces; nothing else is ignored."""
    text = re.sub(_SAID_OR_NOT, " ", name.lower())
    return re.sub(r"[\s_-]+", "", text)


_SAID_OR_NOT = r"\((?:r|tm)\)|\b(?:nvidia|amd|intel|tesla|geforce|instinct|graphics)\b"


def custom(bandwidth_bytes_s: float, memory_bytes: float | None = None) -> Accelerator:
    """A part of which only figures are known."""
    return Accelerator("custom", "", (), memory_bytes or 0.0, bandwidth_bytes_s)


def with_figures(
    part: Accelerator, bandwidth_bytes_s: float | None, memory_bytes: float | None
) -> Accelerator:
    """The same part with what somebody states for it."""
    return replace(
        part,
        bandwidth_bytes_s=bandwidth_bytes_s or part.bandwidth_bytes_s,
        memory_bytes=memory_bytes or part.memory_bytes,
    )


def gpu_names() -> list[str]:
    """Every key and device name, for completion."""
    catalog = accelerators().values()
    return sorted({name for one in catalog for name in (one.key, *one.device_names)})
