"""What the edges behind a node ask of its end: under which keys, for which words; an end that satisfies them. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice, pairwise, product
from math import prod
from typing import NamedTuple

from pipeline.dot import kinds
from pipeline.dot.clauses import OUTCOMES, Clause, Lookup, outcome_word
from pipeline.dot.conditions import Condition, compile_condition
from pipeline.dot.labels import normal_label
from pipeline.dot.model import DotEdge, DotGraph
from pipeline.errors import GraphError

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
_TRUTHS = ("true", "false")
_PARTS = ("STARTS_WITH", "CONTAINS", "ENDS_WITH")
_NUMERIC = ("<", "<=", ">", ">=")
#: A value that no condition names.
_OTHER = "another"
#: Ways behind a node, and ends tried for one, are not more than these.
MOST_WAYS, _MOST_ENDS = 200, 5_000
#: Diamonds behind each other that are looked through.
_DEEPEST = 50


class Demand(NamedTuple):
    """What is asked for under one key."""

    #: Words that satisfy a condition, as the conditions spell them, in order.
    words: tuple[str, ...] = ()
    #: Comparisons that name no word, as people read them: ">= 7", "CONTAINS x", "!= a".
    tests: tuple[str, ...] = ()

    def spelt(self, said: str) -> str:
        """Return what is said as the conditions spell it, where they name it; else as it is."""
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
    edges = [(edge, condition) for edge in outgoing(node) if (condition := _condition(edge)) is not None]
    beside = tuple(condition for edge, condition in edges if edge.condition)
    for edge, _ in edges:
        way = Way((*before.edges, edge), before.against if edge.condition else (*before.against, *beside))
        asks = edge.target in graph.nodes and graph.kind(edge.target) == kinds.CONDITIONAL
        behind = []
        if asks and edge.target not in seen and len(seen) < _DEEPEST:
            behind = list(islice(_ways(graph, edge.target, outgoing, way), MOST_WAYS))
        yield from behind or [way]


def _condition(edge: DotEdge) -> Condition | None:
    try:
        return compile_condition(edge.condition)
    except GraphError:
        return None


def demands(ways: Sequence[Way]) -> dict[str, Demand]:
    """Return what the conditions of these ways ask for, by key, in order."""
    words: dict[str, dict[str, None]] = {}
    tests: dict[str, dict[str, None]] = {}
    for clause, negated in _clauses(ways):
        key = key_of(clause.key)
        named, other = words.setdefault(key, {}), tests.setdefault(key, {})
        if clause.operator in ("=", "IN") and not negated:
            named.update(dict.fromkeys(_literals(clause)))
        elif not clause.operator:
            named.update(dict.fromkeys(_TRUTHS))
        elif (test := _test(clause, negated=negated)) is not None:
            other[test] = None
    return {key: Demand(tuple(words[key]), tuple(tests[key])) for key in words}


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


def _test(clause: Clause, *, negated: bool) -> str | None:
    shown = f"{clause.operator} {', '.join(clause.literals)}"
    if clause.operator == "!=" and negated:
        return f"= {clause.literals[0]}"
    if clause.operator in ("=", "IN"):
        return f"!= {', '.join(clause.literals)}"
    return f"NOT {shown}" if negated else shown


def _clauses(ways: Sequence[Way]) -> Iterator[tuple[Clause, bool]]:
    seen: set[str] = set()
    for way in ways:
        for edge in way.edges:
            if edge.id not in seen and (condition := _condition(edge)) is not None:
                seen.add(edge.id)
                yield from condition.clauses()


def _literals(clause: Clause) -> list[str]:
    return [outcome_word(text) for text in clause.literals] if clause.about_outcome else list(clause.literals)


def key_of(name: str) -> str:
    """Return the key that a condition's key means: the outcome, the preferred label, or a key of the context."""
    plain = name.removeprefix("context.")
    if plain in ("outcome", "status", "outcome.status"):
        return OUTCOME
    plain = plain.removeprefix("outcome.")
    return LABEL if plain in (LABEL, "preferred_next_label") else plain


def is_programs(key: str) -> bool:
    """Whether the program itself sets a context key."""
    return key.startswith(PROGRAMS)


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
        """Return what the node must say so that a way is taken; None: nothing is found."""
        conditions = way.conditions
        choices = self._choices([*conditions, *way.against])
        for values in islice(product(*choices.values()), _MOST_ENDS):
            said = {key: value for key, value in zip(choices, values, strict=True) if value is not None}
            seen = self._seeing(said)
            if all(each.holds(seen) for each in conditions) and not any(each.holds(seen) for each in way.against):
                return said
        return None

    def none_takes(self, way: Way) -> bool:
        """Whether it is sure that no end takes a way."""
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
            if key in _OWN:
                return said.get(key, _OWN[key])
            return said[key] if key in said else self._lookup(name)

        return lookup

    def _choices(self, conditions: Sequence[Condition]) -> dict[str, list[str | None]]:
        """Return the values worth trying, by key; None: it is left as it is."""
        asked: dict[str, list[Clause]] = {}
        for condition in conditions:
            for clause, _ in condition.clauses():
                key = key_of(clause.key)
                if key == OUTCOME or self._settable(key):
                    asked.setdefault(key, []).append(clause)
        found = {key: dict.fromkeys(_tried(clauses)) for key, clauses in asked.items()}
        choices: dict[str, list[str | None]] = {}
        for key, values in found.items():
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
    """Return the values of one key that may satisfy some of these."""
    bounds: list[float] = []
    for clause in clauses:
        yield from _literals(clause)
        if clause.operator in _NUMERIC:
            with suppress(ValueError):
                bounds.append(float(clause.literals[0]))
        if not clause.operator:
            yield "true"
    between = [(low + high) / 2 for low, high in pairwise(sorted(bounds))]
    yield from map(_plain, [*(each + step for each in bounds for step in (1, -1)), *between])
    in_order = sorted((clause for clause in clauses if clause.operator in _PARTS), key=_place)
    if len(in_order) > 1:
        yield "".join(clause.literals[0] for clause in in_order)
    if not any(clause.about_outcome for clause in clauses):
        yield ""
    yield _OTHER


def _place(clause: Clause) -> int:
    return _PARTS.index(clause.operator)


def _plain(number: float) -> str:
    return str(int(number)) if number.is_integer() else str(number)
