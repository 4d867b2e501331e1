"""Attempts of one visit: how many, for which failures, how long between; and outcomes that ask for another."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.dot.parser import parse
from pipeline.engine.step import StepContext
from pipeline.errors import CredentialMissing
from pipeline.formats.attractor.outcome import NodeOutcome, failure
from pipeline.formats.attractor.visit_end import is_transient, most_retries, wait_seconds
from tests.unit.formats.playing import ENDS, Play, played


def attempts(play: Play, node: str = "w") -> list[int]:
    return [attempt for path, attempt in play.called if path.startswith(f"{node}#")]


def retries(node: str, graph: str = "", type: str = "codergen") -> int:
    dot = parse(f"digraph g {{ {graph}\nw [{node}] }}")
    return most_retries(dot, dot.nodes["w"], type)


def waits(node: str, graph: str = "", count: int = 4) -> list[float]:
    dot = parse(f"digraph g {{ {graph}\nw [{node}] }}")
    return [wait_seconds(dot, dot.nodes["w"], "w#1", attempt) for attempt in range(1, count + 1)]


@pytest.mark.parametrize(
    ("node", "graph", "most"),
    [
        ("", "", 0),
        ("max_retries=2", "", 2),
        ('max_retries="2"', "", 2),
        ("", "default_max_retries=3", 3),
        ("", 'default_max_retry="3"', 3),
        ("max_retries=0", "default_max_retries=3", 0),
        ("max_retries=-1", "", 0),
        ("retry_policy=standard", "", 4),
        ("retry_policy=standard", "default_max_retries=1", 4),
        ("retry_policy=standard, max_retries=1", "", 1),
        ("", "retry_policy=patient", 2),
        ("", "retry_policy=patient; default_max_retries=0", 0),
        ("retry_policy=none", "default_max_retries=3", 0),
    ],
)
def test_retries_are_the_nodes_own_then_the_graphs_then_none(node: str, graph: str, most: int) -> None:
    assert retries(node, graph) == most


@pytest.mark.parametrize("type", ["start", "exit", "parallel", "parallel.fan_in"])
def test_default_of_the_graph_is_not_for_nodes_that_do_no_work(type: str) -> None:
    assert retries("", "default_max_retries=3", type) == 0
    assert retries("max_retries=1", "", type) == 1


def test_diamond_is_never_tried_again() -> None:
    assert retries("max_retries=3", "default_max_retries=3", "conditional") == 0


@pytest.mark.parametrize(
    ("node", "graph", "expected"),
    [
        ("", "", [0.2, 0.4, 0.8, 1.6]),
        ("retry_policy=aggressive", "", [0.5, 1.0, 2.0, 4.0]),
        ("retry_policy=linear", "", [0.5, 0.5, 0.5, 0.5]),
        ("retry_policy=patient", "", [2.0, 6.0, 18.0, 54.0]),
        ("retry_policy=none", "", [0.0, 0.0, 0.0, 0.0]),
        ("", "retry_policy=patient", [2.0, 6.0, 18.0, 54.0]),
    ],
)
def test_waits_grow_as_the_preset_says_by_half_up_or_down(node: str, graph: str, expected: list[float]) -> None:
    for wait, seconds in zip(waits(node, graph), expected, strict=True):
        assert seconds * 0.5 <= wait <= min(seconds * 1.5, 60.0)


def test_waits_of_the_other_dialect_differ_by_its_jitter() -> None:
    assert waits("retry_backoff=linear, retry_jitter=0") == [0.5, 0.5, 0.5, 0.5]
    assert waits("retry_backoff=exponential, retry_jitter=0", count=3) == [0.2, 0.4, 0.8]
    for wait in waits("retry_backoff=linear"):
        assert 0.45 <= wait <= 0.55
    assert waits("retry_backoff=none, retry_jitter=0.5") == [0.0, 0.0, 0.0, 0.0]


def test_waits_are_the_same_in_every_process_and_never_longer_than_a_minute() -> None:
    assert waits("retry_policy=patient") == waits("retry_policy=patient")
    assert max(waits("retry_policy=patient", count=40)) <= 60.0
    assert len(set(waits("retry_policy=linear", count=20))) > 10, "chance differs by attempt"


def test_failed_attempts_are_repeated_until_they_are_used_up() -> None:
    play, result = played(f"{ENDS}w [max_retries=2]\nstart -> w -> exit", {"w": ["fail", "fail", "success"]})
    assert (result.status, attempts(play), len(play.clock.waits)) == ("completed", [1, 2, 3], 2)
    play, result = played(f"{ENDS}w [max_retries=2]\nstart -> w -> exit", {"w": "fail"})
    assert (result.status, attempts(play)) == ("failed", [1, 2, 3])


def test_node_that_raises_is_tried_again() -> None:
    def shaky(ctx: StepContext) -> Any:
        if ctx.attempt == 1:
            raise ValueError("boom")
        return NodeOutcome()

    play, result = played(f"{ENDS}w [max_retries=1]\nstart -> w -> exit", {"w": shaky})
    assert (result.status, attempts(play)) == ("completed", [1, 2])


@pytest.mark.parametrize("kind", ["deterministic", "auth", "validation"])
def test_failure_that_would_come_again_is_not_tried_again(kind: str) -> None:
    play, _ = played(f"{ENDS}w [max_retries=2]\nstart -> w -> exit", {"w": failure("no", kind)})
    assert attempts(play) == [1]


def test_raised_error_that_would_come_again_is_not_tried_again() -> None:
    def locked(ctx: StepContext) -> Any:
        raise CredentialMissing("no key")

    play, _ = played(f"{ENDS}w [max_retries=2]\nstart -> w -> exit", {"w": locked})
    assert attempts(play) == [1]


def test_retries_come_before_the_edge_for_failures() -> None:
    text = f'{ENDS}w [max_retries=1]\nstart -> w\nw -> exit\nw -> b [condition="outcome=fail"]\nb -> exit'
    play, _ = played(text, {"w": "fail"})
    assert (attempts(play), play.order) == ([1, 2], ["start", "w", "b", "exit"])


def test_outcome_retry_repeats_the_attempt_and_fails_when_none_is_left() -> None:
    text = f'{ENDS}w [max_retries=1]\nstart -> w\nw -> exit\nw -> b [condition="outcome=fail"]\nb -> exit'
    play, _ = played(text, {"w": ["retry", "success"]})
    assert (attempts(play), play.order) == ([1, 2], ["start", "w", "exit"])
    play, _ = played(text, {"w": "retry"})
    assert play.order == ["start", "w", "b", "exit"]
    error = play.state.steps["w#1"].error
    assert error is not None
    assert error["message"] == "It still asks for a retry after 2 attempts."


def test_outcome_retry_that_is_out_of_attempts_may_be_partial_success() -> None:
    play, result = played(f"{ENDS}w [allow_partial=true]\nstart -> w -> exit", {"w": "retry"})
    assert (result.status, play.state.steps["w#1"].outcome) == ("completed", "partial_success")
    assert play.state.steps["exit#1"].status == "completed"


def test_outcome_retry_that_an_edge_asks_for_is_a_word_like_any_other() -> None:
    text = f'{ENDS}w [max_retries=2]\nstart -> w\nw -> exit\nw -> b [condition="outcome=retry"]\nb -> w'
    play, _ = played(text, {"w": ["retry", "success"]})
    assert (attempts(play), play.order) == ([1, 1], ["start", "w", "b", "w", "exit"])


def test_outcome_retry_that_a_diamond_behind_asks_for_goes_there() -> None:
    text = f"""{ENDS}default_max_retries=2
start -> w -> d
d [shape=diamond]
d -> exit [condition="outcome=success"]
d -> b [condition="outcome=retry"]
b -> w"""
    play, _ = played(text, {"w": ["retry", "success"]})
    assert play.order == ["start", "w", "d", "b", "w", "d", "exit"]


def test_retries_used_are_in_the_context_and_start_anew_with_a_success() -> None:
    text = f'{ENDS}w [max_retries=1]\nstart -> w\nw -> exit\nw -> b [condition="outcome=fail"]\nb -> w'
    play, _ = played(text, {"w": ["fail", "fail", "success"]})
    first, second = play.state.steps["w#1"], play.state.steps["w#2"]
    assert (first.context["internal.retry_count.w"], second.context["internal.retry_count.w"]) == (1, 0)


def test_failures_that_may_pass_by_themselves_are_told_from_others() -> None:
    assert is_transient("transient_infra")
    assert is_transient("timeout")
    assert not is_transient("")
    assert not is_transient("deterministic")
