"""A run's folder as people of the Attractor family know it: files derived from the journal, after the record.

checkpoints/NNN_NODE.json, graph.dot, events.jsonl, manifest.json, NODE/{prompt.md,response.md,status.json}, final.json.
Never an input: what is missing or differs is made again when the run is resumed. checkpoint.json is the engine's.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pipeline.dot import kinds
from pipeline.dot.model import DotGraph, target_of
from pipeline.engine.events import Event
from pipeline.errors import CheckpointCorrupt
from pipeline.files import create_new, open_regular, read_regular
from pipeline.formats.attractor.documents import outcome_word
from pipeline.formats.attractor.run_documents import (
    final_document,
    manifest,
    numbered,
    outcome_document,
    visit_of,
)  # fmt: skip
from pipeline.records.codec import Record
from pipeline.records.documents import usd
from pipeline.records.fold import Builder
from pipeline.records.kinds import (
    Decision,
    DecisionAsked,
    Invalidated,
    RunEnded,
    RunResumed,
    RunStarted,
    Snapshot,
    StepCompleted,
    StepFailed,
    StepStarted,
)  # fmt: skip
from pipeline.records.positions import split
from pipeline.records.run import Spend, StepRun, bare
from pipeline.records.statuses import COMPLETED, FAILED
from pipeline.records.values import digest, resolve_value
from pipeline.store.base import Store
from pipeline.store.head import HEAD, head_bytes, scan_key, sealed
from pipeline.store.view import records_in

CHECKPOINTS, EVENTS, GRAPH, MANIFEST, FINAL = "checkpoints", "events.jsonl", "graph.dot", "manifest.json", "final.json"
#: Names in a run's folder that a node's folder must not take.
_TAKEN = frozenset({"lock", "blobs", "parts", HEAD, CHECKPOINTS, EVENTS, GRAPH, MANIFEST, FINAL})
#: Events after which there is something new to show.
_HEARD = ("run_", "step_", "decision")
#: Longer names are cut and told apart by a hash.
_LONGEST = 120
#: (type, node id, data) of a dotted event.
Dotted = tuple[str, str, dict[str, Any]]


class Views:
    """Follows one run's journal and keeps the files of its folder; a listener of the run."""

    def __init__(self, folder: Path, store: Store, graph: DotGraph) -> None:
        self._folder = folder
        self._store = store
        self._graph = graph
        self._run = ""
        self._builder = Builder("")
        self._number = 0
        self._events: int = -1
        #: Why files are not kept up any more; "" while they are.
        self.problem = ""

    def __call__(self, event: Event) -> None:
        """Show what is new; the run goes on whatever the disk says of its views."""
        if event.type in ("run_started", "run_resumed"):
            self.follow(str(event.data["run"]))
        elif self._run and event.type.startswith(_HEARD):
            self.catch_up()

    def follow(self, run: str) -> None:
        """Show a run from its first record on; files that are there and right are left alone."""
        if self._run != run:
            self._run, self._number = run, 0
            self._builder = Builder(run)
            self.catch_up()

    def catch_up(self) -> None:
        """Show the records that came since; what the disk refuses is kept in `problem`."""
        if self.problem or not self._run:
            return
        try:
            self._catch_up()
        except OSError as error:
            self.problem = f"The files beside the journal are no longer updated: {error.strerror or error}."

    def close(self) -> None:
        """Show the rest; final.json comes last, if the run has come to an end."""
        self.catch_up()
        self._close_events()
        state = self._builder.state
        if self.problem or not self._run or state.status not in (COMPLETED, FAILED):
            return
        try:
            self._put(FINAL, _json(final_document(state)))
        except OSError as error:
            self.problem = f"final.json could not be written: {error.strerror or error}."

    def _close_events(self) -> None:
        if self._events >= 0:
            os.close(self._events)
            self._events = -1

    def _catch_up(self) -> None:
        seen = self._builder.state.seq
        if seen == 0:
            (self._folder / CHECKPOINTS).mkdir(parents=True, exist_ok=True)
            self._put(GRAPH, self._graph.source.encode("utf-8", "surrogatepass"))
            self._close_events()
        told: list[bytes] = []
        for record in records_in(self._store.read(self._run, after=seen), after=seen):
            self._builder.apply(record)
            events = dotted_events(record, self._run, self._graph, self._show(record))
            told += [json.dumps(event, allow_nan=False).encode("ascii") + b"\n" for event in events]
        if seen == 0:
            # Files of boundaries that a power cut took from the journal.
            for path in (self._folder / CHECKPOINTS).glob("[0-9]*_*.json"):
                if int(path.name.partition("_")[0]) > self._number:
                    path.unlink()
            self._put(EVENTS, b"".join(told))
        elif told:
            if self._events < 0:
                flags = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
                self._events = open_regular(self._folder / EVENTS, flags)
            os.write(self._events, b"".join(told))

    def _show(self, record: Record) -> str:
        """Write what a record changes; return the name of its checkpoint's file, "" if it is no boundary."""
        fact, state = record.fact, self._builder.state
        if isinstance(fact, RunStarted):
            self._put(MANIFEST, _json(manifest(self._graph, state)))
        if isinstance(fact, (RunStarted, RunResumed)):
            (self._folder / FINAL).unlink(missing_ok=True)
        if not isinstance(fact, (StepCompleted, StepFailed)) or fact.path not in state.steps:
            return ""
        self._number += 1
        step = state.steps[fact.path]
        name = f"{CHECKPOINTS}/{self._number:03d}_{folder_name(step.node)}.json"
        usage = Spend()
        for key, spend in state.spend.items():
            if key.step == bare(step.path):
                usage.add(spend)
        self._checkpoint(name, step, usage)
        self._visit(step, usage)
        return name

    def _checkpoint(self, name: str, step: StepRun, usage: Spend) -> None:
        with contextlib.suppress(OSError):
            raw = read_regular(self._folder / name)
            if sealed(raw) and scan_key(raw, "checkpoint_id") == step.checkpoint:
                return
        state = self._builder.state
        document: dict[str, Any] = {
            "run_id": self._run, "checkpoint_id": step.checkpoint, "number": self._number, "seq": state.seq,
            "pipeline": state.pipeline, "status": state.status, "total_cost_usd": usd(state.total.usd),
        }  # fmt: skip
        self._put(name, head_bytes(numbered(self._graph, document, state, step, usage)))

    def _visit(self, step: StepRun, usage: Spend) -> None:
        """Write the folder of a visit: the first of a node has the node's own, later ones visit_N in it."""
        home = folder_name(step.node)
        home = home if step.visit == 1 else f"{home}/visit_{step.visit}"
        outputs: dict[str, Any] = {}
        with contextlib.suppress(CheckpointCorrupt):
            found = resolve_value(step.outputs, partial(self._store.get_blob, self._run))
            outputs = dict(found) if isinstance(found, Mapping) else {}
        for name, file in (("prompt", "prompt.md"), ("response", "response.md")):
            text = outputs.pop(name, None)
            if isinstance(text, str):
                self._put(f"{home}/{file}", text.encode("utf-8", "surrogatepass"))
        outcome = outcome_document(step)
        told = visit_of(step, {bare(step.path): usage} if usage.calls else {})
        status = {"outcome": outcome.pop("status"), **outcome, **told, "outputs": outputs}
        self._put(f"{home}/status.json", _json(status))

    def _put(self, name: str, data: bytes) -> None:
        """Write a file whole, aside and renamed; one that holds this already is left alone."""
        path = self._folder / name
        with contextlib.suppress(OSError):
            if not path.is_symlink() and read_regular(path) == data:
                return
        aside = path.with_name(f".{path.name}.new")
        try:
            fd = create_new(aside, 0o600)
        except FileNotFoundError:
            path.parent.mkdir(parents=True, exist_ok=True)
            fd = create_new(aside, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(data)
        os.rename(aside, path)


def folder_name(node: str) -> str:
    """Return a node's id as the name of its folder: no path leads out, no file of the run is in the way."""
    name = quote(node, safe=" -_.()[]@+,=")
    if len(name) > _LONGEST:
        name = f"{name[:_LONGEST]}-{digest(node.encode())[:8]}"
    if name.startswith("."):
        name = f"%2E{name[1:]}"
    return f"{name}_" if name.lower() in _TAKEN or name.lower().startswith("journal.") else name


def _json(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, indent=2, allow_nan=False).encode("ascii") + b"\n"


def dotted_events(record: Record, run_id: str, graph: DotGraph, file: str) -> Iterator[dict[str, Any]]:
    """Yield the events of events.jsonl that a record is: {type, run_id, timestamp, node_id, data, seq}.

    Args:
        file: The checkpoint's file in the run's folder, if the record is a boundary.
    """
    for kind, node, data in _dotted(record.fact, graph, file):
        yield {
            "type": kind, "run_id": run_id, "timestamp": record.at, "node_id": node or None, "data": data,
            "seq": record.seq,
        }  # fmt: skip


def _dotted(fact: object, graph: DotGraph, file: str) -> Iterator[Dotted]:
    match fact:
        case RunStarted():
            yield "pipeline.started", "", {"pipeline": graph.name, "goal": graph.goal, "params": dict(fact.params)}
        case Snapshot():
            completed = len(fact.document.get("completed_steps") or ())
            yield "checkpoint.loaded", "", {"source": fact.source, "completed": completed}
        case RunResumed():
            yield "pipeline.resumed", "", {"graph_changed": "dot" in (fact.pins or {})}
        case RunEnded():
            kind = {COMPLETED: "pipeline.completed", FAILED: "pipeline.failed"}.get(fact.status, "pipeline.paused")
            yield kind, "", {"status": fact.status, "status_detail": fact.detail, "error": fact.error}
        case StepStarted():
            node, visit = split(fact.path)
            yield "node.started", node, {"visit": visit, "attempt": fact.attempt}
        case StepCompleted() | StepFailed():
            yield from _boundary(fact, graph, file)
        case DecisionAsked():
            yield "human.waiting", split(fact.path)[0], {"choices": list(fact.choices), "shown": dict(fact.shown)}
        case Decision():
            data = {"choice": fact.choice, "by": fact.by, "note": fact.note}
            yield "human.responded", split(fact.path)[0], data
        case Invalidated():
            yield "node.invalidated", "", {"reason": fact.reason, "visits": [bare(path) for path in fact.paths]}


def _boundary(fact: StepCompleted | StepFailed, graph: DotGraph, file: str) -> Iterator[Dotted]:
    node, visit = split(fact.path)
    outcome = outcome_word(fact.outcome)
    if isinstance(fact, StepCompleted):
        yield "node.completed", node, {"visit": visit, "outcome": outcome, "duration_seconds": fact.seconds}
        if graph.kind(node) == kinds.FAN_IN:
            yield "parallel.join", node, {"outcome": outcome}
    else:
        kind = "node.retrying" if fact.retry else "node.failed"
        yield kind, node, {"visit": visit, "attempt": fact.attempt, "outcome": outcome, "error": dict(fact.error)}
    targets = [target_of(edge) for edge in fact.edges]
    if graph.kind(node) == kinds.PARALLEL:
        yield "parallel.fork", node, {"branches": targets}
    for edge, target in zip(fact.edges, targets, strict=True):
        yield "edge.selected", node, {"edge": edge, "from": node, "to": target, "reason": fact.reason or "outcome"}
        if target in graph.nodes and graph.kind(target) == kinds.FAN_IN:
            yield "parallel.branch_completed", node, {"outcome": outcome, "fan_in": target}
    yield "checkpoint.saved", node, {"checkpoint_id": fact.checkpoint, "file": file}
