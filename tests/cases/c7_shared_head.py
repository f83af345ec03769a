"""A prefix is lost behind a head that all share, and nothing tells hashes or the size of the cache.

main: an engine gives up the ends of what four pausing conversations had left, as the least recently
used; the system prompt of 4,096 tokens stays in use, and is read all the same. It looks like a
change behind the head. The traffic meanwhile is more than any prefix survived.

twin: the text behind the head is another on each call of two conversations, also when there is much
traffic.

The variants: a conversation is edited beside those that are evicted; all conversations change, and
next to nothing is seen to survive.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cases._build import expect
from cases._calls import spend_logs, writer
from cases.a2_evicted import (
    CAPACITY,
    EVICTED,
    MAY,
    MISSED,
    NOT,
    PAUSED,
    STEADY,
    Pool,
    every,
    evicted,
    lost,
    served,
    strangers,
    talk,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cases._calls import Call

RULE = "cache.prefix-changed"
SHARED = 4_096
HEADED = served(
    [replace(one, head=SHARED) for one in (*STEADY, *PAUSED, *strangers(108, 38, 5_900))],
    Pool(CAPACITY), noise=0.06,
)  # fmt: skip
# Beside it one conversation is edited, with hardly any traffic before the call.
EDITED = served(
    [
        replace(one, head=SHARED, version=one.session == "warm-1" and one.turn > 7)
        for one in (*STEADY, *PAUSED, *strangers(108, 38, 5_900))
    ],
    Pool(CAPACITY), noise=0.06,
)  # fmt: skip
# The text behind it is another on each call of two conversations, whatever the others do meanwhile;
# no prefix of others is left alone for as long.
ALTERED = served(
    [
        *[replace(one, head=SHARED) for one in (*STEADY[:32], *strangers(70, 60, 4_300, gap=0.4))],
        *[
            replace(one, head=SHARED, version=one.turn)
            for n in range(2)
            for one in talk(f"alter-{n}", [*every(4 + n, 7, 9), *every(97 + n, 5, 9)])
        ],
    ],
    Pool(900_000), noise=0.06,
)  # fmt: skip
# All do so, and the only prefix that is seen to survive was used again at once.
ALTERED_ALONE = served(
    [
        *[replace(one, head=SHARED) for one in strangers(6, 60, 4_300)],
        *[replace(one, head=SHARED) for one in talk("quick", [3, 3.5], growth=600)],
        *[
            replace(one, head=SHARED, version=one.turn)
            for n in range(3)
            for one in talk(f"alter-{n}", every(4 + n, 9, 8))
        ],
    ],
    Pool(900_000), noise=0.06,
)  # fmt: skip


def altered(calls: Sequence[Call]) -> dict[str, Any]:
    """The prompt is another behind its head, again and again; nothing was evicted."""
    tokens = [count for _, count in lost(calls)]
    not_ = [name for name in NOT if name != RULE]
    return expect(
        RULE,
        "prefill",
        len(tokens),
        sum(tokens),
        "tokens",
        [EVICTED, *not_],
        [*MAY, MISSED],
    )


def _log(calls: Sequence[Call]) -> Any:
    return writer(spend_logs(calls, "hosted_vllm"))


CASES = {
    "main": (_log(HEADED), evicted(HEADED)),
    "edited": (_log(EDITED), evicted(EDITED, of=lambda one: one.session != "warm-1")),
    "twin": (_log(ALTERED), altered(ALTERED)),
    "altered_alone": (_log(ALTERED_ALONE), altered(ALTERED_ALONE)),
}
