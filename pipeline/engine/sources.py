"""What a body can read, each under a name; reads are noted with the hash of what was seen."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from pipeline.engine.recorder import Recorder
from pipeline.errors import CheckpointCorrupt, ConfigError, MissingValue, PipelineError
from pipeline.llm.base import Request
from pipeline.records.codec import decode_line
from pipeline.records.kinds import CallStarted, TaskCompleted
from pipeline.records.run import WHOLE, RunState, StepRun
from pipeline.records.statuses import COMPLETED
from pipeline.records.values import decode_value, encode_value, resolve_value, value_hash
from pipeline.store.base import Store

_MISSING = "missing"
_HASH_CHARS = 16
#: Names that are told where none is like the one that is missing.
_MOST_NAMES = 10


class Values:
    """Recorded values: follows blob references, reads long ones back."""

    def __init__(self, recorder: Recorder, store: Store) -> None:
        self._recorder = recorder
        self._store = store

    def get(self, value: Any) -> Any:
        """The value itself, read back if it is a reference."""
        return resolve_value(value, self._recorder.journal.get_blob)

    def at(self, seq: int) -> Any:
        """The task value that the record with this seq holds.

        Raises:
            CheckpointCorrupt: It is not there any more.
        """
        run = self._recorder.journal.run_id
        line = next(iter(self._store.read(run, after=seq - 1)), None)
        fact = None if line is None else decode_line(line).fact
        if not isinstance(fact, TaskCompleted):
            raise CheckpointCorrupt(f"Run {run}: the value recorded as {seq} cannot be read back.")
        return self.get(json.loads(fact.value))

    def request(self, seq: int) -> Request | None:
        """Return the request that the record with this seq sent; None: it is not there any more."""
        line = next(iter(self._store.read(self._recorder.journal.run_id, after=seq - 1)), None)
        fact = None if line is None else decode_line(line).fact
        try:
            return Request.from_json(self.blob(fact.request)) if isinstance(fact, CallStarted) else None
        except CheckpointCorrupt:
            return None

    def blob(self, name: str) -> Any:
        """The JSON value stored under a hash."""
        return json.loads(self._recorder.journal.get_blob(name))


class Sources:
    """The readable things of a run, by name: params.x, settings.x, outputs.step.x, prompt.x, pin.x, artifact.x."""

    def __init__(self, recorder: Recorder, store: Store) -> None:
        self._recorder = recorder
        self.values = Values(recorder, store)
        self._hashes: dict[tuple[str, str], str] = {}
        self._pins: dict[str, Any] = {}

    @property
    def state(self) -> RunState:
        return self._recorder.state

    def latest(self, node: str) -> StepRun | None:
        """The newest completed visit of a node."""
        return next(self._visits(node), None)

    def _visits(self, node: str) -> Iterator[StepRun]:
        """Completed visits of a node, newest first."""
        with self._recorder.reading() as state:
            paths = (f"{node}#{visit}" for visit in range(state.visits.get(node, 0), 0, -1))
            runs = [run for path in paths if (run := state.steps.get(path)) is not None]
        return (run for run in runs if run.status == COMPLETED)

    def pinned(self, name: str) -> Any:
        """A value the run is pinned to.

        Raises:
            ConfigError: The run has no such pin.
        """
        if name not in self._pins:
            blob = self.state.pins.get(name)
            if blob is None:
                raise ConfigError(f"This run is not pinned to {name!r}.")
            self._pins[name] = self.values.blob(blob)
        return fresh(self._pins[name])

    def artifact(self, name: str) -> str:
        """The hash of the newest artifact of that name.

        Raises:
            ConfigError: No step has saved it.
        """
        with self._recorder.reading() as state:
            for run in reversed(state.steps.values()):
                if run.status == COMPLETED and name in run.artifacts:
                    return run.artifacts[name]
        raise ConfigError(f"No step has saved an artifact {name!r}.")

    def load(self, name: str) -> Any:
        """The artifact's value."""
        return self.values.blob(self.artifact(name))

    def outputs(self, node: str) -> Mapping[str, Any]:
        """The outputs of the newest completed visit of a node.

        Raises:
            MissingValue: There is none.
        """
        run = self.latest(node)
        if run is None:
            raise MissingValue(f"No step {node!r} has completed by now, so there are no outputs of it.", name=node)
        result: Mapping[str, Any] = self.values.get(run.outputs)
        return result

    def hash(self, name: str, context: Mapping[str, Any]) -> str:
        """The short hash of what `name` stands for now; "missing" where there is nothing."""
        kind, _, rest = name.partition(".")
        if kind in ("prompt", "pin"):
            pin = f"prompt:{rest}" if kind == "prompt" else rest
            return self.state.pins.get(pin, _MISSING)[:_HASH_CHARS]
        if kind == "artifact":
            try:
                return self.artifact(rest)[:_HASH_CHARS]
            except ConfigError:
                return _MISSING
        if kind == "outputs":
            node, _, key = rest.partition(".")
            run = self.latest(node)
            return _MISSING if run is None else self._hash_output(run, key)
        return self._hash_value(kind, rest, context)

    def stands(self, name: str, known: str, seq: int) -> bool:
        """Whether something that was read has not changed since.

        Results of steps: some visit that had ended by `seq` gave it. In a loop, later visits change
        nothing for earlier readers.
        """
        kind, _, rest = name.partition(".")
        if kind in WHOLE:
            return True
        if kind == "outputs":
            node, _, key = rest.partition(".")
            runs = [run for run in self._visits(node) if run.ended_seq <= seq]
            return any(self._hash_output(run, key) == known for run in runs) or (known == _MISSING and not runs)
        if kind == "artifact":
            with self._recorder.reading() as state:
                runs = [run for run in state.steps.values() if run.status == COMPLETED and run.ended_seq <= seq]
            saved = [run.artifacts[rest][:_HASH_CHARS] for run in runs if rest in run.artifacts]
            return known in saved or (known == _MISSING and not saved)
        return self.hash(name, {}) == known

    def _hash_output(self, run: StepRun, key: str) -> str:
        name = (run.checkpoint, key)
        if name not in self._hashes:
            try:
                self._hashes[name] = value_hash(self.values.get(run.outputs)[key])[:_HASH_CHARS]
            except (KeyError, CheckpointCorrupt):
                self._hashes[name] = _MISSING
        return self._hashes[name]

    def _hash_value(self, kind: str, rest: str, context: Mapping[str, Any]) -> str:
        known = {"params": self.state.params, "settings": self.state.identity, "context": context}.get(kind, {})
        return value_hash(known[rest])[:_HASH_CHARS] if rest in known else _MISSING


