"""Which nodes lie between a fan-out and the node where its branches are gathered. Pure, over the drawn edges.

Gathered at: the nearest fan-in that all branches lead to and that belongs to no later fan-out on the way; where there
is none, the nearest node all branches lead to (an implicit join); where there is none, nowhere: each branch is a track
of its own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from pipeline.dot import kinds
from pipeline.dot.model import DotGraph


@dataclass(frozen=True, slots=True)
class FanOut:
    """One node that starts branches, and where they go."""

    fan: str
    #: The nodes that branches begin with, in order of declaration.
    branches: tuple[str, ...]
    #: Where they are gathered; "": nowhere.
    gather: str = ""
    #: The gathering node is drawn as a fan-in.
    drawn: bool = False
    #: Nodes inside → the branches (bits, in their order) that lead there.
    members: Mapping[str, int] = field(default_factory=dict)

    def one_branch(self, first: str, second: str) -> bool:
        """Whether a track may go from one node inside to the other without changing branches."""
        one, other = self.members.get(first, 0), self.members.get(second, 0)
        return bool(one and other) and (one & other) in (one, other)


class Regions:
    """The fan-outs of a graph and what lies in them."""

    def __init__(self, graph: DotGraph, types: Mapping[str, str]) -> None:
        """`types`: node → type of its handler."""
        self._graph = graph
        self._types = types
        self._order = {name: number for number, name in enumerate(graph.nodes)}
        self._gathers: dict[str, str] = {}
        fans = [name for name in graph.nodes if types[name] == kinds.PARALLEL and graph.outgoing(name)]
        #: Fan-outs by node.
        self.fans: Mapping[str, FanOut] = self._apart({name: self._fan_out(name) for name in fans})
        #: Node → the fan-outs it lies in, innermost first.
        self.around: Mapping[str, tuple[str, ...]] = {name: self._around(name) for name in graph.nodes}

    def scope(self, node: str) -> tuple[str, ...]:
        """The fan-outs a node gathers: several only where a run comes by one of them."""
        claims = [fan.fan for fan in self.fans.values() if fan.gather == node]
        return tuple(name for name in claims if not any(name in self.fans[other].members for other in claims))

    def gather_of(self, node: str) -> str:
        """Where the failure of a node inside a branch is gathered; "": it lies in no gathered branch."""
        return next((fan.gather for name in self.around[node] if (fan := self.fans[name]).gather), "")

    def one_branch(self, first: str, second: str) -> bool:
        """Whether a jump between two nodes stays where it is: in one branch of the same fan-out, or outside of all."""
        around = self._gathered(first)
        if around != self._gathered(second):
            return False
        return not around or self.fans[around[0]].one_branch(first, second)

    def _gathered(self, node: str) -> tuple[str, ...]:
        return tuple(name for name in self.around[node] if self.fans[name].gather)

    def _around(self, node: str) -> tuple[str, ...]:
        found = [fan for fan in self.fans.values() if node in fan.members]
        return tuple(fan.fan for fan in sorted(found, key=lambda fan: len(fan.members)))

    def _branches(self, fan: str) -> tuple[str, ...]:
        targets = (edge.target for edge in self._graph.outgoing(fan))
        return tuple(dict.fromkeys(name for name in targets if name in self._graph.nodes and name != fan))

    def _fan_out(self, fan: str) -> FanOut:
        branches = self._branches(fan)
        gather = self._gather(fan)
        inside = self._masks(branches, without={fan, gather})[0]
        outside = self._reach([self._graph.start] if self._graph.start else [], without={fan})
        back = self._reach([gather], without={fan}, backwards=True) if gather else set()
        members = {
            name: mask
            for name, mask in inside.items()
            if (name in back or name not in outside) and self._types[name] != kinds.EXIT
        }
        return FanOut(fan, branches, gather, bool(gather) and self._types[gather] == kinds.FAN_IN, members)

    def _apart(self, fans: dict[str, FanOut]) -> dict[str, FanOut]:
        """Give an inner fan-out that found the fan-in of an outer one the node where its branches meet before."""
        inner = [
            fan.fan
            for fan in fans.values()
            if any(fan.gather == other.gather and fan.fan in other.members for other in fans.values())
        ]
        for name in inner:
            if nearer := self._before(name, fans[name].gather):
                self._gathers[name] = nearer
                fans[name] = self._fan_out(name)
        return fans

    def _before(self, fan: str, gather: str) -> str:
        """Where the branches meet before a node; "": nowhere."""
        branches = self._branches(fan)
        _, full = self._masks(branches, without={fan, gather})
        common = sorted(full, key=lambda name: (full[name], self._order[name]))
        if len(branches) < 2:
            return ""
        return next((name for name in common if name not in branches and self._types[name] != kinds.EXIT), "")

    def _gather(self, fan: str) -> str:
        if fan not in self._gathers:
            self._gathers[fan] = ""
            self._gathers[fan] = self._nearest(fan)
        return self._gathers[fan]

    def _nearest(self, fan: str) -> str:
        branches = self._branches(fan)
        _, full = self._masks(branches, without={fan})
        common = sorted(full, key=lambda name: (full[name], self._order[name]))
        between: list[str] = []
        for name in common:
            if self._types[name] == kinds.PARALLEL:
                between.append(name)
            elif self._types[name] == kinds.FAN_IN and not self._belongs(name, fan, between):
                return name
        if len(branches) < 2:
            return ""
        return next((name for name in common if name not in branches), "")

    def _belongs(self, gather: str, fan: str, between: Iterable[str]) -> bool:
        """Whether a fan-in is that of a fan-out which all branches come to before it."""
        for other in between:
            before = gather not in self._reach(self._branches(fan), without={fan, other})
            if before and self._gather(other) == gather:
                return True
        return False

    def _masks(self, branches: Collection[str], without: Collection[str]) -> tuple[dict[str, int], dict[str, int]]:
        """Which branches lead to each node (bits), and after how many edges all of them do."""
        masks = {name: 1 << number for number, name in enumerate(branches) if name not in without}
        every = (1 << len(branches)) - 1
        full = {name: 0 for name, mask in masks.items() if mask == every}
        layer = dict(masks)
        steps = 0
        while layer:
            steps += 1
            ahead: dict[str, int] = {}
            for name, mask in layer.items():
                for target in self._onward(name, without):
                    more = mask & ~masks.get(target, 0)
                    if more:
                        ahead[target] = ahead.get(target, 0) | more
            for name, more in ahead.items():
                masks[name] = masks.get(name, 0) | more
                if masks[name] == every:
                    full.setdefault(name, steps)
            layer = ahead
        return masks, full

    def _onward(self, node: str, without: Collection[str]) -> Iterator[str]:
        for edge in self._graph.outgoing(node):
            if edge.target not in without and edge.target in self._graph.nodes:
                yield edge.target

    def _reach(self, origins: Iterable[str], without: Collection[str], *, backwards: bool = False) -> set[str]:
        found = {name for name in origins if name not in without}
        ahead = deque(found)
        while ahead:
            name = ahead.popleft()
            if backwards:
                near = [edge.source for edge in self._graph.incoming(name)]
            else:
                near = [edge.target for edge in self._graph.outgoing(name)]
            for other in near:
                if other not in found and other not in without and other in self._graph.nodes:
                    found.add(other)
                    ahead.append(other)
        return found
