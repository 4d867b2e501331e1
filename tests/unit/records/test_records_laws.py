"""Laws of the fold, over journals nobody thought of."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct

from pipeline.records import kinds
from pipeline.records.codec import Record, decode_line, encode_fact
from pipeline.records.fold import Builder, fold, spent
from pipeline.records.lines import encode_line
from pipeline.records.run import RunState, Spend, TaskTable
from tests.tape import Tape

PATHS = ("a#1", "b#1", "b#2", "a#1/x#1")
EDGES = ("a->b", "b->b", "b->c")
ERROR = {"type": "X", "message": "m"}

paths = st.sampled_from(PATHS)
tasks = st.sampled_from([None, "k1", "k2"])
usd = st.integers(0, 400).map(lambda cents: f"{cents / 100:.2f}")
causes = st.sampled_from(["content", "provider"])


def charge(draw: st.DrawFn) -> dict[str, Any]:
    low = draw(usd)
    tokens = {"input": draw(st.integers(0, 9)), "output": draw(st.integers(0, 9))}
    state = draw(st.sampled_from(["exact", "exact", "interval", "unpriced"]))
    if state == "exact":
        return {"state": state, "low": low, "high": low, "tokens": tokens, "parts": {"output": low}}
    if state == "interval":
        high = draw(st.sampled_from([None, str(Decimal(low) + 1)]))
        return {"state": state, "low": low, "high": high, "tokens": tokens}
    return {"state": state, "low": "0", "high": None, "tokens": tokens}


def of_the_run(draw: st.DrawFn, tape: Tape, name: str) -> kinds.Fact:
    """A fact of a step or of the run as a whole."""
    path = draw(paths)
    attempt = tape.state.attempts.get((path, None), 1)
    edges = draw(st.lists(st.sampled_from(EDGES), unique=True, max_size=2))
    match name:
        case "start":
            consumed = [[token.edge, token.source] for token in tape.state.tokens[:1]]
            return kinds.StepStarted(path, consumed, attempt=attempt)
        case "complete":
            return kinds.StepCompleted(path, {"n": 1}, "c" * 32, edges, attempt=attempt, context={"key": path})
        case "fail":
            return kinds.StepFailed(path, ERROR, "d" * 32, edges, draw(causes), attempt)
        case "void":
            return kinds.Invalidated("redo", [path], draw(st.sampled_from([[], [[path, "k1"]]])))
        case "gap":
            return kinds.Gap(1, 2)
        case "resume":
            return kinds.RunResumed({}, identity={"model": draw(st.sampled_from("ab"))})
        case _:
            return kinds.RunEnded("in_progress", draw(st.sampled_from(["interrupted", "running"])), ERROR)


def of_a_task(draw: st.DrawFn, tape: Tape, name: str) -> kinds.Fact:
    """A fact of a task or a paid call."""
    path, task = draw(paths), draw(tasks)
    attempt = tape.state.attempts.get((path, task), 1)
    match name:
        case "call":
            worst = draw(st.none() | usd)
            return kinds.CallStarted(
                path, draw(st.sampled_from("xy")), "m", "0", task=task, attempt=attempt, worst=worst
            )
        case "end":
            stop = draw(st.sampled_from(["end_turn", "refusal", "max_tokens"]))
            call = draw(st.sampled_from(list(tape.state.open_calls) or [998]))
            return kinds.CallEnded(call, b'{"text":""}', charge(draw), stop != "max_tokens", stop)
        case "settle":
            calls = [record.seq for record in tape.records if isinstance(record.fact, kinds.CallStarted)]
            return kinds.ChargeSettled(draw(st.sampled_from(calls or [999])), draw(usd))
        case "failed":
            return kinds.TaskFailed(path, task or "k1", ERROR, draw(causes), attempt)
        case _:
            return kinds.TaskCompleted(
                path, task or "k1", str(draw(st.integers())).encode(), attempt=attempt, reads={"params.n": "h"}
            )


RUN_FACTS = ("start", "complete", "fail", "void", "gap", "resume", "ended")
TASK_FACTS = ("call", "call", "end", "end", "settle", "failed", "done")


@st.composite
def journals(draw: st.DrawFn) -> list[Record]:
    tape = Tape()
    for _ in range(draw(st.integers(0, 25))):
        # Any fact an owner, a late owner or a repair could append now; not always a sensible one.
        name = draw(st.sampled_from(RUN_FACTS + TASK_FACTS))
        fact = (of_the_run if name in RUN_FACTS else of_a_task)(draw, tape, name)
        tape.put(fact, owner=draw(st.sampled_from([None, None, None, 1])))
    return tape.records


@given(journals(), st.data())
@settings(max_examples=60, deadline=None)
def test_fold_of_all_is_fold_of_a_prefix_and_then_the_rest(records: list[Record], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(records)))
    builder = Builder("r")
    for record in records[:cut]:
        builder.apply(record)
    frozen = builder.freeze()
    before = copy.deepcopy(frozen)
    for record in records[cut:]:
        builder.apply(record)
    assert builder.freeze() == fold("r", records)
    # What was frozen at the cut has not felt what came after, and is what a fold up to there says.
    assert frozen == before == fold("r", records[:cut])


@given(journals())
@settings(max_examples=25, deadline=None)
def test_fold_sees_the_same_in_written_records(records: list[Record]) -> None:
    lines = [encode_line(record.seq, record.at, record.owner, encode_fact(record.fact)) for record in records]
    assert plain(fold("r", map(decode_line, lines))) == plain(fold("r", records))


def plain(state: RunState) -> Any:
    """A state without the difference of tuples and lists, which JSON does not know."""

    def flat(value: Any) -> Any:
        if isinstance(value, (dict, TaskTable)):
            return {key: flat(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [flat(item) for item in value]
        if isinstance(value, Struct):
            return [flat(getattr(value, name)) for name in value.__struct_fields__]
        return value

    return flat(state)


@given(journals())
@settings(max_examples=60, deadline=None)
def test_totals_are_the_sum_of_all_charges(records: list[Record]) -> None:
    state = fold("r", records)
    summed = Spend()
    for spend in state.spend.values():
        assert spend.calls > 0 or spend == state.lost
        summed.add(spend)
    known = charged(records)
    known.add(state.lost)
    assert told(spent(state)) == told(summed) == told(known)


def told(spend: Spend) -> Spend:
    """Without kinds that came to nothing: they are not told from absent ones."""
    tidy = spend.copy()
    tidy.subtract(Spend())
    return tidy


def charged(records: list[Record]) -> Spend:
    """The same totals, worked out call by call from the end."""
    money: dict[int, dict[str, Any]] = {}
    for record in records:
        fact = record.fact
        if isinstance(fact, kinds.CallStarted):
            high = "0" if fact.worst is None else fact.worst
            money[record.seq] = {"high": high, "unbounded": int(fact.worst is None), "tokens": {}, "fixed": False}
        elif isinstance(fact, kinds.CallEnded):
            seen = money.setdefault(fact.call if fact.call in money else -record.seq, {"fixed": False})
            if not seen["fixed"]:
                seen |= bounds(fact.charge)
        elif isinstance(fact, kinds.ChargeSettled) and fact.call in money and not money[fact.call].get("usd"):
            tokens = money[fact.call]["tokens"]
            fixed = not money[fact.call].get("ended", False)
            money[fact.call] = {"usd": fact.usd, "tokens": tokens, "fixed": fixed}
    total = Spend()
    for row in money.values():
        total.add(
            Spend(
                calls=1, tokens=row["tokens"], usd=Decimal(row.get("usd") or "0"), low=Decimal(row.get("low", "0")),
                high=Decimal(row.get("high", "0")), unpriced=row.get("unpriced", 0), unbounded=row.get("unbounded", 0),
                usd_by_kind={key: Decimal(value) for key, value in row.get("parts", {}).items()},
                kind_calls={key: 1 for key, count in row["tokens"].items() if count},
            )
        )  # fmt: skip
    return total


def bounds(data: Mapping[str, Any]) -> dict[str, Any]:
    row = {"tokens": data["tokens"], "ended": True, "high": "0", "low": "0", "unbounded": 0}
    if data["state"] == "exact":
        return row | {"usd": data["low"], "parts": data["parts"]}
    if data["state"] == "interval":
        return row | {"low": data["low"], "high": data["high"] or data["low"], "unbounded": int(data["high"] is None)}
    return row | {"unpriced": 1}
