"""Which visits may start: joins, branches, loops, failures, resumes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest

from pipeline.graph.model import Edge, Graph, Node, chain
from pipeline.graph.readiness import Activation, Frontier, ready, skipped
from pipeline.graph.tracks import Tracks
from pipeline.graph.validation import validate
from pipeline.records import kinds
from tests.tape import Walk


def graph(nodes: str, *edges: str, every: str = "") -> Graph:
    """Nodes by letter; edges "ab" or "ab:label"; joins of `every` wait for all edges."""
    made = [Node(name, join="all" if name in every else "any") for name in nodes]
    links = []
    for text in edges:
        ends, _, label = text.partition(":")
        links.append(Edge(ends[0], ends[1], label or None))
    return Graph.of(made, links, nodes[0])


DIAMOND = graph("abcd", "ab", "ac", "bd", "cd", every="d")
BRANCH = graph("abcd", "ab:left", "ac:right", "bd", "cd", every="d")
LOOP = graph("abc", "ab", "ba:again", "bc")


def says(**labels: str) -> Callable[[Activation], str]:
    """Outcomes by path ("b_2" for "b#2") or node; success else."""
    return lambda visit: labels.get(f"{visit.node}_{visit.visit}", labels.get(visit.node, "success"))


def go(walk: Walk, *ran: str) -> None:
    """Begin and end visits, by path."""
    for path in ran:
        visit = next(visit for visit in walk.offered() if visit.path == path)
        walk.begin(visit)
        walk.end(visit)


def paths(found: list[Activation]) -> list[str]:
    return [activation.path for activation in found]


def test_chain_runs_in_order_from_the_token_of_the_start() -> None:
    walk = Walk(chain(["seed", "sow", "publish"]))
    assert walk.offered() == [Activation("seed#1", "seed", 1, (("", ""),))]
    assert walk.run() == ["seed#1", "sow#1", "publish#1"]


def test_what_is_ready_is_offered_until_it_is_started() -> None:
    walk = Walk(DIAMOND)
    (first,) = walk.offered()
    assert walk.offered() == [first]
    walk.begin(first)
    assert walk.offered() == []
    walk.end(first)
    left, right = walk.offered()
    walk.begin(right)
    assert walk.offered() == [left]


def test_join_all_waits_for_an_arm_that_still_runs_and_names_its_tokens_in_order_of_declaration() -> None:
    walk = Walk(DIAMOND)
    go(walk, "a#1")
    left, right = walk.offered()
    walk.begin(left)
    walk.begin(right)
    walk.end(right)
    assert walk.offered() == walk.offered(idle=True) == []
    walk.end(left)
    assert walk.offered() == [Activation("d#1", "d", 1, (("b->d", "b#1"), ("c->d", "c#1")))]


def test_join_all_takes_the_oldest_token_of_each_edge() -> None:
    walk = Walk(graph("suvxyj", "su", "sv", "sy", "ux", "vx", "xj", "yj", every="j"))
    go(walk, "s#1", "u#1", "v#1", "x#1", "x#2", "y#1")
    (first,) = walk.offered()
    assert first.consumed == (("x->j", "x#1"), ("y->j", "y#1"))
    assert walk.run()[-2:] == ["j#1", "j#2"]
    assert walk.tape.state.steps["j#2"].consumed == (("x->j", "x#2"),)


def test_join_any_visits_once_a_token() -> None:
    walk = Walk(graph("abcd", "ab", "ac", "bd", "cd"))
    assert walk.run() == ["a#1", "b#1", "c#1", "d#1", "d#2"]
    assert walk.tape.state.steps["d#2"].consumed == (("c->d", "c#1"),)


def test_branch_goes_one_way_and_the_join_does_not_wait_for_the_other() -> None:
    walk = Walk(BRANCH, says(a="right"))
    assert walk.run() == ["a#1", "c#1", "d#1"]
    assert walk.tape.state.steps["d#1"].consumed == (("c->d", "c#1"),)
    assert skipped(BRANCH, walk.tape.state) == ["b"]


def test_join_after_a_skipped_arm_does_not_wait_until_all_is_idle() -> None:
    # A long arm (e, f) runs beside the branch; d joins only the branch's arms.
    shape = graph("abcdef", "ab:left", "ac:right", "ae:left", "ae:right", "bd", "cd", "ef", every="d")
    walk = Walk(shape, says(a="left"))
    go(walk, "a#1")
    b, e = walk.offered()
    walk.begin(b)
    walk.begin(e)
    walk.end(b)
    assert paths(walk.offered()) == ["d#1"]


def test_dead_arm_of_several_nodes_is_seen_through() -> None:
    shape = graph("abcde", "ab:long", "bc", "cd", "ad:long", "ad:short", "de", every="d")
    assert Walk(shape, says(a="short")).run() == ["a#1", "d#1", "e#1"]
    assert Walk(shape, says(a="long")).run() == ["a#1", "b#1", "c#1", "d#1", "e#1"]


def test_nothing_is_skipped_while_it_can_still_be_reached() -> None:
    walk = Walk(BRANCH, says(a="left"))
    assert skipped(BRANCH, walk.tape.state) == []
    (first,) = walk.offered()
    walk.begin(first)
    assert skipped(BRANCH, walk.tape.state) == []
    walk.end(first)
    assert skipped(BRANCH, walk.tape.state) == ["c"]


def test_loop_visits_a_node_three_times() -> None:
    walk = Walk(LOOP, says(b_1="again", b_2="again"))
    assert walk.run() == ["a#1", "b#1", "a#2", "b#2", "a#3", "b#3", "c#1"]
    assert walk.tape.state.visits == {"a": 3, "b": 3, "c": 1}
    assert skipped(LOOP, walk.tape.state) == []
    assert Walk(graph("ab", "aa:again", "ab"), says(a_1="again")).run() == ["a#1", "a#2", "b#1"]


def test_failed_step_blocks_its_join_and_is_offered_only_to_the_next_owner_as_a_new_attempt() -> None:
    walk = Walk(DIAMOND, says(b="fail"))
    assert walk.run() == ["a#1", "b#1", "c#1"]
    assert skipped(DIAMOND, walk.tape.state) == []
    assert [token.edge for token in walk.tape.state.tokens] == ["c->d"]
    assert walk.offered(idle=True) == []
    walk.outcome = says()
    walk.resume()
    (again,) = walk.offered()
    assert (again.path, again.attempt, again.again, again.consumed) == ("b#1", 2, True, (("a->b", "a#1"),))
    assert walk.run()[3:] == ["b#1", "d#1"]
    assert len(walk.tape.state.steps["d#1"].consumed) == 2


def test_failure_edge_takes_the_failure_and_the_other_arm_is_dead() -> None:
    shape = graph("abcd", "ab", "ac:fail", "bd", "cd", every="d")
    walk = Walk(shape, says(a="fail"))
    assert walk.run() == ["a#1", "c#1", "d#1"]
    assert skipped(shape, walk.tape.state) == ["b"]
    assert walk.tape.state.failed_paths == {}


def test_open_steps_are_taken_up_first_at_the_same_path_and_attempt() -> None:
    walk = Walk(DIAMOND)
    go(walk, "a#1")
    left, _ = walk.offered()
    walk.begin(left)
    walk.resume()
    again, right = walk.offered()
    assert (again.path, again.attempt, again.again) == ("b#1", 1, True)
    assert (right.path, right.again) == ("c#1", False)
    walk.begin(again)
    assert paths(walk.offered()) == ["c#1"]


def test_frontier_that_lives_through_a_resume_offers_what_is_left_over() -> None:
    walk = Walk(chain(["a", "b"]))
    (first,) = walk.offered()
    walk.begin(first)
    walk.tape.resume()
    assert paths(walk.offered()) == ["a#1"]


@pytest.mark.parametrize("idle", [False, True])
def test_frontier_and_a_fresh_reading_agree_at_every_record(idle: bool) -> None:
    labels = says(a="left", b_1="again", b_2="again")
    for shape in (DIAMOND, BRANCH, LOOP, graph("abcd", "ab", "ac", "bd", "cd")):
        walk = Walk(shape, labels)
        while found := walk.frontier.ready() or walk.frontier.ready(idle=True):
            assert found == ready(shape, walk.tape.state, idle=idle)
            walk.begin(found[0])
            assert walk.frontier.ready() == ready(shape, walk.tape.state, idle=False)
            walk.end(found[0])


def mutual() -> Graph:
    """Two joins: each waits for the other's arm to come round."""
    return graph("suvaxby", "su", "sv", "ua", "vb", "ax", "xb", "by", "ya", every="ab")


