"""Which visits of fan-outs a visit lies in: what a gathering node waits for, and what it gathers."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from pipeline.graph.model import Graph
from pipeline.records.run import StepRun

#: An edge id and the path of the visit that chose it.
Consumed = Iterable[Sequence[str]]


class Tracks:
    """Follows tokens back to the fan-outs they began in.

    A node says in attributes["fan"] which fan-out it lies in (in "fans" all of them, where those do
    not lie in each other); the node that gathers says in attributes["scope"] which one (or which of
    several) it gathers. A track that goes on to a node outside its fan-out has left it.
    """

    def __init__(self, graph: Graph, steps: Mapping[str, StepRun]) -> None:
        """Take `steps`, which is read live."""
        self._graph = graph
        self._steps = steps
        self._fans = {name: fan for name, node in graph.nodes.items() if (fan := node.attributes.get("fan"))}
        #: Gathering node → the fan-outs it gathers.
        self.gathers: Mapping[str, Collection[str]] = {
            name: found
            for name, node in graph.nodes.items()
            if (found := _names(node.attributes.get("scope")) & graph.nodes.keys())
        }
        self._gathered = {fan for found in self.gathers.values() for fan in found}
        self._chains: dict[str, frozenset[str]] = {}
        #: Path → seq of its start, and what it lies in.
        self._known: dict[str, tuple[int, tuple[str, ...]]] = {}

    def around(self, path: str) -> tuple[str, ...]:
        """Return visits of gathered fan-outs that a visit lies in, outermost first."""
        run = self._steps.get(path)
        if run is None or not self._chain(run.node):
            return ()
        # Without recursion: a branch may be long.
        todo = [path]
        while todo:
            at = todo[-1]
            run = self._steps.get(at)
            if run is None or self._fresh(at, run) is not None:
                todo.pop()
                continue
            missing = [source for _, source in run.consumed if self._unknown(source)]
            if missing and self._chain(run.node):
                todo.extend(missing)
                continue
            self._known[at] = (run.started_seq, self.of(run.node, run.consumed))
            todo.pop()
        return self._known[path][1]

    def of(self, node: str, consumed: Consumed) -> tuple[str, ...]:
        """Return what `around` does, for a visit of a node that consumes these tokens."""
        chain = self._chain(node)
        if not chain:
            return ()
        inside = (fan for _, source in consumed for fan in self._from(source) if self._node(fan) in chain)
        return tuple(dict.fromkeys(inside))

    def lies_in(self, fan: str, node: str, source: str) -> bool:
        """Return whether a token on its way to a node still belongs to the visit of a fan-out."""
        belongs = self._node(fan) in self._chain(node) or self._node(fan) in self.gathers.get(node, ())
        return belongs and fan in self._from(source)

    def group(self, node: str, source: str) -> str:
        """Return the visit of a fan-out whose branch arrives at a gathering node; "" for a token from elsewhere."""
        gathered = self.gathers.get(node, ())
        found = [fan for fan in self._from(source) if self._node(fan) in gathered] if gathered else []
        return found[-1] if found else ""

    def branch(self, fan: str, source: str) -> str:
        """Return the edge by which the track began that led from the visit of a fan-out to the visit `source`.

        "": `source` is that visit.
        """
        todo, seen = [source], {source}
        for at in todo:
            run = self._steps.get(at)
            for edge, before in run.consumed if run is not None and at != fan else ():
                if before == fan:
                    return edge
                if before not in seen:
                    seen.add(before)
                    todo.append(before)
        return ""

    def gathers_visit(self, node: str, fan: str) -> bool:
        """Return whether a node gathers the branches of a fan-out's visit."""
        return self._node(fan) in self.gathers.get(node, ())

    def _from(self, source: str) -> tuple[str, ...]:
        """Return what a token lies in when it leaves the visit `source`."""
        run = self._steps.get(source)
        if run is None:
            return ()
        around = self.around(source)
        return (*around, source) if run.node in self._gathered else around

    def _unknown(self, source: str) -> bool:
        run = self._steps.get(source)
        return run is not None and bool(self._chain(run.node)) and self._fresh(source, run) is None

    def _fresh(self, path: str, run: StepRun) -> tuple[str, ...] | None:
        known = self._known.get(path)
        return known[1] if known is not None and known[0] == run.started_seq else None

    def _node(self, path: str) -> str:
        return self._steps[path].node

    def _chain(self, node: str) -> frozenset[str]:
        """Return the gathered fan-outs that a node lies in, whichever way it was reached."""
        found = self._chains.get(node)
        if found is None:
            attributes = self._graph.nodes[node].attributes if node in self._graph.nodes else {}
            names = _names(attributes.get("fans"))
            at = self._fans.get(node, "")
            while at and at not in names:
                names.add(at)
                at = self._fans.get(at, "")
            found = self._chains[node] = frozenset(names) & self._gathered
        return found


def _names(value: object) -> set[str]:
    if isinstance(value, str):
        return {value} if value else set()
    return {str(item) for item in value} if isinstance(value, (list, tuple)) else set()
