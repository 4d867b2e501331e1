"""Graphs as values, which edges an outcome takes, and what is refused."""

from __future__ import annotations

import json

import pytest

from pipeline.errors import GraphError
from pipeline.graph.liveness import components, reachable
from pipeline.graph.model import FAILURES, Edge, Graph, Node, chain, choose
from pipeline.graph.validation import validate


def branch() -> Graph:
    edges = [Edge("a", "b", "success"), Edge("a", "c", "partial"), Edge("a", "d"), Edge("a", "e", "fail")]
    return Graph.of([Node(name) for name in "abcde"], edges, "a")


def ids(edges: list[Edge]) -> list[str]:
    return [edge.id for edge in edges]


def test_chain_links_each_node_to_the_next() -> None:
    graph = chain(["seed", "sow", Node("publish", version=2)])
    assert (graph.start, list(graph.nodes)) == ("seed", ["seed", "sow", "publish"])
    assert graph.nodes["publish"].version == 2
    assert (ids(list(graph.outgoing("sow"))), ids(list(graph.incoming("sow")))) == (["sow->publish"], ["seed->sow"])
    assert (graph.outgoing("publish"), graph.incoming("seed")) == ((), ())


def test_parallel_edges_are_numbered() -> None:
    graph = Graph.of([Node("a"), Node("b")], [Edge("a", "b"), Edge("a", "b", "x"), Edge("a", "b", "y", id="own")], "a")
    assert ids(list(graph.edges)) == ["a->b", "a->b#2", "own"]
    edge = graph.edge("a->b#2")
    assert edge is not None
    assert edge.when == "x"
    assert graph.edge("nowhere") is None


def test_graph_survives_json() -> None:
    nodes = [Node("a", "all", 3, "external", False, {"prompt": "p"}), Node("b")]
    graph = Graph.of(nodes, [Edge("a", "b"), Edge("a", "b", "partial")], "a")
    data = json.loads(json.dumps(graph.to_json()))
    data["nodes"][0]["colour"] = "red"
    assert Graph.from_json(data) == graph


def test_choose_prefers_edges_that_name_the_outcome_and_a_failure_takes_no_other() -> None:
    for outcome, target in (("success", "b"), ("partial", "c"), ("other", "d"), *((bad, "e") for bad in FAILURES)):
        assert ids(choose(branch(), "a", outcome)) == [f"a->{target}"]
    graph = Graph.of([Node(name) for name in "abc"], [Edge("a", "c"), Edge("a", "b")], "a")
    assert ids(choose(graph, "a", "success")) == ["a->c", "a->b"]
    assert choose(graph, "a", "fail") == choose(graph, "b", "success") == []


def test_validate_accepts_chains_branches_and_loops() -> None:
    validate(chain(["a", "b"]))
    validate(branch())
    validate(Graph.of([Node("a"), Node("b", join="all")], [Edge("a", "b"), Edge("b", "a", "again")], "a"))


@pytest.mark.parametrize(
    ("graph", "fault"),
    [
        (Graph.of([], [], ""), "no nodes"),
        (Graph.of([Node("a")], [], ""), "no start"),
        (Graph.of([Node("a")], [], "z"), "start node 'z'"),
        (Graph.of([Node("a")], [Edge("a", "z")], "a"), "Edge 'a->z': its target 'z'"),
        (Graph.of([Node("a")], [Edge("z", "a")], "a"), "Edge 'z->a': its source 'z'"),
        (
            Graph.of([Node("a"), Node("b")], [Edge("a", "b", id="e"), Edge("a", "b", id="e")], "a"),
            "Duplicate edge 'e'",
        ),
        (Graph.of([Node("a"), Node("b")], [], "a"), "Node 'b' cannot be reached"),
        (Graph.of([Node("a#1")], [], "a#1"), "Node 'a#1'"),
        (Graph.of([Node("a/b")], [], "a/b"), "Node 'a/b'"),
        (Graph.of([Node("a->b")], [], "a->b"), "Node 'a->b'"),
        (Graph.of([Node("a", join="most")], [], "a"), "join 'most'"),
        (Graph({"x": Node("a")}, (), "x"), "Node 'a' is listed under the name 'x'"),
        (
            Graph.of(
                [Node("a"), Node("b", "all"), Node("c", "all")], [Edge("a", "b"), Edge("b", "c"), Edge("c", "b")], "a"
            ),
            "cycle of 'b', 'c'",
        ),
        (Graph.of([Node("a", "all")], [Edge("a", "a")], "a"), "cycle of 'a'"),
    ],
)
def test_validate_names_what_is_wrong(graph: Graph, fault: str) -> None:
    with pytest.raises(GraphError) as caught:
        validate(graph)
    assert fault in caught.value.message


def test_validate_lists_all_faults_in_its_data() -> None:
    with pytest.raises(GraphError) as caught:
        validate(Graph.of([Node("a"), Node("b"), Node("c")], [], "a"))
    assert len(caught.value.data["faults"]) == 2
    with pytest.raises(GraphError, check=lambda error: error.code == "duplicate_node"):
        Graph.of([Node("a"), Node("a")], [], "a")


def test_components_finds_cycles_of_any_length_and_deep_chains() -> None:
    edges = [Edge("a", "b"), Edge("b", "c"), Edge("c", "a"), Edge("c", "d"), Edge("d", "d"), Edge("d", "e")]
    graph = Graph.of([Node(name) for name in "abcde"], edges, "a")
    assert sorted(sorted(group) for group in components(graph)) == [["a", "b", "c"], ["d"]]
    assert components(chain([f"n{number}" for number in range(3000)])) == []


def test_reachable_does_not_pass_the_node_left_out() -> None:
    graph = chain(["a", "b", "c"])
    assert reachable(graph, ["a"]) == {"a", "b", "c"}
    assert reachable(graph, ["a"], without="b") == {"a"}
    assert reachable(graph, ["b"], without="b") == set()
