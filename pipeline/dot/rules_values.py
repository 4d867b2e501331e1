"""Rules about attributes: values that can be read, names that exist, prompts and commands where they are needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from functools import lru_cache

from pipeline.dot import kinds
from pipeline.dot.attributes import COUNTS, EDGE_NAMES, FLAGS, GRAPH_NAMES, NODE_NAMES, NUMBERS, TIMES, WORDS
from pipeline.dot.diagnostics import ERROR, INFO, WARNING, Diagnostic, Rule, at_edge, at_node
from pipeline.dot.model import DotGraph
from pipeline.dot.paths import RETRY_TARGETS
from pipeline.dot.stylesheet import PROPERTIES, parse_stylesheet
from pipeline.dot.values import Value, as_decimal, as_flag, as_number, as_seconds, as_text
from pipeline.errors import GraphError

#: More retries than this are worth a remark.
MANY_RETRIES = 5


def attribute_values(graph: DotGraph) -> Iterator[Diagnostic]:
    """What the engine reads as a number, truth, time or known word is one."""
    for name, value in graph.attributes.items():
        if wrong := _wrong(name, value):
            rule, message, fix = wrong
            yield Diagnostic(rule, WARNING, f"The graph's {message}", fix=fix)
    for node in graph.nodes.values():
        for name, value in node.attributes.items():
            if name in _CHECKS and (wrong := _wrong(name, value)):
                rule, message, fix = wrong
                yield at_node(rule, WARNING, node, f"Node {node.id!r}: its {message}", fix)
    for edge in graph.edges:
        for name, value in edge.attributes.items():
            if name in _CHECKS and (wrong := _wrong(name, value)):
                rule, message, fix = wrong
                yield at_edge(rule, WARNING, edge, f"Edge {edge.id!r}: its {message}", fix)


def _wrong(name: str, value: Value) -> tuple[str, str, str] | None:
    """(rule, what is wrong, fix) of a value; None: nothing is, or it is filled in later ("$limit")."""
    check = _CHECKS.get(name)
    text = as_text(value)
    if check is None or not text.strip() or "$" in text or check[0](value):
        return None
    rule = {"fidelity": "fidelity_valid", "default_fidelity": "fidelity_valid"}.get(name, "attribute_value")
    return rule, f"{name} {text[:60]!r} {check[1]}", check[2]


def _known_word(words: tuple[str, ...]) -> Callable[[Value], bool]:
    return lambda value: as_text(value).strip() in words


def _count(value: Value) -> bool:
    number = as_number(value)
    return number is not None and number >= 0


def _time(value: Value) -> bool:
    seconds = as_seconds(value)
    return seconds is not None and seconds >= 0


#: Attribute → whether a value is right, what it is otherwise, and the fix.
_CHECKS: Mapping[str, tuple[Callable[[Value], bool], str, str]] = {
    **{name: (_count, "is no whole number.", f"Write {name}=3.") for name in COUNTS},
    **{name: (lambda value: as_decimal(value) is not None, "is no number.", f"Write {name}=1.") for name in NUMBERS},
    **{name: (lambda value: as_flag(value) is not None, "is neither true nor false.", f"Write {name}=true.")
       for name in FLAGS},
    **{name: (_time, "is no time.", f"Write {name}=90s, 5m or 2h.") for name in TIMES},
    **{name: (_known_word(words), "is not known.", f"There are {', '.join(words)}.") for name, words in WORDS.items()},
}  # fmt: skip


def attribute_names(graph: DotGraph) -> Iterator[Diagnostic]:
    """No attribute's name is nearly one that counts."""
    for name in graph.attributes:
        if near := _near(name, GRAPH_NAMES):
            message = f"The graph has no attribute {name!r}; it is ignored."
            yield Diagnostic("attribute_name", WARNING, message, fix=f"Did you mean {near}?")
    for node in graph.nodes.values():
        for name in node.attributes:
            if near := _near(name, NODE_NAMES):
                message = f"Node {node.id!r} has an attribute {name!r}, which is ignored."
                yield at_node("attribute_name", WARNING, node, message, f"Did you mean {near}?")
    for edge in graph.edges:
        for name in edge.attributes:
            if near := _near(name, EDGE_NAMES):
                message = f"Edge {edge.id!r} has an attribute {name!r}, which is ignored."
                yield at_edge("attribute_name", WARNING, edge, message, f"Did you mean {near}?")


@lru_cache(maxsize=1024)
def _near(name: str, known: frozenset[str]) -> str:
    if name in known:
        return ""
    return next(iter(get_close_matches(name, sorted(known), 1, 0.8)), "")


