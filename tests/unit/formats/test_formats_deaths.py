"""One graph with every kind of node, its process killed at each record: it ends as if nothing had been."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pytest

from pipeline.formats.attractor.handlers.interviewers import Callback
from pipeline.llm.base import Request
from pipeline.records.kinds import CallEnded, CallStarted, Decision
from pipeline.store.reader import records
from tests.unit.engine.test_engine_laws import Killed, MortalStore
from tests.unit.formats.acting import ENDS, Act, system

CHILD = (
    f'digraph child {{ goal="small"\n{ENDS}fan [shape=component, max_parallel=1]\nx [prompt=X]\ny [prompt=Y]\n'
    "all [shape=tripleoctagon, join_policy=first_success]\n"
    "start -> fan\nfan -> x -> all\nfan -> y -> all\nall -> exit }"
)
GRAPH = (
    'graph [goal="big"]\nplan [prompt="Plan $goal"]\nask [shape=hexagon]\n'
    'm [shape=house, stack.child_dotfile="child.dot"]\n'
    't [shape=parallelogram, tool_command="echo told", effect=read]\nlook [shape=diamond]\n'
    'judge [prompt="Judge $plan.response", goal_gate=true, retry_target=m]\n'
    "start -> plan -> ask\nask -> m [label=Go]\nask -> plan [label=Back]\nm -> t -> look\n"
    'look -> judge [condition="context.tool_stdout=told"]\nlook -> exit\njudge -> exit [condition="outcome=success"]\n'
    'judge -> exit [condition="outcome=fail"]'
)


def script(request: Request) -> str:
    """As the request says, never by when it is asked: the first verdict is no, the next is yes."""
    if request.label == "judge":
        return f"STATUS: {'success' if 'judge: fail' in system(request) else 'fail'}"
    return "STATUS: fail" if request.label == "m.x" else f"{request.label} of {len(system(request))}"


class Mortal:
    """The graph on a store that dies."""

    def __init__(self) -> None:
        self.store = MortalStore()
        self.act = Act(GRAPH, script, children={"child.dot": CHILD})
        self.act.store = self.store
        self.answers: list[str] = []

    def answer(self, question: Any) -> str:
        """The plan is sent back once."""
        self.answers.append(question.path)
        return "Back" if question.path == "ask#1" else "Go"

    def go(self) -> bool:
        """Whether this process came to an end of the run."""
        with suppress(Killed):
            services = {"interviewer": Callback(self.answer)}
            result = self.act.go(services=services, allow_tools=True, concurrency=1)
            assert result.status == "completed", result.error
            return True
        heads = list(self.store.heads())
        self.act.run_id = heads[0].run_id if heads else ""
        return False

    def view(self) -> Mapping[str, Any]:
        """What a run came to, whatever it went through."""
        state = self.act.state
        return {
            "context": state.context,
            "visits": {path: (run.outcome, run.edges, run.outputs, run.reason) for path, run in state.steps.items()},
        }

    def count(self, kind: type) -> int:
        return sum(isinstance(record.fact, kind) for record in records(self.store, self.act.run_id))


@pytest.mark.parametrize(("after", "stride"), [(False, 1), (True, 4)])
def test_a_run_killed_at_any_record_ends_as_the_undisturbed_one(after: bool, stride: int) -> None:
    calm = Mortal()
    assert calm.go()
    total = calm.act.state.seq
    assert calm.act.order.count("judge#2") == 1
    for lives in range(0, total - 1, stride):
        shaken = Mortal()
        shaken.store.lives, shaken.store.after = lives, after
        assert not shaken.go(), lives
        shaken.store.lives = None
        assert shaken.go(), lives
        assert shaken.view() == calm.view(), lives
        started, ended = shaken.count(CallStarted), shaken.count(CallEnded)
        assert ended == calm.act.model.calls, "a reply that was recorded is not paid for again"
        assert started - ended <= 1, "at most what was in flight"
        assert shaken.count(Decision) == calm.count(Decision)
