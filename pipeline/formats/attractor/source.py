"""The texts a graph's run is made of: its own DOT text and those of its children; read, pinned, compared."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from pipeline.dot.attributes import DECIDING, GRAPH, attribute
from pipeline.dot.diagnostics import Diagnostic, Rule
from pipeline.dot.model import DotGraph
from pipeline.dot.names import names_in
from pipeline.dot.parser import parse, read_text
from pipeline.dot.rules import check_or_raise
from pipeline.dot.values import plain
from pipeline.errors import CheckpointCorrupt
from pipeline.formats.attractor.children import child_texts, from_folder, from_texts, inline_children
from pipeline.records.run import RunState
from pipeline.store.base import Store

#: Pins of a run: its DOT text, and that of each child behind the second.
DOT, CHILD = "dot", "dot:"


@dataclass(frozen=True, slots=True)
class Source:
    """A pipeline's texts."""

    text: str
    #: What errors call it: the file's name as it was given.
    name: str = "<text>"
    #: Text of each child pipeline, by the name its parents say.
    children: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path | str) -> Source:
        """A DOT file with the children that it needs, which lie below its folder.

        Raises:
            ConfigError: There is no such file.
            GraphError: It, or a child, is no graph that can be run; names file, line and column.
        """
        text = read_text(path)
        return cls(text, str(path), child_texts(_parsed(text, str(path)), from_folder(Path(path).absolute().parent)))

    @classmethod
    def stored(cls, store: Store, state: RunState) -> Source:
        """The texts a run is pinned to.

        Raises:
            CheckpointCorrupt: They are missing or damaged.
        """
        if DOT not in state.pins:
            raise CheckpointCorrupt(f"Run {state.run_id} holds no DOT graph.")
        pins = {name: blob for name, blob in state.pins.items() if name == DOT or name.startswith(CHILD)}
        texts = {name: json.loads(store.get_blob(state.run_id, blob)) for name, blob in pins.items()}
        children = {name.removeprefix(CHILD): text for name, text in texts.items() if name != DOT}
        return cls(texts[DOT], f"run {state.run_id}", children)

    def graph(self) -> DotGraph:
        """The graph with its children worked in.

        Raises:
            GraphError: A text is no graph, or a child is missing.
        """
        return inline_children(self.parsed(), from_texts(self.children))

    def parsed(self) -> DotGraph:
        """The graph as its own text says it.

        Raises:
            GraphError: It is none.
        """
        return _parsed(self.text, self.name)

    def checked(self, types: Iterable[str], extra: Iterable[Rule] = ()) -> list[Diagnostic]:
        """Warnings and remarks about the graph.

        Args:
            types: Types that something is registered for.

        Raises:
            GraphError: It cannot be run; all findings in data["diagnostics"].
        """
        return check_or_raise(self.parsed(), frozenset(types), tuple(extra))

    def pins(self) -> dict[str, str]:
        """What a run of it is pinned to."""
        return {DOT: self.text, **{f"{CHILD}{name}": text for name, text in self.children.items()}}

    def same(self, other: Source) -> bool:
        """Whether both have the same texts, wherever they lie."""
        return (self.text, dict(self.children)) == (other.text, dict(other.children))


@lru_cache(maxsize=8)
def _parsed(text: str, name: str) -> DotGraph:
    """The graph of a text, which is asked for several times in each start; nobody changes one."""
    return parse(text, name)


def attribute_changes(before: DotGraph, now: DotGraph) -> list[str]:
    """Return the names of a graph's own attributes that differ; those that decide nothing are left out.

    What the stylesheet says stands on the nodes by the time it counts.
    """
    names = [*before.attributes, *(name for name in now.attributes if name not in before.attributes)]
    named = names_in(before) | names_in(now)
    return [name for name in names if _counts(name, named) and _value(before, name) != _value(now, name)]


def _counts(name: str, named: Collection[str]) -> bool:
    known = attribute(GRAPH, name)
    return name in named or f"{GRAPH}.{name}" in named or (known is not None and known.use in DECIDING)


def _value(graph: DotGraph, name: str) -> object:
    found = graph.attributes.get(name)
    return None if found is None else plain(found)
