"""What a start says of its store, what it works with, and the command that resumes it."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from pipeline.app.model_choice import billed_by, provider_in, with_provider
from pipeline.app.run_list import resume_command as command_of_row
from pipeline.app.run_list import row_of
from pipeline.app.start import Start, finish, resume_command, settings_now, store_note, without_model
from pipeline.clock import SystemClock
from pipeline.engine.events import Emitter
from pipeline.engine.result import RunResult
from pipeline.errors import WriteFailed
from pipeline.llm.base import ModelInfo
from pipeline.llm.script import ScriptedModel
from pipeline.records.documents import head_document
from pipeline.records.run import RunState
from pipeline.settings import Execution
from pipeline.store import network
from pipeline.store.base import Head
from pipeline.store.memory import MemoryStore

RUN = "20260109_143022"
EXECUTOR = "dask://10.0.0.5:8786"


def start_of(execution: Execution) -> Start:
    clock = SystemClock()
    return Start(execution, MemoryStore(clock), clock, Emitter(clock, []), None)


@pytest.mark.parametrize(("kind", "said"), [("nfs4", True), ("ext4", False)])
def test_store_note_warns_of_a_network_file_system(
    kind: str, said: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"server:/x / {kind} rw 0 0\n", encoding="ascii")
    monkeypatch.setattr(network, "_LINUX", mounts)
    assert ("network file system" in store_note(f"files:{tmp_path}")) is said
    assert store_note("memory:") == store_note("postgresql://me@host/runs") == ""
    assert "PGPASSWORD" in store_note("postgresql://me:secret@host/runs")


@pytest.mark.parametrize(
    ("store", "executor", "words"),
    [
        ("sqlite:/srv/runs.db", EXECUTOR, f" --store sqlite:/srv/runs.db --executor {EXECUTOR}"),
        ("postgresql://me:secret@host/runs", None, " --store postgresql://me@host/runs"),
        ("files:/my runs", None, " --store 'files:/my runs'"),
    ],
)
def test_resume_command_names_the_store_and_the_executor(store: str, executor: str | None, words: str) -> None:
    options = Execution(store=store, executor=executor, given=frozenset({"store", "executor"}))
    assert resume_command(options, RUN) == f"./pipeline.sh lessons --resume {RUN}{words}"
    assert resume_command(Execution(), RUN) == f"./pipeline.sh lessons --resume {RUN}"


def test_executor_of_the_last_start_is_recorded_for_whoever_looks_at_the_run() -> None:
    first = settings_now(Execution(executor=EXECUTOR), {})
    state = RunState(RUN, pipeline="lessons", status="in_progress", execution=first)
    row = row_of(Head(RUN, head_document(state, 0, ())))
    assert command_of_row(row, None) == f"./pipeline.sh lessons --resume {RUN} --executor {EXECUTOR}"
    # A resume without one does the rest where it was started.
    state.execution |= settings_now(Execution(resume=RUN), first)
    assert "--executor" not in command_of_row(row_of(Head(RUN, head_document(state, 0, ()))), None)


def test_resume_keeps_the_settings_of_its_run_until_others_are_given() -> None:
    recorded = settings_now(Execution(max_cost_usd=Decimal(7), concurrency=2, until="sow"), {})
    now = settings_now(Execution(concurrency=3, given=frozenset({"concurrency"})), recorded)
    assert (now["max_cost_usd"], now["concurrency"], now["until"]) == ("7", 3, None)


def test_advice_on_an_emergency_file_is_a_command_that_names_the_store() -> None:
    start = start_of(Execution(store="sqlite:/my runs.db", given=frozenset({"store"})))
    error = WriteFailed("Full.", emergency="/tmp/kept.jsonl")
    finish(start, without_model(start, {}), RunResult(RUN, "in_progress", "store", error))
    assert error.hint.endswith(f"first: ./pipeline.sh recover {RUN} /tmp/kept.jsonl --store 'sqlite:/my runs.db'")


def test_host_with_a_published_price_list_bills_by_it_and_others_by_openais() -> None:
    info = ModelInfo("m", paid=True, provider="openai")
    for address, provider in (
        ("https://openrouter.ai/api/v1", "openrouter"), ("http://127.0.0.1:9/v1", "openai"), ("", "openai"),
    ):  # fmt: skip
        model = ScriptedModel()
        model.address = address  # type: ignore[attr-defined]
        assert billed_by(info, model).provider == provider


def test_model_of_ones_own_is_billed_by_nobody_else_unless_it_says_so() -> None:
    said = {("mine-1", "anthropic"): "own", ("claude-x", "anthropic"): "anthropic", ("mine-1", "groq"): "groq"}
    for (name, provider), billed in said.items():
        assert billed_by(ModelInfo(name, paid=True, provider=provider), ScriptedModel(), own=True).provider == billed


def test_provider_of_a_run_is_who_was_asked_and_of_older_ones_anthropic() -> None:
    said = {"": "anthropic", "offline": "anthropic", "vertex": "vertex", "own": "own", "openrouter": "openai"}
    assert {name: provider_in({"provider": name}) for name in said} == said
    assert with_provider({"author": "offline"}, "vertex") == {"author": "offline"}
