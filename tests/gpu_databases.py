"""Writes the sample databases of profilers; ``python tests/gpu_databases.py`` writes them again.

They must hold no line feed, for the tests that change the line ends of every sample: so no index
(their pages begin with one), no table of nine columns, no row ten.
"""

from __future__ import annotations

import random
import sqlite3
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

SAMPLES = Path(__file__).parents[1] / "sample_traces"
EPOCH_NS = 1_771_000_000_000_000_000
CUPTI = "CUPTI_ACTIVITY_KIND_"
VM = 1 << 48


def pid(number: int) -> int:
    """A serialized global id of a process."""
    return VM | number << 24


def tid(number: int) -> int:
    """The same of its main thread."""
    return pid(number) | number


NSYS = {
    "StringIds": ("id INTEGER PRIMARY KEY, value TEXT", [
        (1, "void cutlass::device_kernel<flash::FlashAttnFwdSm90<(int)128>>"),
        (2, "device_kernel"),
        (3, "nvjet_tst_128x64_64x6_v_bz_TNN"),
        (4, "cudaLaunchKernel_v7000"),
        (5, "cudaGraphLaunch_v10000"),
        (6, "cudaStreamIsCapturing_v10000"),
        (7, "[Executor] _forward_step 3: 0 ctx reqs, 0 ctx tokens, 4 gen reqs"),
        (8, "CUPTI Instrumentation"),
    ]),
    "META_DATA_EXPORT": ("name TEXT, value TEXT", [
        ("EXPORT_PRODUCT_VERSION", "2025.1.1"), ("EXPORT_SCHEMA_VERSION", "3.18.0"),
        ("EXPORT_PARAM_TIME_SHIFT", "0"),
    ]),
    "TARGET_INFO_SESSION_START_TIME": (
        "utcEpochNs INTEGER, systemClockNs INTEGER", [(EPOCH_NS, 77)],
    ),
    "TARGET_INFO_GPU": ("id INTEGER, name TEXT, memoryBandwidth INTEGER", [
        (0, "NVIDIA H200", 4_916_000_000_000), (1, "NVIDIA H200", 4_916_000_000_000),
    ]),
    "DIAGNOSTIC_EVENT": ("severity INTEGER, text TEXT", [
        (1, "Profiling has started."), (2, "Not all CUDA events might have been collected."),
    ]),
    # Loading a module (6) is the program's own time, instrumentation (4) the profiler's.
    "PROFILER_OVERHEAD": (
        "start INTEGER, end INTEGER, globalTid INTEGER, nameId INTEGER, overheadType INTEGER",
        [(1000, 41_000, tid(501), 8, 4), (1000, 99_000, tid(501), 8, 6)],
    ),
    f"{CUPTI}KERNEL": (
        "start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER, "
        "correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, shortName INTEGER, "
        "gridX INTEGER, gridY INTEGER, gridZ INTEGER, blockX INTEGER, blockY INTEGER, "
        "blockZ INTEGER, graphNodeId INTEGER",
        [
            # Two containers: each calls its device 0, and both count correlations from one.
            (5_000_000, 5_040_000, 0, 1, 7, 21, pid(501), 1, 2, 132, 1, 1, 384, 1, 1, None),
            (5_000_500, 5_041_500, 0, 1, 7, 21, pid(502), 1, 2, 132, 1, 1, 384, 1, 1, None),
            (5_100_000, 5_125_000, 0, 1, 7, 23, pid(501), 3, 3, 64, 2, 1, 128, 1, 1, 12 << 32 | 3),
        ],
    ),
    f"{CUPTI}MEMCPY": (
        "start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, correlationId INTEGER, "
        "globalPid INTEGER, bytes INTEGER, copyKind INTEGER, srcKind INTEGER, dstKind INTEGER",
        [(4_990_000, 4_992_000, 0, 13, 20, pid(501), 4096, 1, 1, 2)],
    ),
    f"{CUPTI}MEMSET": (
        "start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, correlationId INTEGER, "
        "globalPid INTEGER, value INTEGER, bytes INTEGER",
        [(4_995_000, 4_996_000, 0, 7, 19, pid(501), 0, 512)],
    ),
    f"{CUPTI}GRAPH_TRACE": (
        "start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, correlationId INTEGER, "
        "globalPid INTEGER, graphId INTEGER",
        [
            (5_100_500, 5_900_500, 0, 7, 23, pid(502), 12),
            (0, 0, 0, 7, 24, pid(502), 12),
        ],
    ),
    f"{CUPTI}RUNTIME": (
        "start INTEGER, end INTEGER, globalTid INTEGER, correlationId INTEGER, nameId INTEGER",
        [
            (4_980_000, 4_985_000, tid(501), 21, 4),
            (4_986_000, 4_986_800, tid(501), 22, 6),
            (5_050_000, 5_062_000, tid(501), 23, 5),
            (5_050_500, 5_062_500, tid(502), 23, 5),
        ],
    ),
    "NVTX_EVENTS": (
        "start INTEGER, end INTEGER, eventType INTEGER, text TEXT, globalTid INTEGER, "
        "textId INTEGER",
        [
            (4_970_000, 6_000_000, 59, None, tid(501), 7),
            (4_979_000, 4_985_500, 59, "aten::mm, op_id = 44", tid(501), None),
            (4_979_000, 5_185_500, 59, "aten::linear, op_id = 43, seq = 5", tid(501), None),
            (4_970_000, None, 34, "a mark", tid(501), None),
        ],
    ),
}  # fmt: skip

