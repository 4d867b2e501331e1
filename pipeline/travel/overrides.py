"""Values that a fork is given in the place of its parent's: which thing each names, and who has read it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, NamedTuple

from pipeline.engine import preflight
from pipeline.engine.contexts import Contexts
from pipeline.errors import ConfigError, SecretRefused
from pipeline.graph.model import Graph
from pipeline.records.redaction import holds_key
from pipeline.records.run import WHOLE, RunState, StepRun, bare
from pipeline.records.statuses import COMPLETED
from pipeline.records.values import decode_value, encode_value, read_json, value_hash
from pipeline.travel.points import Unknown
from pipeline.travel.values import Reader

PARAMS, SETTINGS, CONTEXT, OUTPUTS = "params", "settings", "context", "outputs"
_KINDS = (PARAMS, SETTINGS, CONTEXT, OUTPUTS)
_HASH_CHARS = 16
_MISSING = "missing"
_OFFLINE = "offline"


@dataclass(frozen=True, slots=True)
class Override:
    """One value given."""

    #: As reads name it: params.x, settings.x, context.x, outputs.STEP.x.
    name: str
    kind: str
    #: Key in the params, settings, context or outputs.
    key: str
    value: Any
    #: Hashes of what stood there before, as reads hold it; "missing" where nothing did.
    before: frozenset[str]
    #: Visits that carry it: those whose context or outputs hold it. () for params and settings.
    carriers: Sequence[str] = ()

    @property
    def hash(self) -> str:
        """Hash of the value, as reads would hold it."""
        return _short(self.value)


@dataclass(frozen=True, slots=True)
class Dependents:
    """What read one of the values: finished visits, and tasks as (path, task)."""

    given: Override
    paths: Sequence[str]
    tasks: Sequence[tuple[str, str]]


class Assignment(NamedTuple):
    """A value as it was asked for: of which kind of thing, its key."""

    kind: str
    key: str
    value: Any


def parse_changes(changes: Mapping[str, Any]) -> list[Assignment]:
    """Return what is asked for, by the names that people use.

    Raises:
        ConfigError: A name is empty or given twice, or a value is no JSON.
        SecretRefused: It looks like a secret.
    """
    found: dict[tuple[str, str], Assignment] = {}
    for name, value in changes.items():
        kind, dot, key = name.strip().partition(".")
        if not dot or kind not in _KINDS:
            kind, key = CONTEXT, name.strip()
        if not key or (kind, key) in found:
            raise ConfigError(
                f"--set {name!r} {'is given twice' if key else 'names nothing'}.", code="invalid_override", hint=_FORMS
            )
        plain = decode_value(encode_value(value, name))
        if holds_key(plain):
            raise SecretRefused(f"The value of {name!r} looks like a secret; secrets are never stored.")
        if kind == PARAMS:
            preflight.check_params({key: plain})
        found[kind, key] = Assignment(kind, key, plain)
    return list(found.values())


class Changes:
    """Finds what each value replaces and who has read that, over the run as it stood at the point."""

    def __init__(self, state: RunState, reader: Reader, graph: Graph | None) -> None:
        self._state = state
        self._reader = reader
        self._contexts = Contexts(graph or Graph({}, (), ""), state, Unknown())
        #: Ended visits whose end counts, in order of their ends.
        ended = [step for step in state.steps.values() if step.status == COMPLETED or step.edges]
        self._ended = sorted(ended, key=lambda step: step.ended_seq)
        self._order = {step.path: index for index, step in enumerate(self._ended)}

    def given(self, wish: Assignment) -> Override | None:
        """Return the value given, by what it is to replace; None where it is what stands there.

        Raises:
            ConfigError: There is no such setting, step or output; names those that are.
        """
        find = {PARAMS: self._param, SETTINGS: self._setting, CONTEXT: self._context, OUTPUTS: self._output}
        found = find[wish.kind](wish.key, wish.value)
        return None if found.before == {found.hash} else found

    def dependents(self, given: Override) -> Dependents:
        """Return who read what it replaces."""
        paths = [step.path for step in self._ended if self._has_read(given, step.path, step.reads)]
        tasks = [
            (path, key)
            for path, tasks in self._state.tasks.items()
            for key, task in tasks.items()
            if self._has_read(given, path, task.reads)
        ]
        return Dependents(given, paths, tasks)

    def _has_read(self, given: Override, path: str, reads: Mapping[str, str]) -> bool:
        """Return whether work with these reads was made from what stood there before."""
        known = reads.get(given.name)
        if not given.carriers:
            return known is not None and known != given.hash
        if path in given.carriers:
            return False
        if not WHOLE.isdisjoint(reads) and self._follows(path, given.carriers):
            return True
        if known not in given.before:
            return False
        # Results of a step can be read by all that came later, whichever way they came.
        return self._later(path, given.carriers) if given.kind == OUTPUTS else self._follows(path, given.carriers)

    def _later(self, path: str, carriers: Sequence[str]) -> bool:
        """Return whether a visit has not ended before a carrier and did not begin after its node's next visit."""
        order, begun = self._order, self._state.steps[path].started_seq if path in self._state.steps else 0
        for carrier in carriers:
            step = self._state.steps[carrier]
            newer = (other for other in self._ended if other.node == step.node and other.visit > step.visit)
            if order.get(path, len(order)) > order[carrier] and not any(begun > other.ended_seq for other in newer):
                return True
        return False

    def _param(self, key: str, value: Any) -> Override:
        return Override(f"{PARAMS}.{key}", PARAMS, key, value, _of(self._state.params, key))

    def _setting(self, key: str, value: Any) -> Override:
        known = self._state.identity
        if key not in known:
            raise ConfigError(
                f"The run has no setting {key!r}.",
                code="unknown_override",
                hint=f"It has {', '.join(known) or 'none'}.",
            )
        author = known.get("author")
        if key == "author" or (key == "model" and author and (author == _OFFLINE) != (value == _OFFLINE)):
            raise ConfigError(
                f"The run was written by {known.get('model')}; a draft and work by a model are never mixed.",
                code="other_author",
                hint="Start a new run with that model.",
            )
        return Override(f"{SETTINGS}.{key}", SETTINGS, key, value, _of(known, key))

    def _output(self, rest: str, value: Any) -> Override:
        """Return the key of the newest finished visit of a step, which may have dots in its name."""
        parts = rest.split(".")
        for cut in range(len(parts) - 1, 0, -1):
            step = self._visit(".".join(parts[:cut]))
            if step is None:
                continue
            key, outputs = ".".join(parts[cut:]), self._reader.whole(step.outputs)
            if key not in outputs:
                raise ConfigError(
                    f"{bare(step.path)} has no output {key!r}.",
                    code="unknown_override",
                    hint=f"It has {', '.join(outputs) or 'none'}.",
                )
            return Override(f"{OUTPUTS}.{step.node}.{key}", OUTPUTS, key, value, _of(outputs, key), [step.path])
        names = ", ".join(dict.fromkeys(bare(step.path) for step in self._ended)) or "none"
        raise ConfigError(
            f"--set outputs.{rest}: no such step had ended by that point.",
            code="unknown_override",
            hint=f"Ended: {names}. {_FORMS}",
        )

    def _visit(self, name: str) -> StepRun | None:
        fits = [step for step in self._ended if name in (step.path, bare(step.path), step.node)]
        return fits[-1] if fits else None

    def _context(self, key: str, value: Any) -> Override:
        """Return the key as it stands where the run goes on: carried by who set it, or else by what ended last."""
        ends = self._ends()
        setters = list(dict.fromkeys(filter(None, (self._contexts.setter(path, key) for path in ends))))
        carriers = setters or ends
        if not carriers:
            raise ConfigError(
                f"Nothing has ended by that point that could carry the context key {key!r}.",
                code="no_carrier",
                hint="Fork at a later point, or set a parameter: --set params.NAME=VALUE.",
            )
        values = [self._reader.whole(self._state.steps[path].context[key]) for path in setters]
        before = frozenset(map(_short, values)) or frozenset({_MISSING})
        return Override(f"{CONTEXT}.{key}", CONTEXT, key, value, before, carriers)

    def _ends(self) -> list[str]:
        """Return the visits from which the run goes on: sources of edges that no ended visit has taken, and ends."""
        sources = [token.source for token in self._state.waiting.values()]
        taken: set[str] = set()
        for step in self._state.steps.values():
            counts = step.status == COMPLETED or step.edges
            (taken.update if counts else sources.extend)(source for _, source in step.consumed)
        sources += [step.path for step in self._ended if step.path not in taken]
        return [path for path in dict.fromkeys(sources) if path]

    def _follows(self, path: str, carriers: Sequence[str]) -> bool:
        """Return whether a visit came from one of the carriers."""
        todo, seen = [path], {path}
        while todo:
            step = self._state.steps.get(todo.pop())
            for _, source in step.consumed if step is not None else ():
                if source in carriers:
                    return True
                if source and source not in seen:
                    seen.add(source)
                    todo.append(source)
        return False


