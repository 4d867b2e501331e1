"""Laws of DOT runs over random graphs: killed at any record and resumed, a run ends as if nothing had been."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.cost.prices import PriceBook
from pipeline.dot.parser import parse
from pipeline.engine.engine import Engine
from pipeline.engine.events import Emitter
from pipeline.engine.result import RunResult
from pipeline.engine.setup import Setup
from pipeline.engine.step import StepContext
from pipeline.formats.attractor.compilation import compile_graph
from pipeline.formats.attractor.handlers.fan import fan_in
from pipeline.formats.attractor.handlers.registry import Handler, Registry
from pipeline.formats.attractor.handlers.standard import conditional
from pipeline.formats.attractor.outcome import NodeOutcome
from pipeline.llm.base import Message, Request
from pipeline.llm.script import ScriptedModel
from pipeline.records.kinds import CallEnded, CallStarted
from pipeline.records.run import RunState
from pipeline.store.reader import load, records
from pipeline.testing import FakeClock
from tests.unit.engine.test_engine_laws import MODEL, Killed, MortalStore

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


class Bench:
    """Runs one drawing on one store; says what was asked."""

    def __init__(self, drawing: Drawing) -> None:
        self.drawing = drawing
        self.store = MortalStore()
        self.model = ScriptedModel(lambda request: request.messages[0].text.upper(), model_id=MODEL, paid=True)
        text = "digraph g {\n" + "\n".join(drawing.lines) + "\n}"
        made = Registry([Handler("conditional", conditional), Handler("parallel.fan_in", fan_in)])
        for kind in ("start", "exit", "codergen", "parallel"):
            made.register(kind, self._act)
        self.definition = compile_graph(parse(text), made)

    def _act(self, ctx: StepContext) -> NodeOutcome:
        node = ctx.place.node.id
        said = [
            ctx.ask(Request(MODEL, [Message("user", f"{ctx.path} asks {number}")], max_tokens=50)).text
            for number in range(self.drawing.asks.get(node, 0))
        ]
        words = self.drawing.words.get(node, ["success"])
        word = words[min(ctx.visit, len(words)) - 1]
        if word == "raise" or (word == "attempt" and ctx.attempt == 1):
            raise ValueError("no luck")
        seen = {key: ctx.context[key] for key in ctx.context}
        return NodeOutcome(
            word,
            context_updates={node: int(seen.get(node, 0)) + 1},
            outputs={"said": said, "seen": dict(sorted(seen.items()))},
            failure_reason=f"{node} said no" if word == "fail" else "",
        )

    def go(self, run: str | None, lives: int | None = None, *, after: bool = False) -> RunResult | None:
        """Start or resume; None where it was killed."""
        self.store.lives, self.store.after = lives, after
        clock = FakeClock()
        setup = Setup(self.store, clock, Emitter(clock), {"concurrency": 2}, self.model, yes=True)
        setup.info, setup.prices = self.model.check(), PriceBook()
        engine = Engine(self.definition, setup)
        try:
            return engine.resume(run) if run else engine.start({}, identity={"model": MODEL}, pins={})
        except Killed:
            return None

    def run_id(self) -> str | None:
        return next((head.run_id for head in self.store.heads()), None)

    @property
    def state(self) -> RunState:
        return load(self.store, str(self.run_id()))


def view(state: RunState) -> Mapping[str, Any]:
    """What a run made: every visit, where it came from, what it saw, gave and set, where it led."""
    return {
        path: (run.status, run.outcome, dict(run.outputs), dict(run.context), tuple(run.edges), run.reason,
               sorted(map(tuple, run.consumed)), run.attempt)
        for path, run in state.steps.items()
    }  # fmt: skip


def calls(bench: Bench) -> tuple[int, int]:
    """Calls started and calls ended."""
    facts = [record.fact for record in records(bench.store, str(bench.run_id()))]
    return sum(isinstance(fact, CallStarted) for fact in facts), sum(isinstance(fact, CallEnded) for fact in facts)


@settings(max_examples=40)
@given(drawing=drawings(), first=st.integers(1, 150), second=st.integers(1, 150), after=st.booleans())
def test_dot_run_killed_twice_and_resumed_equals_the_undisturbed_one(
    drawing: Drawing, first: int, second: int, after: bool
) -> None:
    calm, shaken = Bench(drawing), Bench(drawing)
    calm_result = calm.go(None)
    assert calm_result is not None
    for lives in (first, second):
        shaken.go(shaken.run_id(), lives, after=after)
    result = shaken.go(shaken.run_id())
    assert result is not None
    assert (result.status, bool(result.error)) == (calm_result.status, bool(calm_result.error))
    if calm_result.status != "completed":
        # A resume tries failed visits again: the same ones fail, at a later attempt.
        assert set(shaken.state.failed_paths) == set(calm.state.failed_paths)
        return
    assert view(shaken.state) == view(calm.state)
    started, ended = calls(shaken)
    assert (ended, started - ended) == (calm.model.calls, len(shaken.state.open_calls))
    assert started - ended <= 4, "two in flight at each death"


@settings(max_examples=25)
@given(drawing=drawings())
def test_dot_run_always_ends_and_every_visit_is_accounted_for(drawing: Drawing) -> None:
    bench = Bench(drawing)
    result = bench.go(None)
    assert result is not None
    assert result.status in ("completed", "failed")
    state = bench.state
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
