"""Laws of the engine over random small graphs: killed at any record and resumed, a run ends as if nothing had been."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.engine.pipeline import Pipeline
from pipeline.engine.result import RunResult
from pipeline.engine.step import Outcome, StepContext, StepSpec, step
from pipeline.errors import TaskRejected
from pipeline.llm.base import Message, Request
from pipeline.llm.script import ScriptedModel
from pipeline.records.fold import spent
from pipeline.records.kinds import CallEnded, CallStarted
from pipeline.records.run import RunState
from pipeline.store.memory import MemoryJournal, MemoryStore
from pipeline.store.reader import load, records
from pipeline.testing import FakeClock

MODEL = "claude-sonnet-5-5"


class Killed(BaseException):
    """Stands for the end of the process."""


class MortalStore(MemoryStore):
    """Its journals die when the n-th record is about to be written, or has just been; what was written stays."""

    def __init__(self) -> None:
        super().__init__(FakeClock())
        #: Records still to be written before death; None: nothing dies.
        self.lives: int | None = None
        self.after = False

    def create(self, *given: Any, **more: Any) -> tuple[str, MemoryJournal]:
        run, journal = super().create(*given, **more)
        return run, self._mortal(journal)

    def open(self, run: str) -> MemoryJournal:
        return self._mortal(super().open(run))

    def _mortal(self, journal: MemoryJournal) -> MemoryJournal:
        append = journal.append

        def mortal(first_seq: int, lines: Sequence[bytes], sync: bool = True) -> None:
            if self.lives is not None:
                if self.lives < len(lines):
                    # Of a write that was cut short, whole lines may stand.
                    append(first_seq, lines if self.after else lines[: self.lives], sync)
                    self.after, self.lives = False, 0
                    raise Killed
                self.lives -= len(lines)
            append(first_seq, lines, sync)

        journal.append = mortal  # type: ignore[method-assign]
        return journal


@dataclass(frozen=True)
class Shape:
    """A graph to run: names, edges, joins; which steps ask, loop, or fail the first time."""

    nodes: Sequence[str]
    edges: Sequence[Sequence[str]]
    joins: Mapping[str, str]
    asks: Mapping[str, int]
    items: Mapping[str, int]
    rounds: Mapping[str, int]
    fails: frozenset[str]


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    """Segments in a row: a single step, a diamond, a branch that is taken by its label, a loop with a counter."""
    nodes: list[str] = ["n0"]
    edges: list[list[str]] = []
    joins: dict[str, str] = {}
    rounds: dict[str, int] = {}

    def new() -> str:
        nodes.append(f"n{len(nodes)}")
        return nodes[-1]

    last = "n0"
    for kind in draw(st.lists(st.sampled_from(["step", "diamond", "branch", "loop"]), min_size=1, max_size=3)):
        if kind == "step":
            edges.append([last, after := new()])
        elif kind in ("diamond", "branch"):
            left, right, after = new(), new(), new()
            labels = (["left"], ["right"]) if kind == "branch" else ([], [])
            # The step before a branch says "left"; the other arm is never taken.
            edges += [[last, left, *labels[0]], [last, right, *labels[1]], [left, after], [right, after]]
            joins[after] = "all"
        else:
            round_, after = new(), new()
            rounds[round_] = draw(st.integers(1, 3))
            edges += [[last, round_], [round_, round_, "again"], [round_, after, "done"]]
        last = after
    asks = {node: draw(st.integers(0, 2)) for node in nodes}
    items = {node: draw(st.integers(0, 3)) for node in nodes}
    fails = frozenset(draw(st.lists(st.sampled_from(nodes), max_size=2)))
    return Shape(nodes, edges, joins, asks, items, rounds, fails)


class Bench:
    """Runs one shape on one store; says what was asked."""

    def __init__(self, shape: Shape, *, broken: bool) -> None:
        self.shape = shape
        self.store = MortalStore()
        #: Steps that still have to fail once.
        self.broken = set(shape.fails) if broken else set()
        self.model = ScriptedModel(lambda request: request.messages[0].text.upper(), model_id=MODEL, paid=True)
        steps = [self._step(node) for node in shape.nodes]
        self.pipeline = Pipeline("shape", steps, edges=shape.edges, joins=shape.joins)

    def _step(self, node: str) -> StepSpec:
        shape = self.shape
        branches = any(edge[0] == node and edge[2:] == ["left"] for edge in shape.edges)

        def ask(ctx: StepContext, text: str) -> str:
            return ctx.ask(Request(MODEL, [Message("user", text)], max_tokens=100)).text

        def body(ctx: StepContext) -> Outcome:
            texts = [ask(ctx, f"{node} asks the same") for _ in range(shape.asks[node])]
            made = ctx.map("item", range(shape.items[node]), lambda c, i: ask(c, f"{node} item {i}"), key=str)
            if node in self.broken:
                self.broken.discard(node)
                raise TaskRejected("not this time")
            count = int(ctx.context.get(node, 0)) + 1
            label = "left" if branches else "success"
            if node in shape.rounds:
                label = "again" if count < shape.rounds[node] else "done"
            seen = sorted(key for key in ctx.context)
            return Outcome({"texts": texts, "made": list(made), "seen": seen}, label, {node: count})

        return step(node)(body)

    def go(self, run: str | None, lives: int | None = None, *, after: bool = False) -> RunResult | None:
        """Start or resume; None where it was killed."""
        self.store.lives, self.store.after = lives, after
        options = {"concurrency": 1}
        try:
            if run is None:
                return self.pipeline.run(store=self.store, model=self.model, options=options, clock=FakeClock())
            return self.pipeline.resume(
                run, store=self.store, model=self.model, options=options, clock=FakeClock(), yes=True
            )
        except Killed:
            return None

    def finish(self, run: str | None) -> tuple[str, RunResult]:
        """Resume until it is completed."""
        for _ in range(len(self.shape.nodes) * 3 + 3):
            result = self.go(run)
            assert result is not None
            run = result.run_id
            if result.status == "completed":
                return run, result
            assert "not this time" in str(result.error)
        raise AssertionError("it never completes")

    def run_id(self) -> str | None:
        return next((head.run_id for head in self.store.heads()), None)


def view(state: RunState) -> dict[str, Any]:
    """What a run made: every visit, what it read, gave and set."""
    return {
        path: (run.status, dict(run.outputs), dict(run.context), run.outcome, tuple(run.edges))
        for path, run in state.steps.items()
    }


def calls(store: MemoryStore, run: str) -> tuple[int, int]:
    """Calls started and calls ended."""
    facts = [record.fact for record in records(store, run)]
    return sum(isinstance(fact, CallStarted) for fact in facts), sum(isinstance(fact, CallEnded) for fact in facts)


@settings(max_examples=30)
@given(shape=shapes(), first=st.integers(1, 60), second=st.integers(1, 60), after=st.booleans())
def test_run_killed_twice_and_resumed_equals_the_undisturbed_one(
    shape: Shape, first: int, second: int, after: bool
) -> None:
    calm = Bench(shape, broken=False)
    calm_run, calm_result = calm.finish(None)
    shaken = Bench(shape, broken=False)
    for lives in (first, second):
        shaken.go(shaken.run_id(), lives, after=after)
    run, result = shaken.finish(shaken.run_id())
    assert result.outputs == calm_result.outputs
    assert view(load(shaken.store, run)) == view(load(calm.store, calm_run))
    started, ended = calls(shaken.store, run)
    assert (ended, started - ended) == (calm.model.calls, len(load(shaken.store, run).open_calls))
    assert started - ended <= 2, "one in flight at each death"
    assert shaken.model.calls <= started


@settings(max_examples=20)
@given(shape=shapes(), death=st.integers(1, 60), after=st.booleans())
def test_run_with_failing_steps_killed_and_resumed_makes_what_an_undisturbed_one_makes(
    shape: Shape, death: int, after: bool
) -> None:
    calm, shaken = Bench(shape, broken=False), Bench(shape, broken=True)
    calm_run, _ = calm.finish(None)
    shaken.go(None, death, after=after)
    run, _ = shaken.finish(shaken.run_id())
    assert view(load(shaken.store, run)) == view(load(calm.store, calm_run))
    # Tasks that were finished are kept when their step fails; only what the step itself asked is asked anew.
    again = sum(shape.asks[node] for node in shape.fails)
    assert calm.model.calls <= calls(shaken.store, run)[1] <= calm.model.calls + again


@settings(max_examples=20)
@given(shape=shapes(), deaths=st.lists(st.integers(1, 40), max_size=3), broken=st.booleans())
def test_total_is_the_sum_of_all_charges_whatever_happened(shape: Shape, deaths: list[int], broken: bool) -> None:
    bench = Bench(shape, broken=broken)
    for lives in deaths:
        bench.go(bench.run_id(), lives)
    run, result = bench.finish(bench.run_id())
    ends = [record.fact for record in records(bench.store, run) if isinstance(record.fact, CallEnded)]
    assert (
        sum((Decimal(end.charge["low"]) for end in ends), Decimal(0))
        == result.spent.usd
        == spent(load(bench.store, run)).usd
    )
    open_calls = load(bench.store, run).open_calls.values()
    assert result.spent.high == sum((call.worst or Decimal(0) for call in open_calls), Decimal(0))
    assert result.spent.calls == calls(bench.store, run)[0]
    per_step = load(bench.store, run).spend.values()
    assert sum((amount.usd for amount in per_step), Decimal(0)) == result.spent.usd