def retry_target_exists(graph: DotGraph) -> Iterator[Diagnostic]:
    """Retry targets are nodes."""
    fix = "Name a node of this graph."
    for name in RETRY_TARGETS:
        target = graph.text(name)
        if target and not _declared(graph, target):
            message = f"The graph's {name} {target!r} is no node."
            yield Diagnostic("retry_target_exists", WARNING, message, fix=fix)
    for node in graph.nodes.values():
        for name in RETRY_TARGETS:
            if name in node.attributes and (target := node.text(name)) and not _declared(graph, target):
                message = f"Node {node.id!r}: its {name} {target!r} is no node."
                yield at_node("retry_target_exists", WARNING, node, message, fix)


def _declared(graph: DotGraph, name: str) -> bool:
    return name in graph.nodes and graph.nodes[name].declared


def goal_gate_has_retry(graph: DotGraph) -> Iterator[Diagnostic]:
    """A goal gate that is not satisfied has somewhere to go."""
    if graph.first(*RETRY_TARGETS):
        return
    for node in graph.nodes.values():
        if node.flag("goal_gate") and not node.first(*RETRY_TARGETS):
            message = f"Goal gate {node.id!r} has no retry target; if it is not satisfied, the run fails."
            yield at_node("goal_gate_has_retry", WARNING, node, message, 'Add retry_target="NODE".')


def prompts(graph: DotGraph) -> Iterator[Diagnostic]:
    """What asks a model says what it asks; what runs a command has one."""
    for node in graph.nodes.values():
        kind = graph.kind(node)
        if kind == kinds.CODERGEN and node.declared and not node.first(*kinds.PROMPTS, "label"):
            message = f"Node {node.id!r} asks the model with nothing but its name."
            yield at_node("prompt_on_llm_nodes", WARNING, node, message, 'Add prompt="…".')
        elif kind == kinds.TOOL and not node.command:
            message = f"Tool node {node.id!r} has no command."
            yield at_node("tool_has_command", WARNING, node, message, 'Add tool_command="…".')


def shapes(graph: DotGraph) -> Iterator[Diagnostic]:
    """A shape means a kind of node; one that means none would be asked of the model."""
    for node in graph.nodes.values():
        known = node.text("type") or node.shape in kinds.SHAPES or graph.text("dialect") == "split"
        if not known and graph.kind(node) == kinds.CODERGEN and node.shape not in _PLAIN_SHAPES:
            message = f"The shape {node.shape!r} of node {node.id!r} means nothing; it will ask the model."
            fix = f"Choose one of {', '.join(kinds.SHAPES)}, or set type."
            yield at_node("shape_known", WARNING, node, message, fix)


#: Other names of the box, and what dialects use for one more plain model node.
_PLAIN_SHAPES = frozenset({"box", "rect", "rectangle", "square", "tab", "note", "oval", "ellipse"})


def retries(graph: DotGraph) -> Iterator[Diagnostic]:
    """Many retries are meant."""
    for node in graph.nodes.values():
        count = node.number("max_retries")
        if count is not None and count > MANY_RETRIES:
            message = f"Node {node.id!r} may be retried {count} times, each time paid."
            yield at_node("high_retry_count", INFO, node, message)


def joins(graph: DotGraph) -> Iterator[Diagnostic]:
    """A count of branches is given where the policy counts, and there are as many."""
    for node in graph.nodes.values():
        if "join_policy" not in node.attributes or node.text("join_policy") != "k_of_n":
            continue
        count = node.first("k", "join_k")
        branches = len(graph.outgoing(node.id) if graph.kind(node) == kinds.PARALLEL else graph.incoming(node.id))
        if not count.isdecimal() or not 1 <= int(count) <= branches:
            message = f"Node {node.id!r}: k_of_n needs k between 1 and {branches}; it is {count or 'not set'}."
            yield at_node("join_policy_valid", WARNING, node, message, "Add k=2.")


def stylesheet(graph: DotGraph) -> Iterator[Diagnostic]:
    """The stylesheet can be read, sets what there is, and fits some node."""
    text = graph.text("model_stylesheet")
    try:
        rules = parse_stylesheet(text).rules
    except GraphError as error:
        yield Diagnostic("stylesheet_syntax", ERROR, error.message, fix=error.hint)
        return
    for rule in rules:
        for name in rule.declared:
            if name not in PROPERTIES:
                message = f"The stylesheet's {rule.selector!r} sets {name!r}, which is ignored."
                yield Diagnostic("stylesheet_property", WARNING, message, fix=f"There are {', '.join(PROPERTIES)}.")
        if not any(rule.fits(node) for node in graph.nodes.values()):
            message = f"The stylesheet's {rule.selector!r} fits no node."
            yield Diagnostic("stylesheet_selector", INFO, message)


VALUES: tuple[Rule, ...] = (
    stylesheet,
    attribute_values,
    attribute_names,
    retry_target_exists,
    goal_gate_has_retry,
    prompts,
    shapes,
    retries,
    joins,
)
