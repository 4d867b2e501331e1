"""The guide to layered DAGs: its example runs and shows what it prints; its tables are those of the code."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from pipeline import LayerCheckpoints, WorkflowState, open_store
from pipeline.clock import SystemClock
from pipeline.formats.casys.dag import DagTask
from pipeline.formats.casys.settings import DEFAULTS
from pipeline.store.files import FileStore
from tests.documents import DOCS, ROOT, codes, fenced, table, text_of
from tests.faulty_disk import FaultyDisk, LazyDisk
from tests.layered import THREE, Layered, chain, dag, state

GUIDE = "layers.md"
EXAMPLE = DOCS / "examples" / "layers.py"


def test_docs_layers_example_prints_what_the_guide_shows() -> None:
    (shown,) = fenced(GUIDE, "text")
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, str(EXAMPLE)], env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == shown.partition("\n")[2]
    text = EXAMPLE.read_text(encoding="utf-8")
    assert all(block.strip() in text for block in fenced(GUIDE, "python")[:2])


def test_docs_layers_code_of_saving_by_hand_runs(tmp_path: Path) -> None:
    code = fenced(GUIDE, "python")[-1].replace("files:runs", f"files:{tmp_path}")
    names: dict[str, Any] = {"LayerCheckpoints": LayerCheckpoints, "open_store": open_store, "DAG": THREE}
    names["state"] = given = WorkflowState("wf", messages=["m"])
    exec(compile(code, GUIDE, "exec"), names)
    assert names["saved"].id == given.checkpoint_id
    assert list(names["saved"].to_json()) == codes(text_of(GUIDE).partition("row of its system: ")[2])[:7]


def test_docs_layers_name_settings_with_their_defaults_names_of_tasks_and_fields_of_the_state() -> None:
    told = {
        name: value.strip()
        for row in table(GUIDE, "Setting", "Default")
        for name, value in zip(codes(row[0]), row[1].split(","), strict=True)
    }
    words = {None: "null", True: "true", False: "false"}
    assert told == {name: words.get(value, str(value)) for name, value in DEFAULTS.items()}
    named = {name for row in table(GUIDE, "A task's name", "Means") for name in codes(row[0])}
    assert named - {"dependsOn", "safeToFail"} == set(DagTask.__slots__) - {"extra"}
    section = text_of(GUIDE).partition("## The state")[2].partition("## ")[0]
    for name in ("workflow_id", "messages", "tasks", "decisions", "context", "checkpoint_id"):
        assert f"`{name}`" in section
        assert name in state().to_json()


def told(tmp_path: Path) -> dict[str, set[str]]:
    """Event type → fields, of runs that meet everything."""
    seen: dict[str, set[str]] = {}
    disk = FaultyDisk()
    for name, kind in (("sound", LazyDisk()), ("faulty", disk)):
        layered = Layered(FileStore(tmp_path / name, SystemClock(), disk=kind))
        plan = dag("a:", "s: a", "b: s", s={"safe_to_fail": True})
        if kind is disk:
            layered.meanwhile = lambda call: disk.write_errors.extend([5] * 1000)
        events = []
        layered.bad = {"s": "safe", "b": "crash"}
        run = layered.execute(plan, hil=lambda question: True).run_id
        events += layered.events
        for more in ({"hil": True}, {"hil": lambda question: "reject"}):
            if kind is not disk:
                layered.bad = {}
                layered.resume(run, config={"timeout": 9}, **more)
                events += layered.events
        for event in events:
            seen.setdefault(event["type"], set()).update(event)
    return seen


def test_docs_layers_name_every_event_with_its_fields(tmp_path: Path) -> None:
    documented = {name: set(codes(row[2])) for row in table(GUIDE, "Type", "When") for name in codes(row[0])}
    found = told(tmp_path)
    assert {kind: fields - {"type", "timestamp"} for kind, fields in found.items()} == documented
    assert [kind for kind, fields in found.items() if "timestamp" not in fields] == ["checkpoint_failed"]


def test_docs_layers_gate_is_named_as_it_is(tmp_path: Path) -> None:
    layered = Layered(FileStore(tmp_path, SystemClock(), disk=LazyDisk()))
    result = layered.execute(chain(1), hil=True)
    assert "@human-0" in str(result.error)
    assert "answer RUN @human-0 approve" in text_of(GUIDE)
    assert result.exit_code == 8
