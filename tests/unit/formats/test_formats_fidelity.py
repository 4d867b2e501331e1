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


@pytest.mark.parametrize(
    ("graph", "stops", "dies", "wanted", "modes", "calls"),
    [
        # The first node after a resume is asked with less, and the next one as the graph says.
        ("full", [], "", None, "full full full", 3), ("full", ["start"], "", None, "compact full full", 3),
        ("full", ["a"], "", None, "full compact full", 3), ("full", ["b"], "", None, "full full compact", 3),
        ("full", ["a", "b"], "", "summary:high", "full summary:high summary:high", 3),
        # Only full is taken down.
        ("truncate", ["b"], "", "summary:high", "truncate truncate truncate", 3),
        # What was paid for is used as it was asked for, in whichever mode; a call that never ended is asked anew.
        ("full", [], "after", None, "full full full", 3),
        ("full", ["b"], "after", "summary:low", "full full summary:low", 3),
        ("full", [], "within", None, "full full compact", 4),
    ],
)  # fmt: skip
def test_mode_after_a_resume_is_recorded_pays_nothing_twice_and_is_replayed(
    graph: str, stops: list[str], dies: str, wanted: str | None, modes: str, calls: int
) -> None:
    def script(request: Request) -> Any:
        if dies == "within" and said(request) == "C" and act.model.calls == 3:
            raise KeyboardInterrupt
        return f"{said(request)} is done " * 300

    act = chain(f"default_fidelity={graph}", script)
    for stop in stops:
        assert act.go(until=stop, resume_fidelity=wanted).detail == "stopped_as_asked"
    if dies == "after":
        act.dying_after("c")
    if dies:
        assert act.go(resume_fidelity=wanted).status == "in_progress"
    assert act.go(resume_fidelity=wanted).status == "completed"
    assert [act.visit(name).outputs["fidelity"] for name in "abc"] == modes.split()
    assert act.model.calls == calls
    for name, mode in zip("abc", modes.split(), strict=True):
        assert act.context(f"internal.fidelity.{name}") == (None if mode == graph else mode)
        asked = next(request for request in reversed(act.model.requests) if request.label == name)
        before = "abc".index(name) if mode == "full" else 0
        assert len(turns(asked)) == 2 * before + 1
    assert replay(act.store, act.run_id, act.definition).differences == ()


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


PEOPLE = (
    "g [shape=hexagon]\nfan [shape=component]\nx [prompt=X]\ny [prompt=Y]\nall [shape=tripleoctagon, prompt=Best]\n"
    "start -> g -> fan\nfan -> x -> all\nfan -> y -> all\nall -> exit"
)


def test_a_replay_asks_nobody_and_ranks_by_the_recorded_reply() -> None:
    def script(request: Any) -> str:
        return "BEST: y" if request.label == "all" else "text"

    act = Act(PEOPLE, script)
    act.go(services={"interviewer": Queue(["fan"])})
    replayed = replay(act.store, act.run_id, act.definition)
    assert replayed.differences == ()
    assert replayed.taken == ("g#1",)
