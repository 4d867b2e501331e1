"""A DAG of tasks: read, checked, and its layers. Pure; the code of a task's tool is elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Any

from pipeline.errors import GraphError

#: What paths, edge ids and the nodes of gates are made of.
_MARKS = ("#", "/", "->")
GATE_MARK = "@"
_EFFECTS = ("pure", "read", "write", "external")
#: Other spellings of a task's names, as its system writes them.
_SPELLINGS = {"dependsOn": "depends_on", "safeToFail": "safe_to_fail"}
#: Statuses of tasks that have ended.
SUCCESS, ERROR, FAILED_SAFE = "success", "error", "failed_safe"


@dataclass(frozen=True, slots=True)
class DagTask:
    """One task: a tool, its arguments, and the tasks whose results it needs."""

    #: Unique in its DAG; no "#", "/" or "->", and not beginning with "@".
    id: str
    #: The tool's name; given as "": its own id.
    tool: str = ""
    #: JSON values for the tool.
    arguments: Mapping[str, Any] = field(default_factory=dict)
    #: Ids of the tasks whose results it needs.
    depends_on: Sequence[str] = ()
    #: Its failure is a warning: the others continue and see null.
    safe_to_fail: bool = False
    #: pure, read, write or external: what it does outside the run.
    effect: str = "read"
    #: May write/external work with an unknown outcome be repeated?
    repeatable: bool = False
    #: Raise it when the tool gives other results for the same arguments.
    version: int = 1
    #: Other names of the task's document, kept as they came.
    extra: Mapping[str, Any] = field(default_factory=dict)
    #: The code itself, where no tool of that name is given; never stored.
    run: Callable[[Any], Any] | None = field(default=None, compare=False)

    def to_json(self) -> dict[str, Any]:
        """Return the task's document; names at their default are left out, except the first four."""
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
        """Return the task of a document {id, tool|run, arguments, depends_on|dependsOn}.

        Raises:
            GraphError: A name has a value that it cannot have; names the task.
        """
        if not isinstance(task, DagTask):
            task = _read(task)
        if problem := _problem(task):
            raise GraphError(f"Task {task.id!r}: {problem}.", code="invalid_task", task=task.id)
        return DagTask(
            task.id, task.tool or task.id, dict(task.arguments), tuple(dict.fromkeys(task.depends_on)),
            task.safe_to_fail, task.effect, task.repeatable, task.version, dict(task.extra), task.run,
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
            raise GraphError('A DAG is {"tasks": [{"id", "tool", "arguments", "depends_on"}, …]}.', code="invalid_dag")
        self.tasks: dict[str, DagTask] = {}
        for task in map(DagTask.of, found):
            if task.id in self.tasks:
                raise GraphError(f"Duplicate task {task.id!r}.", code="duplicate_task", task=task.id)
            self.tasks[task.id] = task
        self._check()

    @classmethod
    def of(cls, dag: Any) -> Dag:
        """Return the DAG itself, or that of what the constructor takes."""
        return dag if isinstance(dag, Dag) else cls(dag)

    @classmethod
    def known(cls, documents: Iterable[Mapping[str, Any]]) -> Dag:
        """Return the DAG of task documents that `to_json` wrote and that were checked then."""
        made = cls.__new__(cls)
        made.tasks = {str(document["id"]): _known(document) for document in documents}
        return made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Dag) and list(self.tasks.items()) == list(other.tasks.items())

    __hash__ = None  # type: ignore[assignment]

    def _check(self) -> None:
        if not self.tasks:
            raise GraphError("The DAG has no tasks.", code="empty_dag")
        for task in self.tasks.values():
            if unknown := [name for name in task.depends_on if name not in self.tasks]:
                names = ", ".join(map(repr, unknown))
                raise GraphError(
                    f"Task {task.id!r} depends on {names}, which the DAG does not have.",
                    code="unknown_dependency",
                    task=task.id,
                )
        try:
            self._sorter.prepare()
        except CycleError as error:
            place = {name: index for index, name in enumerate(self.tasks)}
            cycle = error.args[1][:-1]
            first = min(range(len(cycle)), key=lambda index: place[cycle[index]])
            cycle = cycle[first:] + cycle[:first]
            raise GraphError(f"These tasks wait for each other: {' → '.join([*cycle, cycle[0]])}.",
                             code="dependency_cycle", tasks=cycle) from None  # fmt: skip

    @property
    def _sorter(self) -> TopologicalSorter[str]:
        return TopologicalSorter({task.id: task.depends_on for task in self.tasks.values()})

    @cached_property
    def layers(self) -> list[list[str]]:
        """Return ids by layer: a task is one layer behind the last of what it depends on. A view, no barrier."""
        table: list[list[str]] = [[] for _ in range(max(self.layer_of.values(), default=-1) + 1)]
        for name, layer in self.layer_of.items():
            table[layer].append(name)
        return table

    @cached_property
    def layer_of(self) -> Mapping[str, int]:
        """Return the layer of each task, by id, in order of declaration."""
        depth: dict[str, int] = {}
        for name in self._sorter.static_order():
            depth[name] = 1 + max((depth[before] for before in self.tasks[name].depends_on), default=-1)
        return {name: depth[name] for name in self.tasks}

    @cached_property
    def in_order(self) -> Sequence[str]:
        """Return ids layer by layer, within one in order of declaration: the same in every process."""
        return [name for layer in self.layers for name in layer]

    @cached_property
    def _dependents(self) -> Mapping[str, Sequence[str]]:
        table: dict[str, list[str]] = {name: [] for name in self.tasks}
        for task in self.tasks.values():
            for before in task.depends_on:
                table[before].append(task.id)
        return table

    def behind(self, names: Iterable[str]) -> set[str]:
        """Return the tasks that need one of these, directly or not; themselves not included."""
        found: set[str] = set()
        ahead = list(names)
        while ahead:
            more = set(self._dependents.get(ahead.pop(), ())) - found
            found |= more
            ahead += more
        return found

    def layers_done(self, done: Iterable[str]) -> int:
        """Return how many leading layers hold only tasks of these; a run continues with the layer of that index."""
        finished = set(done)
        return next(
            (index for index, layer in enumerate(self.layers) if not finished.issuperset(layer)), len(self.layers)
        )

    def to_json(self) -> dict[str, Any]:
        """Return {"tasks": [...]} without code."""
        return {"tasks": [task.to_json() for task in self.tasks.values()]}


