"""Fan-outs: branches side by side with contexts of their own, gathered once; joins that no fan-in draws."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.engine.step import StepContext
from pipeline.formats.attractor.handlers.fan import RESULTS
from pipeline.formats.attractor.outcome import NodeOutcome, failure
from tests.unit.formats.playing import ENDS, Play, Said, played

FAN = f"""{ENDS}
start -> P
P [shape=component]
P -> a
P -> b
a -> J
b -> J
J [shape=tripleoctagon]
J -> exit"""
#: The same without a fan-in: m is where the branches meet.
LOOSE = FAN.replace("J [shape=tripleoctagon]", "J [shape=box]")


def sets(ctx: StepContext) -> NodeOutcome:
    return NodeOutcome(context_updates={"k": ctx.place.node.id, f"own.{ctx.place.node.id}": 1})


def test_every_branch_runs_and_they_are_gathered_once() -> None:
    play, result = played(FAN)
    assert (result.status, sorted(play.order)) == ("completed", sorted(["start", "P", "a", "b", "J", "exit"]))
    assert [token for token, _ in play.state.steps["J#1"].consumed] == ["a->J", "b->J"]
    assert (play.reason("P#1"), play.reason("a#1")) == ("parallel", "only")


@pytest.mark.parametrize("text", [FAN, LOOSE])
def test_branches_do_not_see_each_other_and_nothing_is_merged_but_results_are_told(text: str) -> None:
    seen: dict[str, Any] = {}

    def look(ctx: StepContext) -> NodeOutcome:
        seen.update(ctx.place.seen)
        return NodeOutcome()

    play, result = played(text, {"a": sets, "b": sets, "exit": look})
    assert result.status == "completed"
    assert "own.b" not in play.state.steps["a#1"].context
    assert not {"k", "own.a", "own.b"} & seen.keys()
    assert [entry["id"] for entry in seen[RESULTS]] == ["a", "b"]
    assert seen[RESULTS][0]["context_updates"]["own.a"] == 1


@pytest.mark.parametrize("text", [FAN, LOOSE])
def test_failure_of_a_branch_is_the_joins_to_judge(text: str) -> None:
    play, result = played(text, {"a": failure("red")})
    assert result.status == "completed"
    run = play.state.steps["a#1"]
    assert (list(run.edges), run.reason) == (["a->J#branch"], "branch")
    assert play.state.context[RESULTS][0]["failure_reason"] == "red"


def test_branches_that_all_failed_fail_a_join_that_no_fan_in_draws_before_it_is_worked() -> None:
    play, result = played(LOOSE, {"a": failure("red"), "b": failure("blue")})
    assert result.status == "failed"
    assert "a: red; b: blue" in str(result.error)
    assert play.count("J") == 0


@pytest.mark.parametrize(
    ("policy", "failing", "status"),
    [
        ("wait_all", "a", "completed"),
        ("first_success", "ab", "completed"),
        ("first_success", "abc", "failed"),
        ("quorum", "a", "completed"),
        ("quorum", "ab", "failed"),
        ("k_of_n, k=2", "a", "completed"),
        ("k_of_n, k=3", "a", "failed"),
    ],
)
def test_join_policy_is_asked_also_where_no_fan_in_is_drawn(policy: str, failing: str, status: str) -> None:
    text = LOOSE.replace("shape=component", f"shape=component, join_policy={policy}") + "\nP -> c -> J"
    _, result = played(text, {name: failure("red") for name in failing})
    assert result.status == status


def test_diamond_where_branches_meet_has_what_they_came_to_together() -> None:
    text = (
        LOOSE.replace("J [shape=box]", "J [shape=diamond]").replace("J -> exit", "")
        + """
J -> exit [condition="outcome=success"]
J -> mend [condition="outcome=partial_success"]
mend -> exit"""
    )
    assert played(text)[0].order[-1] == "exit"
    assert played(text, {"a": failure("red")})[0].order[-2:] == ["mend", "exit"]


def test_retry_target_inside_the_branch_is_taken_and_one_outside_is_not() -> None:
    text = FAN.replace("P -> a\n", "P -> p\np -> a\n").replace("a -> J", "a -> J\na [retry_target=p]")
    play, _ = played(text, {"a": [failure("red"), "success"]})
    assert play.count("p") == 2
    outside = FAN.replace("a -> J", "a -> J\na [retry_target=start]")
    play, result = played(outside, {"a": failure("red")})
    assert (result.status, play.count("start"), play.reason("a#1")) == ("completed", 1, "branch")


def test_equal_failures_of_a_branch_are_the_joins_to_judge_and_its_loops_end() -> None:
    text = FAN.replace("a -> J", "a -> J\na [retry_target=a]")
    play, result = played(text, {"a": failure("red")})
    assert (result.status, play.count("a"), play.reason("a#3")) == ("completed", 3, "branch")
    assert "in the same way on 3 visits" in play.state.context[RESULTS][0]["failure_reason"]


def test_limit_reached_in_a_branch_is_its_failure() -> None:
    text = FAN.replace("a -> J", 'a -> J\na -> a [condition="outcome=again"]\na [max_visits=3]')
    play, result = played(text, {"a": "again"})
    assert (result.status, play.reason("a#3")) == ("completed", "branch")


def test_nested_fan_outs_are_gathered_from_the_inside() -> None:
    text = FAN.replace(
        "a -> J", "a -> Q\nQ [shape=component]\nQ -> x -> K\nQ -> y -> K\nK [shape=tripleoctagon]\nK -> J"
    )
    play, result = played(text, {"x": failure("red")})
    assert result.status == "completed"
    assert play.order.index("K") < play.order.index("J")
    assert [entry["id"] for entry in play.state.context[RESULTS]] == ["a", "b"]


def test_node_that_branches_share_runs_once_for_each() -> None:
    text = FAN.replace("a -> J", "a -> s").replace("b -> J", "b -> s\ns -> J")
    play, result = played(text, {"s": lambda ctx: NodeOutcome(outputs={"response": ctx.context["last_stage"]})})
    assert (result.status, play.count("s"), play.order.count("J"), play.order.count("exit")) == ("completed", 2, 1, 1)
    assert [entry["response"] for entry in play.state.context[RESULTS]] == ["a", "b"]


def test_branch_that_leaves_for_the_exit_ends_there_and_is_not_waited_for() -> None:
    text = FAN.replace("a -> J", 'a -> J\na -> exit [condition="outcome=done"]')
    play, result = played(text, {"a": "done"})
    assert (result.status, play.order.count("exit")) == ("completed", 2)
    assert [token for token, _ in play.state.steps["J#1"].consumed] == ["b->J"]


def test_branch_that_goes_back_to_before_its_fan_out_begins_another_round_of_it() -> None:
    text = FAN.replace("a -> J", 'a -> J\na -> start2 [condition="outcome=over"]\nstart2 -> P').replace(
        "start -> P", "start -> start2"
    )
    play, result = played(text, {"a": ["over", "success"]})
    assert result.status == "completed"
    assert (play.order.count("J"), play.order.count("exit")) == (2, 2)


def test_branches_that_meet_nowhere_are_tracks_of_their_own() -> None:
    text = f"""{ENDS}done [shape=Msquare]
