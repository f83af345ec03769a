"""Ends ingests in bad ways, for ``test_crash.py``: one process that forks a child a deed.

``python crash_driver.py FOLDER`` reads a JSON list of deeds a line, and answers each line with what
came of them. Everything is imported once; each child has a case and a fate of its own.
"""

import json
import os
import resource
import signal
import sys
import time
import traceback
from pathlib import Path

import analyzer.api
import analyzer.cli
from analyzer.readers._find import all_readers
from analyzer.store.case import Case, open_case

all_readers()
genuine = Case.run


def count_steps(report, kill_at=None, tell_at=None):
    """Count the statements of an ingest; die after one, having told whether within a file.

    Or tell before one, so that the parent can strike while it runs.
    """
    steps: list[bool] = []

    def run(self, sql, parameters=()):
        if len(steps) + 1 == tell_at:
            os.write(report, b" ")
        if sql.startswith("BEGIN"):
            run.inside = True
        rows = genuine(self, sql, parameters)
        if sql in ("COMMIT", "ROLLBACK"):
            run.inside = False
        steps.append(run.inside)
        if len(steps) == kill_at:
            os.write(report, json.dumps(run.inside).encode())
            os.kill(os.getpid(), signal.SIGKILL)
        return rows

    run.inside = False
    Case.run = run
    return steps


def do(deed, report):
    """What the child does; only a deed that is not its death comes back."""
    signal.alarm(100)  # nothing may hang
    sys.argv = ["analyze", "--db", deed["db"], "ingest", *deed["paths"]]
    if deed["how"] == "hold":
        case = open_case(deed["db"], write=True)
        os.write(report, b'"held"')
        time.sleep(600)
        case.close()
    if deed["how"] == "full":
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (deed["bytes"], deed["bytes"]))
    steps = count_steps(report, deed.get("step"), deed.get("tell"))
    code = 0
    try:
        analyzer.cli.main()
    except SystemExit as end:
        code = end.code
    os.write(report, json.dumps(steps if deed["how"] == "count" else code).encode())


def child(deed, output):
    """Fork; the child never returns. Gives its id and where it reports."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writing)
        return pid, reading
    with Path(output).open("wb") as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
    try:
        do(deed, writing)
    except BaseException:
        traceback.print_exc()
        os._exit(99)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(0)


def end_of(pid, reading):
    """What the child told, and the signal it died of."""
    told = b"".join(iter(lambda: os.read(reading, 65536), b""))
    os.close(reading)
    status = os.waitpid(pid, 0)[1]
    died = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    return json.loads(told) if told else None, died


def all_of(deeds, folder):
    """Do all deeds, one after the other; what came of each: told, signal, output."""
    results = []
    holder = None
    for deed in deeds:
        output = folder / "output"
        pid, reading = child(deed, output)
        if deed["how"] == "hold":
            os.read(reading, 100)
            holder = pid
            results.append([None, 0, ""])
            continue
        if deed["how"] == "time":
            os.read(reading, 1)
            time.sleep(deed["seconds"])
            os.kill(pid, signal.SIGKILL)
        told, died = end_of(pid, reading)
        results.append([told, died, output.read_text(errors="replace")])
    if holder:
        os.kill(holder, signal.SIGKILL)
        os.waitpid(holder, 0)
    return results


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(all_of(json.loads(line), Path(sys.argv[1]))), flush=True)
