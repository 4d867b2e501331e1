"""A graph drawn: as text, or as a picture by Graphviz; with each node's status and cost where a run is known."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Mapping
from typing import Literal, TypeAlias

from pipeline.dot import kinds
from pipeline.dot.model import DotEdge, DotGraph
from pipeline.errors import ConfigError
from pipeline.records.redaction import printable

#: Node id → (status, dollars as text); either may be "".
Marks: TypeAlias = Mapping[str, tuple[str, str]]
Picture: TypeAlias = Literal["svg", "png"]

#: Seconds that Graphviz may take.
_TIMEOUT = 120
#: Characters of a label that are drawn.
_LABEL, _EDGE_LABEL = 80, 60
#: First word of a status → the node's colour and the colour it is filled with.
_COLOURS: Mapping[str, tuple[str, str]] = {
    "completed": ("#2e7d32", "#e8f5e9"),
    "failed": ("#c62828", "#ffebee"),
    "running": ("#ef6c00", "#fff3e0"),
    "waiting": ("#6a1b9a", "#f3e5f5"),
}
_PLAIN = ("#607d8b", "#ffffff")
#: Drawn as they are; any other shape is drawn as a box.
_SHAPES = frozenset({*kinds.SHAPES, *kinds.SPLIT_SHAPES, "ellipse", "circle", "doublecircle", "trapezium",
                     "invtrapezium", "insulator", "oval"})  # fmt: skip


def as_text(graph: DotGraph, marks: Marks | None = None) -> str:
    """Return the nodes in the order in which a run meets them, each with what leads on from it."""
    order = in_order(graph)
    place = {name: number for number, name in enumerate(order)}
    titles = {}
    for name in order:
        node = graph.nodes[name]
        label = f" “{_flat(node.label, _LABEL)}”" if node.label != name else ""
        titles[name] = f"{name}{label} ({graph.kind(name)}{', goal gate' if node.flag('goal_gate') else ''})"
    width = min(max(map(len, titles.values()), default=0), 60)
    head = _flat(graph.text("label") or graph.name or "Graph", _LABEL)
    lines = [f"{head}: {len(graph.nodes)} nodes, {len(graph.edges)} edges"]
    if graph.goal:
        lines.append(f"Goal: {_flat(graph.goal, 200)}")
    lines.append("")
    for name in order:
        node = graph.nodes[name]
        status, usd = (marks or {}).get(name, ("", ""))
        lines.append(f"{titles[name]:{width}}   {status:12} {usd}".rstrip() if status or usd else titles[name])
        ways = []
        for edge in graph.outgoing(name):
            back = "back" if place.get(edge.target, place[name] + 1) <= place[name] else ""
            ways.append((edge.target, ", ".join(part for part in (_why(edge), back) if part)))
        ways += [(node.text(key), key.replace("_", " ")) for key in kinds.RETRY_TARGETS if node.text(key)]
        column = max((len(target) for target, _ in ways), default=0)
        lines += [f"  → {target:{column}}   {why}".rstrip() for target, why in ways]
    return "\n".join(lines)


def _why(edge: DotEdge) -> str:
    """Return when an edge is taken: its label, its condition."""
    parts = [_flat(edge.label, _EDGE_LABEL)] if edge.label else []
    if edge.condition:
        parts.append(f"if {_flat(edge.condition, 2 * _EDGE_LABEL)}")
    if edge.flag("loop_restart"):
        parts.append("restarts")
    return ", ".join(parts)


def in_order(graph: DotGraph) -> list[str]:
    """Return every node once, each after all that lead to it but by going back; the exits last."""
    seen: set[str] = set()
    found: list[str] = []
    # Roots and edges are walked from the last to the first, and the order turned round at the end.
    for root in [graph.start, *(name for name in graph.nodes if not graph.incoming(name)), *graph.nodes]:
        if root in seen or root not in graph.nodes:
            continue
        seen.add(root)
        part: list[str] = []
        walk = [(root, iter(reversed(graph.outgoing(root))))]
        while walk:
            name, edges = walk[-1]
            for edge in edges:
                if edge.target in graph.nodes and edge.target not in seen:
                    seen.add(edge.target)
                    walk.append((edge.target, iter(reversed(graph.outgoing(edge.target)))))
                    break
            else:
                part.append(name)
                walk.pop()
        found += reversed(part)
    return sorted(found, key=set(graph.exits).__contains__)


def as_picture(graph: DotGraph, form: Picture, marks: Marks | None = None) -> bytes:
    """Return the graph as Graphviz draws it.

    Raises:
        ConfigError: Graphviz is not installed, or does not draw it.
    """
    program, hint = shutil.which("dot"), "Draw it as text: -o txt."
    if program is None:
        message = f"Graphviz is not installed, so no {form} can be drawn."
        hint = "Install Graphviz (its program `dot`), or draw it as text: -o txt."
        raise ConfigError(message, code="graphviz_missing", hint=hint)
    source = graphviz_source(graph, marks).encode("utf-8", "replace")
    try:
        done = subprocess.run([program, f"-T{form}"], input=source, capture_output=True, timeout=_TIMEOUT, check=False)
    except subprocess.TimeoutExpired:
        raise ConfigError(f"Graphviz took more than {_TIMEOUT} s.", code="graphviz_failed", hint=hint) from None
    except OSError as error:
        raise ConfigError(f"Graphviz cannot be started: {error}.", code="graphviz_failed", hint=hint) from None
    if done.returncode or not done.stdout:
        said = _flat(done.stderr.decode("utf-8", "replace"), 200) or f"it ended with {done.returncode}"
        raise ConfigError(f"Graphviz does not draw it: {said}", code="graphviz_failed", hint=hint)
    return done.stdout


def graphviz_source(graph: DotGraph, marks: Marks | None = None) -> str:
    """Return DOT text for Graphviz alone: ids are numbers, every text is quoted, nothing is taken over as it is."""
    return "\n".join(_source(graph, marks or {})) + "\n"


def _source(graph: DotGraph, marks: Marks) -> Iterator[str]:
    number = {name: f"n{place}" for place, name in enumerate(graph.nodes)}
    across = "LR" if graph.text("rankdir") == "LR" else "TB"
    yield f"digraph {quoted(graph.name or 'graph')} {{"
    yield f"  graph [rankdir={across}, fontname=Helvetica, label={quoted(graph.text('label') or graph.name)}]"
    yield "  node [fontname=Helvetica, fontsize=11, style=filled]"
    yield '  edge [fontname=Helvetica, fontsize=9, color="#455a64"]'
    for name, node in graph.nodes.items():
        status, usd = marks.get(name, ("", ""))
        label = "\n".join(line for line in (_flat(node.label, _LABEL), " ".join((status, usd)).strip()) if line)
        colour, filled = _COLOURS.get(status.partition(" ")[0].rstrip(","), _PLAIN)
        shape = node.shape if node.shape in _SHAPES else "box"
        border = 2 if node.flag("goal_gate") else 1
        yield (f"  {number[name]} [label={quoted(label)}, tooltip={quoted(name)}, shape={shape}, "
               f'color="{colour}", fillcolor="{filled}", penwidth={border}]')  # fmt: skip
    for edge in graph.edges:
        if edge.source in number and edge.target in number:
            style = "dashed" if edge.flag("loop_restart") else "solid"
            yield f"  {number[edge.source]} -> {number[edge.target]} [label={quoted(_why(edge))}, style={style}]"
    for name, node in graph.nodes.items():
        for key in kinds.RETRY_TARGETS:
            if (target := node.text(key)) in number:
                why = quoted(key.replace("_", " "))
                yield f"  {number[name]} -> {number[target]} [label={why}, style=dotted, constraint=false]"
    yield "}"


def quoted(text: str) -> str:
    """Return a text as a quoted string that Graphviz shows as it is."""
    # Graphviz reads entities in labels, so a plain & is written as one.
    plain = printable(text).replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"')
    return '"' + plain.replace("\n", "\\n") + '"'


def _flat(text: str, limit: int) -> str:
    flat = " ".join(printable(text).split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"
