"""Which edge is taken: conditions, then preferred label, suggested nodes, weight, name; never one that is false."""

from __future__ import annotations

import pytest

from pipeline.formats.attractor.outcome import NodeOutcome
from tests.unit.formats.playing import ENDS, Play, Said, played


def took(edges: str, said: Said) -> tuple[str, str]:
    """Where node w led by these edges, and why; a and b lead to the exit."""
    play, _ = played(f"{ENDS}start -> w\n{edges}\na -> exit\nb -> exit", {"w": said})
    run = play.state.steps["w#1"]
    return (run.edges[0] if run.edges else "", run.reason)


@pytest.mark.parametrize(
    ("edges", "said", "edge", "reason"),
    [
        # A true condition beats every plain edge; of several the heaviest wins, then the name.
        ('w -> a [weight=9, label=go]\nw -> b [condition="outcome=success"]', NodeOutcome(preferred_label="go"),
         "w->b", "condition"),
        ('w -> b [condition="outcome=success", weight=2]\nw -> a [condition="outcome=success"]', "success",
         "w->b", "condition"),
        ('w -> b [condition="outcome=success"]\nw -> a [condition="outcome=success"]', "success", "w->a", "condition"),
        # A preferred label is compared without its key, case and spaces; it may be a target.
        ('w -> a [weight=5]\nw -> b [label="[Y]  Yes,  GO"]', NodeOutcome(preferred_label="yes, go"),
         "w->b", "preferred_label"),
        ("w -> a\nw -> b", NodeOutcome(preferred_label="b"), "w->b", "preferred_label"),
        ("w -> a [label=x]\nw -> b", NodeOutcome(preferred_label="x", suggested_next_ids=("b",)),
         "w->a", "preferred_label"),
        # Suggested nodes are tried in order; then weight and name decide.
        ("w -> a [weight=5]\nw -> b", NodeOutcome(suggested_next_ids=("nowhere", "b", "a")), "w->b", "suggested"),
        ("w -> a\nw -> b [weight=1]", "success", "w->b", "weight"),
        ("w -> b\nw -> a", "success", "w->a", "id"),
        ("w -> b\nstart -> a [weight=-1]", "success", "w->b", "only"),
        # Words of the graph's own route; one that no edge asks for takes the edge for failures.
        ('w -> a [condition="outcome=yes"]\nw -> b [condition="outcome=fail"]', "maybe", "w->b", "condition"),
        ('w -> a [condition="outcome=needs_dod"]\nw -> b [condition="outcome=has_dod"]', "has_dod",
         "w->b", "condition"),
        # Parallel edges between two nodes are told apart.
        ('w -> a [condition="outcome=x"]\nw -> a [condition="outcome=y"]\nw -> b', "y", "w->a#2", "condition"),
    ],
)  # fmt: skip
def test_edge_that_is_taken_and_why(edges: str, said: Said, edge: str, reason: str) -> None:
    assert took(edges, said) == (edge, reason)


def test_false_condition_is_never_taken_and_an_outcome_that_nobody_asks_for_fails() -> None:
    play, result = played(f'{ENDS}start -> w\nw -> exit [condition="outcome=yes"]', {"w": "no"})
    assert (result.status, result.exit_code) == ("failed", 6)
    assert result.error is not None
    assert "'no'" in result.error.message
    assert "outcome=yes" in result.error.message
    assert "exit#1" not in play.state.steps


def test_a_diamond_may_ask_which_node_did_work_last() -> None:
    text = (f'{ENDS}a [prompt=A]\nb [prompt=B]\nd [shape=diamond]\nstart -> a -> d\nb -> d\n'
            'd -> b [condition="context.last_stage=a"]\nd -> exit [condition="last_stage=b"]')  # fmt: skip
    play, result = played(text)
    assert (result.status, play.order) == ("completed", ["start", "a", "d", "b", "d", "exit"])
    assert play.state.context["last_stage"] == "b"


@pytest.mark.parametrize(
    ("condition", "context"),
    [
        ("context.kind=new", {"kind": "new"}),
        ("kind=new", {"kind": "new"}),
        ("context.ready=true", {"ready": True}),
        ("context.count=3", {"count": 3}),
        ("ready", {"ready": True}),
        ("context.list CONTAINS ab", {"list": ["xab"]}),
        ("context.missing=", {}),
        ("context.last_stage=w && current_node=w", {}),
    ],
)
def test_conditions_see_the_context_as_text(condition: str, context: dict[str, object]) -> None:
    written = condition + "''" if condition.endswith("=") else condition
    edges = f'w -> a\nw -> b [condition="{written}"]'
    assert took(edges, NodeOutcome(context_updates=context)) == ("w->b", "condition")


def test_stale_preferred_label_decides_nothing_later() -> None:
    text = f'{ENDS}start -> w\nw -> v [label="B"]\nv -> a [label="A"]\nv -> b [label="B"]\na -> exit\nb -> exit'
    play, _ = played(text, {"w": NodeOutcome(preferred_label="B")})
    assert list(play.state.steps["v#1"].edges) == ["v->a"]
    assert play.state.context["preferred_label"] == ""


def test_preferred_label_chooses_at_the_diamond_behind() -> None:
    text = f'{ENDS}start -> w\nw -> d\nd [shape=diamond]\nd -> a [label="A"]\nd -> b [label="B"]\na -> exit\nb -> exit'
    play, _ = played(text, {"w": NodeOutcome(preferred_label="b")})
    assert play.order == ["start", "w", "d", "b", "exit"]


def test_diamond_with_labels_alone_goes_by_its_outcome() -> None:
    edges = 'd [shape=diamond]\nd -> a [label="fail"]\nd -> b [label="Success"]\na -> exit\nb -> exit'
    text = f"{ENDS}start -> w\nw -> d\n{edges}"
    play, _ = played(text)
    assert (play.order[-2], play.reason("d#1")) == ("b", "label")
    failed, _ = played(text, {"w": "fail"})
    assert failed.order[-2] == "a"


def test_edge_with_a_limit_of_its_own_is_taken_so_often() -> None:
    text = f"{ENDS}start -> w\nw -> a [weight=1, max_visits=2]\na -> w\nw -> exit"
    assert Play(text).go().status == "completed"
    play, _ = played(text)
    assert play.order == ["start", "w", "a", "w", "a", "w", "exit"]
