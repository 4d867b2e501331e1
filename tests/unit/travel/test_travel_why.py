"""Why a step or an item ran: each go at it, as the records tell."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.engine.pipeline import Pipeline
from pipeline.engine.step import Outcome, StepContext, step
from pipeline.records import kinds
from pipeline.store.memory import MemoryStore
from pipeline.store.reader import records
from pipeline.testing import FakeClock
from pipeline.travel.fork import fork_run
from pipeline.travel.timeline import Explanation, WorkSpan, explain
from tests.tape import Tape


def _of(tape: Tape, path: str = "a#1", task: str | None = None) -> Explanation:
    return explain("r", tape.records, [path], task)


def _kinds(goes: Sequence[WorkSpan]) -> list[tuple[str, int, str]]:
    return [(go.kind, go.attempt, go.ended) for go in goes]


def test_a_step_that_was_cut_off_is_resumed_and_its_replies_answer() -> None:
    tape = Tape()
    tape.start("a#1")
    first = tape.call("a#1")
    tape.reply(first)
    tape.resume()
    tape.start("a#1")
    second = tape.call("a#1")
    tape.reply(second)
    tape.complete("a#1")
    new, resumed = _of(tape).goes
    assert (new.kind, new.ended, new.asked) == ("new", "", [first])
    assert (resumed.kind, resumed.cause, resumed.reused, resumed.asked) == ("resumed", "", [first], [second])
    assert (resumed.ended, resumed.ended_seq) == ("completed", len(tape.records))


def test_how_the_run_had_been_left_is_told_and_a_death_after_it_too() -> None:
    tape = Tape()
    tape.start("a#1")
    tape.put(kinds.RunEnded("in_progress", "paused_budget"))
    tape.resume()
    tape.start("a#1")
    tape.resume()
    tape.start("a#1")
    assert [(go.kind, go.cause) for go in _of(tape).goes] == [
        ("new", ""),
        ("resumed", "paused_budget"),
        ("resumed", ""),
    ]


def test_a_step_is_tried_again_after_its_failure() -> None:
    tape = Tape()
    tape.start("a#1")
    tape.fail("a#1", message="no luck")
    tape.resume()
    tape.start("a#1", attempt=2)
    tape.complete("a#1", attempt=2)
    goes = _of(tape).goes
    assert _kinds(goes) == [("new", 1, "failed"), ("retried", 2, "completed")]
    assert (goes[0].error or {})["message"] == goes[1].cause == "no luck"


def test_a_change_names_what_was_read_before_and_now_and_who_only_followed() -> None:
    tape = Tape()
    tape.start("a#1")
    tape.complete("a#1", ["a->b"], reads={"settings.model": "1", "params.x": "p"})
    tape.start("b#1", [["a->b", "a#1"]])
    tape.complete("b#1")
    tape.resume()
    tape.put(kinds.Invalidated("changed", ["a#1"], note="by hand"))
    tape.start("a#1", attempt=2, version=3)
    tape.complete("a#1", ["a->b"], attempt=2, reads={"settings.model": "2", "params.x": "p", "pin.y": "3"})
    tape.start("b#1", [["a->b", "a#1"]], attempt=2)
    tape.complete("b#1", attempt=2, reason="unchanged")
    again = _of(tape).goes[1]
    assert (again.kind, again.cause, again.followed) == ("changed", "by hand", ())
    assert again.changed == {"settings.model": ("1", "2"), "pin.y": (None, "3"), "version": ("1", "3")}
    stood = _of(tape, "b#1").goes[1]
    assert (stood.kind, stood.followed) == ("stands", ("a#1",))


def test_an_item_is_new_resumed_retried_reused_and_made_again() -> None:
    tape = Tape()
    tape.start("a#1")
    first = tape.call("a#1", "m/1")
    tape.reply(first)
    tape.resume()
    tape.start("a#1")
    tape.call("a#1", "m/1")
    tape.failed("a#1", "m/1")
    tape.call("a#1", "m/1", attempt=2)
    tape.done("a#1", "m/1", attempt=2, reads={"params.x": "1"})
    tape.resume()
    tape.start("a#1")
    tape.complete("a#1")
    tape.resume()
    tape.put(kinds.Invalidated("from", ["a#1"], [["a#1", "m/1"]]))
    tape.start("a#1", attempt=2)
    tape.done("a#1", "m/1", attempt=3, reads={"params.x": "2"})
    goes = _of(tape, task="m/1").goes
    assert _kinds(goes) == [
        ("new", 1, ""), ("resumed", 1, "failed"), ("retried", 2, "completed"), ("stands", 2, "completed"),
        ("from", 3, "completed"),
    ]  # fmt: skip
    assert goes[1].reused == [first]
    assert goes[4].changed == {"params.x": ("1", "2")}


def test_an_item_that_was_looked_at_and_did_not_stand_is_not_told_as_reused() -> None:
    tape = Tape()
    tape.start("a#1")
    tape.done("a#1", "m/1", reads={"params.x": "1"})
    tape.resume()
    tape.start("a#1")
    tape.put(kinds.Invalidated("changed", tasks=[["a#1", "m/1"]]))
    tape.done("a#1", "m/1", attempt=2, reads={"params.x": "2"})
    assert _kinds(_of(tape, task="m/1").goes) == [("new", 1, "completed"), ("changed", 2, "completed")]


@step()
def one(ctx: StepContext) -> Outcome:
    ctx.save("kept", ctx.params["x"])
    return Outcome({"n": ctx.params["x"]}, context={"k": ctx.params["x"]})


@step()
def two(ctx: StepContext) -> dict[str, int]:
    return {"n": ctx.outputs["one"]["n"] + ctx.load("kept") + ctx.context["k"]}


@step()
def three(ctx: StepContext) -> dict[str, int]:
    return {"n": len(ctx.place.seen)}


CHAIN = Pipeline("chain", [one, two, three])


def test_who_read_it_is_told_with_the_names_by_which(store: MemoryStore) -> None:
    run = CHAIN.run({"x": 1}, store=store, clock=FakeClock()).run_id
    found = explain(run, list(records(store, run)), ["one#1"])
    assert list(found.reads) == ["params.x"]
    assert {path: list(names) for path, names in found.dependents.items()} == {
        "two#1": ["outputs.one.n", "artifact.kept", "context.k"]
    }
    by_context = explain(run, list(records(store, run)), ["two#1"]).dependents
    assert {path: list(names) for path, names in by_context.items()} == {"three#1": ["context"]}


def test_what_a_fork_inherited_is_told_as_such(store: MemoryStore) -> None:
    run = CHAIN.run({"x": 1}, store=store, clock=FakeClock()).run_id
    child = fork_run(store, run, changes={"params.x": 2}, clock=FakeClock())
    CHAIN.resume(child, store=store, clock=FakeClock())
    found = explain(child, list(records(store, child)), ["one#1"])
    assert found.parent == {"run": run, "seq": 8}
    assert [(go.kind, go.cause) for go in found.goes] == [("inherited", ""), ("changed", "params.x")]
