"""Runs that hold threads of LangGraph, as every command shows them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.base import empty_checkpoint

from pipeline import LangGraphSaver
from pipeline.formats.langgraph.threads import names_of
from tests.said import Cli

THREAD = "Letter 1"
RUN = names_of(THREAD)[0]
GO_ON = """Hint: Resume it in your own program: graph.invoke(None, {"configurable": {"thread_id": "Letter 1"}})"""


@pytest.fixture
def held(root: Path) -> str:
    """The run of a thread with one checkpoint."""
    config: Any = {"configurable": {"thread_id": THREAD, "checkpoint_ns": ""}}
    LangGraphSaver(f"files:{root}").put(config, empty_checkpoint(), {"source": "input"}, {})
    return RUN


def test_thread_is_shown_by_its_id_and_what_it_keeps_where_a_run_has_steps(held: str, cli: Cli) -> None:
    for said in (cli("list"), cli("list", "--subject", THREAD)):
        row = next(line for line in said.out.splitlines() if line.startswith(held))
        assert row.split() == [held, "Letter", "1", "-", "completed", "1", "kept", "-"]
    for command in ("status", "show", "history"):
        said = cli(command, held)
        assert said.code == 0
        assert "It holds the LangGraph thread 'Letter 1'; `get_state_history` of its graph shows" in said.out
        assert "Step " not in said.out
        assert "$0" not in said.out
    assert f"Not counted: run {held}: LangGraph graphs make their own calls." in cli("cost", held).out


def test_thread_is_gone_on_with_by_its_own_graph_and_not_cleaned_up(held: str, cli: Cli) -> None:
    for words in (["lessons", "--resume", RUN], ["replay", RUN], ["mark-done", RUN, "x"]):
        said = cli(*words)
        assert said.code == 2
        assert f"Error: Run {held} holds a LangGraph thread, and its graph is not part of this program." in said.err
        assert GO_ON in said.err
    assert "Nothing to remove." in cli("cleanup", "--max-runs", "0", "--max-age-days", "0").out
