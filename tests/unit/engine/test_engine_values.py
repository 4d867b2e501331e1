"""What work was made from and what it made: whole after a resume, made again where its inputs changed, else kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import pytest

from pipeline import Outcome, Pipeline, RunResult, ScriptedModel, StepContext, step
from pipeline.errors import SettingsConflict, TaskRejected
from pipeline.store.memory import MemoryStore
from pipeline.store.reader import load
from pipeline.testing import FakeClock
from tests.unit.engine.saying import ask, engine, go


@pytest.mark.parametrize("length", [0, 1, 1023, 1024, 1025, 32_766, 32_767, 70_000])
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
    assert result.outputs == {"make": {"values": wanted, "text": text}, "use": {"same": True}}
    assert pipeline.resume(run, store=store).outputs == result.outputs


@pytest.mark.parametrize("size", [1, 20_000])
def test_what_a_map_gives_is_an_output_as_it_stands(store: MemoryStore, size: int) -> None:
    @step()
    def make(ctx: StepContext) -> Mapping[str, Any]:
        made = ctx.map("item", list("abc"), lambda c, item: item * size, key=str)
        odd = ctx.map("odd", list("abc"), lambda c, item: {"b": {1}}.get(item, item), key=str, skip_failed=True)
        nested = ctx.map(
            "outer", ["x", "y"], lambda c, item: c.map("inner", ["p", "q"], lambda c, i: item + i, key=str), key=str
        )
        return {"made": made, "part": made[1:], "odd": odd, "nested": nested, "params": ctx.params}

    outputs = Pipeline("maps", [make]).run({"n": 1}, store=store).outputs["make"]
    assert outputs["made"] == [letter * size for letter in "abc"]
    assert (outputs["part"], outputs["params"]) == (outputs["made"][1:], {"n": 1})
    assert outputs["nested"] == [["xp", "xq"], ["yp", "yq"]]
    assert [outputs["odd"][0], outputs["odd"][1]["key"], outputs["odd"][2]] == ["a", "odd/b", "c"]


def test_value_that_cannot_be_kept_is_told_before_the_rest_is_asked_for(store: MemoryStore) -> None:
    def asked(items: Sequence[Any], keep: Callable[[str], Any], **options: Any) -> tuple[str, int]:
        model = ScriptedModel(lambda request: "7")
        body = step("go")(
            lambda ctx: {"v": ctx.map("i", items, lambda c, i: keep(c.ask(ask(f"q {i}")).text), key=str, **options)}
        )
        result = Pipeline("odd", [body]).run(store=store, model=model, options={"concurrency": 1})
        return str(result.error), model.calls

    error, calls = asked([1, 2, Decimal(3), 4], str)
    assert ("i/3 item is a Decimal" in error, calls) == (True, 0), "an item is looked at before any is asked about"
    error, calls = asked(range(9), Decimal)
    assert ("i/0 value is a Decimal" in error, calls) == (True, 1)
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
    """A pipeline of steps that read different things, with pins and settings to change."""

    def __init__(self, store: MemoryStore) -> None:
        self.ran: list[str] = []
        self._resumed = False
        self.engine = engine(Pipeline("bench", [
            self._step("rules", lambda ctx: {"v": ctx.pin("rules")}),
            self._step("model", lambda ctx: {"v": ctx.settings["model"]}),
            self._step("items", self._items),
            self._step("seen", lambda ctx: {"keys": sorted(ctx.place.seen)}),
            self._step("stop", lambda ctx: {} if self._resumed else ctx.stop("here")),
            self._step("last", lambda ctx: {"v": ctx.outputs["model"]["v"] * 2}),
        ]), store)  # fmt: skip
        self.run = self.engine.start({}, identity={"model": "a"}, pins={"rules": "old", "other": 1}).run_id

    def _step(self, name: str, body: Any) -> Any:
        def run(ctx: StepContext) -> Any:
            self.ran.append(name)
            return body(ctx)

        return step(name)(run)

    def _items(self, ctx: StepContext) -> Mapping[str, Any]:
        def body(ctx: StepContext, item: int) -> Any:
            self.ran.append(f"item {item}")
            return [item, ctx.pin("rules") if item == 1 else None]

        return {"all": list(ctx.map("item", [0, 1], body, key=str))}

    def resume(self, **changes: Any) -> RunResult:
        self.ran.clear()
        self._resumed = True
        return self.engine.resume(self.run, accept=lambda stale: True, **changes)


def test_changed_input_voids_what_was_made_from_it_and_nothing_else(store: MemoryStore) -> None:
    bench = Bench(store)
    assert bench.ran == ["rules", "model", "items", "item 0", "item 1", "seen", "stop"]
    result = bench.resume(pins={"rules": "new"})
    assert result.outputs["rules"] == {"v": "new"}
    assert result.outputs["items"] == {"all": [[0, None], [1, "new"]]}
    # Item 0 never read the rules; what read the whole context is made again with what stands before it.
    assert bench.ran == ["rules", "items", "item 1", "seen", "stop", "last"]
    result = bench.resume(identity={"model": "b"})
    assert (bench.ran, result.outputs["last"]) == (["model", "seen", "last"], {"v": "bb"})
    assert (bench.resume().worked, bench.ran) == (False, [])


def test_changed_input_that_nothing_finished_was_made_from_voids_nothing(store: MemoryStore) -> None:
    bench = Bench(store)
    bench.resume(pins={"other": 2})
    assert bench.ran == ["stop", "last"]


def test_changed_setting_is_refused_where_nobody_accepts_and_the_run_stays_as_it_was(store: MemoryStore) -> None:
    bench = Bench(store)
    with pytest.raises(SettingsConflict) as caught:
        bench.engine.resume(bench.run, identity={"model": "b"})
    assert caught.value.data["steps"] == {"model#1": "settings.model"}
    assert [head.owned for head in store.heads()] == [False]
    assert bench.resume().outputs["model"] == {"v": "a"}
    assert bench.ran == ["stop", "last"]


def test_item_that_changed_under_its_key_and_a_raised_version_are_made_again(store: MemoryStore) -> None:
    items, version, ran = {"a": 1, "b": 2}, 1, list[tuple[str, int]]()

    def body(ctx: StepContext, item: tuple[str, int]) -> int:
        ran.append((item[0], item[1]))
        return item[1]

    def go_on(ctx: StepContext) -> Any:
        made = list(ctx.map("item", list(items.items()), body, key=lambda item: item[0], version=version))
        return {"all": made} if version > 1 else ctx.stop("here")

    what = Pipeline("p", [step("go")(go_on)])
    run = what.run(store=store).run_id
    items["b"] = 3
    what.resume(run, store=store)
    assert sorted(ran) == [("a", 1), ("b", 2), ("b", 3)]
    version = 2
    assert what.resume(run, store=store).outputs["go"] == {"all": [1, 3]}
    assert sorted(ran[3:]) == [("a", 1), ("b", 3)]


def test_loop_whose_visits_read_each_other_is_kept(store: MemoryStore) -> None:
    fails, ran = [True], list[int]()

    @step()
    def draft(ctx: StepContext) -> dict[str, Any]:
        ran.append(ctx.visit)
        return {"n": ctx.outputs["judge"]["n"] + 1 if "judge" in ctx.outputs else 1}

    @step()
    def judge(ctx: StepContext) -> Outcome:
        n = ctx.outputs["draft"]["n"]
        return Outcome({"n": n}, label="again" if n < 3 else "good")

    @step()
    def done(ctx: StepContext) -> dict[str, Any]:
        if fails.pop() if fails else False:
            raise ValueError("not yet")
        return {"n": ctx.outputs["judge"]["n"]}

    edges = [("draft", "judge"), ("judge", "draft", "again"), ("judge", "done", "good")]
    what = Pipeline("round", [draft, judge, done], edges=edges)
    result = what.resume(what.run(store=store).run_id, store=store)
    assert (result.status, result.outputs["done"], ran) == ("completed", {"n": 3}, [1, 2, 3])


@pytest.mark.parametrize("size", [3, 5000])
def test_one_task_is_made_again_with_its_remark_and_former_value_and_what_follows_is_too(
    store: MemoryStore, size: int
) -> None:
    ran, fails = list[Any](), list[bool]()

    def body(ctx: StepContext, item: int) -> Any:
        ran.append((item, ctx.remark))
        if fails and ctx.remark:
            fails.pop()
            raise TaskRejected("not yet")
        return {"text": "x" * size, "remark": ctx.remark[0] if ctx.remark else None}

    @step("make")
    def make(ctx: StepContext) -> Any:
        return {"remarks": [row["remark"] for row in ctx.map("items", range(3), body, key=str)]}

    what = Pipeline("redo", [make, step("after")(lambda ctx: {"saw": ctx.outputs["make"]["remarks"]})])
    run = what.run(store=store).run_id
    ran.clear()
    fails.append(True)
    assert go(what, store, run, redo={("make#1", "items/1"): "shorter"}).status == "failed"
    # A remark outlives a run that ends before its task does.
    result = go(what, store, run)
    assert ran == [(1, ("shorter", {"text": "x" * size, "remark": None}))] * 2
    assert (result.status, result.outputs["after"]) == ("completed", {"saw": [None, "shorter", None]})
    assert not load(store, run).remarks
    assert not go(what, store, run).worked


def test_active_seconds_count_on_where_a_step_is_made_again(store: MemoryStore) -> None:
    clock = FakeClock()

    def slow(ctx: StepContext) -> Any:
        clock.advance(60)
        return {}

    what = Pipeline("slow", [step("make")(slow)])
    run = go(what, store, clock=clock).run_id
    for seconds in (120, 180):
        go(what, store, run, clock=clock, from_step="make")
        assert load(store, run).steps["make#1"].seconds == seconds