def test_joins_that_wait_for_each_other_let_the_oldest_token_go() -> None:
    walk = Walk(mutual(), says(y="stop"))
    started: list[str] = []
    for _ in range(4):
        found = walk.offered()
        started += paths(found)
        for activation in found:
            walk.begin(activation)
            walk.end(activation)
    assert started == ["s#1", "u#1", "v#1"]
    assert paths(walk.offered(idle=True)) == ["a#1"]


def test_join_that_can_still_be_fed_waits_while_another_is_let_go() -> None:
    shape = graph("sjkz", "sj", "sk", "sz:never", "zj", "jk", every="jk")
    walk = Walk(shape)
    go(walk, "s#1")
    assert paths(walk.offered(idle=True)) == ["j#1"]
    assert walk.run() == ["s#1", "j#1", "k#1"]


def test_joins_that_wait_for_each_other_stay_where_a_failure_holds_both() -> None:
    shape = graph("suvaxbyf", "su", "sv", "sf", "fa", "fb", "ua", "vb", "ax", "xb", "by", "ya", every="ab")
    walk = Walk(shape, says(f="fail"))
    assert sorted(walk.run()) == ["f#1", "s#1", "u#1", "v#1"]
    assert len(walk.tape.state.tokens) == 2


def test_join_in_a_loop_does_not_wait_for_its_own_next_round() -> None:
    shape = graph("abcd", "ab", "bc", "cb:again", "cd", every="b")
    walk = Walk(shape, says(c_1="again"))
    assert walk.run() == ["a#1", "b#1", "c#1", "b#2", "c#2", "d#1"]


