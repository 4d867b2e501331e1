"""How much of what came before a node's model is told, in whose thread; what a resume and a replay make of it."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.formats.attractor.documents import Checkpoint, entry_document
from pipeline.formats.attractor.handlers.interviewers import Queue
from pipeline.formats.attractor.handlers.prompt import SIZES
from pipeline.llm.base import Request
from pipeline.travel.replay import replay
from tests.unit.formats.acting import Act, said, system, turns

CHAIN = 'a [prompt="A"]\nb [prompt="B"]\nc [prompt="C"]\nstart -> a -> b -> c -> exit'


def chain(attributes: str, script: Any = None) -> Act:
    text = f"digraph g {{ {attributes}\nstart [shape=Mdiamond]; exit [shape=Msquare]\n{CHAIN} }}"
    return Act(text, script or (lambda request: f"{said(request)} is done"))


def test_compact_is_what_holds_where_nothing_is_said() -> None:
    act = chain('goal="Ship"')
    act.go()
    first, _, third = act.model.requests
    assert system(first) == "The goal: Ship"
    assert turns(third) == [("user", "C")]
    assert "- b: success\n- a: success" in system(third)
    assert "b gave:\nB is done" in system(third)
    assert "a gave:\nA is done" in system(third)
    assert act.visit("c").outputs["fidelity"] == "compact"


def test_full_goes_on_with_the_conversation() -> None:
    act = chain('goal="Ship"; default_fidelity=full')
    act.go()
    assert turns(act.model.requests[2]) == [
        ("user", "A"), ("assistant", "A is done"), ("user", "B"), ("assistant", "B is done"), ("user", "C"),
    ]  # fmt: skip
    assert system(act.model.requests[2]) == ""


@pytest.mark.parametrize("mode", sorted(SIZES))
def test_what_is_told_has_a_most_size(mode: str) -> None:
    long = "word " * 20_000
    act = chain(f'goal="{"g" * 9000}"; default_fidelity="{mode}"', [long, long, long])
    act.go()
    assert 0 < len(system(act.model.requests[2])) <= SIZES[mode] + 200
    assert ("gave:" in system(act.model.requests[2])) == (mode != "truncate")


@pytest.mark.parametrize(
    ("node", "edge", "graph", "mode"),
    [
        ("fidelity=truncate", "fidelity=full", "default_fidelity=compact", "full"),
        ("fidelity=truncate", "", "default_fidelity=full", "truncate"),
        ("", "", "default_fidelity=truncate", "truncate"),
        ("", "", "context_fidelity_default=truncate", "truncate"),
        ("fidelity=nonsense", "", "", "compact"),
    ],
)
def test_the_edge_comes_before_the_node_before_the_graph(node: str, edge: str, graph: str, mode: str) -> None:
    act = Act(
        f"digraph g {{ {graph}\nstart [shape=Mdiamond]; exit [shape=Msquare]\n"
        f"a [prompt=A]; b [prompt=B, {node}]\nstart -> a\na -> b [{edge}]\nb -> exit }}"
    )
    act.go()
    assert act.visit("b").outputs["fidelity"] == mode


@pytest.mark.parametrize(
    ("text", "thread"),
    [
        ("a [thread_id=own]\nstart -> a [thread_id=edge]", "own"),
        ("graph [default_thread_id=whole]\na [prompt=A]\nstart -> a [thread_id=edge]", "edge"),
        ("graph [default_thread_id=whole]\na [prompt=A]\nstart -> a", "whole"),
        ('subgraph x { label="Big Part"; a [prompt=A] }\nstart -> a', "big-part"),
        ("a [prompt=A]\nstart -> a", "a"),
    ],
)
def test_a_thread_is_the_nodes_the_edges_the_graphs_the_groups(text: str, thread: str) -> None:
    act = Act(f"{text}\na -> exit")
    act.go()
    assert act.visit("a").outputs["thread"] == thread


def test_failed_visits_are_told_of_and_no_turn_of_a_conversation() -> None:
    act = Act(
        "graph [default_fidelity=full]\na [prompt=A]\nb [prompt=B]\nstart -> a\n"
        'a -> b [condition="outcome=fail"]\na -> exit [condition="outcome=success"]\nb -> exit',
        ["No.\nSTATUS: fail", "well"],
    )
    act.go()
    assert turns(act.model.requests[1]) == [("user", "B")]


# --- after a resume


def stopped_before_c(attributes: str = "default_fidelity=full", script: Any = None) -> Act:
    act = chain(attributes, script)
    assert act.go(until="b").detail == "stopped_as_asked"
    return act


def test_the_first_node_after_a_resume_is_asked_at_compact_and_that_is_recorded() -> None:
    act = stopped_before_c()
    assert act.go().status == "completed"
    assert turns(act.model.requests[2]) == [("user", "C")]
    assert "b gave:" in system(act.model.requests[2])
    assert act.visit("c").outputs["fidelity"] == "compact"
    assert act.context("internal.fidelity.c") == "compact"


def test_the_node_after_that_is_asked_as_the_graph_says() -> None:
    act = chain("default_fidelity=full")
    act.go(until="a")
    act.go()
    assert [act.visit(name).outputs["fidelity"] for name in "abc"] == ["full", "compact", "full"]
    assert turns(act.model.requests[2])[2:] == [("user", "B"), ("assistant", "B is done"), ("user", "C")]
    assert act.context("internal.fidelity.c") is None


@pytest.mark.parametrize(("graph", "asked"), [("truncate", None), ("full", "summary:high")])
def test_another_mode_may_be_asked_for_and_only_full_is_taken_down(graph: str, asked: str | None) -> None:
    act = stopped_before_c(f"default_fidelity={graph}")
    act.go(resume_fidelity="summary:high")
    assert act.visit("c").outputs["fidelity"] == (asked or graph)
    assert act.context("internal.fidelity.c") == asked


def test_a_reply_that_was_paid_for_at_full_is_used_after_the_resume() -> None:
    act = chain("default_fidelity=full")
    act.dying_after("c")
    assert act.go().detail == "stopped_as_asked"
    assert act.go().status == "completed"
    assert act.model.calls == 3
    assert act.visit("c").outputs["fidelity"] == "full"


def test_a_reply_that_was_paid_for_at_compact_is_used_after_the_next_resume() -> None:
    act = stopped_before_c(script=lambda request: f"{said(request)} is done " * 500)
    act.dying_after("c")
    assert act.go(resume_fidelity="summary:low").detail == "stopped_as_asked"
    assert act.go().status == "completed"
    assert act.model.calls == 3
    assert act.visit("c").outputs["fidelity"] == "summary:low"


def test_a_call_that_never_ended_is_asked_anew_at_compact() -> None:
    act = chain("default_fidelity=full")

    def script(request: Request) -> Any:
        if said(request) == "C" and len(act.model.requests) == 3:
            raise KeyboardInterrupt
        return f"{said(request)} is done"

    act.model._script = script
    act.go()
    act.go()
    assert act.visit("c").outputs["fidelity"] == "compact"
    assert act.model.calls == 4


def test_the_first_node_after_another_systems_checkpoint_is_asked_at_compact() -> None:
    act = chain("default_fidelity=full")
    checkpoint = Checkpoint({"title": "Tides"}, "a", ("start", "a"))
    document = entry_document(checkpoint, act.definition.graph, act.definition.router)
    assert act.go(imported=document).status == "completed"
    assert [act.visit(name).outputs["fidelity"] for name in "bc"] == ["compact", "full"]
    assert "- title: Tides" in system(act.model.requests[0])


def test_loops_tell_of_every_visit_once() -> None:
    act = Act(
        'w [prompt="W"]\nj [prompt="J"]\nstart -> w -> j\nj -> w [condition="outcome=fail"]\n'
        'j -> exit [condition="outcome=success"]',
        ["w1", "STATUS: fail", "w2", "STATUS: success"],
    )  # fmt: skip
    assert act.go().status == "completed"
    text = system(act.model.requests[3])
    assert text.count("- w#2: success") == 1
    assert text.count("- j: fail") == 1
    assert "w#2 gave:\nw2" in text


FULL = "graph [default_fidelity=full]\na [prompt=A]\nb [prompt=B]\nc [prompt=C]\nstart -> a -> b -> c -> exit"
PEOPLE = (
    "g [shape=hexagon]\nfan [shape=component]\nx [prompt=X]\ny [prompt=Y]\nall [shape=tripleoctagon, prompt=Best]\n"
    "start -> g -> fan\nfan -> x -> all\nfan -> y -> all\nall -> exit"
)


@pytest.mark.parametrize("stops", [[], ["start"], ["a"], ["b"], ["a", "b"]])
def test_a_replay_of_a_conversation_asks_what_was_asked(stops: list[str]) -> None:
    act = Act(FULL, lambda request: f"{said(request)} is done " * 300)
    for stop in stops:
        act.go(until=stop, resume_fidelity="summary:low")
    assert act.go().status == "completed"
    replayed = replay(act.store, act.run_id, act.definition)
    assert (replayed.differences, replayed.replies) == ((), 3)


def test_a_replay_asks_nobody_and_ranks_by_the_recorded_reply() -> None:
    def script(request: Any) -> str:
        return "BEST: y" if request.label == "all" else "text"

    act = Act(PEOPLE, script)
    act.go(services={"interviewer": Queue(["fan"])})
    replayed = replay(act.store, act.run_id, act.definition)
    assert replayed.differences == ()
    assert replayed.taken == ("g#1",)
