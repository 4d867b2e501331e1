"""Which edge is taken: conditions, then preferred label, suggested nodes, weight, name; never one that is false."""

from __future__ import annotations

import pytest

from pipeline.formats.attractor.outcome import NodeOutcome
from tests.unit.formats.playing import ENDS, Play, Said, played


def took(edges: str, said: Said = "success", more: str = "") -> tuple[str, str]:
    """Where node w led by these edges, and why; a and b lead to the exit."""
    play, _ = played(f"{ENDS}start -> w\n{edges}\na -> exit\nb -> exit\n{more}", {"w": said})
    run = play.state.steps["w#1"]
    return (run.edges[0] if run.edges else "", run.reason)


def test_true_condition_beats_every_plain_edge() -> None:
    edges = 'w -> a [weight=9, label="go"]\nw -> b [condition="outcome=success"]'
    assert took(edges, NodeOutcome(preferred_label="go")) == ("w->b", "condition")


def test_of_true_conditions_the_heaviest_wins_then_the_name() -> None:
    edges = 'w -> b [condition="outcome=success", weight=2]\nw -> a [condition="outcome=success"]'
    assert took(edges) == ("w->b", "condition")
    assert took('w -> b [condition="outcome=success"]\nw -> a [condition="outcome=success"]')[0] == "w->a"


def test_preferred_label_is_compared_without_its_key_case_and_spaces() -> None:
    edges = 'w -> a [weight=5]\nw -> b [label="[Y]  Yes,  GO"]'
    assert took(edges, NodeOutcome(preferred_label="yes, go")) == ("w->b", "preferred_label")


def test_preferred_label_may_be_the_target_of_an_edge_without_label() -> None:
    assert took("w -> a\nw -> b", NodeOutcome(preferred_label="b")) == ("w->b", "preferred_label")


def test_suggested_nodes_are_tried_in_order() -> None:
    edges = "w -> a [weight=5]\nw -> b"
    assert took(edges, NodeOutcome(suggested_next_ids=("nowhere", "b", "a"))) == ("w->b", "suggested")


def test_preferred_label_beats_suggestions() -> None:
    edges = 'w -> a [label="x"]\nw -> b'
    assert took(edges, NodeOutcome(preferred_label="x", suggested_next_ids=("b",))) == ("w->a", "preferred_label")


def test_weight_then_name_decide_between_plain_edges() -> None:
    assert took("w -> a\nw -> b [weight=1]") == ("w->b", "weight")
    assert took("w -> b\nw -> a") == ("w->a", "id")
    assert took("w -> b", more="start -> a [weight=-1]") == ("w->b", "only")


def test_false_condition_is_never_taken_and_an_outcome_that_nobody_asks_for_fails() -> None:
    play, result = played(f'{ENDS}start -> w\nw -> exit [condition="outcome=yes"]', {"w": "no"})
    assert (result.status, result.exit_code) == ("failed", 6)
    assert result.error is not None
    assert "'no'" in result.error.message
    assert "outcome=yes" in result.error.message
    assert "exit#1" not in play.state.steps


def test_outcome_that_nobody_asks_for_takes_the_edge_for_failures() -> None:
    edges = 'w -> a [condition="outcome=yes"]\nw -> b [condition="outcome=fail"]'
    assert took(edges, "maybe") == ("w->b", "condition")


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


def test_words_of_the_graphs_own_route() -> None:
    edges = 'w -> a [condition="outcome=needs_dod"]\nw -> b [condition="outcome=has_dod"]'
    assert took(edges, "has_dod") == ("w->b", "condition")


def test_parallel_edges_between_two_nodes_are_told_apart() -> None:
    edges = 'w -> a [condition="outcome=x"]\nw -> a [condition="outcome=y"]\nw -> b'
    assert took(edges, "y") == ("w->a#2", "condition")


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
