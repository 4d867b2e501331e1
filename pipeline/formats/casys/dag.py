"""A DAG of tasks: read, checked, and its layers. Pure; what a task's tool does stands elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pipeline.errors import GraphError

#: What paths, edge ids and the nodes of gates are made of.
_MARKS = ("#", "/", "->")
GATE_MARK = "@"
_EFFECTS = ("pure", "read", "write", "external")
#: Other spellings of a task's names, as its system writes them.
_SPELLINGS = {"dependsOn": "depends_on", "safeToFail": "safe_to_fail"}


@dataclass(frozen=True, slots=True)
class DagTask:
    """One task: a tool, what it is given, and what must be there before."""

    #: Unique in its DAG; no "#", "/" or "->", and not beginning with "@".
    id: str
    #: The tool's name; "" as given: its own id.
    tool: str = ""
    #: JSON values for the tool.
    arguments: Mapping[str, Any] = field(default_factory=dict)
    #: Ids of the tasks whose results it needs.
    depends_on: Sequence[str] = ()
    #: Its failure is a warning: the others go on and see null.
    safe_to_fail: bool = False
    #: pure, read, write or external: what it does outside the run.
    effect: str = "read"
    #: May write/external work whose end is unknown be done again?
    repeatable: bool = False
    #: Raise it when the tool gives other results for the same arguments.
    version: int = 1
    #: Other names of the task's document, kept as they came.
    extra: Mapping[str, Any] = field(default_factory=dict)
    #: The code itself, where no tool of that name is given; never stored.
    run: Callable[[Any], Any] | None = field(default=None, compare=False)

    def to_json(self) -> dict[str, Any]:
        """The task's document; names at their default are left out, but for the first four."""
        out: dict[str, Any] = {
            "id": self.id,
            "tool": self.tool,
            "arguments": dict(self.arguments),
            "depends_on": list(self.depends_on),
        }
        for name, usual in (("safe_to_fail", False), ("effect", "read"), ("repeatable", False), ("version", 1)):
            if getattr(self, name) != usual:
                out[name] = getattr(self, name)
        return {**out, **self.extra}

    @classmethod
    def of(cls, task: DagTask | Mapping[str, Any]) -> DagTask:
        """The task of a document {id, tool|run, arguments, depends_on|dependsOn}.

        Raises:
            GraphError: A name has no meaning it could have; names the task.
        """
        if not isinstance(task, DagTask):
            task = _read(task)
        if problem := _task_problem(task):
            raise GraphError(f"Task {task.id!r}: {problem}.", task=task.id)
        tool = task.tool or task.id
        return DagTask(
            task.id, tool, dict(task.arguments), tuple(dict.fromkeys(task.depends_on)), task.safe_to_fail,
            task.effect, task.repeatable, task.version, dict(task.extra), task.run,
        )  # fmt: skip