GUID = "_0195aa00_1111_7222_8333_444455556666"
ROCPD = {
    f"rocpd_metadata{GUID}": ("id INTEGER PRIMARY KEY, tag TEXT, value TEXT", [
        (1, "schema_version", "3"),
    ]),
    f"rocpd_string{GUID}": ("id INTEGER PRIMARY KEY, guid TEXT, string TEXT", [
        (1, "g", "HIP_RUNTIME_API_EXT"), (2, "g", "hipGraphLaunch"), (3, "g", "hipGetDevice"),
        (4, "g", "MARKER_CORE_RANGE_API"), (5, "g", "step[DECODE bs=8]"),
        (6, "g", "MEMORY_COPY_DEVICE_TO_HOST"), (7, "g", "KERNEL_DISPATCH"),
    ]),
    f"rocpd_info_agent{GUID}": (
        "id INTEGER PRIMARY KEY, type TEXT, absolute_index INTEGER, type_index INTEGER, "
        "product_name TEXT",
        [(1, "CPU", 0, 0, "AMD EPYC"), (2, "GPU", 1, 0, "AMD Instinct MI355X")],
    ),
    f"rocpd_info_kernel_symbol{GUID}": (
        "id INTEGER PRIMARY KEY, kernel_name TEXT, display_name TEXT",
        [
            (4, "_ZN5aiter7pa_fwdEv.kd", "aiter::pa_fwd()"),
            (5, "Cijk_Alik_Bljk_F8BS.kd", "Cijk_Alik_Bljk_F8BS"),
        ],
    ),
    f"rocpd_event{GUID}": (
        "id INTEGER PRIMARY KEY, category_id INTEGER, stack_id INTEGER, correlation_id INTEGER",
        [(1, 1, 71, 0), (2, 7, 71, 0), (3, 7, 71, 0), (4, 4, 72, 0), (5, 1, 73, 0), (6, 6, 74, 0)],
    ),
    f"rocpd_kernel_dispatch{GUID}": (
        "id INTEGER PRIMARY KEY, pid INTEGER, agent_id INTEGER, kernel_id INTEGER, "
        "queue_id INTEGER, stream_id INTEGER, start INTEGER, end INTEGER, "
        "workgroup_size_x INTEGER, workgroup_size_y INTEGER, workgroup_size_z INTEGER, "
        "grid_size_x INTEGER, grid_size_y INTEGER, grid_size_z INTEGER, event_id INTEGER",
        [
            (1, 1, 2, 4, 1, 3, 700_000_100_000, 700_000_130_000, 256, 1, 1, 2048, 4, 1, 2),
            (2, 1, 2, 5, 1, 3, 700_000_130_000, 700_000_190_000, 256, 1, 1, 1000, 1, 1, 3),
        ],
    ),
    f"rocpd_memory_copy{GUID}": (
        "id INTEGER PRIMARY KEY, start INTEGER, end INTEGER, name_id INTEGER, "
        "dst_agent_id INTEGER, src_agent_id INTEGER, size INTEGER, stream_id INTEGER, "
        "event_id INTEGER, pid INTEGER",
        [(1, 700_000_200_000, 700_000_204_000, 6, 1, 2, 64, 3, 6, 1)],
    ),
    f"rocpd_region{GUID}": (
        "id INTEGER PRIMARY KEY, pid INTEGER, tid INTEGER, start INTEGER, end INTEGER, "
        "name_id INTEGER, event_id INTEGER",
        [
            (1, 1, 1, 700_000_050_000, 700_000_062_000, 2, 1),
            (2, 1, 1, 700_000_040_000, 700_000_240_000, 5, 4),
            (3, 1, 1, 700_000_045_000, 700_000_046_000, 3, 5),
        ],
    ),
}  # fmt: skip


SMALL = {
    name: table for name, table in NSYS.items()
    if name not in ("META_DATA_EXPORT", "DIAGNOSTIC_EVENT", "PROFILER_OVERHEAD", f"{CUPTI}MEMSET")
}  # fmt: skip
"""As many tables as can be had without a page ten."""


def write(path: Path, tables: dict, padding: int = 0) -> None:
    """A database of these tables; ``padding`` moves what lies in it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    database = sqlite3.connect(path)
    database.execute("PRAGMA page_size = 4096")
    dice = random.Random(padding)
    for name, (columns, rows) in tables.items():
        blanks = " " * dice.randrange(300) if padding else ""
        database.execute(f"CREATE TABLE {name} ({columns}{blanks})")
        for row in rows:
            marks = ", ".join("?" * len(row))
            database.execute(f"INSERT INTO {name} VALUES ({marks})", row)
    database.commit()
    database.close()


def write_copies(path: Path, first: int) -> None:
    """The copies of an export as Parquet; copies alone need no table of names."""
    columns, _ = NSYS[f"{CUPTI}MEMCPY"]
    names = [column.split()[0] for column in columns.split(", ")]
    rows = [
        (first, first + 2000, 0, 13, 20, pid(501), 4096, 1, 1, 2),
        (first + 5000, first + 9000, 0, 13, 21, pid(501), 64, 2, 2, 0),
    ]
    arrays = [pa.array(column, pa.int64()) for column in zip(*rows, strict=True)]
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(
        pa.table(arrays, names), path, compression="none", use_dictionary=False,
        write_statistics=False, store_schema=False,
    )  # fmt: skip


def main() -> None:
    """All samples."""
    path, first = SAMPLES / f"nsys_tables/{CUPTI}MEMCPY.parquet", 4_990_000
    write_copies(path, first)
    while b"\n" in path.read_bytes() and first < 5_990_000:
        first += 1000
        write_copies(path, first)
    for name, tables in (("nsys_sqlite/decode.sqlite", SMALL), ("rocpd/decode.db", ROCPD)):
        path, padding = SAMPLES / name, 0
        write(path, tables)
        while b"\n" in path.read_bytes():
            padding += 1
            write(path, tables, padding)


if __name__ == "__main__":
    main()
