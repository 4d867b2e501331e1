"""Rules about what is decided on edges: conditions, outcomes, choices of people."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from difflib import get_close_matches

from pipeline.dot import kinds
from pipeline.dot.conditions import Condition, compile_condition, readable
from pipeline.dot.demands import LABEL, MOST_WAYS, Demand, Ends, demands, labels_asked, ways_on
from pipeline.dot.diagnostics import ERROR, WARNING, Diagnostic, Rule, finding
from pipeline.dot.labels import accelerator, agreeing, normal_label, says_no
from pipeline.dot.model import DotEdge, DotGraph, DotNode
from pipeline.dot.structure import reached, ways
from pipeline.errors import GraphError

#: Outcomes that the engine itself gives; any other word may be a node's own.
_STATUSES = ("success", "partial_success", "fail", "retry", "skipped")
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


def condition_syntax(graph: DotGraph) -> Iterator[Diagnostic]:
    """Find conditions that cannot be read."""
    for edge in graph.edges:
        try:
            compile_condition(edge.condition)
        except GraphError as error:
            yield finding("condition_syntax", ERROR, edge, f"Edge {edge.id!r}: {error.message}", error.hint)


def outcomes(graph: DotGraph) -> Iterator[Diagnostic]:
    """Find misspelt outcomes, and goal gates that no outcome which leads on can satisfy."""
    leading = ways(graph)
    for edge in graph.edges:
        for word in _outcomes(edge) if "=" in edge.condition else ():
            if word in _STATUSES:
                continue
            gate = graph.nodes.get(edge.source)
            if near := get_close_matches(word.lower(), _STATUSES, 1, 0.8):
                message = f"Edge {edge.id!r} waits for the outcome {word!r}."
                yield finding("outcome_word", WARNING, edge, message, f"Did you mean {near[0]!r}?")
            elif gate and gate.flag("goal_gate") and reached([edge.target], leading, gate.id) & {*graph.exits}:
                # It leads to an exit without coming back to the gate.
                message = f"Edge {edge.id!r} leaves its goal gate with {word!r}, which does not satisfy it."
                yield finding("gate_outcome", WARNING, edge, message, "Only success and partial_success do.")


def _outcomes(edge: DotEdge) -> list[str]:
    """Return the outcomes its condition compares with, as they are stored."""
    condition = readable(edge.condition)
    return [
        word
        for clause, _ in (condition.clauses() if condition else ())
        if clause.about_outcome and clause.key.endswith("outcome") and clause.operator in ("=", "!=", "IN")
        for word in clause.words
    ]


def conditional_default(graph: DotGraph) -> Iterator[Diagnostic]:
    """Find nodes all of whose edges have conditions, of which none need hold."""
    for node in graph.nodes.values():
        edges = graph.outgoing(node.id)
        if edges and all(edge.condition for edge in edges) and not (_covered(edges) or _all_choices(graph, node)):
            message = f"All edges from node {node.id!r} have conditions; if none holds, the run cannot continue."
            fix = f"Add an edge without a condition, like {node.id} -> {edges[-1].target}."
            yield finding("conditional_default", WARNING, node, message, fix)


def _all_choices(graph: DotGraph, node: DotNode) -> bool:
    """Return whether a person can say nothing but what an edge asks for."""
    free = graph.kind(node) != kinds.HUMAN or node.first("question_type", "mode") == "freeform"
    return not free and all(labels_asked(edge) for edge in graph.outgoing(node.id))


def _covered(edges: Sequence[DotEdge]) -> bool:
    """Return whether success leads on (a failure may end the run), or a comparison and its contrary do."""
    alone = [found for edge in edges if (condition := readable(edge.condition)) and (found := _only_clause(condition))]
    positive = {(key, literal) for key, literal, yes in alone if yes}
    return ("outcome", "success") in positive or any((key, word) in positive for key, word, yes in alone if not yes)


def _only_clause(condition: Condition) -> tuple[str, str, bool] | None:
    """Return (key, literal, whether it is to be equal) of a condition that is nothing else."""
    clauses = list(condition.clauses())
    if len(clauses) != 1 or clauses[0][0].operator not in ("", "=", "!="):
        return None
    clause, negated = clauses[0]
    return clause.key, "".join(clause.words), (clause.operator == "!=") == negated


def never_taken(graph: DotGraph) -> Iterator[Diagnostic]:
    """Find conditions that cannot hold for any outcome of the node before them."""
    if any(readable(edge.condition) is None for edge in graph.edges):
        return
    open_ = set[str]()
    found = {name: graph.kind(name) for name in graph.nodes}
    working = (name for name, kind in found.items() if kind not in kinds.IDLE)
    only = {"last_stage": {"", *working}, "current_node": {"", *found}}
    known = frozenset(found.values())
    for name, kind in found.items():
        if kind not in (kinds.CONDITIONAL, kinds.EXIT):
            before = ways_on(graph, name)
            if len(before) >= MOST_WAYS:
                return
            ends = _ends(graph, name, known, only) if any(way.conditions for way in before) else None
            open_.update(edge.id for way in before if ends is None or not ends.none_takes(way) for edge in way.edges)
    # What jumps to a diamond brings whatever outcome it had.
    jumped = {place.text(name) for place in (graph, *graph.nodes.values()) for name in kinds.RETRY_TARGETS}
    for node in graph.nodes.values():
        edges = graph.outgoing(node.id) if node.id not in jumped else ()
        closed = [edge for edge in edges if edge.condition and edge.id not in open_]
        fix = "Ask for what that node says; a model is told the words of its own edges and of the diamonds behind it."
        if closed and len(closed) == len(edges):
            message = f"No edge from node {node.id!r} can be taken: nothing it comes to satisfies their conditions."
            yield finding("no_edge_taken", WARNING, node, message, fix)
            continue
        for edge in closed:
            message = f"Edge {edge.id!r} is never taken: nothing satisfies {edge.condition!r} there."
            yield finding("edge_never_taken", WARNING, edge, message, fix)


def _ends(graph: DotGraph, name: str, known: Set[str], only: Mapping[str, Collection[str]]) -> Ends:
    """Return what a node may come to, as far as the graph says it.

    Args:
        known: The kinds of nodes that the graph has.
        only: Values that the program's keys may have.
    """
    kind, only = graph.kind(name), dict(only)
    if kind in _OUTCOMES:
        if kind == kinds.START or kinds.PARALLEL not in known:
            # Branches may fail where they are gathered, at any kind of node.
            only["outcome"] = _OUTCOMES[kind]
        edges = graph.outgoing(name) if kind == kinds.HUMAN else ()
        labels = {normal_label(text) for edge in edges for text in _choice_texts(edge)}
        words = demands(ways_on(graph, name)).get(LABEL, Demand()).words
        only[LABEL] = {"", *(word for word in words if normal_label(word) in labels)}
    built_in = known <= kinds.BY_TYPE.keys() - {kinds.LOOP}
    missing = tuple(begin for begin, setter in _SET_BY.items() if built_in and setter not in known)
    return Ends(lambda key: not key.startswith(missing), lambda key: "", only)


def _choice_texts(edge: DotEdge) -> Sequence[str]:
    """Return how a person may say an edge: its label, else the label its condition asks for, else its target."""
    return ([edge.label] if edge.label else list(labels_asked(edge))) + [edge.target]


def choices(graph: DotGraph) -> Iterator[Diagnostic]:
    """Find gates whose choices a person cannot tell apart, or whose default or automatic answer leads nowhere."""
    for node in graph.nodes.values():
        if graph.kind(node) != kinds.HUMAN:
            continue
        edges = graph.outgoing(node.id)
        labels = [edge.label or edge.target for edge in edges]
        seen: set[str] = set()
        for edge, label in zip(edges, labels, strict=True):
            if normal_label(label) in seen:
                message = f"Gate {node.id!r} offers {label!r} twice."
                yield finding("gate_choices", WARNING, edge, message, "Give each edge its own label.")
            seen.add(normal_label(label))
        default = node.first("human.default_choice", "default_choice")
        texts = seen | {normal_label(edge.target) for edge in edges}
        if default and edges and normal_label(default) not in texts and default.upper() not in map(accelerator, labels):
            message = f"The default {default!r} of gate {node.id!r} is none of its choices."
            yield finding("gate_choices", WARNING, node, message, f"Choose one of: {', '.join(map(repr, labels))}.")
        if not default and len(edges) > 1:
            yield from _auto_approved(graph, node, edges)


def _auto_approved(graph: DotGraph, node: DotNode, edges: Sequence[DotEdge]) -> Iterator[Diagnostic]:
    """Yield what is odd about what --auto-approve answers: it leads back, or is not what the first choice says."""
    edge_of = {_choice_texts(edge)[0]: edge for edge in reversed(edges)}
    offered = list(dict.fromkeys(_choice_texts(edge)[0] for edge in edges))
    first, taken = offered[0], agreeing(offered)
    fix = f'Say what it should take: {node.id} [human.default_choice="…"].'
    if reached([edge_of[taken].target], ways(graph), node.id).isdisjoint(graph.exits):
        message = f"--auto-approve answers {taken!r} at gate {node.id!r} each time, which only leads back to it."
        yield finding("auto_approve", WARNING, node, message, fix)
    elif says_no(first):
        what = f"answers {taken!r}" if taken == first else f"passes over it and answers {taken!r}"
        message = f"{first!r}, the first choice of gate {node.id!r}, says no; --auto-approve {what}."
        yield finding("auto_approve", WARNING, node, message, fix)


RULES: tuple[Rule, ...] = (condition_syntax, outcomes, conditional_default, never_taken, choices)
