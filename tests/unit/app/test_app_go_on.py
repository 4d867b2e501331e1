"""The command that goes on with a run names again what a person would have to give again."""

from __future__ import annotations

import pytest

from pipeline.app.executors import check_executor
from pipeline.app.run_list import resume_command as command_of_row
from pipeline.app.run_list import row_of
from pipeline.app.start import resume_command, settings_now
from pipeline.errors import ConfigError
from pipeline.records.documents import head_document
from pipeline.records.run import RunState
from pipeline.settings import Execution
from pipeline.store.base import Head

RUN = "20260109_143022"
PLACE, EXECUTOR = "sqlite:/srv/runs.db", "dask://10.0.0.5:8786"


def test_resume_command_names_the_store_and_the_executor() -> None:
    options = Execution(store=PLACE, executor=EXECUTOR, given=frozenset({"store", "executor"}))
    assert resume_command(options, RUN) == f"./pipeline.sh lessons --resume {RUN} --store {PLACE} --executor {EXECUTOR}"
    assert "--executor" not in resume_command(Execution(), RUN)


def test_executor_of_the_last_start_is_recorded_for_whoever_looks_at_the_run() -> None:
    first = settings_now(Execution(executor=EXECUTOR), {})
    state = RunState(RUN, pipeline="lessons", status="in_progress", execution=first)
    row = row_of(Head(RUN, head_document(state, 0, ())))
    assert command_of_row(row, None) == f"./pipeline.sh lessons --resume {RUN} --executor {EXECUTOR}"
    # A resume without one does the rest where it was started.
    state.execution |= settings_now(Execution(resume=RUN), first)
    assert "--executor" not in command_of_row(row_of(Head(RUN, head_document(state, 0, ()))), None)


@pytest.mark.parametrize("name", ["dask://ada:pa@ss@host:1", "dask://ada@host:1", "ada:pa@ss"])
def test_user_and_password_of_an_executor_are_refused_unseen(name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check_executor(Execution(store=PLACE, executor=name))
    assert "no user or password" in caught.value.message
    assert not any(word in f"{caught.value.message} {caught.value.hint}" for word in ("ada", "ss@", "host:1"))


@pytest.mark.parametrize("name", ["dask://host:1?token=TOPSECRET", "dask://host:1/#TOPSECRET", "dask://host:1?"])
def test_settings_of_an_executor_are_refused_unseen(name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check_executor(Execution(store=PLACE, executor=name))
    assert "use dask://HOST:PORT" in caught.value.message
    assert "TOPSECRET" not in f"{caught.value.message} {caught.value.hint}"
