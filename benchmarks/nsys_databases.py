"""How fast a profiler's database is read, against the barest way to get its tables into Arrow.

``python benchmarks/nsys_databases.py [--megabytes 300] [--export FILE]`` writes an export of Nsight
Systems in SQLite: some steps of two devices, or a real export that is named, again and again with
later times. It times whole processes: ingest into a new case and a sum by kernel; and a scan with
ADBC, into Arrow and no further, of the columns that a trace is made of.
"""

from __future__ import annotations

import argparse
import os
import random
import sqlite3
import sys
import tempfile
from contextlib import closing
from pathlib import Path

from gpu_traces import OURS
from run import best, cost

BARE = """
import sys
import adbc_driver_sqlite.dbapi as adbc
place = ["start", "end", "deviceId", "streamId", "correlationId", "globalPid"]
node = "coalesce(graphNodeId, 0)"
axes = ["gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ"]
tables = {
    "CUPTI_ACTIVITY_KIND_KERNEL": [*place, node, "demangledName", *axes],
    "CUPTI_ACTIVITY_KIND_MEMCPY": [*place, node, "bytes", "copyKind", "srcKind", "dstKind"],
    "CUPTI_ACTIVITY_KIND_MEMSET": [*place, node, "bytes"],
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": [*place, "syncType"],
    "CUPTI_ACTIVITY_KIND_RUNTIME": ["start", "end", "globalTid", "correlationId", "nameId"],
    "NVTX_EVENTS": ["start", "coalesce(end, 0)", "eventType", "globalTid", "coalesce(text, '')",
                    "coalesce(textId, 0)"],
    "StringIds": ["id", "value"],
}
rows = 0
with adbc.connect(f"file:{sys.argv[1]}?mode=ro&immutable=1") as database:
    for table, cells in tables.items():
        with database.cursor() as cursor:
            cursor.adbc_statement.set_options(**{"adbc.sqlite.query.batch_rows": 65536})
            cursor.execute(f"SELECT {', '.join(cells)} FROM {table}")
            rows += sum(batch.num_rows for batch in cursor.fetch_record_batch())
print(rows)
"""
_PLACE = ("start", "end", "deviceId", "contextId", "greenContextId", "streamId", "correlationId",
          "globalPid")  # fmt: skip
LAYOUT = {
    "StringIds": ("id", "value"),
    "CUPTI_ACTIVITY_KIND_KERNEL": (
        *_PLACE, "demangledName", "shortName", "mangledName", "launchType", "cacheConfig",
        "registersPerThread", "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ",
        "staticSharedMemory", "dynamicSharedMemory", "localMemoryPerThread", "localMemoryTotal",
        "gridId", "sharedMemoryExecuted", "graphNodeId", "sharedMemoryLimitConfig",
        "qmdBulkReleaseDone", "qmdPreexitDone", "qmdLastCtaDone", "graphId", "clusterX", "clusterY",
        "clusterZ", "clusterSchedulingPolicy", "maxPotentialClusterSize", "maxActiveClusters",
        "sharedMemoryRequestedPercentage", "tensorSizeMinusOneElements",
    ),
    "CUPTI_ACTIVITY_KIND_MEMCPY": (
        *_PLACE, "bytes", "copyKind", "deprecatedSrcId", "srcKind", "dstKind", "srcDeviceId",
        "srcContextId", "dstDeviceId", "dstContextId", "migrationCause", "graphNodeId",
        "virtualAddress", "copyCount",
    ),
    "CUPTI_ACTIVITY_KIND_MEMSET": (*_PLACE, "value", "bytes", "graphNodeId", "memKind"),
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": (
        *_PLACE, "deprecatedSyncType", "syncType", "eventId", "eventSyncId",
    ),
    "CUPTI_ACTIVITY_KIND_RUNTIME": (
        "start", "end", "eventClass", "globalTid", "correlationId", "nameId", "returnValue",
        "callchainId",
    ),
    "NVTX_EVENTS": (
        "start", "end", "eventType", "rangeId", "category", "color", "text", "globalTid",
        "endGlobalTid", "textId", "domainId", "uint64Value", "int64Value", "doubleValue",
        "uint32Value", "int32Value", "floatValue", "jsonTextId", "jsonText", "binaryData",
    ),
}  # fmt: skip
_TEXTS = ("value", "text", "jsonText", "binaryData", "tensorSizeMinusOneElements")
_CALLS = (
    "cudaLaunchKernel_v7000", "cudaMemcpyAsync_v3020", "cudaStreamIsCapturing_v10000",
    "cudaEventRecordWithFlags_v11010", "cudaEventCreateWithFlags_v3020", "cudaMemsetAsync_v3020",
    "cudaStreamSynchronize_v3020",
)  # fmt: skip
_OPERATORS = ("linear", "matmul", "mm", "to", "_to_copy", "copy_", "view", "mul", "add", "empty")
_KERNELS = 1700
"""Of each process in what is repeated, which is about a second."""
Rows = dict[str, list[dict[str, int | str]]]