@pytest.mark.parametrize(("way", "second"), [("again", 2), ("success", 1)])
def test_join_waits_for_its_own_earlier_visit_that_may_still_come_round(way: str, second: int) -> None:
    # x feeds b twice; while b#1 runs, c may yet choose the way back to b.
    shape = graph("suvxbcdz", "su", "sv", "sz:never", "ux", "vx", "xb", "bc", "cb:again", "cd", every="b")
    walk = Walk(shape, says(c_1=way))
    go(walk, "s#1", "u#1", "x#1")
    first = next(activation for activation in walk.offered() if activation.node == "b")
    assert first.consumed == (("x->b", "x#1"),)
    walk.begin(first)
    go(walk, "v#1", "x#2")
    assert walk.offered() == []
    walk.end(first)
    go(walk, "c#1")
    again = next(activation for activation in walk.offered() if activation.node == "b")
    assert (again.path, len(again.consumed)) == ("b#2", second)


def test_token_of_an_imported_document_finds_its_step_without_an_edge() -> None:
    walk = Walk(DIAMOND)
    steps = [{"step": name, "outputs": {}} for name in "acb"]
    walk.tape.put(kinds.Snapshot({"completed_steps": steps, "next_step": "d"}))
    walk.frontier = Frontier(DIAMOND, walk.tape.state)
    assert [(token.edge, token.source) for token in walk.tape.state.tokens] == [("b->d", "b#1")]
    steps[1:] = []
    walk.tape.put(kinds.Snapshot({"completed_steps": steps, "next_step": "d"}))
    assert paths(walk.offered()) == ["d#1"]


def test_void_step_runs_again_at_the_same_path_and_so_does_what_follows() -> None:
    walk = Walk(LOOP, says(b_1="again"))
    walk.run()
    walk.tape.put(kinds.Invalidated("redo", ["b#1"]))
    (again,) = walk.offered()
    assert (again.path, again.attempt, again.consumed, again.again) == ("b#1", 2, (("a->b", "a#1"),), False)
    assert walk.run() == ["a#1", "b#1", "a#2", "b#2", "c#1", "b#1", "a#2", "b#2", "c#1"]
    assert walk.tape.state.steps["c#1"].attempt == 2
    assert walk.tape.state.visits == {"a": 2, "b": 2, "c": 1}


def test_void_arm_of_a_diamond_joins_at_the_same_path_again() -> None:
    walk = Walk(DIAMOND)
    walk.run()
    walk.tape.put(kinds.Invalidated("redo", ["c#1"]))
    assert walk.run()[4:] == ["c#1", "d#1"]
    assert walk.tape.state.steps["d#1"].consumed == (("b->d", "b#1"), ("c->d", "c#1"))


def test_void_branch_that_turns_the_other_way_takes_a_new_visit() -> None:
    walk = Walk(BRANCH, says(a="left"))
    walk.run()
    walk.tape.put(kinds.Invalidated("redo", ["a#1"]))
    walk.outcome = says(a="right")
    assert walk.run()[3:] == ["a#1", "c#1", "d#2"]
    assert list(walk.tape.state.steps) == ["a#1", "c#1", "d#2"]


def test_tokens_of_edges_the_graph_does_not_have_are_left_alone() -> None:
    walk = Walk(chain(["a", "b"]))
    walk.tape.start("a#1", (("", ""),))
    walk.tape.complete("a#1", ["a->gone"])
    assert walk.offered(idle=True) == []
    assert ready(Graph.of([], [], ""), Walk(chain(["a"])).tape.state, idle=True) == []


def layered(layers: int, width: int) -> Graph:
    """Every node of a layer waits for every node of the one before."""
    nodes = [Node("start")]
    nodes += [Node(f"n{layer}_{place}", join="all") for layer in range(layers) for place in range(width)]
    edges = [Edge("start", f"n0_{place}") for place in range(width)]
    edges += [
        Edge(f"n{layer}_{here}", f"n{layer + 1}_{there}")
        for layer in range(layers - 1)
        for here in range(width)
        for there in range(width)
    ]
    return Graph.of(nodes, edges, "start")


def test_layers_of_thirty_by_thirty_run_once_each_in_order() -> None:
    walk = Walk(layered(30, 30))
    walk.frontier = Frontier(walk.graph, walk.tape.state)
    order: list[str] = []
    while found := walk.frontier.ready():
        assert len({activation.node.split("_")[0] for activation in found}) == 1
        for activation in found:
            walk.begin(activation)
            walk.end(activation)
            order.append(activation.path)
    assert len(order) == len(set(order)) == 901
    assert order[-1] == "n29_29#1"
    assert walk.tape.state.tokens == []
    assert len(walk.tape.state.steps["n29_0#1"].consumed) == 30


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

    # A cycle of gathering nodes is no fault.
    validate(fan("sP Pa Pb aJ bJ JJ", inside="a:P b:P"))
