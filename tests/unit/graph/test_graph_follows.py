"""What a visit plainly leads to is what is ready once its end is recorded."""

from __future__ import annotations

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


def test_nothing_follows_plainly_where_a_join_waits() -> None:
    nodes = [Node("a"), Node("b"), Node("c", "all")]
    graph = Graph.of(nodes, [Edge("a", "b"), Edge("a", "c"), Edge("b", "c")], "a")
    walk = Walk(graph)
    (first,) = walk.offered()
    walk.begin(first)
    assert walk.frontier.follows("a#1", ["a->b", "a->c"]) is None
    walk.end(first)
    (second,) = walk.offered()
    walk.begin(second)
    assert walk.frontier.follows("b#1", ["b->c"]) is None


def test_nothing_follows_plainly_where_the_same_end_lets_a_join_go() -> None:
    nodes = [Node("a"), Node("b"), Node("c"), Node("j", "all")]
    graph = Graph.of(nodes, [Edge("a", "b"), Edge("a", "j"), Edge("b", "j", "left"), Edge("b", "c")], "a")
    walk = Walk(graph)
    (first,) = walk.offered()
    walk.begin(first)
    walk.end(first)
    (second,) = walk.offered()
    walk.begin(second)
    assert walk.frontier.follows("b#1", ["b->c"]) is None
    walk.end(second)
    assert [activation.path for activation in walk.offered()] == ["c#1", "j#1"]


def test_gathering_of_a_single_branch_does_not_follow_plainly() -> None:
    nodes = [Node("a"), Node("b", attributes={"fan": "a"}), Node("j", "all", attributes={"scope": "a"})]
    walk = Walk(Graph.of(nodes, [Edge("a", "b"), Edge("b", "j")], "a"))
    (first,) = walk.offered()
    walk.begin(first)
    second = walk.frontier.follows("a#1", ["a->b"])
    walk.end(first)
    assert [second] == walk.offered()
    assert second is not None
    walk.begin(second)
    assert walk.frontier.follows("b#1", ["b->j"]) is None


def test_nothing_follows_plainly_where_another_visit_has_not_begun() -> None:
    walk = Walk(Graph.of([Node(name) for name in "abcd"], [Edge("a", "b"), Edge("a", "c"), Edge("b", "d")], "a"))
    (first,) = walk.offered()
    walk.begin(first)
    walk.end(first)
    left, _ = walk.offered()
    walk.begin(left)
    assert walk.frontier.follows("b#1", ["b->d"]) is None


def test_nothing_follows_plainly_where_a_branch_has_arrived() -> None:
    inside = {"fan": "a"}
    nodes = [Node("a"), *(Node(name, attributes=inside) for name in "bcd"), Node("j", "all", attributes={"scope": "a"})]
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
    assert walk.frontier.follows("c#1", ["c->d"]) is None
