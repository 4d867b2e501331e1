"""Rules about what is decided on edges: conditions, outcomes, choices."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import NamedTuple

from pipeline.dot import kinds
from pipeline.dot.clauses import outcome_word
from pipeline.dot.conditions import Condition, compile_condition
from pipeline.dot.demands import LABEL, MOST_WAYS, Demand, Ends, Way, demands, ways_on
from pipeline.dot.diagnostics import ERROR, WARNING, Diagnostic, Rule, at_edge, at_node
from pipeline.dot.labels import accelerator, agreeing, normal_label, says_no
from pipeline.dot.model import DotEdge, DotGraph, DotNode
from pipeline.dot.paths import RETRY_TARGETS, Ways, reached, ways
from pipeline.errors import GraphError

#: Outcomes that the engine itself gives; any other word may be a node's own.
STATUSES = ("success", "partial_success", "fail", "retry", "skipped")


def condition_syntax(graph: DotGraph) -> Iterator[Diagnostic]:
    """Every condition can be read."""
    for edge in graph.edges:
        if edge.condition:
            try:
                compile_condition(edge.condition)
            except GraphError as error:
                yield at_edge("condition_syntax", ERROR, edge, f"Edge {edge.id!r}: {error.message}", error.hint)


def outcomes(graph: DotGraph) -> Iterator[Diagnostic]:
    """Outcome words are no slips of the pen, and one that leads on from a goal gate can satisfy it."""
    leading = ways(graph)
    for edge in graph.edges:
        if "=" not in edge.condition:
            continue
        for word in _outcomes(edge):
            if word in STATUSES:
                continue
            if near := get_close_matches(word.lower(), STATUSES, 1, 0.8):
                message = f"Edge {edge.id!r} waits for the outcome {word!r}."
                yield at_edge("outcome_word", WARNING, edge, message, f"Did you mean {near[0]!r}?")
            elif _leaves_gate(graph, leading, edge):
                message = f"Edge {edge.id!r} leaves its goal gate with {word!r}, which does not satisfy it."
                yield at_edge("gate_outcome", WARNING, edge, message, "Only success and partial_success do.")


def _leaves_gate(graph: DotGraph, leading: Ways, edge: DotEdge) -> bool:
    """The edge leads from a goal gate to an exit without coming back to it."""
    gate = graph.nodes.get(edge.source)
    if gate is None or not gate.flag("goal_gate"):
        return False
    return not reached([edge.target], leading, without=gate.id).isdisjoint(graph.exits)


def _outcomes(edge: DotEdge) -> list[str]:
    """The outcomes its condition compares with, under the names they are stored by."""
    condition = compiled(edge)
    clauses = [clause for clause, _ in condition.clauses()] if condition else []
    return [
        outcome_word(literal)
        for clause in clauses
        if clause.about_outcome and clause.key.endswith("outcome") and clause.operator in ("=", "!=", "IN")
        for literal in clause.literals
    ]


def conditional_default(graph: DotGraph) -> Iterator[Diagnostic]:
    """Where all edges have conditions, one of them holds."""
    for node in graph.nodes.values():
        edges = graph.outgoing(node.id)
        if edges and all(edge.condition for edge in edges) and not (_covered(edges) or _all_choices(node, graph)):
            message = f"All edges from node {node.id!r} have conditions; where none holds, the run has no way on."
            fix = f"Add an edge without a condition, like {node.id} -> {edges[-1].target}."
            yield at_node("conditional_default", WARNING, node, message, fix)


def _all_choices(node: DotNode, graph: DotGraph) -> bool:
    """Whether a person can say nothing but what an edge asks for."""
    words = [demands([Way((edge,))]).get(LABEL, Demand()).words for edge in graph.outgoing(node.id)]
    return graph.kind(node) == kinds.HUMAN and node.first("question_type", "mode") != "freeform" and all(words)


def never_taken(graph: DotGraph) -> Iterator[Diagnostic]:
    """Each condition can hold, for what the node before it may come to."""
    if any(compiled(edge) is None for edge in graph.edges):
        return
    open_, named = set[str](), _named(graph)
    for name in graph.nodes:
        if graph.kind(name) in (kinds.CONDITIONAL, kinds.EXIT):
            continue
        ways = ways_on(graph, name)
        if len(ways) >= MOST_WAYS:
            return
        ends = _ends(graph, name, named) if any(way.conditions for way in ways) else None
        open_.update(edge.id for way in ways if ends is None or not ends.none_takes(way) for edge in way.edges)
    # What jumps to a diamond brings whatever outcome it had.
    jumped = {node.text(name) for node in (graph, *graph.nodes.values()) for name in RETRY_TARGETS}
    for node in graph.nodes.values():
        edges = graph.outgoing(node.id) if node.id not in jumped else ()
        closed = [edge for edge in edges if edge.condition and edge.id not in open_]
        fix = "Ask for what that node says; a model is told the words of its own edges and of the diamonds behind it."
        if closed and len(closed) == len(edges):
            message = f"No edge from node {node.id!r} can be taken: nothing it comes to satisfies their conditions."
            yield at_node("no_edge_taken", WARNING, node, message, fix)
            continue
        for edge in closed:
            message = f"Edge {edge.id!r} is never taken: nothing satisfies {edge.condition!r} there."
            yield at_edge("edge_never_taken", WARNING, edge, message, fix)


#: Kinds of nodes whose outcomes are only these.
_OUTCOMES: Mapping[str, tuple[str, ...]] = {
    kinds.START: ("success",),
    kinds.HUMAN: ("success", "fail", "retry"),
    kinds.PARALLEL: ("success",),
    kinds.FAN_IN: ("success", "partial_success", "fail"),
    kinds.LOOP: ("success", "fail"),
}
#: Beginnings of context keys → the kind of nodes that set them; handlers of one's own may, too.
_SET_BY: Mapping[str, str] = {"tool.": kinds.TOOL, "tool_stdout": kinds.TOOL, "human.gate.": kinds.HUMAN}


class _Named(NamedTuple):
    """What conditions may name of a graph."""

    #: The kinds of nodes that it has.
    kinds: frozenset[str]
    #: Values that the program's keys may have.
    only: Mapping[str, Collection[str]]


def _named(graph: DotGraph) -> _Named:
    found = {name: graph.kind(name) for name in graph.nodes}
    working = {name for name, kind in found.items() if kind not in kinds.IDLE}
    return _Named(frozenset(found.values()), {"last_stage": {"", *working}, "current_node": {"", *found}})


def _ends(graph: DotGraph, name: str, named: _Named) -> Ends:
    """What a node may come to, as far as the graph says it."""
    kind, known = graph.kind(name), named.kinds
    only = dict(named.only)
    if kind in _OUTCOMES and (kind == kinds.START or kinds.PARALLEL not in known):
        # Branches may fail where they are gathered, at any kind of node.
        only["outcome"] = _OUTCOMES[kind]
    if kind in _OUTCOMES:
        edges = graph.outgoing(name) if kind == kinds.HUMAN else ()
        labels = {normal_label(text) for edge in edges for text in _choice_texts(edge)}
        words = {word for demand in (demands(ways_on(graph, name)).get(LABEL, Demand()),) for word in demand.words}
        only[LABEL] = {"", *(word for word in words if normal_label(word) in labels)}
    built_in = set(known) <= {each.type for each in kinds.KINDS} - {kinds.LOOP}
    missing = [begin for begin, setter in _SET_BY.items() if built_in and setter not in known]
    return Ends(lambda key: not key.startswith(tuple(missing)) if missing else True, lambda key: "", only)


def _choice_texts(edge: DotEdge) -> Sequence[str]:
    """How a person may say an edge: its label, else the label that its condition asks for, else its target."""
    named = demands([Way((edge,))]).get(LABEL, Demand()).words
    return ([edge.label] if edge.label else list(named)) + [edge.target]


def _covered(edges: Sequence[DotEdge]) -> bool:
    """Success leads on (a failure may end the run), or a comparison and its contrary do."""
    alone = [found for edge in edges if (condition := compiled(edge)) and (found := _only_clause(condition))]
    if any(key == "outcome" and positive and literal == "success" for key, literal, positive in alone):
        return True
    positive = {(key, literal) for key, literal, yes in alone if yes}
    return any((key, literal) in positive for key, literal, yes in alone if not yes)


def _only_clause(condition: Condition) -> tuple[str, str, bool] | None:
    """(key, literal, whether it is to be equal) of a condition that is nothing else."""
    clauses = list(condition.clauses())
    if len(clauses) != 1:
        return None
    clause, negated = clauses[0]
    if clause.operator not in ("", "=", "!="):
        return None
    literal = clause.literals[0] if clause.literals else ""
    literal = outcome_word(literal) if clause.about_outcome else literal
    return clause.key, literal, (clause.operator == "!=") == negated


def compiled(edge: DotEdge) -> Condition | None:
    """The edge's condition; None: it cannot be read, which is its own finding."""
    try:
        return compile_condition(edge.condition)
    except GraphError:
        return None


