"""What work was made from and what it made: whole after a resume, made again where its inputs changed, else kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import pytest

from pipeline.clock import SystemClock
from pipeline.engine.engine import Engine
from pipeline.engine.events import Emitter
from pipeline.engine.pipeline import Pipeline
from pipeline.engine.result import RunResult
from pipeline.engine.setup import Setup
from pipeline.engine.step import Outcome, StepContext, StepSpec, step
from pipeline.errors import SettingsConflict
from pipeline.llm.script import ScriptedModel
from pipeline.store.memory import MemoryStore
from tests.unit.engine.saying import ask


@pytest.mark.parametrize("length", [0, 1, 1023, 1024, 1025, 32_000, 32_766, 32_767, 70_000])
def test_values_of_any_length_are_whole_after_a_resume(store: MemoryStore, length: int) -> None:
    text = "\ud800\0é" + "x" * length
    wanted = [{"text": item + text, "list": [1, {"a": None}]} for item in ("a", "b")]
    ran: list[str] = []

    @step()
    def make(ctx: StepContext) -> Mapping[str, Any]:
        def body(ctx: StepContext, item: str) -> Mapping[str, Any]:
            ran.append(item)
            return {"text": item + text, "list": [1, {"a": None}]}

        values = list(ctx.map("item", ["a", "b"], body, key=str))
        if len(ran) == 2:
            ran.append("stop")
            ctx.stop("in the middle")
        return {"values": values, "text": text}

    use = step("use")(lambda ctx: {"same": ctx.outputs["make"]["values"] == wanted})
    pipeline = Pipeline("long", [make, use])
    run = pipeline.run(store=store).run_id
    result = pipeline.resume(run, store=store)
    assert sorted(ran) == ["a", "b", "stop"]
    assert result.outputs["use"] == {"same": True}
    assert result.outputs["make"] == {"values": wanted, "text": text}
    assert pipeline.resume(run, store=store).outputs == result.outputs


@pytest.mark.parametrize("size", [1, 20_000])
def test_what_a_map_gives_is_an_output_as_it_stands(store: MemoryStore, size: int) -> None:
    @step()
    def make(ctx: StepContext) -> Mapping[str, Any]:
        made = ctx.map("item", "abc", lambda c, item: item * size, key=str)
        odd = ctx.map("odd", "abc", lambda c, item: {"b": {1}}.get(item, item), key=str, skip_failed=True)
        nested = ctx.map("outer", "xy", lambda c, item: c.map("inner", "pq", lambda c, i: item + i, key=str), key=str)
        return {"made": made, "part": made[1:], "odd": odd, "nested": nested, "params": ctx.params}

    result = Pipeline("maps", [make]).run({"n": 1}, store=store)
    assert result.status == "completed"
    outputs = result.outputs["make"]
    assert outputs["made"] == [letter * size for letter in "abc"]
    assert (outputs["part"], outputs["params"]) == (outputs["made"][1:], {"n": 1})
    assert outputs["nested"] == [["xp", "xq"], ["yp", "yq"]]
    assert [outputs["odd"][0], outputs["odd"][1]["key"], outputs["odd"][2]] == ["a", "odd/b", "c"]


def test_value_that_cannot_be_kept_is_told_before_the_rest_is_asked_for(store: MemoryStore) -> None:
    def asked(items: Sequence[Any], keep: Callable[[str], Any], **options: Any) -> tuple[RunResult, int]:
        model = ScriptedModel(lambda request: "7")
        body = step("go")(
            lambda ctx: {"v": ctx.map("i", items, lambda c, i: keep(c.ask(ask(f"q {i}")).text), key=str, **options)}
        )
        result = Pipeline("odd", [body]).run(store=store, model=model, options={"concurrency": 1})
        return result, model.calls

    result, calls = asked([1, 2, Decimal(3), 4], str)
    assert (result.status, calls) == ("failed", 0), "an item is looked at before any is asked about"
    assert "i/3 item is a Decimal" in str(result.error)
    result, calls = asked(range(9), Decimal)
    assert (result.status, calls) == ("failed", 1)
    assert "i/0 value is a Decimal" in str(result.error)
    assert result.error is not None
    assert "str(value)" in result.error.hint
    assert asked(range(9), Decimal, skip_failed=True)[1] == 9


def test_load_gives_the_artifact_of_the_newest_completed_visit(store: MemoryStore) -> None:
    @step()
    def draft(ctx: StepContext) -> Outcome:
        number = ctx.context.get("number", 0) + 1
        ctx.save("draft", {"number": number})
        return Outcome({}, "again" if number < 3 else "done", {"number": number})

    use = step("use")(lambda ctx: ctx.load("draft"))
    edges = [("draft", "draft", "again"), ("draft", "use", "done")]
    assert Pipeline("drafts", [draft, use], edges=edges).run(store=store).outputs["use"] == {"number": 3}


class Bench:
    """A pipeline of three steps that read different things, with pins and settings to change."""

    def __init__(self, store: MemoryStore) -> None:
        self.ran: list[str] = []
        self._store = store
        steps = [
            self._step("rules", lambda ctx: {"v": ctx.pin("rules")}),
            self._step("model", lambda ctx: {"v": ctx.settings["model"]}),
            self._step("items", self._items),
            self._step("stop", lambda ctx: {} if "resumed" in self.ran else ctx.stop("here")),
        ]
        definition = Pipeline("bench", steps).definition
        self.engine = Engine(definition, Setup(store, SystemClock(), Emitter(SystemClock())))

    def _step(self, name: str, body: Any) -> StepSpec:
        def run(ctx: StepContext) -> Any:
            self.ran.append(name)
            return body(ctx)

        return step(name)(run)

    def _items(self, ctx: StepContext) -> Mapping[str, Any]:
        def body(ctx: StepContext, item: int) -> Any:
            self.ran.append(f"item {item}")
            return [item, ctx.pin("rules") if item == 1 else None]

        return {"all": list(ctx.map("item", [0, 1], body, key=str))}

    def start(self) -> str:
        pins = {"rules": "old", "other": 1}
        return self.engine.start({}, identity={"model": "a"}, pins=pins).run_id

    def resume(self, run: str, **changes: Any) -> RunResult:
        self.ran.append("resumed")
        return self.engine.resume(run, accept=lambda stale: True, **changes)

    @property
    def again(self) -> list[str]:
        return self.ran[self.ran.index("resumed") + 1 :]


def test_changed_input_voids_what_was_made_from_it_and_nothing_else(store: MemoryStore) -> None:
    bench = Bench(store)
    run = bench.start()
    assert bench.ran == ["rules", "model", "items", "item 0", "item 1", "stop"]
    result = bench.resume(run, pins={"rules": "new"})
    assert result.outputs["rules"] == {"v": "new"}
    assert result.outputs["items"] == {"all": [[0, None], [1, "new"]]}
    assert "item 0" not in bench.again, "it never read the rules"
    assert {"rules", "items", "item 1"} <= set(bench.again)


def test_changed_input_that_nothing_finished_was_made_from_voids_nothing(store: MemoryStore) -> None:
    bench = Bench(store)
    bench.resume(bench.start(), pins={"other": 2})
    assert bench.again == ["stop"]


def test_changed_setting_is_refused_where_nobody_accepts_and_the_run_stays_as_it_was(store: MemoryStore) -> None:
    bench = Bench(store)
    run = bench.start()
    with pytest.raises(SettingsConflict, match=r"settings\.model"):
        bench.engine.resume(run, identity={"model": "b"})
    assert [head.owned for head in store.heads()] == [False]
    result = bench.resume(run)
    assert result.outputs["model"] == {"v": "a"}
    assert bench.again == ["stop"]
