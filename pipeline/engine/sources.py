"""What a body can read, each under a name; reads are noted with the hash of what was seen."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from pipeline.engine.recorder import Recorder
from pipeline.errors import CheckpointCorrupt, ConfigError, MissingValue, Pause, PipelineError
from pipeline.llm.base import Request
from pipeline.records.codec import decode_line
from pipeline.records.kinds import CallStarted, Fact, TaskCompleted
from pipeline.records.run import WHOLE, CallRun, RunState, StepRun, slot_of
from pipeline.records.statuses import COMPLETED
from pipeline.records.values import canonical, decode_value, encode_value, resolve_value, value_hash
from pipeline.store.base import Store

_MISSING = "missing"
_HASH_CHARS = 16
#: Names that are listed where none is like the one that is missing.
_MOST_NAMES = 10
#: Why the edges of a visit that came out the same were chosen, as recorded.
UNCHANGED = "unchanged"


@dataclass(slots=True)
class Scope:
    """Whose calls and reads: a step visit or a task in it, and its attempt."""

    path: str
    task: str | None
    attempt: int
    #: Equal asks so far in this attempt, by request hash.
    counts: dict[str, int] = field(default_factory=dict)
    reads: dict[str, str] = field(default_factory=dict)
    #: Names of the tasks begun in this execution of the body, by map; each name is unique.
    used: dict[str, list[Sequence[str]]] = field(default_factory=dict)
    #: Event set once a reply of this scope is recorded (used to warm a shared prompt prefix).
    answered: Any = None
    #: How many recorded replies this execution of the body was given, and how many answers it bought.
    heard: int = 0
    bought: int = 0
    #: The last reply under a schema is not what the schema allows.
    unfit: bool = False
    #: Replies that the body did not accept: request hash, and which of equal asks.
    rejected: list[tuple[str, str]] = field(default_factory=list)
    #: What paused this body.
    paused: Pause | None = None
    #: Equal queries to the user's memory so far, and what was written to it.
    queries: dict[str, int] = field(default_factory=dict)
    writes: list[dict[str, Any]] = field(default_factory=list)

    def slot(self, state: RunState) -> tuple[str, str | None, int]:
        """Return where the replies that it is given are kept."""
        return slot_of(state, self.path, self.task, self.attempt)

    def leave_if_paused(self) -> None:
        """Raise the pause that a body swallowed: what it made without an answer is not kept."""
        if self.paused is not None:
            raise self.paused

    def tell_answered(self) -> None:
        """Release the threads that wait for the first reply of this scope."""
        if self.answered is not None:
            self.answered.set()


class Values:
    """Recorded values: follows blob references, reads long ones back."""

    def __init__(self, recorder: Recorder, store: Store) -> None:
        self._recorder = recorder
        self._store = store

    def get(self, value: Any) -> Any:
        """Return the value itself, read back if it is a reference."""
        return resolve_value(value, self._recorder.journal.get_blob)

    def at(self, seq: int) -> Any:
        """Return the task value that the record with this seq holds.

        Raises:
            CheckpointCorrupt: It is not there any more.
        """
        fact = fact_at(self._store, self._recorder.journal.run_id, seq)
        if not isinstance(fact, TaskCompleted):
            raise CheckpointCorrupt(
                f"Run {self._recorder.journal.run_id}: the value recorded as {seq} cannot be read back.",
                code="value_lost",
            )
        return self.get(json.loads(fact.value))

    def request(self, seq: int) -> Request | None:
        """Return the request that the record with this seq sent; None: it is not there any more."""
        fact = fact_at(self._store, self._recorder.journal.run_id, seq)
        try:
            return Request.from_json(self.blob(fact.request)) if isinstance(fact, CallStarted) else None
        except CheckpointCorrupt:
            return None

    def blob(self, name: str) -> Any:
        """Return the JSON value stored under a hash."""
        return json.loads(self._recorder.journal.get_blob(name))


def fact_at(store: Store, run: str, seq: int) -> Fact | None:
    """Return the fact that a run recorded with this seq; None: it is not there any more."""
    line = next(iter(store.read(run, after=seq - 1)), None)
    return None if line is None else decode_line(line).fact


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

    def _visits(self, node: str) -> Iterator[StepRun]:
        """Yield the completed visits of a node, newest first."""
        with self._recorder.reading() as state:
            paths = (f"{node}#{visit}" for visit in range(state.visits.get(node, 0), 0, -1))
            runs = [run for path in paths if (run := state.steps.get(path)) is not None]
        return (run for run in runs if run.status == COMPLETED)

    def pinned(self, name: str) -> Any:
        """Return a value the run is pinned to.

        Raises:
            ConfigError: The run has no such pin.
        """
        if name not in self._pins:
            blob = self.state.pins.get(name)
            if blob is None:
                text, hint = f"This run is not pinned to {name!r}.", _known(name, list(self.state.pins))
                raise ConfigError(text, code="unknown_pin", hint=hint)
            self._pins[name] = self.values.blob(blob)
        return fresh(self._pins[name])

    def load(self, name: str) -> Any:
        """Return the newest artifact of that name.

        Raises:
            ConfigError: No step has saved it.
        """
        blob = self._artifact(name)
        if blob is None:
            with self._recorder.reading() as state:
                there = [each for run in state.steps.values() for each in run.artifacts]
            text = f"No step has saved an artifact {name!r}."
            raise ConfigError(text, code="unknown_artifact", hint=_known(name, there))
        return self.values.blob(blob)

    def _artifact(self, name: str) -> str | None:
        with self._recorder.reading() as state:
            for run in reversed(state.steps.values()):
                if run.status == COMPLETED and name in run.artifacts:
                    return run.artifacts[name]
        return None

    def outputs(self, node: str) -> Mapping[str, Any]:
        """Return the outputs of the newest completed visit of a node.

        Raises:
            MissingValue: There is none.
        """
        run = next(self._visits(node), None)
        if run is None:
            raise MissingValue(f"Step {node!r} has not completed yet, so it has no outputs.", name=node)
        result: Mapping[str, Any] = self.values.get(run.outputs)
        return result

    def hash(self, name: str, context: Mapping[str, Any]) -> str:
        """Return the short hash of what `name` refers to now; "missing" where there is nothing."""
        kind, _, rest = name.partition(".")
        if kind in ("prompt", "pin"):
            pin = f"prompt:{rest}" if kind == "prompt" else rest
            return self.state.pins.get(pin, _MISSING)[:_HASH_CHARS]
        if kind == "artifact":
            return (self._artifact(rest) or _MISSING)[:_HASH_CHARS]
        if kind == "outputs":
            node, _, key = rest.partition(".")
            run = next(self._visits(node), None)
            return _MISSING if run is None else self._hash_output(run, key)
        known = {"params": self.state.params, "settings": self.state.identity, "context": context}.get(kind, {})
        return value_hash(known[rest])[:_HASH_CHARS] if rest in known else _MISSING

    def stands(self, name: str, known: str, seq: int) -> bool:
        """Return whether something that was read has not changed since.

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

    def unchanged(
        self, former: StepRun, consumed: Sequence[Sequence[str]], version: int, seen: Mapping[str, Any]
    ) -> bool:
        """Return whether a visit, as it was when it became void, read nothing but what is the same now.

        Args:
            consumed: The tokens that the visit consumes now.
            seen: The context as it is seen now.
        """
        if former.version != version or not WHOLE.isdisjoint(former.reads):
            return False
        if sorted(map(tuple, former.consumed)) != sorted(map(tuple, consumed)):
            return False
        return all(self.hash(name, seen) == known for name, known in former.reads.items())

    def _hash_output(self, run: StepRun, key: str) -> str:
        name = (run.checkpoint, key)
        if name not in self._hashes:
            try:
                self._hashes[name] = value_hash(self.values.get(run.outputs)[key])[:_HASH_CHARS]
            except (KeyError, CheckpointCorrupt):
                self._hashes[name] = _MISSING
        return self._hashes[name]


