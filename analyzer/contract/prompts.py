"""What a prompt is made of, without its text: kinds, lengths, hashes, classes of values."""

from __future__ import annotations

import pyarrow as pa

from analyzer.contract._fields import column, table, text, tokens, whole

PART_KINDS = (
    "tools", "system", "user", "assistant", "reasoning", "tool_call", "tool_result", "image",
    "schema", "other",
)  # fmt: skip
"""What a part of a prompt can be."""

VOLATILE_CLASSES = ("timestamp", "id", "number")
"""Values that differ from call to call although the words around them stay."""

_SO_FAR = " in the prompt; in a transcript, in the session so far"


def prompt_columns() -> list[pa.Field]:
    """The make-up of a prompt, added up by kind; columns of the request table."""
    return [
        whole("tools_count", "tool definitions sent"),
        whole("tools_chars", "characters of the tool definitions", "chars"),
        whole("system_chars", "characters of the system prompt", "chars"),
        whole("user_chars", f"characters of what users said{_SO_FAR}", "chars"),
        whole("assistant_chars", f"of earlier answers and their calls of tools{_SO_FAR}", "chars"),
        whole("reasoning_chars", f"of earlier reasoning, sent again or not{_SO_FAR}", "chars"),
        whole("tool_result_chars", f"characters of the results of tools{_SO_FAR}", "chars"),
        whole("images", f"images and other files{_SO_FAR}"),
        whole("input_chars", "characters of the prompt, where its text was logged", "chars"),
    ]


def cache_columns() -> list[pa.Field]:
    """What decides whether a prompt can be read from a cache."""
    return [
        text("cache_diagnosis", "the provider's own reason for a cache miss"),
        tokens("cache_missed_tokens", "tokens missed, as the provider counts beside its reason"),
        column(
            "is_compacted",
            pa.bool_(),
            "the history before this request was summed up or cut, as told; NULL = not told",
        ),
        text("effort", "reasoning effort that was asked for, in the source's word"),
        text("speed", "speed that was asked for or billed, as fast, in the source's word"),
    ]


def prompt_part(provenance: list[pa.Field]) -> pa.Schema:
    """One part of a prompt."""
    return table(
        "One part of a prompt, in the order in which the provider sees them.",
        [
            *provenance,
            column(
                "part_index",
                pa.int64(),
                "place in the prompt, from 0: tools, system, messages",
                "1",
                required=True,
            ),
            text("kind", ", ".join(PART_KINDS)),
            whole("chars", "characters of it", "chars"),
            text("part_hash", "hash of its content, without marks for the cache"),
            text("plain_hash", "the same with each volatile value replaced by its class"),
            text(
                "volatile",
                "classes of the volatile values in it: timestamp, id, number, with commas between; "
                "NULL = none",
            ),
            whole("first_volatile_chars", "characters before the first volatile value", "chars"),
            text("name_hash", "of a tool's definition: hash of its name"),
        ],
    )
