"""Threads of LangGraph over every store: they keep LangGraph's own contract and are found by their name alone.

They are begun once, and none is taken for one that was there before.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from typing import Any

import pytest
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.conformance.capabilities import Capability

from pipeline import LangGraphSaver
from pipeline.errors import StoreError
from pipeline.formats.langgraph.threads import Threads, homes, names_of
from pipeline.store.base import Store
from tests.journals import AT, started
from tests.stores import ids
from tests.threads import put, thread


def listed(saver: LangGraphSaver, name: str) -> list[str]:
    return [each.checkpoint["id"] for each in saver.list(thread(name))]


#: What the conformance suite asks of objects here: all of it passes there too, in five times the seconds.
CHEAP = {"get_tuple", "put_writes", "delete_thread"}


def test_langgraph_saver_passes_the_conformance_suite(store: Store) -> None:
    @checkpointer_test(name=store.url)
    async def made() -> AsyncGenerator[LangGraphSaver, None]:
        yield LangGraphSaver(store)

    cheap = CHEAP if store.url.startswith("s3:") else None
    report = asyncio.run(validate(made, capabilities=cheap))
    failures = {name: result.failures for name, result in report.results.items() if result.passed is False}
    assert not failures
    assert {name for name, result in report.results.items() if result.passed} == (
        cheap or {each.value for each in Capability}
    )
    assert cheap or report.conformance_level() == "FULL"


def blind(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on nobody looks over the runs of the store."""

    def heads(match: object = None) -> Iterator[Any]:
        raise AssertionError("all runs are looked at")

    monkeypatch.setattr(store, "heads", heads)


def test_langgraph_thread_is_found_and_begun_without_a_look_at_other_runs(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    blind(store, monkeypatch)
    saver = LangGraphSaver(store)
    assert saver.get_tuple(thread("new")) is None
    first = put(saver, "new", x=1)
    second = put(LangGraphSaver(store), "new", first, x=2)
    assert listed(LangGraphSaver(store), "new") == [second, first]
    saver.copy_thread("new", "copy")
    saver.prune(["new"])
    assert listed(LangGraphSaver(store), "new") == [second]
    saver.delete_thread("new")
    assert listed(LangGraphSaver(store), "new") == []
    assert listed(LangGraphSaver(store), "copy") == [second, first]


def test_langgraph_thread_that_was_made_anew_is_not_taken_for_the_one_before(store: Store) -> None:
    one, other = LangGraphSaver(store), LangGraphSaver(store)
    for saver in (one, other):
        first = put(saver, "t", x=1)
        second = put(saver, "t", first, x=2)
        assert listed(one, "t")[:2] == listed(other, "t")[:2] == [second, first]
    other.delete_thread("t")
    again = put(other, "t", x=1)
    new = put(other, "t", again, x=2)
    third, fourth = put(other, "t", new, x=3), put(other, "t", new, x=4)
    # As many records as the one knew, under the same name.
    assert set(listed(one, "t")) == {again, new, third, fourth}
    other.delete_thread("t")
    begun = put(other, "t", x=5)
    last = put(one, "t", begun, x=6)
    assert listed(other, "t") == listed(one, "t") == [last, begun]


@pytest.mark.parametrize("name", ["a\0b", "é\ud800", "x" * 3000, "../..//\\"], ids=["nul", "surrogate", "long", "path"])
def test_langgraph_thread_may_have_any_id_in_every_store(name: str, store: Store) -> None:
    made = put(LangGraphSaver(store), name, x=1)
    last = put(LangGraphSaver(store), name, made, x=2)
    assert listed(LangGraphSaver(store), name) == [last, made]
    assert [each.config["configurable"]["thread_id"] for each in LangGraphSaver(store).list(None)] == [name] * 2
    assert ids(store) == [names_of(name)[0]]
    LangGraphSaver(store).delete_thread(name)
    assert ids(store) == []


def between(monkeypatch: pytest.MonkeyPatch, store: Store, act: Callable[[], None]) -> None:
    """Have somebody act just before the next run is made."""
    create, waiting = store.create_named, [act]  # type: ignore[attr-defined]

    def create_named(*args: Any, **more: Any) -> Any:
        while waiting:
            waiting.pop()()
        return create(*args, **more)

    monkeypatch.setattr(store, "create_named", create_named)


def test_langgraph_thread_that_two_begin_at_once_is_one_run(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = LangGraphSaver(store), LangGraphSaver(store)
    made: list[str] = []
    between(monkeypatch, store, lambda: made.append(put(other, "t", x=1)))
    made.append(put(one, "t", x=2))
    assert set(listed(one, "t")) == set(listed(other, "t")) == set(made)
    assert ids(store) == [names_of("t")[0]]


def test_langgraph_thread_begun_and_pruned_while_another_begins_it_loses_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = LangGraphSaver(store), LangGraphSaver(store)
    made: list[str] = []

    def begin_and_prune() -> None:
        put(other, "t", x=1)
        made.append(put(other, "t", x=2))
        other.prune(["t"])

    between(monkeypatch, store, begin_and_prune)
    made.append(put(one, "t", x=3))
    assert set(listed(one, "t")) == set(listed(other, "t")) == set(made)
    assert ids(store) == [names_of("t")[1]]


class Died(BaseException):
    """A process that is gone."""


def die(*_: object) -> None:
    raise Died


def test_langgraph_thread_whose_beginner_died_before_it_looked_again_holds_what_counts(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    one, other = LangGraphSaver(store), LangGraphSaver(store)
    made: list[str] = []

    def begin_and_prune() -> None:
        put(other, "t", x=1)
        made.append(put(other, "t", x=2))
        other.prune(["t"])
        patched.setattr(Threads, "_delete", die)

    with monkeypatch.context() as patched:
        between(patched, store, begin_and_prune)
        with pytest.raises(Died):
            put(one, "t", x=3)
    # Its put never returned; what it left counts for nobody, and goes with the next write.
    assert listed(LangGraphSaver(store), "t") == listed(other, "t") == made
    assert ids(store) == sorted(names_of("t"), reverse=True)
    last = put(other, "t", made[0], x=4)
    assert ids(store) == [names_of("t")[1]]
    assert f"Run {names_of('t')[0]} had been replaced by run {names_of('t')[1]}" in caplog.text
    other.prune(["t"])
    assert listed(LangGraphSaver(store), "t") == [last]
    assert ids(store) == [names_of("t")[0]]


def test_langgraph_thread_pruned_again_and_again_changes_between_two_names(store: Store) -> None:
    saver, watching = LangGraphSaver(store), LangGraphSaver(store)
    last = put(saver, "t", x=0)
    for number in range(1, 5):
        last = put(saver, "t", last, x=number)
        saver.prune(["t"])
        assert ids(store) == [names_of("t")[number % 2]]
        assert listed(watching, "t") == [last]
    assert [generation for generation, _ in homes(store, "t")] == [5]


def test_langgraph_thread_with_the_name_of_another_run_is_refused(store: Store) -> None:
    run = names_of("t")[0]
    store.create_named(run, started(), at=AT).close()  # type: ignore[attr-defined]
    for act in (lambda: put(LangGraphSaver(store), "t", x=2), lambda: LangGraphSaver(store).get_tuple(thread("t"))):
        with pytest.raises(StoreError) as refused:
            act()
        assert (refused.value.code, refused.value.data["run"]) == ("not_of_thread", run)
