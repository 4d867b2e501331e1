"""What the edges behind a node ask of its end: under which keys, for which words; an end that satisfies them. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice, pairwise, product
from math import prod
from typing import NamedTuple

from pipeline.dot import kinds
from pipeline.dot.conditions import OUTCOMES, Clause, Condition, Lookup, compile_condition, readable
from pipeline.dot.labels import normal_label
from pipeline.dot.model import DotEdge, DotGraph

OUTCOME, LABEL = "outcome", "preferred_label"
#: Beginnings of context keys that the program sets: no reply is asked for them.
PROGRAMS = (
    "internal.", "graph.", "parallel.", "stack.", "human.", "tool.", "tool_stdout", "current_node", "last_stage",
    "last_response", "failure_reason", "failure_class", "_",
)  # fmt: skip
#: Ends that every handler may come to.
_STATUSES = ("success", "fail", "partial_success", "retry")
#: What each visit says anew, and what it says where it says nothing.
_OWN: Mapping[str, str] = {OUTCOME: "success", LABEL: "", "failure_class": ""}
_PARTS = ("STARTS_WITH", "CONTAINS", "ENDS_WITH")
#: A value that no condition names.
_OTHER = "another"
#: Ways behind a node that are looked at, and ends tried for one; diamonds behind each other that are looked through.
MOST_WAYS, _MOST_ENDS, _DEEPEST = 200, 5_000, 50


class Demand(NamedTuple):
    """What is asked for under one key."""

    #: Words that satisfy a condition, as the conditions spell them, in order.
    words: tuple[str, ...] = ()
    #: Comparisons that name no word, as people read them: ">= 7", "CONTAINS x", "!= a".
    tests: tuple[str, ...] = ()

    def spelt(self, said: str) -> str:
        """Return a word as the conditions spell it, if they name it; else as it is."""
        if said in self.words:
            return said
        wanted = normal_label(said)
        return next((word for word in self.words if normal_label(word) == wanted), said)


class Way(NamedTuple):
    """One way on from a node: an edge, and the edges of the diamonds behind it."""

    edges: tuple[DotEdge, ...]
    #: Conditions of the edges beside those that ask nothing: where one holds, that edge is taken.
    against: tuple[Condition, ...] = ()

    @property
    def conditions(self) -> list[Condition]:
        return [compile_condition(edge.condition) for edge in self.edges if edge.condition]


#: Gives the edges from a node.
Outgoing = Callable[[str], Sequence[DotEdge]]


def ways_on(graph: DotGraph, node: str, outgoing: Outgoing | None = None) -> list[Way]:
    """Return the ways on from a node, in order of declaration; those whose conditions cannot be read are left out."""
    return list(islice(_ways(graph, node, outgoing or graph.outgoing, Way(())), MOST_WAYS))


def _ways(graph: DotGraph, node: str, outgoing: Outgoing, before: Way) -> Iterator[Way]:
    seen = {each.target for each in before.edges}
    edges = [(edge, condition) for edge in outgoing(node) if (condition := readable(edge.condition)) is not None]
    beside = tuple(condition for edge, condition in edges if edge.condition)
    for edge, _ in edges:
        way = Way((*before.edges, edge), before.against if edge.condition else (*before.against, *beside))
        asks = edge.target in graph.nodes and graph.kind(edge.target) == kinds.CONDITIONAL
        behind = []
        if asks and edge.target not in seen and len(seen) < _DEEPEST:
            behind = list(islice(_ways(graph, edge.target, outgoing, way), MOST_WAYS))
        yield from behind or [way]


def demands(ways: Sequence[Way]) -> dict[str, Demand]:
    """Return what the conditions of these ways ask for, by key, in order."""
    words: dict[str, dict[str, None]] = {}
    tests: dict[str, dict[str, None]] = {}
    conditions = {edge.id: readable(edge.condition) for way in ways for edge in way.edges}
    for clause, negated in (pair for condition in conditions.values() if condition for pair in condition.clauses()):
        key = key_of(clause.key)
        named, other = words.setdefault(key, {}), tests.setdefault(key, {})
        if clause.operator in ("=", "IN") and not negated:
            named.update(dict.fromkeys(clause.words))
        elif clause.operator:
            other[_test(clause, negated=negated)] = None
        else:
            named.update(dict.fromkeys(("true", "false")))
    return {key: Demand(tuple(words[key]), tuple(tests[key])) for key in words}


def labels_asked(*edges: DotEdge) -> tuple[str, ...]:
    """Return the labels that the conditions of edges ask for."""
    return demands([Way(edges)]).get(LABEL, Demand()).words


def choosable(ways: Sequence[Way], outgoing: Outgoing) -> dict[str, str]:
    """Return the edges without a condition among which a preferred label chooses: edge id → label.

    Those of one node, or diamond: two at least, each with a label of its own. Labels that are outcomes choose by these.
    """
    found: dict[str, str] = {}
    for source in dict.fromkeys(edge.source for way in ways for edge in way.edges):
        plain = [edge for edge in outgoing(source) if not edge.condition]
        labels = {normal_label(edge.label) for edge in plain}
        if len(plain) > 1 and len(labels) == len(plain) and not labels & {"", *_STATUSES, *OUTCOMES}:
            found.update({edge.id: edge.label for edge in plain})
    return found


def _test(clause: Clause, *, negated: bool) -> str:
    literals = ", ".join(clause.literals)
    if clause.operator == "!=" and negated:
        return f"= {literals}"
    if clause.operator in ("=", "IN"):
        return f"!= {literals}"
    return f"{'NOT ' if negated else ''}{clause.operator} {literals}"


def key_of(name: str) -> str:
    """Return the key that a condition's key means: the outcome, the preferred label, or a key of the context."""
    plain = name.removeprefix("context.")
    if plain in ("outcome", "status", "outcome.status"):
        return OUTCOME
    plain = plain.removeprefix("outcome.")
    return LABEL if plain in (LABEL, "preferred_next_label") else plain


