"""Laws of DOT runs, of random graphs and of one with all kinds of nodes: killed and resumed they end as undisturbed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.engine.result import RunResult
from pipeline.engine.step import StepContext
from pipeline.formats.attractor.handlers.fan import fan_in
from pipeline.formats.attractor.handlers.interviewers import Callback
from pipeline.formats.attractor.handlers.registry import Handler, Registry
from pipeline.formats.attractor.handlers.standard import conditional
from pipeline.formats.attractor.outcome import NodeOutcome
from pipeline.llm.base import Message, Request
from pipeline.llm.script import ScriptedModel
from pipeline.records.kinds import CallEnded, CallStarted, Decision
from pipeline.records.run import RunState
from pipeline.store.reader import records
from tests.unit.engine.test_engine_laws import MODEL, Killed, MortalStore
from tests.unit.formats.acting import ENDS, Act, system

#: What a visit may come to; "raise": its handler raises.
WORDS = ("success", "partial_success", "fail", "retry", "raise", "other")


@dataclass
class Drawing:
    """A graph as text, in the making; and what its nodes do."""

    lines: list[str] = field(default_factory=list)
    count: int = 0
    #: Node → outcomes by visit, the last for all later ones.
    words: dict[str, list[str]] = field(default_factory=dict)
    asks: dict[str, int] = field(default_factory=dict)

    def node(self, draw: st.DrawFn, attributes: str = "", *, plain: bool = False, words: Sequence[str] = WORDS) -> str:
        """A new node; a plain one always succeeds and asks nothing."""
        name = f"n{self.count}"
        self.count += 1
        self.lines.append(f"{name} [{attributes}]")
        if not plain:
            some = draw(st.lists(st.sampled_from(words), min_size=draw(st.integers(0, 2)), max_size=2))
            self.words[name] = [*some, "success"]
            self.asks[name] = draw(st.integers(0, 2))
        return name

    def edge(self, source: str, target: str, attributes: str = "") -> None:
        self.lines.append(f"{source} -> {target} [{attributes}]")


def segment(draw: st.DrawFn, made: Drawing, last: str, depth: int) -> str:
    """Something behind `last`; the node it ends with."""
    kinds = ["step", "tries", "mended", "diamond", "gate", "again"] + (["fan", "loose"] if depth else [])
    kind = draw(st.sampled_from(kinds))
    if kind in ("fan", "loose"):
        return fan_out(draw, made, last, depth, drawn=kind == "fan")
    if kind == "step":
        # Nothing mends its failure: only in branches may it fail.
        after = made.node(draw, words=WORDS if depth < 2 else ("success", "partial_success", "other"))
        made.edge(last, after)
    elif kind == "tries":
        retries = draw(st.integers(1, 2))
        after = made.node(draw, f"max_retries={retries}, allow_partial=true", words=("success", "retry", "attempt"))
        made.edge(last, after)
    elif kind == "mended":
        tried, mend, after = made.node(draw), made.node(draw, plain=True), made.node(draw, plain=True)
        for edge in ((last, tried), (tried, after), (tried, mend, 'condition="outcome!=success"'), (mend, after)):
            made.edge(*edge)
    elif kind == "diamond":
        work, decide = made.node(draw), made.node(draw, "shape=diamond", plain=True)
        left, after = made.node(draw, words=("success", "other")), made.node(draw, plain=True)
        made.edge(last, work)
        made.edge(work, decide)
        made.edge(decide, left, 'condition="outcome!=success"')
        made.edge(decide, after)
        made.edge(left, after)
    elif kind == "gate":
        begin = made.node(draw, plain=True)
        after = made.node(draw, f"goal_gate=true, retry_target={begin}")
        made.edge(last, begin)
        made.edge(begin, after)
    else:
        after = made.node(draw, plain=True)
        again = made.node(draw, "max_visits=3", words=("success", "other"))
        made.edge(last, again)
        made.edge(again, again, 'condition="outcome=other"')
        made.edge(again, after)
    return after


def fan_out(draw: st.DrawFn, made: Drawing, last: str, depth: int, *, drawn: bool) -> str:
    """Branches side by side, each of some segments, gathered at a fan-in or at a node of their own."""
    policy = draw(st.sampled_from(["wait_all", "first_success", "quorum"]))
    fan = made.node(draw, f"shape=component, join_policy={policy}, max_parallel={draw(st.integers(1, 3))}", plain=True)
    made.edge(last, fan)
    ends = []
    for _ in range(draw(st.integers(2, 3))):
        at = made.node(draw, plain=True)
        made.edge(fan, at)
        for _ in range(draw(st.integers(0, 2))):
            at = segment(draw, made, at, depth - 1)
        ends.append(at)
    gather = made.node(draw, "shape=tripleoctagon" if drawn else "", plain=True)
    for end in ends:
        made.edge(end, gather)
    return gather


@st.composite
def drawings(draw: st.DrawFn) -> Drawing:
    """Segments in a row between start and exit."""
    made = Drawing(["start [shape=Mdiamond]", "exit [shape=Msquare]"])
    last = "start"
    for _ in range(draw(st.integers(1, 4))):
        last = segment(draw, made, last, 2)
    made.edge(last, "exit")
    return made


class Mortal(Act):
    """A graph on a store that dies."""

    store: MortalStore

    def __init__(self, text: str, script: Any = None, **how: Any) -> None:
        super().__init__(text, script, **how)
        self.store = MortalStore()

    def live(self, lives: int | None = None, *, after: bool = False, **how: Any) -> RunResult | None:
        """Start or resume; None where it was killed."""
        self.store.lives, self.store.after = lives, after
        with suppress(Killed):
            return self.go(**how)
        self.run_id = next((head.run_id for head in self.store.heads()), "")
        return None

    def count(self, kind: type) -> int:
        return sum(isinstance(record.fact, kind) for record in records(self.store, self.run_id))


def bench(drawing: Drawing) -> Mortal:
    """One drawing; a node asks as often as it says, and tells all that it sees."""

    def act(ctx: StepContext) -> NodeOutcome:
        node = ctx.place.node.id
        asked = (Request(MODEL, [Message("user", f"{ctx.path} asks {number}")], max_tokens=50)
                 for number in range(drawing.asks.get(node, 0)))  # fmt: skip
        said = [ctx.ask(request).text for request in asked]
        words = drawing.words.get(node, ["success"])
        word = words[min(ctx.visit, len(words)) - 1]
        if word == "raise" or (word == "attempt" and ctx.attempt == 1):
            raise ValueError("no luck")
        seen = {key: ctx.context[key] for key in ctx.context}
        return NodeOutcome(
            word, context_updates={node: int(seen.get(node, 0)) + 1},
            outputs={"said": said, "seen": dict(sorted(seen.items()))},
            failure_reason=f"{node} said no" if word == "fail" else "",
        )  # fmt: skip

    made = Registry([Handler("conditional", conditional), Handler("parallel.fan_in", fan_in)])
    for kind in ("start", "exit", "codergen", "parallel"):
        made.register(kind, act)
    found = Mortal("digraph g {\n" + "\n".join(drawing.lines) + "\n}", handlers=made)
    found.model = ScriptedModel(lambda request: request.messages[0].text.upper(), model_id=MODEL, paid=True)
    return found


def view(state: RunState) -> Mapping[str, Any]:
    """What a run made: every visit, where it came from, what it saw, gave and set, where it led."""
    return {
        path: (run.status, run.outcome, dict(run.outputs), dict(run.context), tuple(run.edges), run.reason,
               sorted(map(tuple, run.consumed)), run.attempt)
        for path, run in state.steps.items()
    }  # fmt: skip


@settings(max_examples=40)
@given(drawing=drawings(), first=st.integers(1, 150), second=st.integers(1, 150), after=st.booleans())
def test_dot_run_killed_twice_and_resumed_equals_the_undisturbed_one(
    drawing: Drawing, first: int, second: int, after: bool
) -> None:
    calm, shaken = bench(drawing), bench(drawing)
    calm_result = calm.live(concurrency=2)
    assert calm_result is not None
    for lives in (first, second):
        shaken.live(lives, after=after, concurrency=2)
    result = shaken.live(concurrency=2)
    assert result is not None
    assert (result.status, bool(result.error)) == (calm_result.status, bool(calm_result.error))
    if calm_result.status != "completed":
        # A resume tries failed visits again: the same ones fail, at a later attempt.
        assert set(shaken.state.failed_paths) == set(calm.state.failed_paths)
        return
    assert view(shaken.state) == view(calm.state)
    started, ended = shaken.count(CallStarted), shaken.count(CallEnded)
    assert (ended, started - ended) == (calm.model.calls, len(shaken.state.open_calls))
    assert started - ended <= 4, "two in flight at each death"


@settings(max_examples=25)
@given(drawing=drawings())
def test_dot_run_always_ends_and_every_visit_is_accounted_for(drawing: Drawing) -> None:
    made = bench(drawing)
    result = made.live(concurrency=2)
    assert result is not None
    assert result.status in ("completed", "failed")
    state = made.state
    assert not state.open_paths
    if result.status == "completed":
        assert not state.waiting
        assert any(run.node == "exit" for run in state.steps.values())
    else:
        assert result.error is not None
        assert state.failed_paths
    for run in state.steps.values():
        assert run.ended_seq
        assert run.status == "completed" or run.edges or run.path in state.failed_paths


# One graph with every kind of node

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


def answer(question: Any) -> str:
    """The plan is sent back once."""
    return "Back" if question.path == "ask#1" else "Go"


@pytest.mark.parametrize(("after", "stride"), [(False, 1), (True, 4)])
def test_graph_of_every_kind_of_node_killed_at_any_record_ends_as_the_undisturbed_one(after: bool, stride: int) -> None:
    how: dict[str, Any] = {"services": {"interviewer": Callback(answer)}, "allow_tools": True, "concurrency": 1}
    calm = Mortal(GRAPH, script, children={"child.dot": CHILD})
    assert calm.live(**how) is not None
    assert calm.state.status == "completed"
    assert calm.order.count("judge#2") == 1
    for lives in range(0, calm.state.seq - 1, stride):
        shaken = Mortal(GRAPH, script, children={"child.dot": CHILD})
        assert shaken.live(lives, after=after, **how) is None, lives
        assert shaken.live(**how), lives
        assert (view(shaken.state), shaken.state.context) == (view(calm.state), calm.state.context), lives
        started, ended = shaken.count(CallStarted), shaken.count(CallEnded)
        assert ended == calm.model.calls, "a reply that was recorded is not paid for again"
        assert started - ended <= 1, "at most what was in flight"
        assert shaken.count(Decision) == calm.count(Decision)