_NAMES = frozenset(DagTask.__slots__) - {"extra"}


def _known(document: Mapping[str, Any]) -> DagTask:
    named = {name: value for name, value in document.items() if name in _NAMES}
    if len(named) < len(document):
        named["extra"] = {name: value for name, value in document.items() if name not in _NAMES}
    return DagTask(**{**named, "depends_on": tuple(document["depends_on"])})


def _read(document: Any) -> DagTask:
    if not isinstance(document, Mapping):
        raise GraphError(f"A task is an object, not {document!r:.60}.", code="invalid_task")
    found = {_SPELLINGS.get(str(name), str(name)): value for name, value in document.items()}
    if not isinstance(found.get("id"), str):
        raise GraphError(f"A task has no id that is text: {dict(document)!r:.80}.", code="invalid_task")
    known = {name: value for name, value in found.items() if name in _NAMES and value is not None}
    if isinstance(known.get("run"), str):
        # The name of a tool.
        known["tool"] = known.get("tool") or known.pop("run")
    return DagTask(**known, extra={name: value for name, value in found.items() if name not in _NAMES})


def _problem(task: DagTask) -> str:
    if not task.id or task.id.startswith(GATE_MARK) or any(mark in task.id for mark in _MARKS):
        return "an id is not empty, holds no '#', '/' or '->', and does not begin with '@'"
    if not isinstance(task.tool, str):
        return "its tool is not a name"
    if not isinstance(task.arguments, Mapping) or not isinstance(task.extra, Mapping):
        return "its arguments are not an object"
    depends = task.depends_on
    if isinstance(depends, str) or not isinstance(depends, Sequence) or not all(isinstance(d, str) for d in depends):
        return "depends_on is not a list of ids"
    if task.run is not None and not callable(task.run):
        return "run is not a function"
    if task.effect not in _EFFECTS:
        return f"its effect {task.effect!r} is none of {', '.join(_EFFECTS)}"
    if type(task.version) is not int or type(task.safe_to_fail) is not bool or type(task.repeatable) is not bool:
        return "version is a whole number, safe_to_fail and repeatable are true or false"
    return ""