def choices(graph: DotGraph) -> Iterator[Diagnostic]:
    """A person can tell the choices of a gate apart, and its default is one of them."""
    for node in graph.nodes.values():
        if graph.kind(node) != kinds.HUMAN:
            continue
        edges = graph.outgoing(node.id)
        yield from _same_choices(node, edges)
        default = node.first("human.default_choice", "default_choice")
        texts = {normal_label(text) for edge in edges for text in (edge.label or edge.target, edge.target)}
        keys = {accelerator(edge.label or edge.target) for edge in edges}
        if default and edges and normal_label(default) not in texts and default.upper() not in keys:
            message = f"The default {default!r} of gate {node.id!r} is none of its choices."
            fix = "Choose one of: " + ", ".join(repr(edge.label or edge.target) for edge in edges) + "."
            yield at_node("gate_choices", WARNING, node, message, fix)


def auto_approved(graph: DotGraph) -> Iterator[Diagnostic]:
    """What --auto-approve answers is what the first choice says, and leads on."""
    for node in graph.nodes.values():
        edges = graph.outgoing(node.id)
        if graph.kind(node) != kinds.HUMAN or node.first("human.default_choice", "default_choice") or len(edges) < 2:
            continue
        ways_of: dict[str, DotEdge] = {}
        for edge in edges:
            ways_of.setdefault(_choice_texts(edge)[0], edge)
        first, taken = next(iter(ways_of)), agreeing(list(ways_of))
        fix = f'Say what it should take: {node.id} [human.default_choice="…"].'
        after = reached([ways_of[taken].target], ways(graph), without=node.id)
        if after.isdisjoint(graph.exits):
            message = f"--auto-approve answers {taken!r} at gate {node.id!r} each time, which only leads back to it."
            yield at_node("auto_approve", WARNING, node, message, fix)
        elif says_no(first):
            what = f"answers {taken!r}" if taken == first else f"passes over it and answers {taken!r}"
            message = f"{first!r}, the first choice of gate {node.id!r}, says no; --auto-approve {what}."
            yield at_node("auto_approve", WARNING, node, message, fix)


def _same_choices(node: DotNode, edges: Sequence[DotEdge]) -> Iterator[Diagnostic]:
    seen: dict[str, str] = {}
    for edge in edges:
        label = edge.label or edge.target
        text = normal_label(label)
        if text in seen:
            message = f"Gate {node.id!r} offers {label!r} twice."
            yield at_edge("gate_choices", WARNING, edge, message, "Give each edge its own label.")
        seen[text] = label


EDGES: tuple[Rule, ...] = (condition_syntax, outcomes, conditional_default, never_taken, choices, auto_approved)