def names_read(state: RunState) -> set[str]:
    """Return all that the steps and tasks of a run have read (params.x, context.x, …)."""
    found = {name for step in state.steps.values() for name in step.reads}
    return found | {name for tasks in state.tasks.values() for task in tasks.values() for name in task.reads}


def unknown_names(state: RunState, given: Sequence[Override]) -> dict[str, list[str]]:
    """Return the names that nothing has read or set by then, each with similar names that were."""
    known = names_read(state)
    known |= {f"{PARAMS}.{name}" for name in state.params}
    known |= {f"{CONTEXT}.{name}" for step in state.steps.values() for name in step.context}
    found = {}
    for each in given:
        if each.kind in (PARAMS, CONTEXT) and each.name not in known:
            # A parameter that was named as a context key is.
            meant = [name for name in (f"{PARAMS}.{each.key}",) if each.kind == CONTEXT and name in known]
            keys = {name.partition(".")[2]: name for name in known if name.startswith(f"{each.kind}.")}
            found[each.name] = meant or [keys[key] for key in get_close_matches(each.key, keys, 3, 0.6)]
    return found


_FORMS = "Name params.NAME, settings.NAME, outputs.STEP.KEY, or a context key."


def _of(values: Mapping[str, Any], key: str) -> frozenset[str]:
    return frozenset({_short(values[key]) if key in values else _MISSING})


def _short(value: Any) -> str:
    return value_hash(value)[:_HASH_CHARS]


def read_assignments(texts: Sequence[str]) -> dict[str, Any]:
    """Return KEY=VALUE texts as a mapping; a value that is JSON is read as JSON, anything else is text.

    Raises:
        ConfigError: A text has no "=", or nothing before it.
    """
    found: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise ConfigError(f"Invalid --set {text!r}; use KEY=VALUE.", code="invalid_override", hint=_FORMS)
        try:
            found[name.strip()] = read_json(value)
        except ValueError:
            found[name.strip()] = value
    return found
