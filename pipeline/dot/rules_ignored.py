"""Rules about attributes of the dialect that this program reads and does not heed: each is said once."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pipeline.dot import kinds
from pipeline.dot.attributes import GRAPH, NODE, TABLE, attribute
from pipeline.dot.diagnostics import WARNING, Diagnostic, Rule
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


IGNORED: tuple[Rule, ...] = (ignored,)
