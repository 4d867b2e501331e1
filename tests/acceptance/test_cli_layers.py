"""Layered runs on the command line: they are made from Python, and looked at like any other."""

from __future__ import annotations

from pathlib import Path

from pipeline.clock import SystemClock
from pipeline.engine.amendment import amend
from pipeline.records.kinds import DocumentKept
from pipeline.store.files import FileStore
from tests.layered import Layered, chain
from tests.said import Cli


def test_layers_list_and_status_say_how_to_go_on(cli: Cli, root: Path) -> None:
    layered = Layered(FileStore(root, SystemClock()))
    layered.bad = {"t2": "crash"}
    run = layered.execute(chain(2)).run_id
    command = f'ControlledExecutor(tools=…, store=…).resume_from_checkpoint("{run}")'
    assert command in cli("list").out
    assert command in cli("status", run).out
    assert cli("status", run, "--json").json()[0]["resume_command"] == command


def test_layers_log_tells_checkpoints(cli: Cli, root: Path) -> None:
    layered = Layered(FileStore(root, SystemClock()))
    run = layered.execute(chain(1)).run_id
    amend(layered.store, run, SystemClock(), lambda _: [DocumentKept(b"{no json", "other"), DocumentKept(b"3", "x")])
    said = cli("log", run)
    assert f"casys: type checkpoint, id {layered.saved()[0]}, layer_index 1" in said.out
    kept = [line for line in cli("log", run, "--json").json() if line["kind"] == "document_kept"]
    assert [line["content"] if line["source"] != "casys" else line["content"]["layer_index"] for line in kept] == [
        1, "{no json", 3,
    ]  # fmt: skip
