"""How two values, and two points of runs, differ."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.engine.pipeline import Pipeline
from pipeline.engine.step import Outcome, StepContext, step
from pipeline.store.memory import MemoryStore
from pipeline.store.reader import load
from pipeline.testing import FakeClock
from pipeline.travel.differences import Changes, Side, compare, difference, first

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": 2}, ["changed a"]),
        ({"a": 1}, {"b": 1}, ["removed a", "added b"]),
        ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}, 4]}, ["changed a[1].b", "added a[2]"]),
        ([1], {"a": 1}, ["changed "]),
        (1, True, ["changed "]),
        (1, 1.0, ["changed "]),
        ({"a": None}, {}, ["removed a"]),
    ],
)
def test_differences_name_place_and_kind(before: Any, after: Any, told: list[str]) -> None:
    assert [f"{change.kind} {change.place}" for change in compare(before, after).told] == told


@given(value=VALUES, other=VALUES)
def test_differences_are_none_of_equal_values_and_some_of_others(value: Any, other: Any) -> None:
    assert not compare(value, value)
    assert (first(value, other) is None) == (repr(_plain(value)) == repr(_plain(other)))


def _plain(value: Any) -> Any:
    """Key order is no difference."""
    if isinstance(value, dict):
        return {key: _plain(value[key]) for key in sorted(value)}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def test_differences_are_bounded_and_the_rest_is_counted() -> None:
    found = compare(list(range(100)), list(range(1, 101)), 7)
    assert (len(found.told), found.left_out) == (7, 93)


def test_differences_of_deep_values_need_no_recursion() -> None:
    deep: Any = 1
    for _ in range(5000):
        deep = [deep]
    assert not compare(deep, deep)


@step()
def make(ctx: StepContext) -> Outcome:
    ctx.save("book", {"pages": [ctx.params["x"]] * 3})
    long = "z" * 40_000
    items = ctx.map("item", [1, 2, 3], lambda c, i: {"v": i * c.params["x"] if i == 2 else i}, key=str)
    return Outcome(
        {"long": long, "x": ctx.params["x"], "items": len(items)}, context={"big": long, "x": ctx.params["x"]}
    )


@step()
def after(ctx: StepContext) -> dict[str, int]:
    return {"x": ctx.context["x"]}


TWO = Pipeline("two", [make, after])


def _sides(store: MemoryStore, *values: int) -> list[Side]:
    runs = [TWO.run({"x": value}, store=store, clock=FakeClock()).run_id for value in values]
    return [Side(store, load(store, run)) for run in runs]


def test_equal_runs_differ_in_nothing(store: MemoryStore) -> None:
    found = difference(*_sides(store, 1, 1))
    assert found.same
    assert found.steps == []


def test_runs_differ_in_parameters_context_outputs_artifacts_and_items(store: MemoryStore) -> None:
    found = difference(*_sides(store, 1, 2))
    assert not found.same
    assert [change.place for change in found.params.told] == ["x"]
    assert [(change.place, change.after) for change in found.context.told] == [("x", 2)]
    made, later = found.steps
    assert (made.step, later.step) == ("make", "after")
    assert [change.place for change in made.outputs.told] == ["x"]
    assert [change.place for change in made.artifacts["book"].told] == ["pages[0]", "pages[1]", "pages[2]"]
    assert made.items == {"item/2": "changed"}
    assert [(change.place, change.before, change.after) for change in made.inside["item/2"].told] == [("v", 2, 4)]


def test_a_step_that_one_side_has_not_begun_is_told_once(store: MemoryStore) -> None:
    (side,) = _sides(store, 1)
    empty = Side(store, load(store, side.state.run_id))
    empty.state.steps.clear()
    found = difference(empty, side)
    assert [(step.step, step.statuses, step.outputs) for step in found.steps] == [
        ("make", (None, "completed"), Changes([])),
        ("after", (None, "completed"), Changes([])),
    ]
