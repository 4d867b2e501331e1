"""Where a run stands after its records: steps, owners, gaps, voids."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.records import kinds
from pipeline.records.run import StepRun, bare, full, next_attempt
from tests.tape import Tape

START = (("", ""),)


def waiting(tape: Tape) -> list[tuple[str, str]]:
    return [(token.edge, token.source) for token in tape.state.tokens]


def chain_of_three() -> Tape:
    tape = Tape()
    tape.start("a#1", START)
    tape.complete("a#1", ["a->b"], {"n": 1}, context={"x": 1, "y": 1})
    tape.start("b#1", [["a->b", "a#1"]])
    tape.complete("b#1", ["b->c"], {"n": 2}, context={"x": 2})
    tape.start("c#1", [["b->c", "b#1"]])
    tape.complete("c#1", [], {"n": 3}, context={"z": 3})
    return tape


@pytest.mark.parametrize("consumed", [START, ()])
def test_step_started_consumes_the_start_named_or_not(consumed: tuple[tuple[str, str], ...]) -> None:
    tape = Tape(params={"subject": "physics"}, identity={"model": "m"})
    state = tape.state
    assert waiting(tape) == [("", "")]
    assert (state.status, state.detail, state.owner, state.seq) == ("in_progress", "running", 1, 1)
    assert (state.params, state.identity) == ({"subject": "physics"}, {"model": "m"})
    tape.start("a#1", consumed)
    assert waiting(tape) == []
    assert list(state.open_paths) == ["a#1"]
    assert state.steps["a#1"].consumed == START


def test_step_completed_lays_tokens_on_the_edges_it_chose() -> None:
    tape = Tape()
    tape.start("a#1", START)
    tape.reply(tape.call("a#1"), "0.40")
    seq = tape.complete(
        "a#1", ["a->b", "a->c"], {"n": 1}, seconds=2.5, artifacts={"scheme": "f00"}, reads={"params.n": "h"}
    )
    step = tape.state.steps["a#1"]
    assert waiting(tape) == [("a->b", "a#1"), ("a->c", "a#1")]
    assert {token.seq for token in tape.state.tokens} == {seq}
    assert (step.status, step.outputs, step.artifacts, step.seconds) == ("completed", {"n": 1}, {"scheme": "f00"}, 2.5)
    assert (step.reads, step.error, step.outcome, step.ended_seq) == ({"params.n": "h"}, None, "success", seq)
    assert not tape.state.open_paths
    assert [(mark.seq, mark.path, str(mark.usd)) for mark in tape.state.checkpoints] == [(seq, "a#1", "0.40")]


def test_step_failed_without_an_edge_is_offered_again_as_a_new_attempt() -> None:
    tape = Tape()
    tape.start("a#1", START)
    tape.fail("a#1", message="overloaded")
    state = tape.state
    assert list(state.failed_paths) == ["a#1"]
    assert waiting(tape) == []
    assert next_attempt(state, "a#1") == 2
    assert state.error == {"type": "StepFailed", "message": "overloaded"}


@pytest.mark.parametrize(("how", "attempt"), [({"cause": "provider"}, 1), ({"retry": True}, 2)])
def test_failure_of_the_provider_keeps_its_attempt_and_one_that_is_retried_is_no_error(how: Any, attempt: int) -> None:
    tape = Tape()
    tape.start("a#1", START)
    tape.fail("a#1", **how)
    assert next_attempt(tape.state, "a#1") == attempt
    assert list(tape.state.failed_paths) == ["a#1"]
    assert (tape.state.error is None) == ("retry" in how)


def test_step_run_again_keeps_its_time_and_clears_its_error() -> None:
    tape = Tape()
    tape.start("a#1", START)
    tape.fail("a#1", seconds=2.0)
    tape.put(kinds.RunEnded("failed", None, {"type": "StepFailed", "message": "a: no luck"}))
    tape.at = "2026-01-10T00:00:00.000Z"
    tape.resume()
    assert tape.state.error is not None
    tape.start("a#1", START, attempt=2)
    assert not tape.state.failed_paths
    assert tape.state.error is not None
    tape.complete("a#1", seconds=1.0, attempt=2)
    step = tape.state.steps["a#1"]
    assert (step.seconds, step.error, step.attempt) == (3.0, None, 2)
    assert step.started_at == "2026-01-09T14:30:22.000Z"
    assert tape.state.error is None


def test_error_stays_while_another_step_is_failed() -> None:
    tape = Tape()
    tape.start("a#1", START)
    tape.complete("a#1", ["a->b", "a->c", "a->d"])
    for name in "bcd":
        tape.start(f"{name}#1", [[f"a->{name}", "a#1"]])
    tape.fail("b#1", message="first")
    tape.fail("c#1", message="second")
    tape.complete("d#1")
    assert tape.state.error == {"type": "StepFailed", "message": "first"}


def test_run_resumed_merges_settings_and_names_the_new_owner() -> None:
    tape = Tape(identity={"model": "old", "lessons": 18})
    tape.put(kinds.RunEnded("in_progress", "paused_budget", {"type": "BudgetExceeded", "message": "ceiling"}))
    assert (tape.state.status, tape.state.detail) == ("in_progress", "paused_budget")
    seq = tape.resume(execution={"concurrency": 2}, identity={"model": "new"}, pins={"catalogue": "c0"})
    state = tape.state
    assert (state.owner, state.resumes, state.status, state.detail) == (seq, 1, "in_progress", "running")
    assert state.identity == {"model": "new", "lessons": 18}
    assert (state.execution, state.pins) == ({"concurrency": 2}, {"catalogue": "c0"})


def test_deaths_count_only_where_nothing_was_recorded() -> None:
    tape = Tape()
    tape.start("a#1", START)
    for expected in (1, 2, 3):
        tape.resume()
        assert tape.state.steps["a#1"].deaths == expected
        tape.start("a#1", START)
    tape.call("a#1")
    tape.resume()
    assert tape.state.steps["a#1"].deaths == 0, "it got somewhere"
    tape.start("a#1", START)
    tape.put(kinds.RunEnded("in_progress", "interrupted"))
    for _ in ("left in order", "never started it"):
        tape.resume()
        assert tape.state.steps["a#1"].deaths == 0


def test_late_records_of_an_older_owner_move_money_and_tasks_but_not_the_position() -> None:
    tape = Tape()
    tape.start("a#1", START)
    call = tape.call("a#1", "k")
    tape.resume()
    tape.reply(call, "0.25")
    tape.put(kinds.TaskCompleted("a#1", "k", b'"v"'), owner=1)
    tape.put(kinds.StepCompleted("a#1", {}, "f" * 32, ["a->b"]), owner=1)
    tape.put(kinds.RunEnded("completed"), owner=1)
    state = tape.state
    assert str(state.total.usd) == "0.25"
    assert state.tasks["a#1"]["k"].value == b'"v"'
    assert (state.status, waiting(tape), list(state.open_paths)) == ("in_progress", [], ["a#1"])


def test_after_a_gap_money_and_tasks_count_but_positions_wait_for_the_next_owner() -> None:
    tape = Tape()
    tape.start("a#1", START)
    tape.put(kinds.Gap(3, 5, 120, "journal.damaged-1", "crc"))
    tape.reply(tape.call("b#1"), "0.25")
    tape.done("b#1", "k")
    tape.complete("a#1", ["a->b"])
    assert list(tape.state.open_paths) == ["a#1"]
    assert (str(tape.state.total.usd), list(tape.state.tasks["b#1"])) == ("0.25", ["k"])
    tape.resume()
    tape.complete("a#1", ["a->b"])
    assert waiting(tape) == [("a->b", "a#1")]
    assert tape.state.gaps[0]["kept"] == "journal.damaged-1"


def test_steps_that_follow_from_lost_lines_are_left_out_even_under_a_later_owner() -> None:
    tape = Tape()
    tape.start("a#1", START)
    tape.put(kinds.Gap(3, 3, reason="crc"))
    # These lines stood behind the damage: an old owner that resumed, and went on with b.
    tape.resume()
    tape.start("b#1", [["a->b", "a#1"]])
    tape.complete("b#1", ["b->c"])
    assert list(tape.state.steps) == ["a#1"]
    assert waiting(tape) == []


def test_after_a_gap_a_step_goes_on_where_the_position_is_known() -> None:
    tape = Tape()
    tape.start("a#1", START)
    tape.put(kinds.Gap(3, 3, reason="crc"))
    tape.resume()
    tape.start("a#1", START)
    tape.complete("a#1", ["a->b"])
    tape.start("a#1", START)
    assert tape.state.steps["a#1"].status == "completed"
    tape.start("b#1", [["a->b", "a#1"]])
    tape.fail("b#1")
    tape.start("b#1", [["a->b", "a#1"]], attempt=2)
    assert list(tape.state.open_paths) == ["b#1"]


def test_invalidated_voids_what_followed_and_gives_the_token_back() -> None:
    tape = chain_of_three()
    tape.put(kinds.Invalidated("redo", ["b#1"]))
    state = tape.state
    assert list(state.steps) == ["a#1"]
    assert waiting(tape) == [("a->b", "a#1")]
    assert state.context == {"x": 1, "y": 1}
    assert (next_attempt(state, "b#1"), next_attempt(state, "c#1"), next_attempt(state, "a#1")) == (2, 2, 1)
    assert state.returning == {("a->b", "a#1"): "b#1", ("b->c", "b#1"): "c#1"}
    tape.put(kinds.Invalidated("from", ["a#1"]))
    assert (waiting(tape), state.steps, state.context) == ([("", "")], {}, {})


def test_invalidated_takes_back_tokens_not_yet_consumed_and_sub_visits() -> None:
    tape = Tape()
    tape.start("a#1", START)
    tape.start("a#1/x#1", [["in", "a#1/w#1"]])
    tape.complete("a#1/x#1")
    tape.complete("a#1", ["a->b", "a->c"])
    tape.put(kinds.Invalidated("redo", ["a#1"]))
    assert (("a->b", "a#1") in waiting(tape), tape.state.steps) == (False, {})


@pytest.mark.parametrize(
    "fact", [kinds.Invalidated("redo", ["nobody#1"]), kinds.UnknownFact("teleported", {"to": "moon"})]
)
def test_facts_without_a_meaning_for_the_state_only_move_the_seq(fact: kinds.Fact) -> None:
    tape = chain_of_three()
    before = tape.builder.freeze()
    tape.put(fact)
    after = tape.builder.freeze()
    assert after.seq == before.seq + 1
    after.seq = before.seq
    assert after == before


def test_invalidated_restores_tokens_in_order_of_age() -> None:
    tape = Tape()
    tape.start("a#1", START)
    tape.complete("a#1", ["a->b", "a->c"])
    tape.start("b#1", [["a->b", "a#1"]])
    tape.complete("b#1", ["b->d"])
    tape.start("c#1", [["a->c", "a#1"]])
    tape.complete("c#1", ["c->d"])
    tape.put(kinds.Invalidated("redo", ["c#1"]))
    assert waiting(tape) == [("a->c", "a#1"), ("b->d", "b#1")]


def test_invalidated_steps_keep_their_tasks_unless_named() -> None:
    tape = Tape()
    tape.start("a#1", START)
    for key in ("k1", "k2"):
        tape.reply(tape.call("a#1", key), "0.25")
        tape.done("a#1", key)
    tape.complete("a#1")
    tape.put(kinds.Invalidated("redo", ["a#1"], [["a#1", "k1"]]))
    state = tape.state
    assert list(state.tasks["a#1"]) == ["k2"]
    assert (next_attempt(state, "a#1", "k1"), next_attempt(state, "a#1", "k2")) == (2, 1)
    assert {key.outcome: str(sum_.usd) for key, sum_ in state.spend.items()} == {"used": "0.25", "wasted": "0.25"}


@pytest.mark.parametrize(
    ("path", "shown"), [("seed#1", "seed"), ("write#2", "write#2"), ("fan#2/left#1/write#3", "fan#2/left/write#3")]
)
def test_bare_leaves_out_first_visits_only_and_full_puts_them_back(path: str, shown: str) -> None:
    assert bare(path) == shown
    assert full(shown) == path


def test_steps_of_a_damaged_journal_never_raise() -> None:
    tape = Tape()
    tape.complete("ghost#1", ["ghost->x"])
    assert tape.state.steps["ghost#1"] == StepRun(
        "ghost#1", "ghost", 1, "completed", completed_at=tape.at, outcome="success", edges=["ghost->x"],
        checkpoint=f"{1:032x}", ended_seq=2,
    )  # fmt: skip


def test_a_question_is_open_until_exactly_it_is_answered() -> None:
    tape = Tape()
    tape.put(kinds.StepStarted("a#1"))
    tape.put(kinds.DecisionAsked("a#1", "q", ["yes", "no"], {"text": "Ship it?"}))
    assert tape.state.questions["a#1"].choices == ["yes", "no"]
    tape.put(kinds.Decision("a#1", "other", "yes"))
    assert "a#1" in tape.state.questions
    tape.put(kinds.Decision("a#1", "q", "no", "Ann", "too early"))
    assert not tape.state.questions
    answer = tape.state.decisions["a#1", "q"]
    assert (answer.choice, answer.by, answer.note) == ("no", "Ann", "too early")
    tape.put(kinds.DecisionAsked("a#1", "next", ["yes"]))
    tape.complete("a#1", [])
    tape.put(kinds.DecisionAsked("a#1", "late", ["yes"]))
    assert not tape.state.questions, "its visit has ended"


def test_a_failure_that_a_route_accepted_leaves_what_it_set() -> None:
    tape = Tape()
    tape.put(kinds.StepStarted("a#1"))
    tape.put(kinds.StepFailed("a#1", {"type": "X", "message": "m"}, "c" * 32, ["a->b"], outcome="fail",
                              outputs={"text": "half"}, context={"why": "m"}))  # fmt: skip
    state = tape.state
    assert (state.steps["a#1"].outputs, state.context, state.error) == ({"text": "half"}, {"why": "m"}, None)
    assert not state.failed_paths
    assert ("a->b", "a#1") in state.waiting
