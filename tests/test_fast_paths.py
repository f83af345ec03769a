"""Reading alike lines at once gives what reading each line by itself gives, to the last column."""

import json
import random
import sys
from pathlib import Path

import polars as pl
import pytest
from deep import some_of
from test_readers import READERS, SAMPLES, read, rows_of

from analyzer.contract.types import Resume
from analyzer.readers import _vllm_lines
from analyzer.readers._fast_ahead import ahead
from analyzer.readers._fast_kinds import MS, SMALL, TEXT, WORD
from analyzer.readers._fast_shapes import Shapes, learn
from analyzer.readers._fast_spans import SpanShapes, Told
from analyzer.readers._file import Lines
from analyzer.store.resume import dump_resume, load_resume

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
from generate import KINDS, write

GENERATED = {"native_stream": "stream", "request_records": "requests", "otlp_json": "otlp"}
JSON_READERS = ("native_stream", "request_records", "billing_records", "otlp_json")
RFC3339 = "2026-02-1%dT08:%02d:%02d.%s%s"
TWISTS = (
    ("null", '"x"', "true", "1e3", "-1", "0.5", "5.0", '""', "[]", "{}", '"5"', "1e-7", "NaN"),
    ('"ü"', '"\\u00fc"', '"\\ud800"', '"a\\"b"', '"\x7f"', '"1790000000.5"', "99999999999"),
    ("1790000000.1234567891", "0.0000005", "0.0000015", "1.50000000000000000001", "012", "1."),
    ('"2026-02-30T08:00:00Z"', '"2026-02-12T08:00:60Z"', '"2026-02-12 08:00:00"', "631152000"),
    ('"1.0000000005"', "4503599627370497", "7258118400", "1790000000", '{"a": 1}', "[null]"),
)


def slow_only(patch):
    patch.setattr(Shapes, "split", lambda self, block: ([], list(enumerate(block.lines))))
    patch.setattr(SpanShapes, "split", lambda self, block: Told())


def told(reader, path):
    """Everything a reader says of a file, as plain values."""
    batches = read(READERS[reader], path)
    assert batches[-1].resume is None or batches[-1].resume.records >= 0
    sums = [(b.records, b.used, b.ignored, b.assumed) for b in batches]
    ends = [vars(b.resume) for b in batches if b.resume]
    return rows_of(batches), sums, [b.problems for b in batches], ends[-1:]


def both_ways(reader, path):
    fast = told(reader, path)
    with pytest.MonkeyPatch.context() as patch:
        slow_only(patch)
        slow = told(reader, path)
    for one, other in zip(fast, slow, strict=True):
        assert one == other


def lines_of(reader, rng):
    """Lines of the reader's samples and of a generated log."""
    texts = [p.read_text() for p in sorted((SAMPLES / reader).glob("*.jsonl"))]
    lines = [line for text in texts for line in text.splitlines() if line]
    if reader in GENERATED:
        source = KINDS[GENERATED[reader]](random.Random(rng.random()), 0.05)
        lines += [line for _, line in zip(range(40), source, strict=False)]
    return [line.rstrip("\n") for line in lines]


