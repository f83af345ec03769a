"""Lines of a capture to events: SSE fields, time prefixes, HTTP headers, wrapped chunks."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import msgspec

from analyzer.readers._times import NS, TIMES, ms_to_ns, seconds_to_ns, time_to_ns

MAX_EVENT_BYTES = 16 * 1024 * 1024
BLANK, IDLE, END, OTHER = "blank line", "keep-alive", "end mark", "field without a figure"
CURL, REQUEST = "note of the client", "request header"
REST = "rest of a broken event"

_DAY_NS = 86_400 * NS
_SECONDS = 100_000_000
"""A plain number below this is seconds since the capture began; above, Unix time."""
_STAMP = re.compile(
    rb"\s*\[?\+?(?:(?P<wall>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?)"
    rb"|(?P<day>\d\d:\d\d:\d\d(?:[.,]\d+)?)|(?P<number>\d+(?:\.\d+)?)(?P<unit>ms|s)?)\]?"
    rb"(?::|[ \t]*\|)?(?:[ \t]+(?P<rest>.*))?",
    re.DOTALL,
)
_FIELD = re.compile(rb"(?:data|event|id|retry):|:|\{|\[DONE\]|[<>*](?: |$)|[{}] \[|HTTP/[\d.]+ \d")
_STATUS = re.compile(rb"(?:< )?HTTP/[\d.]+ (\d{3})\b")
_SENT = re.compile(rb"> (?:POST|GET|PUT) (\S+) HTTP/")
_HEADER = re.compile(rb"(?:< )?([A-Za-z][A-Za-z0-9-]*): ?(.*)")
_TIME_KEYS = ("ts", "time", "timestamp", "received_at", "t", "elapsed_s", "elapsed_ms", "offset_ms")
_DATA_KEYS = ("data", "chunk", "raw", "event", "payload")

_decode = msgspec.json.Decoder().decode


class Stamp(NamedTuple):
    """A time and its clock: wall, day (time of day without a date) or relative."""

    ns: int
    clock: str


@dataclass
class Found:
    """What one line completes. ``ignored``: why it carries nothing; ``problem``: why it is bad."""

    events: list[dict[str, Any]] = field(default_factory=list)
    stamp: Stamp | None = None
    ignored: str = ""
    problem: str = ""
    sent: str | None = None
    """Path of the request that was sent at this moment."""
    status: int | None = None
    header: tuple[str, str] | None = None
    end: bool = False


class Framing:
    """Feeds on lines in order; an event may span several lines, a line may hold several events."""

    def __init__(self, zone: str | None) -> None:
        self._zone = zone
        self._pending = b""
        self._rest = ""
        self._headers = False
        self._stamp: Stamp | None = None
        self.zone_assumed = False

    def line(self, line: bytes) -> Found:
        """What this line tells; the time prefix of an earlier one holds until the next."""
        text = self._unstamped(line)
        found = self._read(text, Found(stamp=self._stamp))
        found.stamp = found.stamp or self._stamp
        return found

    def unfinished(self) -> bool:
        """Whether the capture ends inside an event."""
        return bool(self._pending or self._rest.strip())

    def _unstamped(self, line: bytes) -> bytes:
        text = line.strip(b"\r\n")
        if not text[:1] or text[:1] in b"de:{i r<>*}H":
            return text.strip()
        match = _STAMP.fullmatch(text)
        if match is None:
            return text.strip()
        rest = (match["rest"] or b"").strip()
        if rest and not (_FIELD.match(rest) or self._headers):
            return text.strip()
        if not rest and self._stamp is None:
            return text.strip()
        self._stamp = self._time(match) or self._stamp
        return rest

    def _time(self, match: re.Match[bytes]) -> Stamp | None:
        if told := match["wall"]:
            text = told.decode()
            self.zone_assumed |= re.search(r"(Z|[+-]\d\d:?\d\d)$", text) is None
            ns = time_to_ns(text, self._zone)
            return Stamp(ns, "wall") if ns is not None else None
        if told := match["day"]:
            hours, minutes, seconds = told.decode().replace(",", ".").split(":")
            ns = seconds_to_ns(seconds)
            return Stamp((int(hours) * 60 + int(minutes)) * 60 * NS + (ns or 0), "day")
        if match["unit"] == b"ms":
            return stamp_of(match["number"].decode(), milliseconds=True)
        return stamp_of(match["number"].decode())

    def _read(self, text: bytes, found: Found) -> Found:
        if not text:
            self._headers = False
            return self._dispatch(found)
        if self._http(text, found):
            return found
        if text.startswith(b"data:"):
            return self._data(text[5:].removeprefix(b" "), found)
        if text.startswith(b":"):
            found.ignored = IDLE
        elif text.startswith(b"event:"):
            pass  # every vendor repeats the name, or what it means, in the data
        elif text.startswith((b"id:", b"retry:")):
            found.ignored = OTHER
        elif text == b"[DONE]":
            found.end, found.ignored = True, END
        elif text.startswith(b"{") and not self._pending:
            self._object(text, found)
        else:
            found.problem = "neither an SSE field nor a JSON object; remove what was printed there"
        return found

    def _http(self, text: bytes, found: Found) -> bool:
        """Headers as curl prints them; of the request only its moment and path are taken."""
        if status := _STATUS.match(text):
            found.status, self._headers = int(status[1]), True
            return True
        if sent := _SENT.match(text):
            found.sent = sent[1].decode("utf-8", "replace").partition("?")[0]
            return True
        if text.startswith(b"> ") or text == b">":
            found.ignored = REQUEST
        elif text.startswith((b"* ", b"{ [", b"} [")):
            found.ignored = CURL
        elif text == b"<":
            self._headers = False
            found.ignored = BLANK
        elif self._headers and (header := _HEADER.fullmatch(text)):
            name, value = (part.decode("utf-8", "replace") for part in header.groups())
            found.header = (name.lower(), value.strip())
        else:
            return False
        return True

    def _data(self, data: bytes, found: Found) -> Found:
        if not self._pending and data.strip() == b"[DONE]":
            found.end, found.ignored = True, END
            return found
        whole = self._pending + b"\n" + data if self._pending else data
        if len(whole) > MAX_EVENT_BYTES:
            self._pending, found.problem = b"", "an event of over 16 MiB"
            return found
        event = _object_of(whole) if data.rstrip().endswith(b"}") else None
        if event is None:
            self._pending = whole
        else:
            self._pending = b""
            found.events.append(event)
        return found

    def _dispatch(self, found: Found) -> Found:
        """A blank line ends an event; what is no JSON by then never will be."""
        if self._pending:
            self._pending = b""
            found.problem = "the event before it is no JSON object; was the capture cut there?"
        else:
            found.ignored = BLANK
        return found

    def _object(self, text: bytes, found: Found) -> None:
        value = _object_of(text)
        if value is None:
            found.problem = "not a whole JSON object"
            return
        payload = _payload(value)
        if payload is None:
            found.events.append(value)
            return
        self._stamp = found.stamp = _stamp_in(value, self._zone) or self._stamp
        if isinstance(payload, dict):
            found.events.append(payload)
        else:
            self._chunk(payload, found)

    def _chunk(self, payload: str, found: Found) -> None:
        """Bytes as they came from the network: several events, or part of one."""
        bare = _object_of(payload.encode("utf-8", "replace")) if payload[:1] == "{" else None
        if bare is not None and not self._rest:
            found.events.append(bare)
            return
        if payload.startswith(("data:", "event:")) and self._rest:
            self._rest += "\n"  # what was recorded without its newline
        *lines, self._rest = (self._rest + payload).split("\n")
        if self._rest.startswith("data:") and self._rest.rstrip().endswith(("}", "[DONE]")):
            lines.append(self._rest)
            self._rest = ""
        if len(self._rest) > MAX_EVENT_BYTES:
            self._rest, found.problem = "", "an event of over 16 MiB"
        ignored = set()
        for line in lines:
            inner = self._read(line.strip().encode("utf-8", "replace"), Found())
            found.events += inner.events
            found.end |= inner.end
            found.problem = found.problem or inner.problem
            ignored.add(inner.ignored)
        if not found.events and ignored and "" not in ignored and not found.problem:
            found.ignored = max(ignored)


def _payload(value: dict[str, Any]) -> dict[str, Any] | str | None:
    """What a line of a time and a chunk holds; None where the line is the event itself."""
    if not any(name in value for name in _TIME_KEYS):
        return None
    for name in _DATA_KEYS:
        if isinstance(held := value.get(name), (dict, str)):
            return held
    return None


def _stamp_in(value: dict[str, Any], zone: str | None) -> Stamp | None:
    name = next(name for name in _TIME_KEYS if name in value)
    told = value[name]
    if isinstance(told, str) and (ns := time_to_ns(told, zone)) is not None:
        return Stamp(ns, "wall")
    return stamp_of(told, milliseconds=name.endswith("_ms"))


def stamp_of(told: Any, *, milliseconds: bool = False) -> Stamp | None:  # noqa: ANN401
    """A number as a time: Unix seconds, milli-, micro- or nanoseconds, or since the beginning."""
    if isinstance(told, bool) or not isinstance(told, (int, float, str)):
        return None
    ns = ms_to_ns(told) if milliseconds else seconds_to_ns(told)
    if ns is None or ns < 0:
        return None
    if ns < _SECONDS * NS:
        return Stamp(ns, "relative")
    if ns in TIMES:
        return Stamp(ns, "wall")
    for digits in (3, 6, 9):  # twelve digits before the point are no seconds of this era
        exact = seconds_to_ns(f"{told}e-{digits}")
        if exact is not None and exact in TIMES:
            return Stamp(exact, "wall")
    return None


def _object_of(data: bytes) -> dict[str, Any] | None:
    try:
        value = _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def since(later: Stamp | None, earlier: Stamp | None) -> int | None:
    """Time between two stamps of one clock; a time of day may pass midnight."""
    if later is None or earlier is None or later.clock != earlier.clock:
        return None
    apart = later.ns - earlier.ns
    if apart < 0 and later.clock == "day" and apart < -_DAY_NS // 2:
        apart += _DAY_NS
    return apart if 0 <= apart < 320_000_000 * NS else None