class Ends:
    """The ends that a node may come to, searched for one that a way takes."""

    def __init__(
        self, settable: Callable[[str], bool], lookup: Lookup, only: Mapping[str, Collection[str]] | None = None
    ) -> None:
        """Say what may be chosen.

        Args:
            settable: Whether the node may set a key.
            lookup: What a key holds that it does not set.
            only: The only values of some keys.
        """
        self._settable = settable
        self._lookup = lookup
        self._only = only or {}

    def that(self, way: Way) -> dict[str, str] | None:
        """Return what a node says for this way to be taken, by key; {} if it need say nothing; None if nothing does."""
        conditions = way.conditions
        choices = self._choices([*conditions, *way.against])
        for values in islice(product(*choices.values()), _MOST_ENDS):
            said = {key: value for key, value in zip(choices, values, strict=True) if value is not None}
            seen = self._seeing(said)
            if all(each.holds(seen) for each in conditions) and not any(each.holds(seen) for each in way.against):
                return said
        return None

    def none_takes(self, way: Way) -> bool:
        """Return whether it is sure that no end takes a way."""
        conditions = way.conditions
        ends = prod(len(values) for values in self._choices(conditions).values())
        parts = Counter(
            key_of(clause.key) for each in conditions for clause, _ in each.clauses() if clause.operator in _PARTS
        )
        # Of several parts of one text not every order is tried.
        return ends <= _MOST_ENDS and max(parts.values(), default=0) < 2 and self.that(Way(way.edges)) is None

    def _seeing(self, said: Mapping[str, str]) -> Lookup:
        def lookup(name: str) -> str:
            key = key_of(name)
            if key in said or key in _OWN:
                return said.get(key, _OWN.get(key, ""))
            return self._lookup(name)

        return lookup

    def _choices(self, conditions: Sequence[Condition]) -> dict[str, list[str | None]]:
        """Return the values worth trying, by key; None: it is left as it is."""
        asked: dict[str, list[Clause]] = {}
        for clause in (clause for condition in conditions for clause, _ in condition.clauses()):
            key = key_of(clause.key)
            if key == OUTCOME or self._settable(key):
                asked.setdefault(key, []).append(clause)
        choices: dict[str, list[str | None]] = {}
        for key, clauses in asked.items():
            values = dict.fromkeys(_tried(clauses))
            # What an earlier visit has set is said anew: it would hold for ever.
            known = key not in _OWN and bool(self._lookup(key))
            choices[key] = [*values, None] if known else [None, *values]
            if key == OUTCOME:
                choices[key] += _STATUSES
            if key in self._only:
                nothing = _OWN.get(key, "") in self._only[key]
                choices[key] = [word for word in choices[key] if word in self._only[key] or (word is None and nothing)]
        return choices


def _tried(clauses: Sequence[Clause]) -> Iterator[str]:
    """Yield the values of one key that may satisfy some of these."""
    bounds: list[float] = []
    for clause in clauses:
        yield from clause.words
        if clause.operator in ("<", "<=", ">", ">="):
            with suppress(ValueError):
                bounds.append(float(clause.literals[0]))
        if not clause.operator:
            yield "true"
    numbers = [each + step for each in bounds for step in (1, -1)]
    numbers += [(low + high) / 2 for low, high in pairwise(sorted(bounds))]
    yield from (str(int(number)) if number.is_integer() else str(number) for number in numbers)
    parts = [clause for clause in clauses if clause.operator in _PARTS]
    if len(parts) > 1:
        yield "".join(clause.literals[0] for clause in sorted(parts, key=lambda clause: _PARTS.index(clause.operator)))
    if not any(clause.about_outcome for clause in clauses):
        yield ""
    yield _OTHER
