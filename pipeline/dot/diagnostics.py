"""What a rule finds in a graph: how bad it is, where, and what would be right."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from pipeline.dot.model import DotEdge, DotGraph, DotNode

#: It cannot be run; it can, but probably not as meant; good to know.
ERROR, WARNING, INFO = "ERROR", "WARNING", "INFO"
SEVERITIES = (ERROR, WARNING, INFO)
#: The graph itself, a node or an edge of it.
Place: TypeAlias = DotGraph | DotNode | DotEdge


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding."""

    #: Name of the rule.
    rule: str
    #: ERROR, WARNING or INFO.
    severity: str
    message: str
    #: Ids of the node and of the edge it is about; "" if it is about neither.
    node: str = ""
    edge: str = ""
    #: What to write instead, or to add.
    fix: str = ""
    #: Line in the file; 0: none.
    line: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return {rule, severity, message, node_id, edge, line, fix}; null where there is none."""
        return {
            "rule": self.rule,
            "severity": self.severity,
            "message": self.message,
            "node_id": self.node or None,
            "edge": self.edge or None,
            "line": self.line or None,
            "fix": self.fix or None,
        }


Rule: TypeAlias = Callable[[DotGraph], Iterable[Diagnostic]]


def finding(rule: str, severity: str, place: Place, message: str, fix: str = "") -> Diagnostic:
    """Return a finding about a graph, a node or an edge."""
    if isinstance(place, DotGraph):
        return Diagnostic(rule, severity, message, fix=fix)
    node, edge = (place.id, "") if isinstance(place, DotNode) else ("", place.id)
    return Diagnostic(rule, severity, message, node, edge, fix, place.line)
