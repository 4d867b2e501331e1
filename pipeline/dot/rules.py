"""Whether a graph can be run: every rule asked, the worst findings first."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from difflib import get_close_matches

from pipeline.dot import kinds
from pipeline.dot.diagnostics import ERROR, SEVERITIES, WARNING, Diagnostic, Rule, at_node
from pipeline.dot.model import DotGraph
from pipeline.dot.rules_edges import EDGES
from pipeline.dot.rules_ignored import IGNORED
from pipeline.dot.rules_values import VALUES
from pipeline.dot.rules_ways import WAYS
from pipeline.errors import GraphError

RULES: tuple[Rule, ...] = (*WAYS, *EDGES, *VALUES, *IGNORED)
_BUILT_IN = frozenset(kind.type for kind in kinds.KINDS)


def check(graph: DotGraph, known_types: Collection[str] = _BUILT_IN, extra: Sequence[Rule] = ()) -> list[Diagnostic]:
    """All findings about a graph, errors first, then in order of lines.

    Args:
        graph: As parsed.
        known_types: Types that something is registered for.
        extra: Further rules.
    """
    found = [finding for rule in (*RULES, *extra) for finding in rule(graph)]
    found += _unknown_types(graph, known_types)
    return sorted(found, key=lambda finding: (SEVERITIES.index(finding.severity), finding.line))


def check_or_raise(
    graph: DotGraph, known_types: Collection[str] = _BUILT_IN, extra: Sequence[Rule] = ()
) -> list[Diagnostic]:
    """The findings of a graph that can be run.

    Raises:
        GraphError: There are errors: the first in the message, all findings in data["diagnostics"].
    """
    found = check(graph, known_types, extra)
    errors = [finding for finding in found if finding.severity == ERROR]
    if errors:
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        where = f"Line {errors[0].line}: " if errors[0].line else ""
        raise GraphError(where + errors[0].message + more, hint=errors[0].fix, diagnostics=found)
    return found


def _unknown_types(graph: DotGraph, known_types: Collection[str]) -> list[Diagnostic]:
    found = []
    for node in graph.nodes.values():
        said = node.text("type").strip()
        if said and said not in known_types and graph.kind(node) not in known_types:
            near = get_close_matches(said, [*known_types, *kinds.TYPE_ALIASES], 1)
            fix = f"Did you mean {near[0]!r}?" if near else f"There are {', '.join(sorted(known_types))}."
            message = f"Nothing is registered for the type {said!r} of node {node.id!r}."
            found.append(at_node("type_known", WARNING, node, message, fix))
    return found


def tool_commands(graph: DotGraph) -> list[tuple[str, str]]:
    """What running the graph may do in a shell: (node id, command), in order of declaration."""
    return [(node.id, node.command) for node in graph.nodes.values() if graph.kind(node) == kinds.TOOL and node.command]