def fresh(value: Any, where: str = "value") -> Any:
    """Return a copy of a JSON value, so that no body sees what another does to it."""
    return decode_value(encode_value(value, where)) if isinstance(value, (dict, list, tuple)) else value


def tries_of(
    asks: Mapping[tuple[str, int], Sequence[CallRun]], request: Request, n: int, values: Values
) -> Sequence[CallRun]:
    """Return the recorded tries of the n-th equal ask of an attempt.

    Earlier versions left a schema without an id out of the hash: of their records those with the same schema count.
    """
    key, former = request.hash(), request.former_hash()
    if key == former or (former, 1) not in asks:
        return asks.get((key, n), ())
    recorded = sorted(ask for ask in asks if ask[0] == former)
    same = [asks[ask] for ask in recorded if _had_schema(asks[ask], request, values)]
    return same[n - 1] if n <= len(same) else asks.get((key, n), ())


def _had_schema(tries: Sequence[CallRun], request: Request, values: Values) -> bool:
    sent = next((call.request for call in tries if call.request), "")
    return not sent or canonical(values.blob(sent).get("schema")) == canonical(request.schema)


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
    kind, _, step = prefix.partition(".")
    what = {"params": "The run has no parameter", "settings": "The run has no setting",
            "context": "The context has no key"}.get(kind, f"Step {step!r} has no output")  # fmt: skip
    hint = _known(key, list(data))
    more = {}
    if kind == "params":
        hint = f"Give it with the resume: --param {key}=VALUE. {hint}".rstrip()
        more = {"missing_param": key}
    return MissingValue(f"{what} {key!r}.", hint=hint, name=f"{prefix}.{key}", **more)


def _known(name: str, names: Sequence[str]) -> str:
    """Return the names that are like one that is missing, or the first there are."""
    there = get_close_matches(name, names, 3, 0.5) or list(names)[:_MOST_NAMES]
    return f"Known: {', '.join(there)}." if there else ""


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

    def _done(self) -> dict[str, None]:
        steps = list(self._sources.state.steps.values())
        return dict.fromkeys(run.node for run in steps if run.status == COMPLETED)

    def __iter__(self) -> Iterator[str]:
        return iter(self._done())

    def __len__(self) -> int:
        return len(self._done())
