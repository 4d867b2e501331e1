"""Fan-outs that are gathered: a gathering node fires once per visit of its fan-out, with all that arrived."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from pipeline.graph.model import Edge, Graph, Node
from pipeline.graph.readiness import Activation
from pipeline.graph.tracks import Tracks
from pipeline.graph.validation import validate
from tests.tape import Walk


def fan(edges: str, *, gather: str = "J:P", inside: str = "", start: str = "s") -> Graph:
    """Edges "ab ab:label"; who gathers what ("J:P"), and who lies in what ("a:P")."""
    gathered = dict(pair.split(":") for pair in gather.split())
    lies = dict(pair.split(":") for pair in inside.split())
    links = []
    for text in edges.split():
        ends, _, label = text.partition(":")
        links.append(Edge(ends[0], ends[1], label or None))
    names = dict.fromkeys([start, *(name for link in links for name in (link.source, link.target))])
    nodes = [
        Node(
            name,
            join="all" if name in gathered else "any",
            attributes={
                **({"scope": gathered[name].split(",")} if name in gathered else {}),
                **({"fan": lies[name]} if name in lies else {}),
            },
        )
        for name in names
    ]
    return Graph.of(nodes, links, start)


def says(**labels: str) -> Callable[[Activation], str]:
    return lambda visit: labels.get(f"{visit.node}_{visit.visit}", labels.get(visit.node, "success"))


def sources(walk: Walk, path: str) -> list[str]:
    return [source for _, source in walk.tape.state.steps[path].consumed]


def test_node_that_branches_share_is_visited_by_each_and_gathered_once() -> None:
    walk = Walk(fan("sP Pa Pb am bm mJ Je", inside="a:P b:P m:P"))
    assert walk.run() == ["s#1", "P#1", "a#1", "b#1", "m#1", "m#2", "J#1", "e#1"]
    assert sources(walk, "J#1") == ["m#1", "m#2"]


def test_branch_that_ends_elsewhere_is_not_waited_for() -> None:
    walk = Walk(fan("sP Pa Pb aJ ax:out bJ Je", inside="a:P b:P"), says(a="out"))
    assert walk.run() == ["s#1", "P#1", "a#1", "b#1", "x#1", "J#1", "e#1"]
    assert sources(walk, "J#1") == ["b#1"]


def test_branch_that_leaves_for_before_the_fan_out_begins_another_visit_of_it_apart() -> None:
    walk = Walk(fan("sP Pa Pb aJ as:again bJ Je", inside="a:P b:P"), says(a_1="again"))
    ran = walk.run()
    assert sources(walk, "J#1") == ["b#1"]
    assert sources(walk, "J#2") == ["a#2", "b#2"]
    assert ran.count("e#1") == ran.count("e#2") == 1


def test_loop_in_a_branch_is_waited_for() -> None:
    walk = Walk(fan("sP Pa Pb aJ:done aa:again bJ Je", inside="a:P b:P"), says(a_1="again", a_2="again", a="done"))
    assert walk.run() == ["s#1", "P#1", "a#1", "b#1", "a#2", "a#3", "J#1", "e#1"]


def test_inner_fan_out_is_gathered_before_the_outer_one() -> None:
    shape = fan("sP Pq Pb qx qy xK yK KJ bJ Je", gather="J:P K:q", inside="q:P b:P K:P x:q y:q")
    assert Walk(shape).run() == ["s#1", "P#1", "q#1", "b#1", "x#1", "y#1", "K#1", "J#1", "e#1"]


def test_inner_fan_out_without_a_gathering_node_of_its_own_arrives_at_the_outer_one() -> None:
    walk = Walk(fan("sP Pq Pb qx qy xJ yJ bJ Je", inside="q:P b:P x:q y:q"))
    assert walk.run()[-2:] == ["J#1", "e#1"]
    assert sources(walk, "J#1") == ["x#1", "y#1", "b#1"]


def test_gathering_node_that_is_gone_back_to_fires_at_once() -> None:
    walk = Walk(fan("sP Pa Pb aJ bJ Je:done JJ:again", inside="a:P b:P"), says(J_1="again", J="done"))
    assert walk.run() == ["s#1", "P#1", "a#1", "b#1", "J#1", "J#2", "e#1"]
    assert sources(walk, "J#2") == ["J#1"]


def test_one_node_may_gather_either_of_two_fan_outs() -> None:
    shape = fan("sP:left sQ:right Pa Pb Qc Qd aJ bJ cJ dJ Je", gather="J:P,Q", inside="a:P b:P c:Q d:Q")
    walk = Walk(shape, says(s="right"))
    assert walk.run()[-2:] == ["J#1", "e#1"]
    assert sources(walk, "J#1") == ["c#1", "d#1"]


def test_failed_branch_holds_its_gathering_node_up() -> None:
    walk = Walk(fan("sP Pa Pb aJ bJ Je", inside="a:P b:P"), says(b="fail"))
    assert walk.run() == ["s#1", "P#1", "a#1", "b#1"]


def test_new_process_gathers_what_the_old_one_left() -> None:
    walk = Walk(fan("sP Pa Pb aJ bJ Je", inside="a:P b:P"))
    for _ in range(2):
        for activation in walk.offered():
            walk.begin(activation)
            walk.end(activation)
            if activation.node == "a":
                break
    walk.resume()
    assert walk.run()[-3:] == ["b#1", "J#1", "e#1"]
    assert sources(walk, "J#1") == ["a#1", "b#1"]


def test_branches_may_be_very_long() -> None:
    names = [f"n{number}" for number in range(3000)]
    nodes = [Node("P"), *(Node(name, attributes={"fan": "P"}) for name in names)]
    nodes.append(Node("J", join="all", attributes={"scope": "P"}))
    chain = ["P", *names, "J"]
    edges = [Edge(before, after) for before, after in pairwise(chain)]
    shape = Graph.of(nodes, edges, "P")
    walk = Walk(shape)
    assert walk.run(limit=4000)[-1] == "J#1"
    assert Tracks(shape, walk.tape.state.steps).around("n2999#1") == ("P#1",)


def test_cycle_of_gathering_nodes_is_no_fault() -> None:
    validate(fan("sP Pa Pb aJ bJ JJ", inside="a:P b:P"))
