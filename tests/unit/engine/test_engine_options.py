"""Options given from Python: misspelt ones are refused, and without a word there is the default ceiling."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pipeline import ControlledExecutor, Pipeline, ScriptedModel, StepContext, run_dot
from pipeline.cost.admission import DEFAULT_CEILING_USD
from pipeline.errors import BudgetExceeded, ConfigError
from pipeline.store.memory import MemoryStore
from pipeline.store.reader import load
from tests.unit.engine.saying import MODEL, ask, fine

GRAPH = "digraph g { start [shape=Mdiamond]; end [shape=Msquare]; start -> a -> end; a [prompt=hello] }"


def go(ctx: StepContext) -> Mapping[str, Any]:
    """Three questions of $0.15 and more; what the step was told beside."""
    texts = [ctx.ask(ask(str(n), MODEL, max_tokens=15_000)).text for n in range(3)]
    return {"texts": texts, "seen": ctx.options.get("words")}


OWN = Pipeline("own", [go])
MISSPELT = {
    "max_cost": "max_cost_usd", "maxCostUsd": "max_cost_usd", "max_costs_usd": "max_cost_usd", "cost": "max_cost_usd",
    "ceiling": "max_cost_usd", "max_budget": "max_cost_usd", "spend_limit": "max_cost_usd", "cap": "max_cost_usd",
    "MAX_COST_USD": "max_cost_usd", "limit": "max_cost_usd", "max_price": "max_cost_usd", "untill": "until",
    "daily_budget": "daily_budget_usd", "usd_per_day": "daily_budget_usd", "concurency": "concurrency",
    "max_concurrency": "concurrency", "batched": "batch", "budgets": "budget",
}  # fmt: skip


def test_options_that_are_misspelt_are_refused_with_the_nearest_and_those_of_ones_own_passed_on(
    store: MemoryStore,
) -> None:
    run = OWN.run(store=store, model=fine(), options={"max_cost_usd": "0.1"}).run_id
    for name, near in MISSPELT.items():
        more: Any = {"store": store, "model": fine(), "options": {name: 1}}
        for start in (OWN.run, partial(OWN.resume, run)):
            with pytest.raises(ConfigError) as caught:
                start(**more)
            assert (caught.value.data["option"], caught.value.data["nearest"]) == (name, near)
    assert [head.run_id for head in store.heads()] == [run]
    options = {"words": ["two"], "until_here": 1, "max_words": 3, "cost_table": "x"}
    done = Pipeline("own", [go], options=["cost_table"]).run(store=store, model=fine(), options=options)
    assert done.outputs["go"]["seen"] == ["two"]


@pytest.mark.parametrize(
    "options",
    [
        {"max_cost_usd": "none"}, {"max_cost_usd": -1}, {"max_cost_usd": "-0"}, {"max_cost_usd": float("nan")},
        {"max_cost_usd": "1e999999"}, {"max_cost_usd": True}, {"max_cost_usd": [1]}, {"daily_budget_usd": "$1"},
        {"budget": "best"}, {"concurrency": 0}, {"concurrency": "many"}, {"concurrency": True}, {"until": "og"},
        {"labels": 5},
    ],
)  # fmt: skip
def test_options_with_values_that_cannot_be_are_refused_by_name(store: MemoryStore, options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=f"'{next(iter(options))}'"):
        OWN.run(store=store, model=fine(), options=options)
    assert not list(store.heads())


def test_ceiling_from_python_is_the_command_lines_unless_it_is_none_and_is_kept_by_a_resume(store: MemoryStore) -> None:
    told = []
    for given in ({}, {"max_cost_usd": None}, {"max_cost_usd": Decimal("2.50")}, {"max_cost_usd": 1}):
        done = OWN.run(store=store, model=fine(), options=given)
        told.append(load(store, done.run_id).execution["max_cost_usd"])
    assert told == [str(DEFAULT_CEILING_USD), None, "2.50", "1"]
    with pytest.raises(BudgetExceeded):
        OWN.run(store=store, model=fine("no-price-1"))
    first = OWN.run(store=store, model=fine(), options={"max_cost_usd": "0.1"})
    again = OWN.resume(first.run_id, store=store, model=fine())
    assert [one.detail for one in (first, again)] == ["paused_budget"] * 2
    assert OWN.resume(first.run_id, store=store, model=fine(), options={"max_cost_usd": None}).error is None


def test_other_front_doors_have_the_same_ceiling(tmp_path: Path, store: MemoryStore) -> None:
    file = tmp_path / "graph.dot"
    file.write_text(GRAPH)
    assert load(store, run_dot(file, store=store, model=fine()).run_id).execution["max_cost_usd"] == "50"
    poor = run_dot(file, store=store, model=fine(), max_cost_usd="0.001")
    assert (poor.detail, run_dot(file, resume=poor.run_id, store=store, model=fine()).detail) == ("paused_budget",) * 2
    assert run_dot(file, resume=poor.run_id, store=store, model=fine(), max_cost_usd=None).status == "completed"
    for start in (
        lambda: run_dot(file, store=store, model=fine(), max_cost_usd="much"),
        lambda: ControlledExecutor(store=store, config={"maxCost": 1}),
    ):
        with pytest.raises(ConfigError):
            start()
    assert ControlledExecutor(store=store).config["max_cost_usd"] == "50"


def test_worst_cases_by_a_count_are_refused_where_the_model_counts_no_tokens(store: MemoryStore) -> None:
    pipeline, options = Pipeline("p", [idle]), {"budget": "estimate"}
    with pytest.raises(ConfigError, check=lambda error: error.code == "counting_unsupported"):
        pipeline.run(store=store, model=ScriptedModel(paid=True, model_id=MODEL), options=options)
    assert pipeline.run(store=store, model=ScriptedModel(), options=options).status == "completed"


def idle(ctx: StepContext) -> Mapping[str, Any]:
    """Nothing that costs."""
    return {}