def places(value, path=()):
    """Paths to every scalar of a JSON value."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        if isinstance(inner, (dict, list)) and inner:
            yield from places(inner, (*path, key))
        else:
            yield (*path, key)


def twisted(line, rng):
    """The line with one value, key or character that is not as the others are."""
    way = rng.randrange(6)
    if way == 0:
        at = rng.randrange(len(line))
        return line[:at] + rng.choice(' "\\,{}[]:019eE-+.x\tü') + line[at + rng.randint(0, 1) :]
    value = json.loads(line)
    found = list(places(value))
    path = rng.choice(found)
    holder = value
    for key in path[:-1]:
        holder = holder[key]
    if way == 1 and isinstance(holder, dict):
        del holder[path[-1]]
    elif way == 2 and isinstance(holder, dict):
        holder[rng.choice(["extra", "a.b", "usage", "tags", "turn", "ü", "key"])] = rng.choice(
            [1, "x", None, {"a": 1}, [1], "q\\n", 1.5]
        )
    elif way == 3 and isinstance(holder, dict):
        text = json.dumps(holder[path[-1]])
        return line.replace(text, f'{text}, "{path[-1]}": {text}', 1)
    else:
        holder[path[-1]] = "TWIST"
        return json.dumps(value).replace('"TWIST"', rng.choice(rng.choice(TWISTS)), 1)
    return json.dumps(value)


@pytest.mark.parametrize("reader", JSON_READERS)
def test_samples_give_the_same_rows_both_ways(reader):
    for path in sorted((SAMPLES / reader).glob("*")):
        both_ways(reader, path)


@pytest.mark.parametrize("seed", some_of(12, 3))
@pytest.mark.parametrize("reader", JSON_READERS)
def test_twisted_lines_give_the_same_rows_both_ways(reader, seed, tmp_path):
    rng = random.Random(seed)
    lines = lines_of(reader, rng)
    some = [rng.choice(lines) for _ in range(150)]
    for _ in range(40):
        at = rng.randrange(len(some))
        some[at] = twisted(rng.choice(lines), rng)
    path = tmp_path / "log.jsonl"
    ending = rng.choice(["\n", "\r\n"])
    path.write_bytes((ending.join(some) + rng.choice(["", ending])).encode("utf-8", "replace"))
    both_ways(reader, path)


@pytest.mark.parametrize("seed", range(6))
def test_times_and_durations_are_exact_both_ways(seed, tmp_path):
    rng = random.Random(seed)
    rows = []
    for number in range(200):
        digits = "".join(rng.choice("0159") for _ in range(rng.randint(1, 12)))
        zone = rng.choice(["Z", "", "+01:00", "-11:30"])
        text = RFC3339 % (rng.randint(0, 9), number % 60, number % 59, digits[:9], zone)
        second = 1790000000 + number
        at = rng.choice([f"{second}.{digits}", str(second), f'"{text}"'])
        end = f"{1790000001 + number}.{digits[::-1]}"
        ms = f"{rng.randint(0, 900)}.{digits}"
        rows.append(
            f'{{"request_id": "r{number}", "vantage": "client", "started_at": {at}, '
            f'"ended_at": {end}, "ttft_ms": {ms}, "cost_usd": 0.{digits}, '
            f'"usage": {{"prompt_tokens": {rng.randint(0, 9)}, "completion_tokens": 5, '
            f'"total_tokens": {rng.randint(5, 14)}, '
            f'"prompt_tokens_details": {{"cached_tokens": {rng.randint(0, 9)}}}}}}}'
        )
    path = tmp_path / "records.jsonl"
    path.write_text("\n".join(rows) + "\n")
    both_ways("request_records", path)


@pytest.mark.parametrize("reader", GENERATED)
def test_generated_logs_are_read_fast_and_give_the_same_rows(reader, tmp_path, monkeypatch):
    path = tmp_path / "log.jsonl"
    write(path, 1.5, 7, GENERATED[reader])
    monkeypatch.setattr("analyzer.readers._file.InputFile.lines.__defaults__", (300_000, 0, 0))
    both_ways(reader, path)
    strange = []
    split = Shapes.split

    def counted(self, block):
        found, rest = split(self, block)
        strange.append((block.count, len(rest)))
        return found, rest

    monkeypatch.setattr(Shapes, "split", counted)
    read(READERS[reader], path)
    lines, slow = (sum(column) for column in zip(*strange, strict=True)) if strange else (1, 0)
    assert slow < lines / 20


def test_a_log_with_late_and_repeated_events_is_summed_up_all_the_same(tmp_path, monkeypatch):
    rng = random.Random(3)
    events = []
    for number in range(120):
        rid, at = f"r{number % 50}", 1790000000 + number
        attempt = {"attempt": 1} if number % 7 == 0 else {}
        events.append({"ts": at, "request_id": rid, "event": "send", **attempt})
        events += [
            {"ts": at + i / 8, "request_id": rid, "event": "chunk", "chars": i, **attempt}
            for i in range(rng.randint(0, 9))
        ]
        events.append({"ts": at + 2, "request_id": rid, "event": rng.choice(["done", "error"])})
    for _ in range(60):
        i = rng.randrange(len(events) - 9)
        events.insert(i + rng.randint(0, 8), events.pop(i))
    path = tmp_path / "stream.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in events))
    both_ways("native_stream", path)
    monkeypatch.setattr("analyzer.readers._file.InputFile.lines.__defaults__", (4_000, 0, 0))
    both_ways("native_stream", path)


def test_a_shape_holds_what_a_line_holds_and_nothing_else():
    fields = {"id": TEXT, "n": SMALL, "ms": MS, "kind": WORD, "usage.n": SMALL}
    shape = learn('{"id": "a", "x": "b\\n", "n": 5, "kind": "k", "usage": {"n": 1}}', fields)
    assert shape.constants == {"kind": "k"}
    assert set(shape.captured) == {"id", "n", "usage.n"}
    frame = pl.DataFrame(
        {
            "#index": range(5),
            "#line": [
                '{"id": "ü", "x": "\\u00fc", "n": 0, "kind": "k", "usage": {"n": 2}}',
                '{"id": "ü", "x": "\\q", "n": 0, "kind": "k", "usage": {"n": 2}}',
                '{"id": "ü", "x": "", "n": 00, "kind": "k", "usage": {"n": 2}}',
                '{"id": "ü", "x": "", "n": 1, "kind": "K", "usage": {"n": 2}}',
                '{"id": "ü", "x": "", "n": 1, "kind": "k", "usage": {"n": 2}} ',
            ],
        }
    )
    assert shape.read(frame)["id"].to_list() == ["ü", None, None, None, None]
    for line in ('{"id": "a", "id": "b"}', '{"usage": {"m": 1}, "n": 1}', '{"id": ["a"]}', "[1]"):
        assert learn(line, fields) is None


def test_a_status_line_of_the_usual_form_is_read_like_any_other(monkeypatch):
    lines = list(KINDS["engine"](random.Random(2), 3000))
    block = Lines("".join(lines).encode(), 1, 0, unterminated=False)
    messages = _vllm_lines.messages_of(_vllm_lines.lines_of(block))
    fast = _vllm_lines.values_of(messages)
    monkeypatch.setattr(_vllm_lines, "_USUAL", "^nothing is usual$")
    slow = _vllm_lines.values_of(messages)
    names = [name for name in slow.columns if name != "stats_good"]
    stats = pl.col("kind") == "stats"
    assert fast.filter(stats).select(names).equals(slow.filter(stats).select(names))


def test_work_goes_ahead_in_order_and_stops_at_an_error():
    assert list(ahead(lambda n: n * n, range(20))) == [n * n for n in range(20)]
    assert list(ahead(str, [])) == []
    done = []
    with pytest.raises(ZeroDivisionError):
        done += ahead(lambda n: 1 / (9 - n), range(20))
    assert done == [1 / (9 - n) for n in range(9)]


def test_a_long_resume_is_packed_and_comes_back_whole():
    short = Resume(5, 2, (1,), {"open": {"a": {"record": 1}}})
    long = Resume(5, 2, (1,), {"open": {f"r{n}": {"record": n} for n in range(60_000)}})
    assert json.loads(dump_resume(short))["offset"] == 5
    assert len(dump_resume(long)) < 600_000
    assert [load_resume(dump_resume(one)) for one in (short, long)] == [short, long]
    assert load_resume(None) is None
