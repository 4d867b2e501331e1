"""Options given from Python: misspelt ones are refused, and without a word there is the default ceiling."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pipeline import ControlledExecutor, run_dot
from pipeline.cost.budget import DEFAULT_CEILING_USD
from pipeline.engine.pipeline import Pipeline
from pipeline.engine.step import StepContext
from pipeline.errors import BudgetExceeded, ConfigError
from pipeline.llm.base import Message, Request
from pipeline.llm.script import ScriptedModel
from pipeline.store.memory import MemoryStore
from pipeline.store.reader import load
from pipeline.testing import FakeClock

MODEL = "claude-sonnet-5-5"
GRAPH = "digraph g { start [shape=Mdiamond]; end [shape=Msquare]; start -> a -> end; a [prompt=hello] }"


def go(ctx: StepContext) -> Mapping[str, Any]:
    """Three questions of $0.15 and more; what the step was told beside."""
    texts = [ctx.ask(Request(MODEL, [Message("user", str(n))], max_tokens=15_000)).text for n in range(3)]
    return {"texts": texts, "seen": ctx.options.get("words")}


def model() -> ScriptedModel:
    return ScriptedModel(lambda request: "fine", model_id=MODEL, paid=True)


MISSPELT = {
    "max_cost": "max_cost_usd", "maxCostUsd": "max_cost_usd", "max_costs_usd": "max_cost_usd", "cost": "max_cost_usd",
    "ceiling": "max_cost_usd", "max_budget": "max_cost_usd", "spend_limit": "max_cost_usd",
    "MAX_COST_USD": "max_cost_usd", "limit": "max_cost_usd", "max_price": "max_cost_usd", "cap": "max_cost_usd",
    "daily_budget": "daily_budget_usd", "usd_per_day": "daily_budget_usd", "concurency": "concurrency",
    "max_concurrency": "concurrency", "untill": "until", "batched": "batch", "budgets": "budget",
}  # fmt: skip


def test_options_that_are_misspelt_are_refused_with_the_nearest(store: MemoryStore) -> None:
    run = Pipeline("own", [go]).run(store=store, model=model(), options={"max_cost_usd": "0.1"}).run_id
    begin: list[Callable[[dict[str, Any]], object]] = [
        lambda options: Pipeline("own", [go]).run(store=store, model=model(), options=options),
        lambda options: Pipeline("own", [go]).resume(run, store=store, model=model(), options=options),
    ]
    for name, near in MISSPELT.items():
        for start in begin:
            with pytest.raises(ConfigError) as caught:
                start({name: 1})
            assert (caught.value.data["option"], caught.value.data["nearest"]) == (name, near)
    assert [head.run_id for head in store.heads()] == [run]


def test_options_of_a_pipelines_own_are_passed_on(store: MemoryStore) -> None:
    options = {"words": ["two"], "until_here": 1, "max_words": 3, "cost_table": "x"}
    done = Pipeline("own", [go], options=["cost_table"]).run(store=store, model=model(), options=options)
    assert done.outputs["go"]["seen"] == ["two"]


@pytest.mark.parametrize(
    "options",
    [
        {"max_cost_usd": "none"}, {"max_cost_usd": -1}, {"max_cost_usd": "-0"}, {"max_cost_usd": float("nan")},
        {"max_cost_usd": "1e999999"}, {"max_cost_usd": True}, {"max_cost_usd": [1]}, {"daily_budget_usd": "$1"},
        {"budget": "best"}, {"concurrency": 0}, {"concurrency": "many"}, {"concurrency": True}, {"until": "og"},
    ],
)  # fmt: skip
def test_options_with_values_that_cannot_be_are_refused_by_name(store: MemoryStore, options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=f"'{next(iter(options))}'"):
        Pipeline("own", [go]).run(store=store, model=model(), options=options)
    assert not list(store.heads())


def test_ceiling_from_python_is_the_command_lines_unless_it_is_none(store: MemoryStore) -> None:
    pipeline = Pipeline("own", [go])
    told = {}
    for given in ({}, {"max_cost_usd": None}, {"max_cost_usd": Decimal("2.50")}, {"max_cost_usd": 1}):
        done = pipeline.run(store=store, model=model(), options=given)
        told[str(given)] = load(store, done.run_id).execution["max_cost_usd"]
    assert list(told.values()) == [str(DEFAULT_CEILING_USD), None, "2.50", "1"]
    unpriced = ScriptedModel(lambda request: "fine", model_id="no-price-1", paid=True)
    with pytest.raises(BudgetExceeded):
        pipeline.run(store=store, model=unpriced)


def test_run_keeps_its_ceiling_where_a_resume_names_none(store: MemoryStore) -> None:
    pipeline = Pipeline("own", [go])
    first = pipeline.run(store=store, model=model(), options={"max_cost_usd": "0.1"})
    again = pipeline.resume(first.run_id, store=store, model=model())
    assert [one.detail for one in (first, again)] == ["paused_budget"] * 2
    assert pipeline.resume(first.run_id, store=store, model=model(), options={"max_cost_usd": None}).error is None


def test_other_front_doors_have_the_same_ceiling(tmp_path: Path) -> None:
    file, store = tmp_path / "graph.dot", MemoryStore(FakeClock())
    file.write_text(GRAPH)
    assert load(store, run_dot(file, store=store, model=model()).run_id).execution["max_cost_usd"] == "50"
    poor = run_dot(file, store=store, model=model(), max_cost_usd="0.001")
    assert (poor.detail, run_dot(file, resume=poor.run_id, store=store, model=model()).detail) == ("paused_budget",) * 2
    assert run_dot(file, resume=poor.run_id, store=store, model=model(), max_cost_usd=None).status == "completed"
    with pytest.raises(ConfigError, match="max_cost_usd"):
        run_dot(file, store=store, model=model(), max_cost_usd="much")
    with pytest.raises(ConfigError) as caught:
        ControlledExecutor(store=store, config={"maxCost": 1})
    assert caught.value.data["nearest"] == "max_cost_usd"
    assert ControlledExecutor(store=store).config["max_cost_usd"] == "50"