def steps(dice: random.Random) -> Rows:
    """Steps of two processes: operators inside ranges, their calls, and what the devices do."""
    rows: Rows = {table: [] for table in LAYOUT}
    names = [f"void cutlass::Kernel2<cutlass_80_tensorop_{i}x128_tn>(Params)" for i in range(90)]
    strings = dict(enumerate([*_CALLS, *names, "Kernel2"], start=330_000))
    rows["StringIds"] = [{"id": key, "value": value} for key, value in strings.items()]
    number = {value: key for key, value in strings.items()}

    def add(table: str, start: int, length: int, **cells: int | str) -> None:
        rows[table].append({"start": start, "end": start + length, **cells})

    for place in range(2):
        pid = 1 << 48 | (500 + place) << 24
        for i in range(_KERNELS):
            at, correlation = 155_000_000_000 + i * 580_000, 1_400_000 + i
            thread = {"globalTid": pid | 777}
            device = {
                "deviceId": place, "contextId": 1, "streamId": 7, "globalPid": pid,
                "greenContextId": 0, "correlationId": correlation,
            }  # fmt: skip
            calls = dice.choices(_CALLS, (48, 16, 8, 16, 8, 2, 1), k=2)
            for call in calls:
                length = dice.choice((900, 4_200, 9_800) * 10 + (120_000,))
                add("CUPTI_ACTIVITY_KIND_RUNTIME", at, length, **thread, eventClass=0,
                    correlationId=correlation, nameId=number[call], returnValue=0)  # fmt: skip
            for operator in dice.choices(_OPERATORS, k=5):
                text = f"aten::{operator}, op_id = {310_000 + len(rows['NVTX_EVENTS'])}"
                length = dice.choice((9_500, 13_000, 48_000) * 12 + (260_000,))
                add("NVTX_EVENTS", at, length, **thread, eventType=59, text=text, domainId=0)
            sizes = {"gridX": 132, "gridY": 4, "gridZ": 1, "blockX": 384, "blockY": 1, "blockZ": 1}
            name = number[dice.choice(names)]
            add("CUPTI_ACTIVITY_KIND_KERNEL", at + 9_000, dice.randrange(2_000, 500_000), **device,
                **sizes, demangledName=name, shortName=number["Kernel2"], mangledName=name,
                launchType=1, cacheConfig=1, registersPerThread=168, staticSharedMemory=0,
                dynamicSharedMemory=0, localMemoryPerThread=0, localMemoryTotal=250_871_808,
                gridId=correlation, sharedMemoryExecuted=32_768, sharedMemoryLimitConfig=0,
                graphId=0, clusterX=0, clusterY=0, clusterZ=0, clusterSchedulingPolicy=1,
                maxPotentialClusterSize=0, maxActiveClusters=0,
                tensorSizeMinusOneElements="[]")  # fmt: skip
            if i % 4 == 0:
                add("CUPTI_ACTIVITY_KIND_MEMCPY", at + 500_000, 2_000, **device, bytes=4096 * i,
                    copyKind=1, srcKind=1, dstKind=2, copyCount=1)  # fmt: skip
            if i % 150 == 0:
                add("CUPTI_ACTIVITY_KIND_MEMSET", at, 900, **device, value=0, bytes=512, memKind=2)
                add("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", at, 80_000, **device, syncType=3,
                    eventId=0)  # fmt: skip
    return rows


def _fill(database: sqlite3.Connection) -> None:
    for table, rows in steps(random.Random(11)).items():
        names = LAYOUT[table]
        types = (f"{one} {'TEXT' if one in _TEXTS else 'INTEGER'}" for one in names)
        database.execute(f"CREATE TABLE unit.{table} ({', '.join(types)})")
        cells = [tuple(row.get(one) for one in names) for row in rows]
        marks = ", ".join("?" * len(names))
        database.executemany(f"INSERT INTO unit.{table} VALUES ({marks})", cells)


def write(path: Path, megabytes: float, export: str | None) -> int:
    """The database, table by table as Nsight Systems writes it; gives how many events it has."""
    events = 0
    with closing(sqlite3.connect(path)) as database:
        database.execute("ATTACH ? AS unit", (export or ":memory:",))
        if export is None:
            _fill(database)
        (pages,) = database.execute("PRAGMA unit.page_count").fetchone()
        times = max(1, round(megabytes * 1e6 / (pages * 4096)))
        tables = "SELECT name, sql FROM unit.sqlite_schema WHERE type = 'table'"
        found = dict(database.execute(tables).fetchall())
        for sql in found.values():
            database.execute(sql)
        for table in found:
            told = database.execute("SELECT name FROM pragma_table_info(?, 'unit')", (table,))
            names = [name for (name,) in told]
            timed = {"start", "end"} <= set(names)
            cells = [f'"{n}" + :shift' if n in ("start", "end") else f'"{n}"' for n in names]
            for again in range(times if timed else 1):
                events += database.execute(
                    f'INSERT INTO main."{table}" SELECT {", ".join(cells)} FROM unit."{table}"',
                    {"shift": again * 1_100_000_000},
                ).rowcount
        database.commit()
    return events


def main() -> None:
    """Print both and their ratio; numbers are of this machine and this run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, default=300)
    parser.add_argument("--export", metavar="FILE", help="a real export to repeat")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="analyze-bench-") as folder:
        # As an installed package has them, whatever the shell says: modules that are compiled.
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = folder
        path = Path(folder) / "run.sqlite"
        events = write(path, options.megabytes, options.export)
        print(f"Nsight Systems, {path.stat().st_size / 1e6:,.0f} MB of SQLite, {events:,} rows")
        code = (sys.executable, "-c")
        bare = best(cost, *code, BARE, str(path))
        ours = best(cost, *code, OURS, str(path), str(path.with_suffix(".duckdb")))
        wall, cpu = ours.wall_s / bare.wall_s, ours.cpu_s / bare.cpu_s
        print(f"  ours, into a case  {ours}")
        print(f"  bare ADBC scan     {bare}")
        print(f"  ours / theirs      {wall:6.2f}   {cpu:6.2f}")


if __name__ == "__main__":
    main()
