"""Layered runs: events, settings, paid calls, effects, forks; and that a run cut anywhere ends the same."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline import ControlledExecutor, LayerCheckpoints, fork_run
from pipeline.clock import SystemClock
from pipeline.errors import ConfigError, GraphError, RunNotFound, SecretRefused, SettingsConflict
from pipeline.formats.casys.layer_watch import LayerWatch
from pipeline.llm.base import Message, Request
from pipeline.llm.script import ScriptedModel
from pipeline.store.memory import MemoryStore
from pipeline.store.reader import load
from pipeline.testing import FakeClock
from tests.codes import coded
from tests.layered import THREE, Killed, Layered, chain, dag, facts
from tests.unit.formats.test_formats_casys_documents import dags


@pytest.fixture
def layered() -> Layered:
    return Layered(MemoryStore(SystemClock()))


# --- events ---------------------------------------------------------------------------------------


def test_events_of_a_layer_come_in_order(layered: Layered) -> None:
    layered.execute(chain(2))
    assert [event["type"] for event in layered.events] == [
        "workflow_start",
        *["layer_start", "task_start", "task_complete", "state_updated", "checkpoint_saved"] * 2,
        "workflow_complete",
    ]
    start, end = layered.events[0], layered.events[-1]
    assert (start["tasks"], start["layers"], start["resumed"]) == (2, 2, False)
    assert (end["successfulTasks"], end["failedTasks"], end["totalTimeMs"] > 0) == (2, 0, True)
    assert layered.told("task_complete")[1]["result"] == {"of": "t2", "from": ["t1"]}


def test_checkpoints_count_their_layers_though_the_end_of_a_task_is_seen_late(
    layered: Layered, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded, overtaken, ended = threading.Event(), threading.Event(), LayerWatch.ended

    def late(watch: LayerWatch, path: str) -> None:
        if path == "b#1":
            recorded.set()
            assert overtaken.wait(120)
        ended(watch, path)
        if path == "c#1":
            overtaken.set()

    monkeypatch.setattr(LayerWatch, "ended", late)
    layered.meanwhile = lambda call: recorded.wait(120) if call.id == "a" else None
    run = layered.execute(THREE).run_id
    assert [row["layer_index"] for row in layered.checkpoints.listed(run)[::-1]] == [1, 2, 3]


def test_nothing_is_told_before_it_is_recorded(layered: Layered) -> None:
    def check(event: Mapping[str, Any]) -> None:
        if event["type"] == "checkpoint_saved":
            assert layered.checkpoints.load(event["checkpoint_id"]).id == event["checkpoint_id"]
            told.append(event["checkpoint_id"])

    told: list[str] = []
    layered.execute(THREE, on_event=check)
    assert len(told) == 3


# --- settings -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"timeout": 0}, "timeout is 0"),
        ({"timeout": "30"}, "timeout is '30'"),
        ({"decisionTimeout": True}, "decisionTimeout is True"),
        ({"keepCount": 0}, "keepCount is 0"),
        ({"max_parallel": 1.5}, "maxParallel is 1.5"),
        ({"autoPrune": "yes"}, "autoPrune is 'yes'"),
    ],
)
def test_settings_that_cannot_be_are_refused(config: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        ControlledExecutor(THREE, config=config)


def test_settings_of_others_are_kept_and_handed_on(layered: Layered) -> None:
    seen: list[Any] = []
    layered.meanwhile = lambda call: seen.append(call.config["custom"])
    result = layered.execute(chain(1), config={"custom": {"deep": [1]}})
    checkpoint = layered.latest(result.run_id)
    assert (seen, checkpoint.config["custom"]) == ([{"deep": [1]}], {"deep": [1]})


def test_pruned_list_of_a_run_is_as_long_as_its_settings_say(layered: Layered) -> None:
    kept = layered.execute(chain(7)).run_id
    assert [row["layer_index"] for row in layered.checkpoints.listed(kept)] == [7, 6, 5, 4, 3]
    every = layered.execute(chain(7), config={"auto_prune": False}).run_id
    assert len(layered.checkpoints.listed(every)) == 7
    two = layered.execute(chain(7), config={"keepCount": 2}).run_id
    assert [row["layer_index"] for row in layered.checkpoints.listed(two)] == [7, 6]


def test_names_of_secrets_are_refused_at_any_depth_and_those_that_only_sound_so_are_not() -> None:
    for name in ("apiKey", "api_key", "API-KEY", "access_token", "clientSecret", "token", "my_password"):
        with pytest.raises(SecretRefused, match=r"config\.llm\[0\]"):
            ControlledExecutor(THREE, config={"llm": [{name: "x"}]})
    for name in ("key", "cache_key", "max_tokens", "page_token", "tokens", "primaryKey", "secretary"):
        ControlledExecutor(dag("a:", a={"arguments": {name: "x"}}), config={name: "x"})


# --- paid calls -----------------------------------------------------------------------------------


def asking(layered: Layered) -> ScriptedModel:
    model = ScriptedModel(lambda request: request.messages[0].text.upper(), model_id="claude-sonnet-5-5", paid=True)
    layered.meanwhile = lambda call: (
        call.ask(Request("claude-sonnet-5-5", [Message("user", call.id)], max_tokens=10)).text
    )
    return model


def test_ceiling_pauses_a_run_and_a_higher_one_goes_on(layered: Layered) -> None:
    model = asking(layered)
    result = layered.execute(chain(3), model=model, config={"max_cost_usd": "0.0002"})
    assert (result.status, result.detail, result.exit_code) == ("in_progress", "paused_budget", 5)
    assert layered.told("workflow_paused")[0]["detail"] == "paused_budget"
    made = model.calls
    again = layered.executor(model=model).resume_from_checkpoint(result.run_id, config={"max_cost_usd": "5"})
    assert (again.status, model.calls, made < 3) == ("completed", 3, True)


def test_going_back_to_an_older_checkpoint_is_refused_where_it_was_paid_for(layered: Layered) -> None:
    model = asking(layered)
    result = layered.execute(chain(3), model=model)
    first = layered.saved()[0]
    with pytest.raises(SettingsConflict, check=coded("repeats_finished_tasks", tasks=["t2", "t3"])) as refused:
        layered.resume(first, model=model)
    assert float(refused.value.data["usd"]) > 0
    assert (layered.ran, load(layered.store, result.run_id).status) == ([], "completed")
    again = layered.resume(first, model=model, accept_changes=True)
    assert (again.status, layered.ran, model.calls) == ("completed", ["t2", "t3"], 5)
    # What was done since the newest checkpoint is kept.
    layered.bad = {"t4": "crash"}
    plan = dag("t1:", "t2: t1", "t3: t1", "t4: t1", "t5: t2 t3 t4")
    layered.execute(plan, model=model)
    newest = layered.saved()[-1]
    layered.bad, made = {}, model.calls
    assert layered.resume(newest, model=model).status == "completed"
    assert (sorted(layered.ran), model.calls - made) == (["t4", "t5"], 1)


# --- effects --------------------------------------------------------------------------------------


def test_a_run_that_died_before_its_first_checkpoint_goes_on_by_its_id(layered: Layered) -> None:
    def die(call: Any) -> None:
        if call.id == "b":
            raise Killed

    layered.meanwhile = die
    with pytest.raises(Killed):
        layered.execute(THREE, config={"maxParallel": 1})
    (head,) = layered.store.heads()
    assert layered.checkpoints.latest(head.run_id) is None
    layered.meanwhile = lambda call: None
    result = layered.resume(head.run_id)
    assert (result.status, layered.ran) == ("completed", ["b", "c", "d"])
    assert [event["layerIndex"] for event in layered.told("layer_start")] == [0, 1, 2]


def test_a_checkpoint_missed_by_a_death_is_made_up_for(layered: Layered) -> None:
    result = layered.execute(chain(2))
    store = cut(layered.store, result.run_id, b'"document_kept"')
    again = Layered(store)
    assert again.resume(result.run_id).status == "completed"
    assert [row["layer_index"] for row in again.checkpoints.listed(result.run_id)[::-1]] == [1, 2]
    assert (again.ran, len(again.saved())) == (["t2"], 2)


# --- other doors ----------------------------------------------------------------------------------


def test_a_fork_of_a_layered_run_goes_on_by_itself(layered: Layered) -> None:
    layered.bad = {"d": "crash"}
    first = layered.execute(THREE)
    layered.bad = {}
    fork = fork_run(layered.store, first.run_id, at="c")
    result = layered.resume(fork)
    assert (result.status, layered.ran) == ("completed", ["d"])
    assert load(layered.store, first.run_id).status == "failed"


def test_a_run_of_another_kind_is_no_layered_run(layered: Layered) -> None:
    from pipeline import Pipeline, step

    other = Pipeline("other", [step("a")(lambda ctx: {})]).run(store=layered.store).run_id
    with pytest.raises(RunNotFound, check=coded("not_layered")):
        layered.resume(other)
    with pytest.raises(GraphError):
        layered.resume(other, [])


def test_without_a_store_a_run_is_kept_in_memory() -> None:
    ran: list[str] = []
    executor = ControlledExecutor(chain(2), {"work": lambda call: ran.append(call.id)})
    result = executor.execute()
    assert executor.resumeFromCheckpoint(result.run_id).status == "completed"
    assert ran == ["t1", "t2"]


# --- any cut --------------------------------------------------------------------------------------


def cut(store: Any, run_id: str, at: int | bytes) -> MemoryStore:
    """A store with the run as a death left it: its first records, up to a number or to the first that holds a text."""
    lines = list(store.read(run_id))
    count = at if isinstance(at, int) else next(n for n, line in enumerate(lines) if at in line)
    clock = FakeClock()
    made = MemoryStore(clock)
    blobs = [store.get_blob(run_id, blob) for blob in store.blobs(run_id)]
    journal = made.create_named(run_id, lines[0], blobs, at=clock.now())
    for seq, line in enumerate(lines[1:count], 2):
        journal.append(seq, [line])
    journal.close()
    return made


def completed(store: Any, run_id: str) -> set[str]:
    return {step.node for step in load(store, run_id).steps.values() if step.status == "completed"}


@settings(max_examples=25)
@given(dags(), st.sets(st.integers(0, 8), max_size=2), st.sets(st.integers(0, 8), max_size=1), st.booleans())
def test_runs_law_cut_anywhere_it_ends_the_same_and_repeats_nothing(
    plan: dict[str, Any], bad: set[int], safe: set[int], gated: bool
) -> None:
    for number in safe:
        for task in plan["tasks"]:
            task["safe_to_fail"] = task["id"] == f"t{number}"
    gates = {"hil": lambda question: True} if gated else {}
    whole = Layered(MemoryStore(SystemClock()))
    whole.bad = {f"t{number}": "safe" for number in safe}
    undisturbed = facts(whole.execute(plan, {"x": 1}, **gates))
    first = Layered(MemoryStore(SystemClock()))
    first.bad = {**whole.bad, **{f"t{number}": "crash" for number in bad if number not in safe}}
    run_id = first.execute(plan, {"x": 1}, **gates).run_id
    lines = list(first.store.read(run_id))
    for count in range(1, len(lines) + 1):
        again = Layered(cut(first.store, run_id, count))
        again.bad = whole.bad
        before = completed(again.store, run_id)
        result = again.resume(run_id, **gates)
        assert facts(result) == undisturbed
        assert not before & set(again.ran)
        assert sorted({*before, *again.ran} - {"@start"} - {name for name in before if "@" in name}) == sorted(
            task["id"] for task in plan["tasks"]
        )


def test_saved_by_hand_and_executed_share_a_list() -> None:
    layered = Layered(MemoryStore(SystemClock()))
    layered.bad = {"t3": "crash"}
    run_id = layered.execute(chain(3)).run_id
    layered.bad = {}
    state = layered.latest(run_id)
    changed = state.state.updated(context={"by": "hand"})
    saved = layered.checkpoints.save_checkpoint(changed, chain(3), 2)
    assert [row["layer_index"] for row in LayerCheckpoints(layered.store).listed(run_id)] == [2, 2, 2, 1]
    result = layered.resume(saved.id)
    assert (result.status, layered.ran, result.run_id) == ("completed", ["t3"], run_id)
    assert result.state.context["by"] == "hand"