start -> P
P [shape=component]
P -> a -> exit
P -> b -> done"""
    play, result = played(text)
    assert (result.status, sorted(play.order)) == ("completed", sorted(["start", "P", "a", "exit", "b", "done"]))


def test_failure_on_a_track_of_its_own_fails_the_run_once_the_others_have_ended() -> None:
    text = f"{ENDS}done [shape=Msquare]\nstart -> P\nP [shape=component]\nP -> a -> exit\nP -> b -> done"
    play, result = played(text, {"a": failure("red")})
    assert (str(result.error), "done" in play.order) == ("a: red", True)


def test_branches_that_meet_at_the_exit_end_the_run_once() -> None:
    text = f"{ENDS}start -> P\nP [shape=component]\nP -> a -> exit\nP -> b -> exit"
    play, result = played(text, {"a": failure("red")})
    assert (result.status, play.order.count("exit")) == ("completed", 1)


def test_fan_out_with_conditions_begins_the_branches_whose_conditions_hold() -> None:
    text = FAN.replace("P -> b", 'P -> b [condition="context.wide=true"]')
    play, result = played(text, {"start": NodeOutcome(context_updates={"wide": False})})
    assert (result.status, "b" in play.order) == ("completed", False)
    play, _ = played(text, {"start": NodeOutcome(context_updates={"wide": True})})
    assert "b" in play.order


def test_fan_in_in_a_loop_gathers_each_round_by_itself() -> None:
    text = FAN.replace("J -> exit", 'J -> exit\nJ -> P [condition="outcome=more"]')
    play, result = played(text, {"J": ["more", "success"], "a": sets})
    assert (result.status, play.order.count("J"), play.order.count("a")) == ("completed", 2, 2)
    assert [source for _, source in play.state.steps["J#2"].consumed] == ["a#2", "b#2"]


def test_join_that_is_gone_back_to_sees_what_holds_now() -> None:
    seen: list[Any] = []

    def look(ctx: StepContext) -> NodeOutcome:
        seen.append(ctx.context.get("later"))
        return NodeOutcome()

    text = LOOSE.replace("J -> exit", "J -> c -> exit\nc [retry_target=J]")
    played(text, {"J": look, "c": [failure("red", context_updates={"later": 1}), "success"]})
    assert seen == [None, 1]


def test_no_more_branches_run_at_once_than_max_parallel() -> None:
    most = 0
    running: set[str] = set()

    def work(ctx: StepContext) -> NodeOutcome:
        nonlocal most
        running.add(ctx.path)
        most = max(most, len(running))
        running.discard(ctx.path)
        return NodeOutcome()

    branches = "\n".join(f"P -> b{number} -> J" for number in range(8))
    text = f"{ENDS}start -> P\nP [shape=component, max_parallel=2]\n{branches}\nJ [shape=tripleoctagon]\nJ -> exit"
    play, _ = played(text, {f"b{number}": work for number in range(8)})
    assert play.order.count("J") == 1
    assert most <= 2


def test_failing_fan_in_goes_back_by_its_own_retry_target() -> None:
    text = FAN + "\nJ [retry_target=P]"
    said: Said = [failure("red"), "success"]
    play, result = played(text, {"a": said, "b": said})
    assert (result.status, play.order.count("P")) == ("completed", 2)


def test_unfinished_fan_out_goes_on_where_it_was_and_repeats_nothing() -> None:
    text = FAN.replace("J -> exit", 'J -> exit\nJ -> x [condition="outcome=never"]\nx -> exit')
    play = Play(text, {"a": "success"})

    def stop(ctx: StepContext) -> Any:
        if play.count("b") == 1:
            ctx.stop("enough")
        return NodeOutcome()

    play.script["b"] = stop
    assert play.go().detail == "stopped_as_asked"
    assert play.go().status == "completed"
    assert (play.count("a"), play.count("b")) == (1, 2)