def fresh(value: Any, where: str = "value") -> Any:
    """A copy of a JSON value: what a body does to it, no other body and no later process would know of."""
    return decode_value(encode_value(value, where)) if isinstance(value, (dict, list, tuple)) else value


class Tracked(Mapping[str, Any]):
    """A mapping that notes the hash of each value read from it (also that a key was missing)."""

    def __init__(self, data: Mapping[str, Any], prefix: str, reads: dict[str, str]) -> None:
        self._data = data
        self._prefix = prefix
        self._reads = reads

    def __getitem__(self, key: str) -> Any:
        name = f"{self._prefix}.{key}"
        try:
            value = self._data[key]
        except KeyError:
            self._reads.setdefault(name, _MISSING)
            raise _missing(self._prefix, key, self._data) from None
        if name not in self._reads:
            self._reads[name] = value_hash(value)[:_HASH_CHARS]
        return fresh(value)

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)


def _missing(prefix: str, key: str, data: Mapping[str, Any]) -> MissingValue:
    """The error of a step that reads what there is not; names it, and what there is."""
    kind, _, step = prefix.partition(".")
    what = {"params": "The run has no parameter", "settings": "The run has no setting",
            "context": "The context has no key"}.get(kind, f"Step {step!r} has no output")  # fmt: skip
    there = get_close_matches(key, data, 3, 0.5) or list(data)[:_MOST_NAMES]
    hint = f"Known: {', '.join(there)}." if there else ""
    if kind == "params":
        hint = f"Give it with the resume: --param {key}=VALUE. {hint}".rstrip()
        return MissingValue(f"{what} {key!r}.", hint=hint, name=f"{prefix}.{key}", missing_param=key)
    return MissingValue(f"{what} {key!r}.", hint=hint, name=f"{prefix}.{key}")


def missing_param(error: BaseException | None) -> str:
    """Return the option without which a resume would miss the same parameter again; "" if it misses none."""
    name = error.data.get("missing_param") if isinstance(error, PipelineError) else ""
    return f" --param {shlex.quote(name)}=VALUE" if name else ""


class Outputs(Mapping[str, Mapping[str, Any]]):
    """Outputs of completed steps by node id; each key read is noted."""

    def __init__(self, sources: Sources, reads: dict[str, str]) -> None:
        self._sources = sources
        self._reads = reads

    def __getitem__(self, node: str) -> Mapping[str, Any]:
        return Tracked(self._sources.outputs(node), f"outputs.{node}", self._reads)

    def _done(self) -> list[str]:
        steps = list(self._sources.state.steps.values())
        return list(dict.fromkeys(run.node for run in steps if run.status == COMPLETED))

    def __iter__(self) -> Iterator[str]:
        return iter(self._done())

    def __len__(self) -> int:
        return len(self._done())
