"""nginx's access log as JSON, with the times of the upstream."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from analyzer.simulate.ordered import OrderedLines
from analyzer.simulate.outcome import Base, GatewayTry, LogView, RequestOutcome
from analyzer.simulate.run import view_of
from analyzer.simulate.world import Log, World
from analyzer.simulate.writers import to_json

if TYPE_CHECKING:
    from pathlib import Path

MS = 1_000_000
_HEAD_BYTES, _CHUNK_BYTES, _TOKEN_BYTES, _PROMPT_BYTES = 218, 176, 4, 4
_PATH = "/v1/chat/completions"
_CLOSED, _BAD_GATEWAY, _TIMEOUT = 499, 502, 504


def bytes_of(one: RequestOutcome) -> int:
    """Bytes of the answer's body: an envelope for each event and some for each token."""
    if one.gateway_first_ns is None:
        return 0
    events = len(one.chunk_ns) or (one.output_tokens if one.streamed else 1)
    return events * _CHUNK_BYTES + one.output_tokens * _TOKEN_BYTES


class NginxLog(Base):
    """``log_format`` of JSON with the upstream's times; milliseconds, stamped at the end.

    nginx cuts stamps to milliseconds and subtracts them, so a duration may be off by one.
    ``upstream_header_time`` is when the upstream answered: what a hop holds back is in no field.
    """

    def __init__(self, path: Path, view: LogView) -> None:
        self._lines, self._view = OrderedLines(path), view

    def request(self, outcome: RequestOutcome) -> None:
        """One line a request that reached the gateway."""
        one, view = outcome, self._view
        if one.gateway_in_ns is None or view.drops(f"{one.request_id}/{one.attempt}"):
            return
        end = one.gateway_out_ns if one.gateway_out_ns is not None else one.done_ns
        if end is None:
            return
        start_ms, end_ms = view.time(one.gateway_in_ns) // MS, view.time(end) // MS
        aborted = one.status is None
        fields = {
            "time": f"{datetime.fromtimestamp(end_ms // 1000, tz=UTC):%Y-%m-%dT%H:%M:%S+00:00}",
            "msec": _thousandths(end_ms),
            "remote_addr": "10.0.0.5",
            "request": f"POST {_PATH} HTTP/1.1",
            "status": _status(one),
            "request_length": 400 + one.prompt_tokens * _PROMPT_BYTES,
            "bytes_sent": _HEAD_BYTES + bytes_of(one),
            "request_time": Decimal(_thousandths(end_ms - start_ms)),
            **_upstream(one),
            "upstream_bytes_received": str(_HEAD_BYTES - 5 + bytes_of(one)),
            "content_type": "text/event-stream" if one.streamed else "application/json",
            "x_request_id": one.request_id,
            "request_completion": "" if aborted else "OK",
        }
        told = {name: value for name, value in fields.items() if name not in view.missing}
        self._lines.add(end_ms, to_json(told))

    def close(self) -> None:
        """Write the last lines."""
        self._lines.close()


def _thousandths(value_ms: int) -> str:
    return f"{value_ms // 1000}.{value_ms % 1000:03d}"


def _status(one: RequestOutcome) -> int:
    if one.status is not None:
        return one.status
    # A client that leaves after the headers leaves a 200 behind.
    return 200 if one.gateway_first_ns is not None else _CLOSED


def _upstream(one: RequestOutcome) -> dict[str, str]:
    """Times of each upstream call in turn; the last one served."""
    addresses, statuses, connects, headers, responses = [], [], [], [], []
    for index, call in enumerate(one.tries):
        answered = call.status is not None
        last = index == len(one.tries) - 1
        addresses.append(f"{call.replica or call.route}:8000")
        statuses.append(_upstream_status(call))
        connects.append("0.000" if answered or call.error == "timeout" else "-")
        headers.append(_thousandths(_header_ns(one, call, last=last) // MS) if answered else "-")
        responses.append(_thousandths((call.end_ns - call.start_ns) // MS))
    return {
        "upstream_addr": ", ".join(addresses),
        "upstream_status": ", ".join(statuses),
        "upstream_connect_time": ", ".join(connects),
        "upstream_header_time": ", ".join(headers),
        "upstream_response_time": ", ".join(responses),
    }


def _upstream_status(call: GatewayTry) -> str:
    if call.status is not None:
        return str(call.status)
    return {"timeout": str(_TIMEOUT), "aborted": "-"}.get(call.error or "", str(_BAD_GATEWAY))


def _header_ns(one: RequestOutcome, call: GatewayTry, *, last: bool) -> int:
    """From the call to the upstream's headers, which come with its first token."""
    whole = call.end_ns - call.start_ns
    if not last or one.first_token_ns is None or one.engine_in_ns is None:
        return whole
    there = one.engine_in_ns - call.start_ns
    return min(whole, max(0, one.first_token_ns - call.start_ns + there))


def recorder(folder: Path, log: Log, world: World) -> NginxLog:
    """``missing`` names fields of the line."""
    return NginxLog(folder / (log.file or "access.log"), view_of(log, world))
