"""A run's folder as people of the Attractor family know it: files derived from the journal, after the record.

checkpoints/NNN_NODE.json, graph.dot, events.jsonl, manifest.json, NODE/{prompt.md,response.md,status.json}, final.json.
Never an input: what is missing or differs is made again when the run goes on. checkpoint.json is the engine's.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pipeline.dot.model import DotGraph
from pipeline.engine.events import Event
from pipeline.errors import CheckpointCorrupt
from pipeline.files import open_regular, read_regular
from pipeline.formats.attractor.head import Facts, numbered, outcome_of, visit_of
from pipeline.formats.attractor.told import events_of
from pipeline.records.charge import TOKEN_KINDS
from pipeline.records.codec import Record
from pipeline.records.documents import usd
from pipeline.records.fold import Builder
from pipeline.records.kinds import RunEnded, RunResumed, RunStarted, StepCompleted, StepFailed
from pipeline.records.run import RunState, Spend, StepRun, bare
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
_BOUNDARY = (StepCompleted, StepFailed)
_ASIDE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
#: Longer names are cut and told apart by a hash.
_LONGEST = 120


class Views:
    """Follows one run's journal and keeps the files of its folder; a listener of the run."""

    def __init__(self, folder: Path, store: Store, graph: DotGraph) -> None:
        self._folder = folder
        self._store = store
        self._graph = graph
        self._facts = Facts.of(graph)
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
        if self._run == run:
            return
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
            self.problem = f"The files beside the journal are not kept up any more: {error.strerror or error}."

    def close(self) -> None:
        """Show the rest; final.json comes last, where the run has come to an end."""
        self.catch_up()
        if self._events >= 0:
            os.close(self._events)
            self._events = -1
        state = self._builder.state
        if self.problem or not self._run or state.status not in (COMPLETED, FAILED):
            return
        try:
            self._put(FINAL, _json(final_document(state)))
        except OSError as error:
            self.problem = f"final.json could not be written: {error.strerror or error}."

    def _catch_up(self) -> None:
        seen = self._builder.state.seq
        first = seen == 0
        if first:
            self._begin()
        told: list[bytes] = []
        for record in records_in(self._store.read(self._run, after=seen), after=seen):
            self._builder.apply(record)
            told += [_line(event) for event in events_of(record, self._run, self._graph, self._show(record))]
        if first:
            self._drop_later_checkpoints()
            self._put(EVENTS, b"".join(told))
        elif told:
            self._append(b"".join(told))

    def _begin(self) -> None:
        (self._folder / CHECKPOINTS).mkdir(parents=True, exist_ok=True)
        self._put(GRAPH, self._graph.source.encode("utf-8", "surrogatepass"))
        if self._events >= 0:
            os.close(self._events)
            self._events = -1

    def _show(self, record: Record) -> str:
        """Write what a record changes; the name of its checkpoint's file, "" where it is no boundary."""
        fact, state = record.fact, self._builder.state
        if isinstance(fact, RunStarted):
            self._put(MANIFEST, _json(manifest(self._facts, state)))
        if isinstance(fact, (RunStarted, RunResumed)):
            (self._folder / FINAL).unlink(missing_ok=True)
        if isinstance(fact, RunEnded) or not isinstance(fact, _BOUNDARY) or fact.path not in state.steps:
            return ""
        self._number += 1
        step = state.steps[fact.path]
        name = f"{CHECKPOINTS}/{self._number:03d}_{folder_name(step.node)}.json"
        self._checkpoint(name, step)
        self._visit(step)
        return name

    def _checkpoint(self, name: str, step: StepRun) -> None:
        path = self._folder / name
        with contextlib.suppress(OSError):
            raw = read_regular(path)
            if sealed(raw) and scan_key(raw, "checkpoint_id") == step.checkpoint:
                return
        state = self._builder.state
        document: dict[str, Any] = {
            "run_id": self._run, "checkpoint_id": step.checkpoint, "number": self._number, "seq": state.seq,
            "pipeline": state.pipeline, "status": state.status, "total_cost_usd": usd(state.total.usd),
        }  # fmt: skip
        self._put(name, head_bytes(numbered(self._facts, document, state, step, self._spent(step))))

    def _visit(self, step: StepRun) -> None:
        """The folder of a visit: the first of a node lies in the node's own, later ones in visit_N."""
        home = folder_name(step.node)
        home = home if step.visit == 1 else f"{home}/visit_{step.visit}"
        outputs = self._whole(step.outputs)
        for name, file in (("prompt", "prompt.md"), ("response", "response.md")):
            text = outputs.get(name)
            if isinstance(text, str):
                self._put(f"{home}/{file}", text.encode("utf-8", "surrogatepass"))
        outcome = outcome_of(step)
        told = visit_of(step, {bare(step.path): usage} if (usage := self._spent(step)).calls else {})
        status = {"outcome": outcome.pop("status"), **outcome, **told}
        self._put(f"{home}/status.json", _json({**status, "outputs": _short(outputs)}))

    def _spent(self, step: StepRun) -> Spend:
        name, total = bare(step.path), Spend()
        for key, spend in self._builder.state.spend.items():
            if key.step == name:
                total.add(spend)
        return total

    def _whole(self, outputs: Mapping[str, Any]) -> Mapping[str, Any]:
        with contextlib.suppress(CheckpointCorrupt):
            found = resolve_value(outputs, partial(self._store.get_blob, self._run))
            return found if isinstance(found, Mapping) else {}
        return {}

    def _put(self, name: str, data: bytes) -> None:
        """Write a file whole, aside and renamed; one that holds this already is left alone."""
        path = self._folder / name
        with contextlib.suppress(OSError):
            if not path.is_symlink() and read_regular(path) == data:
                return
        aside = path.with_name(f".{path.name}.new")
        try:
            fd = os.open(aside, _ASIDE, 0o600)
        except (FileNotFoundError, FileExistsError):
            path.parent.mkdir(parents=True, exist_ok=True)
            aside.unlink(missing_ok=True)
            fd = os.open(aside, _ASIDE, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(data)
        os.rename(aside, path)

    def _append(self, data: bytes) -> None:
        if self._events < 0:
            flags = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
            self._events = open_regular(self._folder / EVENTS, flags)
        os.write(self._events, data)

    def _drop_later_checkpoints(self) -> None:
        """Files of boundaries that a power cut took from the journal."""
        for path in (self._folder / CHECKPOINTS).glob("[0-9]*_*.json"):
            if int(path.name.partition("_")[0]) > self._number:
                path.unlink()


def manifest(facts: Facts, state: RunState) -> dict[str, Any]:
    """manifest.json: what is run, and since when."""
    return {
        "name": facts.name,
        "goal": facts.goal,
        "start_time": state.started_at,
        "run_id": state.run_id,
        "graph_hash": facts.fingerprint,
        "params": dict(state.params),
        "settings": dict(state.identity),
    }


def final_document(state: RunState) -> dict[str, Any]:
    """final.json: that the run is over, and how; written last."""
    return {
        "run_id": state.run_id,
        "status": state.status,
        "outcome": "success" if state.status == COMPLETED else "fail",
        "error": state.error,
        "ended_at": state.updated_at,
        "nodes_visited": len(state.steps),
        "cost_usd": usd(state.total.usd),
        "possibly_spent_usd": usd(state.total.high),
        "unpriced_calls": state.total.unpriced,
        "tokens": {kind: count for kind, count in state.total.tokens.items() if kind in TOKEN_KINDS},
    }


def folder_name(node: str) -> str:
    """A node's id as the name of its folder: no path leads out, no file of the run is in the way."""
    name = quote(node, safe=" -_.()[]@+,=")
    if len(name) > _LONGEST:
        name = f"{name[:_LONGEST]}-{digest(node.encode())[:8]}"
    if name.startswith("."):
        name = f"%2E{name[1:]}"
    return f"{name}_" if name.lower() in _TAKEN or name.lower().startswith("journal.") else name


def _short(outputs: Mapping[str, Any]) -> dict[str, Any]:
    """Outputs without what stands in files beside."""
    return {name: value for name, value in outputs.items() if name not in ("prompt", "response")}


def _json(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, indent=2, allow_nan=False).encode("ascii") + b"\n"


def _line(event: Mapping[str, Any]) -> bytes:
    return json.dumps(event, allow_nan=False).encode("ascii") + b"\n"