class Dag:
    """Tasks by id, in order of declaration; checked: no duplicate, no unknown dependency, no cycle."""

    def __init__(self, dag: Mapping[str, Any] | Iterable[DagTask | Mapping[str, Any]]) -> None:
        """Read {"tasks": [...]}, or the tasks alone.

        Raises:
            GraphError: It cannot be run; names the tasks at fault.
        """
        found = dag.get("tasks") if isinstance(dag, Mapping) else dag
        if isinstance(found, (str, bytes, Mapping)) or not isinstance(found, Iterable):
            raise GraphError('A DAG is {"tasks": [{"id", "tool", "arguments", "depends_on"}, …]}.')
        self.tasks: dict[str, DagTask] = {}
        for task in map(DagTask.of, found):
            if task.id in self.tasks:
                raise GraphError(f"Two tasks have the id {task.id!r}.", task=task.id)
            self.tasks[task.id] = task
        self._check()

    @classmethod
    def of(cls, dag: Any) -> Dag:
        """The DAG itself, or that of what the constructor takes."""
        return dag if isinstance(dag, Dag) else cls(dag)

    @classmethod
    def known(cls, documents: Iterable[Mapping[str, Any]]) -> Dag:
        """The DAG of task documents that `to_json` wrote and that were checked then."""
        made = cls.__new__(cls)
        made.tasks = {str(document["id"]): _known(document) for document in documents}
        return made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Dag) and list(self.tasks.items()) == list(other.tasks.items())

    __hash__ = None  # type: ignore[assignment]

    def _check(self) -> None:
        if not self.tasks:
            raise GraphError("The DAG has no tasks.")
        for task in self.tasks.values():
            if unknown := [name for name in task.depends_on if name not in self.tasks]:
                names = ", ".join(map(repr, unknown))
                raise GraphError(f"Task {task.id!r} depends on {names}, which the DAG does not have.", task=task.id)
        if cycle := self._cycle():
            raise GraphError(f"These tasks wait for each other: {' → '.join([*cycle, cycle[0]])}.", tasks=cycle)

    @cached_property
    def layers(self) -> list[list[str]]:
        """Ids by layer: a task stands one layer behind the last of what it depends on. A view, no barrier."""
        table: list[list[str]] = []
        for name, layer in self.layer_of.items():
            while len(table) <= layer:
                table.append([])
            table[layer].append(name)
        return table

    @cached_property
    def layer_of(self) -> Mapping[str, int]:
        """The layer of each task, by id, in order of declaration."""
        depth: dict[str, int] = {}
        for name in self._sorted():
            depth[name] = 1 + max((depth[before] for before in self.tasks[name].depends_on), default=-1)
        return {name: depth[name] for name in self.tasks}

    @cached_property
    def dependents(self) -> Mapping[str, Sequence[str]]:
        """Ids of the tasks that need a task, by its id."""
        table: dict[str, list[str]] = {name: [] for name in self.tasks}
        for task in self.tasks.values():
            for before in task.depends_on:
                table[before].append(task.id)
        return table

    @cached_property
    def in_order(self) -> Sequence[str]:
        """Ids layer by layer, within one in order of declaration: the same in every process."""
        return [name for layer in self.layers for name in layer]

    def behind(self, names: Iterable[str]) -> set[str]:
        """The tasks that need one of these, directly or not; themselves not included."""
        found: set[str] = set()
        ahead = list(names)
        while ahead:
            for after in self.dependents.get(ahead.pop(), ()):
                if after not in found:
                    found.add(after)
                    ahead.append(after)
        return found

    def layers_done(self, done: Iterable[str]) -> int:
        """How many leading layers hold only tasks of these; a run goes on with the layer of that index."""
        finished = set(done)
        for index, layer in enumerate(self.layers):
            if not finished.issuperset(layer):
                return index
        return len(self.layers)

    def to_json(self) -> dict[str, Any]:
        """{"tasks": [...]} without code."""
        return {"tasks": [task.to_json() for task in self.tasks.values()]}

    def _sorted(self) -> Iterator[str]:
        """Ids, each behind what it depends on; those of a cycle are left out. Without recursion, DAGs may be deep."""
        missing = {name: len(task.depends_on) for name, task in self.tasks.items()}
        ahead = [name for name, count in missing.items() if not count]
        for name in ahead:
            yield name
            for after in self.dependents[name]:
                missing[after] -= 1
                if not missing[after]:
                    ahead.append(after)

    def _cycle(self) -> list[str]:
        """One cycle, from task to what waits for it; [] where there is none."""
        left = set(self.tasks) - set(self._sorted())
        if not left:
            return []
        name = next(name for name in self.tasks if name in left)
        seen: dict[str, None] = {}
        while name not in seen:
            seen[name] = None
            name = next(before for before in self.tasks[name].depends_on if before in left)
        walk = list(seen)
        cycle = walk[walk.index(name) :][::-1]
        first = min(range(len(cycle)), key=lambda place: list(self.tasks).index(cycle[place]))
        return cycle[first:] + cycle[:first]


_NAMES = frozenset(DagTask.__slots__) - {"extra"}


def _known(document: Mapping[str, Any]) -> DagTask:
    named = {name: value for name, value in document.items() if name in _NAMES}
    if len(named) < len(document):
        named["extra"] = {name: value for name, value in document.items() if name not in _NAMES}
    return DagTask(**{**named, "depends_on": tuple(document["depends_on"])})


def _read(document: Any) -> DagTask:
    if not isinstance(document, Mapping):
        raise GraphError(f"A task is an object, not {document!r:.60}.")
    found = {_SPELLINGS.get(str(name), str(name)): value for name, value in document.items()}
    if not isinstance(found.get("id"), str):
        raise GraphError(f"A task has no id that is text: {dict(document)!r:.80}.")
    known = {name: value for name, value in found.items() if name in _NAMES and value is not None}
    run = known.get("run")
    if isinstance(run, str):
        # The name of a tool.
        known["tool"] = known.get("tool") or known.pop("run")
    extra = {name: value for name, value in found.items() if name not in _NAMES}
    return DagTask(**known, extra=extra)


def _task_problem(task: DagTask) -> str:
    if not task.id or task.id.startswith(GATE_MARK) or any(mark in task.id for mark in _MARKS):
        return "an id is not empty, holds no '#', '/' or '->', and does not begin with '@'"
    if not isinstance(task.tool, str):
        return "its tool is no name"
    if not isinstance(task.arguments, Mapping) or not isinstance(task.extra, Mapping):
        return "its arguments are no object"
    depends = task.depends_on
    if isinstance(depends, str) or not isinstance(depends, Sequence) or not all(isinstance(d, str) for d in depends):
        return "depends_on is no list of ids"
    if task.run is not None and not callable(task.run):
        return "run is no function"
    if task.effect not in _EFFECTS:
        return f"its effect {task.effect!r} is none of {', '.join(_EFFECTS)}"
    if type(task.version) is not int or type(task.safe_to_fail) is not bool or type(task.repeatable) is not bool:
        return "version is a whole number, safe_to_fail and repeatable are true or false"
    return ""
