"""Spans from records: what hangs under what, when it ends, what it says; the same records give the same spans."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path

from pipeline.clock import SystemClock
from pipeline.cost.ledger import rows
from pipeline.records.charge import Charge
from pipeline.records.codec import Record
from pipeline.records.kinds import (
    CallEnded,
    CallStarted,
    RunEnded,
    RunResumed,
    RunStarted,
    StepCompleted,
    StepFailed,
    StepStarted,
    TaskCompleted,
    TaskFailed,
)
from pipeline.records.values import encode_value
from pipeline.store.files import FileStore
from pipeline.store.reader import records
from pipeline.traces import names
from pipeline.traces.names import ATTRIBUTES, METRICS
from pipeline.traces.spans import INTERRUPTED, Span, Tree
from tests.runs import Script
from tests.sample_runs import LESSON

CACHED = Charge(
    "exact", Decimal("0.0123"), Decimal("0.0123"),
    tokens={"input": 10, "cache_write_5m": 20, "cache_write_1h": 3, "cache_read": 40, "output": 5},
)  # fmt: skip
BOUNDED = Charge("interval", Decimal("0.01"), Decimal("0.09"))


def grown(found: Iterable[Record], *, gone: bool = True, run: str = "r") -> list[Span]:
    tree = Tree(run)
    spans = [span for record in found for span in tree.apply(record)]
    return spans + (tree.close() if gone else [])


def written(*facts: object) -> list[Record]:
    """Facts as records, a second apart."""
    return [
        Record(seq, f"2026-01-09T14:30:{seq:02}.000Z", 1, fact)  # type: ignore[arg-type]
        for seq, fact in enumerate((RunStarted("demo", {}, {}, {}, host={"host": "h", "pid": 1}), *facts), 1)
    ]


def call(seq: int, *, task: str | None = "make/1", attempt: int = 1, k: int = 1, **end: object) -> list[object]:
    """A call whose start has this seq, and its end."""
    started = CallStarted("make#1", "key", "claude-sonnet-5-5", "", k=k, task=task, attempt=attempt, worst="0.10")
    return [started, CallEnded(seq, encode_value({"text": "x"}), **{"charge": LESSON.to_json(), **end})]  # type: ignore[arg-type]


def kinds(spans: Iterable[Span]) -> Counter[str]:
    return Counter(span.kind for span in spans)


def only(spans: Iterable[Span], kind: str) -> Span:
    (found,) = (span for span in spans if span.kind == kind)
    return found


def test_call_hangs_under_attempt_item_step_and_run() -> None:
    spans = grown(written(
        StepStarted("make#1"), *call(3), TaskCompleted("make#1", "make/1", b"1"),
        StepCompleted("make#1", {}, "c"), RunEnded("completed"),
    ))  # fmt: skip
    assert [span.kind for span in spans] == ["call", "attempt", "item", "step", "run"]
    for child, parent in itertools.pairwise(spans):
        assert child.parent == parent.id
        assert parent.start <= child.start <= child.end <= parent.end
    assert spans[-1].parent == ""
    assert len({span.id for span in spans}) == 5
    assert {span.trace for span in spans} == {spans[0].trace}
    assert spans[0].name == "chat claude-sonnet-5-5"
    assert spans[2].attributes["course_pipeline.item"] == "1"
    assert spans[4].attributes["gen_ai.workflow.name"] == "demo"
    assert not any(span.error for span in spans)


def test_ids_are_of_the_run_and_its_records() -> None:
    facts = [StepStarted("make#1"), *call(3), StepCompleted("make#1", {}, "c"), RunEnded("completed")]
    one, two = grown(written(*facts)), grown(written(*facts))
    assert one == two
    other = grown(written(*facts), run="other")
    assert not {span.id for span in one} & {span.id for span in other}
    assert one[0].trace != other[0].trace


def test_runs_of_one_name_in_two_stores_are_two_traces() -> None:
    first = written()
    later = [Record(1, "2026-01-09T14:30:02.000Z", 1, first[0].fact)]
    assert grown(first)[0].trace != grown(later)[0].trace


def test_each_call_of_the_ledger_is_a_span_with_its_tokens_and_dollars(tmp_path: Path) -> None:
    script = Script(tmp_path)
    script.begin("sow").call("sow", None, LESSON).complete("sow", {}).begin("lessons")
    script.call("lessons", "lessons/1", CACHED).task("lessons", "lessons/1", {})
    script.call("lessons", "lessons/2", BOUNDED, error="overloaded").call("lessons", "lessons/2", None)
    run = script.leave()
    found = list(records(FileStore(tmp_path, SystemClock()), run))
    ledger = rows(found)
    calls = {span.attributes["course_pipeline.call.seq"]: span for span in grown(found) if span.kind == "call"}
    assert calls.keys() == {row.seq for row in ledger}
    for row in ledger:
        said = calls[row.seq].attributes
        if row.usd is not None:
            assert Decimal(repr(said["gen_ai.usage.cost.amount"])) == row.usd
            assert said["gen_ai.usage.cost.currency"] == "USD"
            assert said["gen_ai.usage.cost.source"] == "local"
        else:
            assert "gen_ai.usage.cost.amount" not in said
            assert said["course_pipeline.cost.usd_low"] == float(row.low)
            assert said["course_pipeline.cost.usd_high"] == float(row.high or 0)
    cached = calls[ledger[1].seq].attributes
    assert cached["gen_ai.usage.input_tokens"] == 10 + 20 + 3 + 40
    assert cached["gen_ai.usage.cache_write.input_tokens"] == cached["gen_ai.usage.cache_creation.input_tokens"] == 23
    assert calls[ledger[2].seq].error == "ModelUnavailable"
    assert calls[ledger[3].seq].error == INTERRUPTED


def test_no_other_span_tells_of_money_or_tokens() -> None:
    spans = grown(written(StepStarted("make#1"), *call(3), RunEnded("completed")))
    others = {name for span in spans if span.kind != "call" for name in span.attributes}
    assert not {name for name in others if "usage" in name or "cost" in name}


def test_money_of_an_end_without_its_start_has_a_span() -> None:
    spans = grown(written(CallEnded(99, None, charge=LESSON.to_json())))
    assert only(spans, "call").attributes["gen_ai.usage.cost.amount"] == 0.05


def test_attempts_of_an_item_follow_each_other() -> None:
    failed = TaskFailed("make#1", "make/1", {"type": "TaskRejected", "message": "secret of the reply"})
    spans = grown(written(
        StepStarted("make#1"), *call(3), failed, *call(6, attempt=2),
        TaskCompleted("make#1", "make/1", b"1", attempt=2), StepCompleted("make#1", {}, "c"), RunEnded("completed"),
    ))  # fmt: skip
    assert kinds(spans) == {"run": 1, "step": 1, "item": 1, "attempt": 2, "call": 2}
    one, two = (span for span in spans if span.kind == "attempt")
    assert (one.error, two.error, only(spans, "item").error) == ("TaskRejected", "", "")
    assert one.end <= two.start
    assert "secret" not in str(spans)


def test_item_that_failed_for_good_ends_with_its_last_record() -> None:
    failed = TaskFailed("make#1", "make/1", {"type": "TaskRejected"})
    step = StepFailed("make#1", {"type": "StepFailed"}, "c")
    spans = grown(
        written(StepStarted("make#1"), *call(3), failed, step, RunEnded("failed", error={"type": "StepFailed"}))
    )
    item = only(spans, "item")
    assert item.error == "TaskRejected"
    assert item.end < only(spans, "step").end
    assert (only(spans, "step").error, only(spans, "run").error) == ("StepFailed", "StepFailed")


def test_step_that_is_tried_again_is_one_span_with_its_attempts() -> None:
    spans = grown(written(
        StepStarted("make#1"), StepFailed("make#1", {"type": "Timeout"}, "c", retry=True),
        StepStarted("make#1", attempt=2), *call(5, task=None, attempt=2), StepCompleted("make#1", {}, "c", attempt=2),
        RunEnded("completed"),
    ))  # fmt: skip
    assert kinds(spans) == {"run": 1, "step": 1, "attempt": 2, "call": 1}
    one, two = (span for span in spans if span.kind == "attempt")
    assert (one.error, two.error, only(spans, "step").error) == ("Timeout", "", "")
    assert only(spans, "call").parent == two.id


def test_what_a_killed_process_left_ends_with_its_last_record() -> None:
    facts = written(StepStarted("make#1"), *call(3), CallStarted("make#1", "k2", "m", "", task="make/1", worst="0.10"))
    assert kinds(grown(facts, gone=False)) == {"call": 1}
    spans = grown(facts)
    assert kinds(spans) == {"run": 1, "step": 1, "item": 1, "attempt": 1, "call": 2}
    assert {span.error for span in spans if span.kind != "call"} == {INTERRUPTED}
    assert max(span.end for span in spans) == only(spans, "run").end


def test_resume_changes_no_span_of_before() -> None:
    before = [StepStarted("make#1"), *call(3), CallStarted("make#1", "k2", "m", "", task="make/1", worst="0.10")]
    alone = grown(written(*before))
    resumed = grown(written(
        *before, RunResumed({}), StepStarted("make#1"), *call(8), TaskCompleted("make#1", "make/1", b"1"),
        StepCompleted("make#1", {}, "c"), RunEnded("completed"),
    ))  # fmt: skip
    by_id = {span.id: span for span in resumed}
    assert len(by_id) == len(resumed)
    assert all(by_id[span.id] == span for span in alone)
    root, again = (span for span in resumed if span.kind == "run")
    assert (root.parent, again.parent) == ("", root.id)
    assert again.attributes["course_pipeline.run.resumed"] is True


def test_call_that_is_answered_after_a_resume_is_one_span() -> None:
    spans = grown(written(
        StepStarted("make#1"), CallStarted("make#1", "k", "m", "", task="make/1", worst="0.1", batch="b"),
        RunEnded("in_progress", "waiting_for_batch"), RunResumed({}),
        CallEnded(3, None, charge=LESSON.to_json()), RunEnded("completed"),
    ))  # fmt: skip
    call_span = only(spans, "call")
    assert (call_span.end - call_span.start) == 3 * 10**9
    # A pause is no error.
    assert {span.error for span in spans} == {""}


def test_nested_steps_and_tasks_hang_under_what_they_lie_in() -> None:
    inner = CallStarted("fan#1/left#1", "k", "m", "", task="left/1/critic", worst="0.1")
    spans = grown(written(
        StepStarted("fan#1"), StepStarted("fan#1/left#1"),
        CallStarted("fan#1/left#1", "k", "m", "", task="left/1", worst="0.1"), inner,
    ))  # fmt: skip
    names = {span.attributes.get("course_pipeline.step"): span for span in spans if span.kind == "step"}
    items = {span.attributes["course_pipeline.item"]: span for span in spans if span.kind == "item"}
    assert names["fan/left"].parent == names["fan"].id
    assert items["1/critic"].parent == items["1"].id


def test_docs_list_every_name() -> None:
    docs = (Path(__file__).parents[3] / "devops/docs/observability.md").read_text(encoding="utf-8")
    every = {name for found in ATTRIBUTES.values() for name in found} | {metric.name for metric in METRICS.values()}
    assert not [name for name in sorted(every) if f"`{name}`" not in docs]


def test_names_stand_in_one_table() -> None:
    texts = {path.name: path.read_text(encoding="utf-8") for path in Path(names.__file__).parent.glob("*.py")}
    assert [name for name, text in texts.items() if re.search(r'"(gen_ai|course_pipeline|error)\.', text)] == [
        "names.py"
    ]
