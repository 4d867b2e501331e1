"""Where failures lead: edges that accept them, diamonds, retry targets, the end of the run; equal ones end it."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.engine.step import StepContext
from pipeline.errors import ModelRejected
from pipeline.formats.attractor.outcome import NodeOutcome, failure
from tests.unit.formats.playing import ENDS, Play, played


def test_failure_never_follows_a_plain_edge_and_the_run_says_why() -> None:
    play, result = played(f"{ENDS}start -> w -> v -> exit", {"w": failure("the disk is full")})
    assert (result.status, result.exit_code) == ("failed", 6)
    assert str(result.error) == "w: the disk is full"
    assert play.order == ["start", "w"]


def test_failed_run_that_is_resumed_tries_the_failed_node_again() -> None:
    play, result = played(f"{ENDS}start -> w -> exit", {"w": ["fail", "success"]})
    assert result.status == "failed"
    assert play.go().status == "completed"
    assert play.called == [("start#1", 1), ("w#1", 1), ("w#1", 2), ("exit#1", 1)]


def test_failure_takes_the_edge_whose_condition_accepts_it() -> None:
    text = f'{ENDS}start -> w\nw -> a\nw -> b [condition="outcome=fail"]\na -> exit\nb -> exit'
    play, result = played(text, {"w": failure("no", "weird")})
    assert (result.status, play.order[-2]) == ("completed", "b")
    run = play.state.steps["w#1"]
    assert (run.status, run.outcome, run.reason) == ("failed", "fail", "condition")
    assert run.context["failure_class"] == "weird"


def test_failure_and_its_class_are_in_the_context_until_something_succeeds() -> None:
    seen: list[dict[str, Any]] = []

    def look(ctx: StepContext) -> Any:
        seen.append(dict(ctx.place.seen))
        return NodeOutcome()

    text = f'{ENDS}start -> w\nw -> b [condition="outcome!=success"]\nb -> c -> exit'
    played(text, {"w": failure("no", "weird"), "b": look, "c": look})
    assert (seen[0]["outcome"], seen[0]["failure_reason"], seen[0]["failure_class"]) == ("fail", "no", "weird")
    assert (seen[1]["outcome"], seen[1]["failure_reason"], seen[1]["failure_class"]) == ("success", "", "")


def test_handler_that_raises_fails_its_node() -> None:
    def boom(ctx: StepContext) -> Any:
        raise ValueError("boom")

    text = f'{ENDS}start -> w\nw -> b [condition="outcome=fail"]\nb -> exit'
    play, result = played(text, {"w": boom})
    assert (result.status, play.order) == ("completed", ["start", "w", "b", "exit"])
    assert play.state.steps["w#1"].outcome == "fail"
    error = play.state.steps["w#1"].error
    assert error is not None
    assert error["message"] == "ValueError: boom"


def test_class_of_a_raised_error_can_be_asked_for() -> None:
    def boom(ctx: StepContext) -> Any:
        raise ModelRejected("too long")

    text = f'{ENDS}start -> w\nw -> b [condition="outcome=fail && context.failure_class=deterministic"]\nb -> exit'
    assert played(text, {"w": boom})[1].status == "completed"


# Diamonds


DIAMOND = f"""{ENDS}start -> w -> gate
gate [shape=diamond]
gate -> exit [condition="outcome=success"]
gate -> mend [condition="outcome!=success"]
mend -> w"""


def test_diamond_has_the_outcome_of_what_led_to_it() -> None:
    play, result = played(DIAMOND, {"w": ["partial_success", "success"]})
    assert (result.status, play.order) == (
        "completed",
        ["start", "w", "gate", "mend", "w", "gate", "exit"],
    )
    assert play.state.steps["gate#1"].outcome == "partial_success"


def test_failure_goes_to_a_diamond_that_has_an_edge_for_it() -> None:
    play, result = played(DIAMOND, {"w": [failure("red"), "success"]})
    assert (result.status, play.order) == ("completed", ["start", "w", "gate", "mend", "w", "gate", "exit"])
    assert (play.reason("w#1"), play.reason("gate#1")) == ("failure", "condition")
    gate = play.state.steps["gate#1"]
    assert (gate.status, gate.error and gate.error["message"]) == ("failed", "red")


def test_failure_does_not_go_to_a_diamond_that_has_no_edge_for_it() -> None:
    text = f'{ENDS}start -> w -> d\nd [shape=diamond]\nd -> a [label="go"]\nd -> b\na -> exit\nb -> exit'
    play, result = played(text, {"w": failure("red")})
    assert str(result.error) == "w: red"
    assert "d#1" not in play.state.steps


def test_plain_edge_beside_conditions_is_a_diamonds_else() -> None:
    text = f'{ENDS}start -> w -> d\nd [shape=diamond]\nd -> exit [condition="outcome=success"]\nd -> b\nb -> exit'
    play, _ = played(text, {"w": failure("red")})
    assert play.order == ["start", "w", "d", "b", "exit"]


def test_failure_passes_through_diamonds_behind_each_other() -> None:
    text = f"""{ENDS}start -> w -> d -> e
