"""Whether a graph can be run: every rule asked, the worst findings first; and the rules about attributes.

Their values can be read, their names exist, and what is written has an effect.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import lru_cache

from pipeline.dot import decisions, kinds, structure
from pipeline.dot.attributes import (
    EDGE,
    FIDELITIES,
    GRAPH,
    NAMES,
    NODE,
    READERS,
    TABLE,
    Attribute,
    Form,
    Use,
    attribute,
)  # fmt: skip
from pipeline.dot.diagnostics import ERROR, INFO, SEVERITIES, WARNING, Diagnostic, Place, Rule, finding
from pipeline.dot.model import DotGraph, DotNode
from pipeline.dot.stylesheet import PROPERTIES, parse_stylesheet
from pipeline.dot.values import Value, as_text
from pipeline.errors import GraphError

#: More retries than this are worth a remark.
_MANY_RETRIES = 5
#: Nodes that are named where many have the same fault.
_MOST_NAMED = 5
#: Other names of the box, and what dialects use for one more plain model node.
_PLAIN_SHAPES = frozenset({"box", "rect", "rectangle", "square", "tab", "note", "oval", "ellipse"})


def check(graph: DotGraph, known_types: Collection[str] = (), extra: Sequence[Rule] = ()) -> list[Diagnostic]:
    """Return all findings about a graph, errors first, then in order of lines.

    Args:
        known_types: Types that something is registered for; (): those that are built in.
        extra: Further rules.
    """
    found = [each for rule in (*structure.RULES, *decisions.RULES, *RULES, *extra) for each in rule(graph)]
    found += _unknown_types(graph, known_types or kinds.BY_TYPE)
    return sorted(found, key=lambda each: (SEVERITIES.index(each.severity), each.line))


def check_or_raise(graph: DotGraph, known_types: Collection[str] = (), extra: Sequence[Rule] = ()) -> list[Diagnostic]:
    """Return the findings of a graph that can be run.

    Raises:
        GraphError: There are errors: the first in the message (its rule is the code), all in data["diagnostics"].
    """
    found = check(graph, known_types, extra)
    errors = [each for each in found if each.severity == ERROR]
    if errors:
        first = errors[0]
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        where = f"Line {first.line}: " if first.line else ""
        raise GraphError(where + first.message + more, code=first.rule, hint=first.fix, diagnostics=found)
    return found


def tool_commands(graph: DotGraph) -> list[tuple[str, str]]:
    """Return what running the graph may do in a shell: (node id, command), in order of declaration."""
    return [(node.id, node.command) for node in graph.nodes.values() if graph.kind(node) == kinds.TOOL and node.command]


def _unknown_types(graph: DotGraph, known_types: Collection[str]) -> Iterator[Diagnostic]:
    for node in graph.nodes.values():
        said = node.text("type").strip()
        if said and said not in known_types and graph.kind(node) not in known_types:
            near = get_close_matches(said, [*known_types, *kinds.TYPE_ALIASES], 1)
            fix = f"Did you mean {near[0]!r}?" if near else f"Known types: {', '.join(sorted(known_types))}."
            message = f"Nothing is registered for the type {said!r} of node {node.id!r}."
            yield finding("type_known", WARNING, node, message, fix)


def _places(graph: DotGraph) -> Iterator[tuple[str, Place, str]]:
    """Yield the graph, its nodes and its edges: (of, place, how a message begins)."""
    yield GRAPH, graph, "The graph's"
    for node in graph.nodes.values():
        yield NODE, node, f"Node {node.id!r}: its"
    for edge in graph.edges:
        yield EDGE, edge, f"Edge {edge.id!r}: its"


def attributes(graph: DotGraph) -> Iterator[Diagnostic]:
    """Find values that cannot be read as what they should be, and names that nearly are ones that count."""
    for of, place, subject in _places(graph):
        for name, value in place.attributes.items():
            known = attribute(of, name)
            if known is None:
                if near := _near(name, NAMES[of]):
                    message = f"{subject} {name} is not a known attribute; it is ignored."
                    yield finding("attribute_name", WARNING, place, message, f"Did you mean {near}?")
            elif wrong := _wrong(known, value):
                rule = "fidelity_valid" if known.words == FIDELITIES else "attribute_value"
                message = f"{subject} {name} {as_text(value)[:60]!r} {wrong[0]}."
                yield finding(rule, WARNING, place, message, f"{wrong[1]}.")


@lru_cache(maxsize=1024)
def _near(name: str, known: frozenset[str]) -> str:
    return next(iter(get_close_matches(name, sorted(known), 1, 0.8)), "")


def _wrong(known: Attribute, value: Value) -> tuple[str, str] | None:
    """Return what is wrong with a value, and the fix; None if nothing is, or if it is filled in later ("$limit")."""
    if not known.words and known.form not in READERS:
        return None
    text = as_text(value).strip()
    if not text or "$" in text:
        return None
    if known.words:
        return None if text in known.words else ("is not known", f"Choose one of {', '.join(known.words)}")
    read, wrong, example = READERS[known.form]
    found = read(value)
    if found is None or (found < 0 and known.form is not Form.NUMBER):
        return f"is {wrong}", f"Write {known.name}={example}"
    return None


def retry_targets(graph: DotGraph) -> Iterator[Diagnostic]:
    """Find retry targets that are no nodes, and goal gates without one."""
    for of, place, subject in _places(graph):
        for name in kinds.RETRY_TARGETS if of != EDGE else ():
            target = place.text(name)
            if target and not (target in graph.nodes and graph.nodes[target].declared):
                message = f"{subject} {name} {target!r} is not a node."
                yield finding("retry_target_exists", WARNING, place, message, "Name a node of this graph.")
        gate = place if isinstance(place, DotNode) and place.flag("goal_gate") else None
        if gate and not (graph.first(*kinds.RETRY_TARGETS) or gate.first(*kinds.RETRY_TARGETS)):
            message = f"Goal gate {gate.id!r} has no retry target; if it is not satisfied, the run fails."
            yield finding("goal_gate_has_retry", WARNING, gate, message, 'Add retry_target="NODE".')


def nodes(graph: DotGraph) -> Iterator[Diagnostic]:
    """Find nodes without the prompt or command of their kind, shapes without a kind, and odd counts."""
    for node in graph.nodes.values():
        kind = graph.kind(node)
        if kind == kinds.CODERGEN and node.declared and not node.first(*kinds.PROMPTS, "label"):
            message = f"Node {node.id!r} asks the model with nothing but its name."
            yield finding("prompt_on_llm_nodes", WARNING, node, message, 'Add prompt="…".')
        if kind == kinds.TOOL and not node.command:
            message = f"Tool node {node.id!r} has no command."
            yield finding("tool_has_command", WARNING, node, message, 'Add tool_command="…".')
        known = node.text("type") or node.shape in {*kinds.SHAPES, *_PLAIN_SHAPES} or graph.text("dialect") == "split"
        if kind == kinds.CODERGEN and not known:
            message = f"The shape {node.shape!r} of node {node.id!r} means nothing; it will ask the model."
            fix = f"Choose one of {', '.join(kinds.SHAPES)}, or set type."
            yield finding("shape_known", WARNING, node, message, fix)
        if (retries := node.number("max_retries") or 0) > _MANY_RETRIES:
            message = f"Node {node.id!r} may be retried {retries} times, each time paid."
            yield finding("high_retry_count", INFO, node, message)
        if node.text("join_policy") == "k_of_n":
            count = node.first("k", "join_k")
            branches = len(graph.outgoing(node.id) if kind == kinds.PARALLEL else graph.incoming(node.id))
            if not count.isdecimal() or not 1 <= int(count) <= branches:
                message = f"Node {node.id!r}: k_of_n needs k between 1 and {branches}; it is {count or 'not set'}."
                yield finding("join_policy_valid", WARNING, node, message, "Add k=2.")


def stylesheet(graph: DotGraph) -> Iterator[Diagnostic]:
    """Find faults of the stylesheet: syntax, unknown properties, selectors that fit no node."""
    try:
        rules = parse_stylesheet(graph.text("model_stylesheet"))
    except GraphError as error:
        yield finding("stylesheet_syntax", ERROR, graph, error.message, error.hint)
        return
    for rule in rules:
        subject, fits = f"The stylesheet's {rule.selector!r}", any(map(rule.fits, graph.nodes.values()))
        for name in rule.declared:
            if name not in PROPERTIES:
                fix = f"Known properties: {', '.join(PROPERTIES)}."
                yield finding("stylesheet_property", WARNING, graph, f"{subject} sets {name!r}, which is ignored.", fix)
            elif fits and (known := attribute(NODE, name)) and known.instead:
                message = f"{subject} sets {name}, which is {known.means}."
                yield finding("attribute_ignored", WARNING, graph, message, known.instead)
        if not fits:
            yield finding("stylesheet_selector", INFO, graph, f"{subject} fits no node.")


def ignored(graph: DotGraph) -> Iterator[Diagnostic]:
    """Report each attribute of the dialect once that is read here but has no effect."""
    for known in TABLE:
        if not known.instead:
            continue
        about = known if known.means else attribute(NODE, known.like) or known
        what = f"is {about.means}."
        if GRAPH in known.of and graph.text(known.name).strip():
            yield finding("attribute_ignored", WARNING, graph, f"The graph's {known.name} {what}", known.instead)
        yield from _ignored([node for node in graph.nodes.values() if node.text(known.name).strip()], known.name, what,
                            known.instead)  # fmt: skip
    timed = [node for node in graph.nodes.values() if "timeout" in node.attributes]
    what = "ends the command of --agent-cmd; a model's reply is paid for and waited for, up to 15 minutes a try."
    asking = [node for node in timed if graph.kind(node) == kinds.CODERGEN]
    yield from _ignored(asking, "timeout", what, "Limit the reply: max_tokens=4000.")


def unread(graph: DotGraph) -> Iterator[Diagnostic]:
    """Find what a node has and its kind does not read, such as a prompt: it would be lost silently."""
    found: dict[tuple[str, kinds.Kind], list[DotNode]] = {}
    for node in graph.nodes.values():
        kind = kinds.BY_TYPE.get(graph.kind(node))
        for name in node.attributes:
            known = attribute(NODE, name)
            if kind is None or known is None or name not in node.own or not node.text(name).strip():
                continue
            if known.use is Use.WORK and known.kinds and kind.type not in known.kinds:
                found.setdefault((name, kind), []).append(node)
    for (name, kind), having in found.items():
        what = f"is not read: its kind is {kind.type} ({kind.shape}). {kind.purpose}"
        fix, severity = "Omit it, or set it on a node that asks a model.", WARNING
        if name in (*kinds.PROMPTS, *kinds.COMMANDS):
            fix = "Put it into a node of its own" + (" before the diamond." if kind.type == kinds.CONDITIONAL else ".")
        elif kind.type in (kinds.START, kinds.EXIT):
            severity = INFO
        yield from (replace(each, severity=severity) for each in _ignored(having, name, what, fix))


def _ignored(having: Sequence[DotNode], name: str, what: str, fix: str) -> Iterator[Diagnostic]:
    """Yield one finding about all nodes that have an attribute, if any has."""
    if having:
        shown = ", ".join(node.id for node in having[:_MOST_NAMED])
        more = f" and {len(having) - _MOST_NAMED} more" if len(having) > _MOST_NAMED else ""
        subject = f"Node {shown!r}: its" if len(having) == 1 else f"Nodes {shown}{more}: their"
        yield finding("attribute_ignored", WARNING, having[0], f"{subject} {name} {what}", fix)


#: The rules about attributes.
RULES: tuple[Rule, ...] = (stylesheet, attributes, retry_targets, nodes, ignored, unread)
