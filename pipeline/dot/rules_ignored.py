"""Rules about attributes of the dialect that this program reads and does not heed: each is said once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from pipeline.dot import kinds
from pipeline.dot.attributes import GRAPH, NODE, TABLE, Use, attribute
from pipeline.dot.diagnostics import INFO, WARNING, Diagnostic, Rule
from pipeline.dot.model import DotGraph, DotNode
from pipeline.dot.stylesheet import parse_stylesheet
from pipeline.errors import GraphError

_RULE = "attribute_ignored"
#: Nodes that are named where many have it.
_MOST = 5


def ignored(graph: DotGraph) -> Iterator[Diagnostic]:
    """Nothing is written that has no effect here."""
    for known in TABLE:
        if not known.instead:
            continue
        said = known if known.means else attribute(NODE, known.like) or known
        what = f"is {said.means}."
        if GRAPH in known.of and graph.text(known.name).strip():
            yield Diagnostic(_RULE, WARNING, f"The graph's {known.name} {what}", fix=known.instead)
        if nodes := _having(graph, lambda node, name=known.name: bool(node.text(name).strip())):  # type: ignore[misc]
            yield _finding(nodes, known.name, what, known.instead)
        elif known.name == "temperature" and _styled(graph):
            yield Diagnostic(_RULE, WARNING, f"The stylesheet's temperature {what}", fix=known.instead)
    if nodes := _having(graph, lambda node: "timeout" in node.attributes and graph.kind(node) == kinds.CODERGEN):
        what = "ends the command of --agent-cmd; a model's reply is paid for and waited for, up to 15 minutes a try."
        yield _finding(nodes, "timeout", what, "Limit the reply: max_tokens=4000.")


def unread(graph: DotGraph) -> Iterator[Diagnostic]:
    """No node says what its kind does not read: a prompt, a command, a model that would be lost without a word."""
    found: dict[tuple[str, kinds.Kind], list[DotNode]] = {}
    for node in graph.nodes.values():
        kind = _BUILT_IN.get(graph.kind(node))
        if kind is None:
            continue
        for name in node.attributes:
            known = attribute(NODE, name)
            lost = known is not None and known.use is Use.WORK and known.kinds and kind.type not in known.kinds
            if lost and name in node.own and node.text(name).strip():
                found.setdefault((name, kind), []).append(node)
    for (name, kind), nodes in found.items():
        what = f"is not read: its kind is {kind.type} ({kind.shape}). {kind.purpose}"
        severity = INFO if kind.type in (kinds.START, kinds.EXIT) and name not in _TEXTS else WARNING
        fix = "Leave it out, or say it of a node that asks a model."
        if name in _TEXTS:
            fix = "Put it into a node of its own" + (" before the diamond." if kind.type == kinds.CONDITIONAL else ".")
        yield replace(_finding(nodes, name, what, fix), severity=severity)


_BUILT_IN = {kind.type: kind for kind in kinds.KINDS}
#: What is said to be done, not how.
_TEXTS = (*kinds.PROMPTS, *kinds.COMMANDS)


def _styled(graph: DotGraph) -> bool:
    """Whether the stylesheet sets a temperature for some node."""
    try:
        rules = parse_stylesheet(graph.text("model_stylesheet")).rules
    except GraphError:
        return False
    return any("temperature" in rule.declared and any(map(rule.fits, graph.nodes.values())) for rule in rules)


def _having(graph: DotGraph, has: Callable[[DotNode], bool]) -> list[DotNode]:
    return [node for node in graph.nodes.values() if has(node)]


def _finding(nodes: list[DotNode], name: str, what: str, fix: str) -> Diagnostic:
    shown = ", ".join(node.id for node in nodes[:_MOST])
    more = f" and {len(nodes) - _MOST} more" if len(nodes) > _MOST else ""
    one, many = f"Node {shown!r}: its", f"Nodes {shown}{more}: their"
    message = f"{one if len(nodes) == 1 else many} {name} {what}"
    return Diagnostic(_RULE, WARNING, message, node=nodes[0].id, fix=fix, line=nodes[0].line)


IGNORED: tuple[Rule, ...] = (ignored, unread)