d [shape=diamond]
e [shape=diamond]
e -> exit [condition="outcome=success"]
e -> b [condition="outcome=fail"]
b -> exit"""
    play, _ = played(text, {"w": failure("red")})
    assert play.order == ["start", "w", "d", "e", "b", "exit"]


def test_diamonds_that_lead_to_each_other_are_no_way_on() -> None:
    text = f"{ENDS}start -> w -> d -> e -> d\nd [shape=diamond]\ne [shape=diamond]\nd -> exit"
    assert str(played(text, {"w": failure("red")})[1].error) == "w: red"


def test_diamond_consumes_no_retries() -> None:
    text = "default_max_retries=2\n" + DIAMOND
    play, _ = played(text, {"w": [failure("red", "deterministic"), "success"]})
    assert [call for call in play.called if call[0].startswith("w")] == [("w#1", 1), ("w#2", 1)]
    assert play.state.steps["gate#1"].attempt == 1
    assert "retry_target" not in {run.reason for run in play.state.steps.values()}


def test_node_may_go_on_although_it_failed() -> None:
    play, result = played(f"{ENDS}w [continue_on_fail=true]\nstart -> w -> v -> exit", {"w": "fail"})
    assert (result.status, play.order) == ("completed", ["start", "w", "v", "exit"])


# Retry targets


def test_failure_goes_back_to_the_first_retry_target_there_is() -> None:
    text = f"{ENDS}w [retry_target=nowhere, fallback_retry_target=q]\nstart -> p -> q -> w -> exit\nretry_target=p"
    play, result = played(text, {"w": [failure("red"), "success"]})
    assert (result.status, play.order) == ("completed", ["start", "p", "q", "w", "q", "w", "exit"])
    assert (list(play.state.steps["w#1"].edges), play.reason("w#1")) == (["w->q#retry"], "retry_target")


def test_retry_target_of_the_graph_is_the_last_resort() -> None:
    text = f"{ENDS}retry_target=p\nstart -> p -> w -> exit"
    play, _ = played(text, {"w": [failure("red"), "success"]})
    assert play.order == ["start", "p", "w", "p", "w", "exit"]


def test_edge_for_failures_beats_retry_targets() -> None:
    text = f'{ENDS}w [retry_target=start]\nstart -> w\nw -> exit\nw -> b [condition="outcome=fail"]\nb -> exit'
    assert played(text, {"w": failure("red")})[0].order == ["start", "w", "b", "exit"]


@pytest.mark.parametrize("kind", ["auth", "billing", "quota"])
def test_no_jump_is_tried_for_what_it_cannot_mend(kind: str) -> None:
    play, result = played(f"{ENDS}w [retry_target=start]\nstart -> w -> exit", {"w": failure("key expired", kind)})
    assert (str(result.error), play.order) == ("w: key expired", ["start", "w"])


# Equal failures


def test_node_that_fails_three_times_in_the_same_way_ends_the_run() -> None:
    text = f"{ENDS}w [retry_target=p]\nstart -> p -> w -> exit"
    play = Play(text, {"w": lambda ctx: failure(f"line {ctx.visit}: id deadbeef{ctx.visit}12 is unknown")})
    result = play.go()
    assert result.status == "failed"
    assert "in the same way on 3 visits" in str(result.error)
    assert play.count("w") == 3
    assert play.go().status == "failed"
    assert play.count("p") == 3, "no loop is paid for again"


def test_failures_that_differ_are_not_the_same() -> None:
    words = ["the moon", "the sun", "the sea", "the sky"]
    text = f"{ENDS}w [retry_target=p]\nstart -> p -> w -> exit"
    play = Play(text, {"w": lambda ctx: failure(words[ctx.visit - 1]) if ctx.visit < 5 else NodeOutcome()})
    assert play.go().status == "completed"


def test_failures_differ_by_what_their_tool_wrote() -> None:
    def red(ctx: StepContext) -> NodeOutcome:
        if ctx.visit == 5:
            return NodeOutcome()
        return failure("exit code 1", context_updates={"tool.output": f"FAILED test_{'abcd'[ctx.visit - 1]}"})

    assert Play(f"{ENDS}w [retry_target=p]\nstart -> p -> w -> exit", {"w": red}).go().status == "completed"


def test_how_many_equal_failures_are_too_many_is_an_attribute() -> None:
    text = f"{ENDS}loop_restart_signature_limit=2\nw [retry_target=p]\nstart -> p -> w -> exit"
    play, _ = played(text, {"w": failure("red")})
    assert play.count("w") == 2


def test_equal_failures_end_the_run_although_an_edge_accepts_them() -> None:
    text = f'{ENDS}start -> w\nw -> fix [condition="outcome=fail"]\nfix -> w\nw -> exit'
    play, result = played(text, {"w": failure("red")})
    assert (result.status, play.count("w"), play.count("fix")) == ("failed", 3, 2)


def test_transient_failures_are_not_counted_as_equal() -> None:
    text = f"{ENDS}w [retry_target=p]\nstart -> p -> w -> exit"
    said = [failure("no network", "transient_infra")] * 5 + [NodeOutcome()]
    assert played(text, {"w": said})[1].status == "completed"


def test_gate_that_gives_no_verdict_has_not_been_passed() -> None:
    text = f"{ENDS}w [goal_gate=true]\nstart -> w -> exit"
    _, result = played(text, {"w": NodeOutcome("")})
    assert result.status == "failed"
    assert "no verdict" in str(result.error)


def test_other_node_without_a_verdict_has_succeeded_and_auto_status_says_so() -> None:
    text = f"{ENDS}w [auto_status=true]\nstart -> w -> v -> exit"
    play, result = played(text, {"w": NodeOutcome(""), "v": NodeOutcome("")})
    assert (result.status, play.state.steps["v#1"].outcome) == ("completed", "success")
    assert play.state.steps["w#1"].outputs["notes"] == "auto-status: handler completed without writing status"
