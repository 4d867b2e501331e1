"""How the program itself resumes a run: the same command as people are shown, as arguments."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.app.run_list import RunRow, resume_arguments, row_of
from pipeline.errors import ConfigError
from pipeline.store.base import Head

RUN = "20260109_143022"


def row(**document: Any) -> RunRow:
    return row_of(Head(RUN, {"status": "in_progress", "status_detail": "interrupted", **document}))


def test_course_is_resumed_by_its_command_without_a_question() -> None:
    assert resume_arguments(row(pipeline="lessons")) == ["lessons", "--resume", RUN, "--yes"]
    fleet = row(pipeline="lessons", executor="dask://127.0.0.1:8786")
    assert resume_arguments(fleet) == ["lessons", "--resume", RUN, "--executor", "dask://127.0.0.1:8786", "--yes"]


def test_own_pipeline_is_resumed_with_its_target() -> None:
    command = f"./pipeline.sh run 'my graph.dot' --resume {RUN} --store files:runs"
    assert resume_arguments(row(pipeline="g", resume_command=command))[:3] == ["run", "my graph.dot", "--resume"]
    assert resume_arguments(row(pipeline="g", target="a.py:P"))[:2] == ["run", "a.py:P"]


@pytest.mark.parametrize("document", [{"pipeline": "layers"}, {"pipeline": "own"}, {"pipeline": "langgraph"}])
def test_run_of_another_program_is_not_resumed_by_a_command(document: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as found:
        resume_arguments(row(**document))
    assert found.value.code == "resume_by_program"


def test_what_only_a_person_gives_is_asked_for() -> None:
    stopped = row(pipeline="lessons", status_detail="paused_budget")
    with pytest.raises(ConfigError) as found:
        resume_arguments(stopped)
    assert found.value.data["needs"] == ["--max-cost-usd"]
    assert resume_arguments(stopped, ["--max-cost-usd=60"])[-2:] == ["--max-cost-usd=60", "--yes"]
    permitted = row(pipeline="g", target="g.dot", needs="--allow-tools --agent-cmd")
    with pytest.raises(ConfigError) as found:
        resume_arguments(permitted, ["--allow-tools"])
    assert found.value.data["needs"] == ["--agent-cmd"]
