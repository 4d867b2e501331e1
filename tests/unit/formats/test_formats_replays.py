"""Replays of graphs: the same requests follow from the records, also where a resume told a model less."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.formats.attractor.handlers.interviewers import Queue
from pipeline.travel.replay import replay
from tests.unit.formats.acting import Act, said

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
