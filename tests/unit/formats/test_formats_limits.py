"""Loops end: visits of nodes, restarts, and what restarts forget."""

from __future__ import annotations

from typing import Any

from pipeline.engine.step import StepContext
from pipeline.formats.attractor.outcome import NodeOutcome, failure
from tests.unit.formats.playing import ENDS, Play, played


def test_loop_that_only_its_name_prefers_is_left_when_its_node_may_not_be_visited_again() -> None:
    play, result = played(f"{ENDS}max_node_visits=3\nstart -> a\na -> b\nb -> a\nb -> exit")
    assert (result.status, play.order) == ("completed", ["start", *["a", "b"] * 3, "exit"])


def test_every_loop_ends_also_where_no_limit_is_set() -> None:
    play, result = played(f"{ENDS}start -> a\na -> b\nb -> a\nb -> exit")
    assert (result.status, play.count("a")) == ("completed", 100)
    play, result = played(f'{ENDS}start -> a\na -> b\nb -> a\nb -> exit [condition="outcome=never"]')
    assert result.status == "failed"
    assert "a has been visited 100 times" in str(result.error)


def test_limit_of_a_node_fails_the_visit_that_would_go_there() -> None:
    text = f'{ENDS}start -> w\nw -> fix [condition="outcome=redo"]\nfix [max_visits=2]\nfix -> w\nw -> exit'
    play, result = played(text, {"w": "redo"})
    assert result.status == "failed"
    assert "fix has been visited 2 times" in str(result.error)
    assert play.order[-1] == "w", "what the edge beside it would ship was not approved"
    assert play.told("node_visits")["fix"] == 2


def test_edge_for_failures_takes_a_visit_that_reached_a_limit_and_no_jump_does() -> None:
    text = f"""{ENDS}start -> w
w [retry_target=start]
w -> fix [condition="outcome=redo"]
fix [max_visits=2]
fix -> w
w -> a [condition="outcome=fail"]
a -> exit"""
    play, result = played(text, {"w": "redo"})
    assert (result.status, play.order[-3:]) == ("completed", ["w", "a", "exit"])
    assert play.count("start") == 1


def test_failure_whose_edge_is_used_up_ends_the_run_and_says_both() -> None:
    text = (
        f'{ENDS}start -> w\nw [retry_target=start]\nw -> fix [condition="outcome=fail"]\nfix [max_visits=1]\nfix -> w'
    )
    play, result = played(text + "\nw -> exit", {"w": [failure("red"), failure("blue")]})
    assert "blue fix has been visited once" in str(result.error)
    assert play.count("start") == 1


RESTART = f"""{ENDS}goal="ship"
start -> plan -> work
work -> exit [condition="outcome=success"]
work -> plan [condition="outcome!=success", loop_restart=true]"""


def test_restart_keeps_what_is_known_of_the_graph_only() -> None:
    seen: list[dict[str, Any]] = []

    def plan(ctx: StepContext) -> NodeOutcome:
        seen.append(dict(ctx.place.seen))
        return NodeOutcome(context_updates={"mine": 1})

    play, result = played(RESTART, {"plan": plan, "work": ["again", "success"]})
    assert (result.status, play.order.count("plan")) == ("completed", 2)
    assert {key for key in seen[1] if not key.startswith("graph.")} == set()
    assert seen[1]["graph.goal"] == "ship"
    assert seen[0]["current_node"] == "start"


def test_restart_keeps_the_keys_that_the_graph_names() -> None:
    seen: list[dict[str, Any]] = []

    def plan(ctx: StepContext) -> NodeOutcome:
        seen.append(dict(ctx.place.seen))
        return NodeOutcome(context_updates={"mine": 1, "yours": 2})

    played('loop_restart_persist_keys="mine, other"' + "\n" + RESTART, {"plan": plan, "work": ["again", "success"]})
    assert (seen[1].get("mine"), seen[1].get("yours")) == (1, None)


def test_restarts_are_counted_over_all_resumes_and_limited() -> None:
    play = Play("max_restarts=2\n" + RESTART, {"work": "again"})
    result = play.go()
    assert (result.status, play.count("plan")) == ("failed", 3)
    assert "restarted 2 times" in str(result.error)
    assert play.go().status == "failed"
    assert play.count("plan") == 3


def test_restarts_are_five_where_no_limit_is_set() -> None:
    play, _ = played(RESTART, {"work": "again"})
    assert play.count("plan") == 6


def test_only_failures_that_may_pass_by_themselves_begin_the_run_anew() -> None:
    play, result = played(RESTART, {"work": failure("red", "deterministic")})
    assert (result.status, play.count("plan")) == ("failed", 1)
    play, result = played(RESTART, {"work": [failure("net", "transient_infra"), "success"]})
    assert (result.status, play.count("plan")) == ("completed", 2)


def test_condition_can_ask_how_often_the_run_began_anew() -> None:
    text = f"""{ENDS}start -> work
work -> start2 [condition="context.internal.loop_restart_count=0", loop_restart=true]
start2 -> work
work -> exit [condition="context.internal.loop_restart_count!=0"]"""
    play, result = played(text)
    assert (result.status, play.order) == ("completed", ["start", "work", "start2", "work", "exit"])


def test_gates_from_before_a_restart_are_not_asked_about() -> None:
    text = f"""{ENDS}start -> gate
gate [goal_gate=true]
gate -> b
b -> start2 [condition="outcome=again", loop_restart=true]
b -> exit
start2 -> b"""
    play, result = played(text, {"gate": "no", "b": ["again", "success"]})
    assert (result.status, play.order[-1]) == ("completed", "exit")


def test_retries_in_use_are_counted_while_a_visit_has_not_succeeded() -> None:
    play, _ = played(f"{ENDS}w [max_retries=2]\nstart -> w -> exit", {"w": "fail"})
    assert play.told("node_retries") == {"w": 3}, "a resume makes one more attempt"
