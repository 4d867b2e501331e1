"""What is read and written by hand is what the codec reads and writes."""

from __future__ import annotations

import json
import zlib
from dataclasses import fields
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.records import codec
from pipeline.records.codec import Record, decode_line, encode_fact
from pipeline.records.frequent import finished_task
from pipeline.records.kinds import StepCompleted, StepStarted, TaskCompleted
from pipeline.records.lines import TAIL, LineDamaged, encode_line
from pipeline.records.values import encode_value

plain = st.text(st.characters(codec="ascii"), max_size=6)
names = plain | st.sampled_from(['","value":', '"', "\\", "é", "\x7f", "\ud800", '","reads":{'])
facts = st.builds(
    TaskCompleted,
    st.sampled_from(["a#1", "fan#2/left#1", "a", "é#1", 'a"#1', ""]),
    names,
    st.sampled_from([b"1", b'{"value":2}', b'"x"', encode_value("é\x00\ud800"), b'{"a":",\\"value\\":"}']),
    item=names,
    hash=names,
    attempt=st.integers(-2, 12) | st.just(10**20),
    version=st.integers(0, 3),
    reads=st.dictionaries(names, names, max_size=2),
    code=names,
)


def lines_of(fact: TaskCompleted, seq: int = 7) -> bytes:
    return encode_line(seq, "2026-01-09T14:30:22.000Z", 1, encode_fact(fact))[:-1]


def sealed(head: bytes) -> bytes:
    """A whole line of whatever bytes."""
    return head + b',"crc":"%08x"}' % zlib.crc32(head)


def parsed(line: bytes) -> Record | None:
    """What the codec makes of it by itself; None: nothing."""
    try:
        return codec._parsed(line)
    except LineDamaged:
        return None


@given(facts)
@settings(max_examples=200, deadline=None)
def test_finished_task_reads_as_the_codec_reads_it(fact: TaskCompleted) -> None:
    line = lines_of(fact)
    short = finished_task(line)
    assert short is None or Record(*short) == parsed(line)
    assert decode_line(line, whole=True) == parsed(line)


@given(facts, st.data())
@settings(max_examples=400, deadline=None)
def test_line_that_somebody_else_wrote_is_never_read_otherwise(fact: TaskCompleted, data: st.DataObject) -> None:
    head = bytearray(lines_of(fact)[:-TAIL])
    place = data.draw(st.integers(0, len(head) - 1))
    end = place + data.draw(st.integers(0, 3))
    junk: Any = st.binary(max_size=2) | st.sampled_from(
        [b'"', b"}", b'","x":1', b',"kind":"x"', b"\n", b"0", b"-", b"null"]
    )
    head[place:end] = data.draw(junk)
    line = sealed(bytes(head))
    short = finished_task(line)
    assert short is None or Record(*short) == parsed(line)


def test_plain_lines_take_the_short_way() -> None:
    full = TaskCompleted("a#1", "t/1", b'{"n":1}', "item", "hash", 2, 3, {"params.n": "h", "outputs.a.b": "missing"})
    for fact in (TaskCompleted("a#1", "t/1", b"1"), full):
        assert finished_task(lines_of(fact)) == (7, "2026-01-09T14:30:22.000Z", 1, fact)
    # Equal tables of thousands of lines are one object.
    first, second = finished_task(lines_of(full)), finished_task(lines_of(full, 8))
    assert first is not None
    assert second is not None
    assert first[3].reads is second[3].reads


def test_other_kinds_are_left_alone() -> None:
    assert finished_task(encode_line(3, "2026-01-09T14:30:22.000Z", 1, encode_fact(StepStarted("a#1")))[:-1]) is None


tables = st.dictionaries(names, names, max_size=1)
numbers = st.integers(-1, 3)
seconds = st.sampled_from([0.0, 0, 1, 1e-06, 12.5, 1e22])
edges = st.lists(names, max_size=2) | st.just(())


@given(
    st.one_of(
        facts,
        st.builds(StepStarted, names, st.lists(st.lists(names, min_size=2, max_size=2), max_size=2), numbers, numbers),
        st.builds(
            StepCompleted, names, tables, names, edges, names | st.just("success"), tables, tables, tables, numbers,
            seconds, names, st.lists(tables, max_size=1) | st.just(()),
        ),
        st.just(StepStarted("a#1")),
        st.just(StepCompleted("a#1", {}, "c")),
    ),
    st.none() | st.just(b'{"n":1}'),
)  # fmt: skip
@settings(max_examples=300, deadline=None)
def test_what_is_written_by_hand_is_what_the_codec_writes(fact: Any, outputs: bytes | None) -> None:
    known = outputs if isinstance(fact, StepCompleted) else None
    assert encode_fact(fact, known) == codec._written(fact, known)


def test_every_field_is_written_by_hand() -> None:
    table = {"k": "v"}
    for fact in (
        StepStarted("a#1", [["a->b", "a#1"]], 2, 3),
        StepCompleted("a#1", table, "c", ["a->b"], "left", table, table, table, 2, 0.5, "weight", [table], "x"),
        TaskCompleted("a#1", "t", b"1", "i", "h", 2, 3, table, "x"),
    ):
        body = encode_fact(fact)
        assert body == codec._written(fact, None)
        assert set(json.loads(body)) == {"kind", *(item.name for item in fields(fact))}
