"""Which nodes lie between a fan-out and the node where its branches are gathered. Pure, over the drawn edges.

Gathered at: the nearest fan-in that all branches lead to and that belongs to no later fan-out on the way; if there is
none, the nearest node all branches lead to (an implicit join); else nowhere: each branch is a track of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from pipeline.dot import kinds
from pipeline.dot.model import DotGraph
from pipeline.dot.structure import reached, ways


@dataclass(frozen=True, slots=True)
class FanOut:
    """One node that starts branches, and where they go."""

    fan: str
    #: The nodes that branches begin with, in order of declaration.
    branches: tuple[str, ...]
    #: Where they are gathered; "": nowhere.
    gather: str = ""
    #: Nodes inside → the branches (bits, in their order) that lead there.
    members: Mapping[str, int] = field(default_factory=dict)

    def one_branch(self, first: str, second: str) -> bool:
        """Return whether a track may go from one node inside to the other without changing branches."""
        one, other = self.members.get(first, 0), self.members.get(second, 0)
        return bool(one and other) and (one & other) in (one, other)


class Regions:
    """The fan-outs of a graph and what lies in them."""

    def __init__(self, graph: DotGraph, types: Mapping[str, str]) -> None:
        """Take `types`: node → type of its handler."""
        self._graph = graph
        self._types = types
        self._onward = ways(graph)
        self._back = ways(graph, backwards=True)
        self._order = {name: number for number, name in enumerate(graph.nodes)}
        self._gathers: dict[str, str] = {}
        fans = [name for name in graph.nodes if types[name] == kinds.PARALLEL and graph.outgoing(name)]
        #: Fan-outs by node.
        self.fans: Mapping[str, FanOut] = self._apart({name: self._fan_out(name) for name in fans})
        by_size = sorted(self.fans.values(), key=lambda fan: len(fan.members))
        #: Node → the fan-outs it lies in, innermost first.
        self.around: Mapping[str, tuple[str, ...]] = {
            name: tuple(fan.fan for fan in by_size if name in fan.members) for name in graph.nodes
        }

    def scope(self, node: str) -> tuple[str, ...]:
        """Return the fan-outs a node gathers: several only if a run comes by one of them."""
        claims = [fan.fan for fan in self.fans.values() if fan.gather == node]
        return tuple(name for name in claims if not any(name in self.fans[other].members for other in claims))

    def gather_of(self, node: str) -> str:
        """Return where the failure of a node inside a branch is gathered; "" if it lies in no gathered branch."""
        return next((self.fans[name].gather for name in self._gathered(node)), "")

    def one_branch(self, first: str, second: str) -> bool:
        """Return whether a jump between two nodes stays in one branch of the same fan-out, or outside of all."""
        around = self._gathered(first)
        if around != self._gathered(second):
            return False
        return not around or self.fans[around[0]].one_branch(first, second)

    def _gathered(self, node: str) -> list[str]:
        return [name for name in self.around[node] if self.fans[name].gather]

    def _branches(self, fan: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for name in self._onward.get(fan, ()) if name != fan))

    def _fan_out(self, fan: str) -> FanOut:
        branches = self._branches(fan)
        gather = self._gather(fan)
        inside = self._masks(branches, fan, gather)[0]
        outside = reached([self._graph.start] if self._graph.start else [], self._onward, fan)
        back = reached([gather], self._back, fan) if gather else set()
        members = {
            name: mask
            for name, mask in inside.items()
            if (name in back or name not in outside) and self._types[name] != kinds.EXIT
        }
        return FanOut(fan, branches, gather, members)

    def _apart(self, fans: dict[str, FanOut]) -> dict[str, FanOut]:
        """Give an inner fan-out that found the fan-in of an outer one the node where its branches meet before."""
        inner = [
            fan
            for fan in fans.values()
            if any(fan.gather == other.gather and fan.fan in other.members for other in fans.values())
        ]
        for fan in inner:
            meets = [name for name in self._common(fan.fan, fan.gather) if self._types[name] != kinds.EXIT]
            nearer = next((name for name in meets if name not in fan.branches), "")
            if nearer and len(fan.branches) > 1:
                self._gathers[fan.fan] = nearer
                fans[fan.fan] = self._fan_out(fan.fan)
        return fans

    def _gather(self, fan: str) -> str:
        if fan not in self._gathers:
            self._gathers[fan] = ""
            self._gathers[fan] = self._nearest(fan)
        return self._gathers[fan]

    def _nearest(self, fan: str) -> str:
        branches, common = self._branches(fan), self._common(fan)
        between: list[str] = []
        for name in common:
            if self._types[name] == kinds.PARALLEL:
                between.append(name)
            elif self._types[name] == kinds.FAN_IN and not self._belongs(name, fan, between):
                return name
        return next((name for name in common if name not in branches), "") if len(branches) > 1 else ""

    def _belongs(self, gather: str, fan: str, between: Iterable[str]) -> bool:
        """Return whether a fan-in is that of a fan-out which all branches come to before it."""
        for other in between:
            before = gather not in reached(self._branches(fan), self._onward, fan, other)
            if before and self._gather(other) == gather:
                return True
        return False

    def _common(self, fan: str, *without: str) -> list[str]:
        """Return the nodes that all branches lead to, the nearest first."""
        full = self._masks(self._branches(fan), fan, *without)[1]
        return sorted(full, key=lambda name: (full[name], self._order[name]))

    def _masks(self, branches: Collection[str], *without: str) -> tuple[dict[str, int], dict[str, int]]:
        """Return which branches lead to each node (bits), and after how many edges all of them do."""
        masks = {name: 1 << number for number, name in enumerate(branches) if name not in without}
        every = (1 << len(branches)) - 1
        full = {name: 0 for name, mask in masks.items() if mask == every}
        layer, steps = dict(masks), 0
        while layer:
            steps += 1
            ahead: dict[str, int] = {}
            for name, mask in layer.items():
                for target in self._onward.get(name, ()):
                    if target not in without and (more := mask & ~masks.get(target, 0)):
                        ahead[target] = ahead.get(target, 0) | more
            for name, more in ahead.items():
                masks[name] = masks.get(name, 0) | more
                if masks[name] == every:
                    full.setdefault(name, steps)
            layer = ahead
        return masks, full
