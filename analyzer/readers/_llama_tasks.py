"""Tasks of a llama.cpp server from launch to release, put together from lines far apart."""

from __future__ import annotations

from typing import Any

from analyzer.readers._times import ms_to_ns

Task = dict[str, Any]
"""One task under way; nothing in it that JSON cannot carry."""


class Tasks:
    """A slot runs one task at a time; a task is done when it is released and its times are told.

    Which of the two comes first changed between versions. Three-line blocks name the slot in their
    first line only.
    """

    def __init__(self, memory: dict[str, Any] | None = None) -> None:
        memory = memory or {}
        self.open: dict[str, Task] = memory.get("open", {})
        self.headers: dict[str, list[int]] = memory.get("headers", {})

    def memory(self) -> dict[str, Any]:
        """What the next block needs, as a copy."""
        return {
            "open": {key: dict(task) for key, task in self.open.items()},
            "headers": {port: list(pair) for port, pair in self.headers.items()},
        }

    def take(self, line: dict[str, Any]) -> tuple[list[Task], str]:
        """Tasks that this line ends, and what is wrong with it."""
        kind, port = line["kind"], line["port"] or ""
        if kind == "cancel":
            for task in self.open.values():
                if task["port"] == port and task["task"] == line["task"]:
                    task["cancelled"] = True
            return [], ""
        slot, number = line["slot"], line["task"]
        if kind == "header":
            self.headers[port] = [slot, number]
        if slot is None or number is None:
            if port not in self.headers:
                return [], "times without the slot they belong to: its line is not in this file"
            slot, number = self.headers[port]
        key = f"{port}/{slot}"
        done: list[Task] = []
        before = self.open.get(key)
        if before is not None and (before["task"] != number or kind == "launch"):
            done.append(self.open.pop(key))
        fresh = {"record": line["record"], "port": port, "task": number}
        task = self.open.setdefault(key, fresh)
        _tell(task, kind, line)
        if task.get("released") and "decode_ns" in task:
            done.append(self.open.pop(key))
        return done, ""


def _tell(task: Task, kind: str, line: dict[str, Any]) -> None:
    at = line["wall_ns"] if line["wall_ns"] is not None else line["stamp_ns"]
    if at is not None:
        task["clock"] = "wall" if line["wall_ns"] is not None else "monotonic"
        if kind in ("header", "prefill", "decode") and "end_ns" not in task:
            task["end_ns"] = at
    if kind == "launch" and at is not None:
        task["start_ns"] = at
    elif kind == "prompt":
        task["prompt_tokens"] = line["count"]
    elif kind in ("prefill", "decode"):
        task[f"{kind}_ns"], task[f"{kind}_tokens"] = ms_to_ns(line["ms"]), line["count"]
    elif kind == "release":
        task["released"] = True


def columns_of(task: Task) -> dict[str, Any]:
    """Columns of ``request``. The wait for a slot is in none of these times, so no e2e either."""
    prefill, decode = task.get("prefill_ns"), task.get("decode_ns")
    fresh, whole = task.get("prefill_tokens"), task.get("prompt_tokens")
    start, end = task.get("start_ns"), task.get("end_ns")
    if start is None and end is not None and prefill is not None and decode is not None:
        start = end - prefill - decode if end >= prefill + decode else None
    read = None
    if whole is not None and fresh is not None and whole >= fresh:
        read = whole - fresh
    return {
        "vantage": "engine",
        "deployment": task["port"] or None,
        "start_ns": start,
        "clock": task.get("clock"),
        "timing": None if prefill is None and decode is None else "stated",
        "prefill_ns": prefill,
        "decode_ns": decode,
        # Until the times are told, all that is known is the whole prompt.
        "input_fresh_tokens": fresh if fresh is not None else whole,
        "cache_read_tokens": read,
        "output_visible_tokens": task.get("decode_tokens"),
        "usage_convention": "exclusive" if fresh is not None else None,
        "finish_reason": "abort" if task.get("cancelled") else None,
    }
