"""What a visit plainly leads to is what is ready once its end is recorded."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.graph.model import Edge, Graph, Node, chain, choose
from pipeline.graph.readiness import ready
from tests.tape import Walk


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Any few nodes and edges, loops, joins and fan-outs that are gathered among them."""
    names = "abcde"[: draw(st.integers(1, 5))]
    pairs = draw(st.lists(st.tuples(st.sampled_from(names), st.sampled_from(names)), max_size=8, unique=True))
    labels = draw(st.lists(st.sampled_from([None, "left"]), min_size=len(pairs), max_size=len(pairs)))
    joins = draw(st.lists(st.sampled_from(["any", "any", "all"]), min_size=len(names), max_size=len(names)))
    gathers = draw(st.booleans()) and len(names) > 2
    nodes = [
        Node(
            name,
            join,
            attributes={"scope": names[0]} if gathers and name == names[-1] else {"fan": names[0]} if gathers else {},
        )
        for name, join in zip(names, joins, strict=True)
    ]
    edges = [Edge(source, target, label) for (source, target), label in zip(pairs, labels, strict=True)]
    return Graph.of(nodes, edges, names[0])


@given(graphs(), st.data())
@settings(max_examples=150, deadline=None)
def test_visit_that_plainly_follows_is_the_only_one_ready_afterwards(graph: Graph, data: st.DataObject) -> None:
    walk = Walk(graph, lambda _: data.draw(st.sampled_from(["success", "left", "failed"])))
    for _ in range(12):
        found = walk.offered() or walk.offered(idle=True)
        if not found:
            return
        for activation in found:
            walk.begin(activation)
        for activation in found:
            outcome = walk.outcome(activation)
            walk.outcome = lambda _, outcome=outcome: outcome  # type: ignore[misc]
            edges = [edge.id for edge in choose(graph, activation.node, outcome)]
            follows = walk.frontier.follows(activation.path, edges) if len(found) == 1 else None
            walk.end(activation)
            walk.outcome = lambda _: data.draw(st.sampled_from(["success", "left", "failed"]))
            if follows is not None:
                assert [follows] == ready(graph, walk.tape.state, idle=False)
                walk.begin(follows)
                assert walk.offered() == []
                walk.end(follows)


def test_chain_is_followed_all_the_way() -> None:
    walk = Walk(chain("abc"))
    (first,) = walk.offered()
    walk.begin(first)
    second = walk.frontier.follows("a#1", ["a->b"])
    assert second is not None
    assert (second.path, second.consumed) == ("b#1", (("a->b", "a#1"),))
    walk.end(first)
    walk.begin(second)
    third = walk.frontier.follows("b#1", ["b->c"])
    assert third is not None
    assert third.path == "c#1"
    assert walk.frontier.follows("c#1", []) is None


@pytest.mark.parametrize(
    ("edges", "joins", "ran", "ends", "chosen"),
    [
        ("ab ac", "", "", "a", "a->b a->c"),
        ("ab ac bc", "c", "a", "b", "b->c"),
        # The same end lets another join go.
        ("ab aj bj:left bc", "j", "a", "b", "b->c"),
        # Another visit has not begun.
        ("ab ac bd", "", "a", "b", "b->d"),
    ],
)
def test_nothing_follows_plainly_where_something_else_is_or_becomes_ready(
    edges: str, joins: str, ran: str, ends: str, chosen: str
) -> None:
    links = [Edge(text[0], text[1], text[3:] or None) for text in edges.split()]
    nodes = [
        Node(name, "all" if name in joins else "any") for name in sorted(set("".join(edges.split())) & set("abcdj"))
    ]
    walk = Walk(Graph.of(nodes, links, "a"))
    for name in (*ran, ends):
        visit = next(visit for visit in walk.offered() if visit.node == name)
        walk.begin(visit)
        if name != ends:
            walk.end(visit)
    assert walk.frontier.follows(f"{ends}#1", chosen.split()) is None


def test_gathering_of_branches_does_not_follow_plainly() -> None:
    inside = {"fan": "a"}
    nodes = [Node("a"), *(Node(name, attributes=inside) for name in "bcd"), Node("j", "all", attributes={"scope": "a"})]
    alone = Walk(Graph.of([nodes[0], nodes[1], nodes[4]], [Edge("a", "b"), Edge("b", "j")], "a"))
    (first,) = alone.offered()
    alone.begin(first)
    second = alone.frontier.follows("a#1", ["a->b"])
    alone.end(first)
    assert [second] == alone.offered()
    assert second is not None
    alone.begin(second)
    assert alone.frontier.follows("b#1", ["b->j"]) is None
    edges = [Edge("a", "b"), Edge("a", "c"), Edge("b", "j"), Edge("c", "d"), Edge("d", "j")]
    walk = Walk(Graph.of(nodes, edges, "a"))
    (first,) = walk.offered()
    walk.begin(first)
    walk.end(first)
    for activation in walk.offered():
        walk.begin(activation)
        if activation.node == "b":
            walk.end(activation)
    assert walk.offered() == []
    assert walk.frontier.follows("c#1", ["c->d"]) is None, "the branch of b has arrived"
