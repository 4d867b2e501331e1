"""The texts a graph's run is made of: its own DOT text and those of its children; read, pinned, compared."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from pipeline.dot.attributes import DECIDING, GRAPH, attribute
from pipeline.dot.diagnostics import Diagnostic
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
        """Return a DOT file with the children that it needs, which lie below its folder.

        Raises:
            ConfigError: There is no such file.
            GraphError: It, or a child, is no graph that can be run; names file, line and column.
        """
        text = read_text(path)
        return cls(text, str(path), child_texts(_parsed(text, str(path)), from_folder(Path(path).absolute().parent)))

    @classmethod
    def stored(cls, store: Store, state: RunState) -> Source:
        """Return the texts a run is pinned to.

        Raises:
            CheckpointCorrupt: They are missing or damaged.
        """
        if DOT not in state.pins:
            raise CheckpointCorrupt(f"Run {state.run_id} holds no DOT graph.", code="no_graph")
        pins = {name: blob for name, blob in state.pins.items() if name == DOT or name.startswith(CHILD)}
        texts = {name: json.loads(store.get_blob(state.run_id, blob)) for name, blob in pins.items()}
        children = {name.removeprefix(CHILD): text for name, text in texts.items() if name != DOT}
        return cls(texts[DOT], f"run {state.run_id}", children)

    def graph(self) -> DotGraph:
        """Return the graph with its children worked in.

        Raises:
            GraphError: A text is no graph, or a child is missing.
        """
        return inline_children(_parsed(self.text, self.name), from_texts(self.children))

    def checked(self, types: Iterable[str]) -> list[Diagnostic]:
        """Return the warnings and remarks about the graph.

        Args:
            types: Types that something is registered for.

        Raises:
            GraphError: It cannot be run; all findings in data["diagnostics"].
        """
        return check_or_raise(_parsed(self.text, self.name), frozenset(types))

    def pins(self) -> dict[str, str]:
        return {DOT: self.text, **{f"{CHILD}{name}": text for name, text in self.children.items()}}

    def same(self, other: Source) -> bool:
        """Return whether both have the same texts, whatever their names."""
        return (self.text, dict(self.children)) == (other.text, dict(other.children))


@lru_cache(maxsize=8)
def _parsed(text: str, name: str) -> DotGraph:
    """Return the graph of a text: each start asks for it several times, and none changes it."""
    return parse(text, name)


def attribute_changes(before: DotGraph, now: DotGraph) -> list[str]:
    """Return the names of a graph's own attributes that differ and decide something, or that its texts name.

    What the stylesheet says is on the nodes by the time it counts.
    """
    named = names_in(before) | names_in(now)
    found = []
    for name in dict.fromkeys([*before.attributes, *now.attributes]):
        known = attribute(GRAPH, name)
        counts = {name, f"{GRAPH}.{name}"} & named or (known is not None and known.use in DECIDING)
        old, new = (graph.attributes.get(name) for graph in (before, now))
        if counts and (None if old is None else plain(old)) != (None if new is None else plain(new)):
            found.append(name)
    return found
