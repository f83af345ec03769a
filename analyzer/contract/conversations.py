"""What the report shows of conversations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from analyzer.contract.types import Chart, Table


@dataclass(frozen=True)
class Conversations:
    """The costliest conversations, why caches were missed, and one conversation call by call.

    ``stack`` has a row a call of ``session``, or a bin of its calls, with mean prompt tokens by
    what became of them: ``read``, ``lost`` (could have been read) and ``new``.
    """

    sessions: Table
    reasons: Table
    growth: Chart | None
    session: str
    stack: tuple[dict[str, Any], ...]
    stack_sql: str
    bin_calls: int
