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


def test_list_shows_a_thread_by_its_id_with_what_it_keeps(held: str, cli: Cli) -> None:
    for said in (cli("list"), cli("list", "--subject", THREAD)):
        row = next(line for line in said.out.splitlines() if line.startswith(held))
        assert row.split() == [held, "Letter", "1", "-", "completed", "1", "kept", "-"]


@pytest.mark.parametrize("command", ["status", "show", "history"])
def test_thread_is_told_where_a_run_has_steps(command: str, held: str, cli: Cli) -> None:
    said = cli(command, held)
    assert said.code == 0
    assert "It holds the LangGraph thread 'Letter 1'; `get_state_history` of its graph shows" in said.out
    assert "Step " not in said.out
    assert "$0" not in said.out


def test_cost_of_a_thread_is_not_said_to_be_known(held: str, cli: Cli) -> None:
    assert f"Not counted: run {held}: LangGraph graphs make their own calls." in cli("cost", held).out


@pytest.mark.parametrize(
    "words", [["lessons", "--resume", RUN], ["replay", RUN], ["mark-done", RUN, "x"]], ids=lambda words: words[0]
)
def test_thread_is_gone_on_with_by_its_own_graph(words: list[str], held: str, cli: Cli) -> None:
    said = cli(*words)
    assert said.code == 2
    assert f"Error: Run {held} holds a LangGraph thread, and its graph is not part of this program." in said.err
    assert GO_ON in said.err


def test_cleanup_takes_no_thread(held: str, cli: Cli) -> None:
    assert "Nothing to remove." in cli("cleanup", "--max-runs", "0", "--max-age-days", "0").out
