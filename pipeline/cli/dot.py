"""`validate`, `parse`, `handlers`, `draw`: DOT pipelines looked at, never run."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from pipeline.cli.options import RunName, json_option, open_store, own, place_of, store_option
from pipeline.cli.reading import head_of, state_of
from pipeline.cli.text import count, money_between, one_line, say, say_json, table, with_unpriced
from pipeline.dot import kinds
from pipeline.dot.diagnostics import ERROR, Diagnostic
from pipeline.dot.drawing import as_picture, as_text
from pipeline.dot.model import DotEdge, DotGraph, DotNode
from pipeline.dot.parser import parse as parse_text
from pipeline.dot.parser import read_graph
from pipeline.dot.rules import check, tool_commands
from pipeline.errors import CheckpointCorrupt, ConfigError, GraphError
from pipeline.formats.attractor.children import from_folder, inline_children
from pipeline.records.run import RunState, Spend
from pipeline.records.statuses import COMPLETED, IN_PROGRESS
from pipeline.store.base import Store
from pipeline.store.reading import resolve

#: What `draw -o` takes.
FORMATS = ("txt", "svg", "png")
#: Names that are files also where no such file lies.
_ENDINGS = (".dot", ".gv", ".fabro")

_file = click.argument("file", type=click.Path(path_type=Path), metavar="FILE.dot")


class FileOrRun(RunName):
    """A DOT file, or a run; the shell completes both."""

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [*super().shell_complete(ctx, param, incomplete), CompletionItem(incomplete, type="file")]


@click.command("validate")
@_file
@json_option
def validate(file: Path, as_json: bool) -> int:
    """Check whether a DOT pipeline can be run, and list the commands it would run.

    Nothing is run. Exit code 2: there are errors; warnings and remarks leave 0.
    """
    try:
        graph = read_graph(file)
    except GraphError as error:
        if not as_json:
            raise
        say_json(_unread(file, error))
        return error.exit_code
    whole, faults = _whole(file, graph)
    found = [*faults, *check(graph)]
    commands = tool_commands(whole)
    errors = sum(finding.severity == ERROR for finding in found)
    if as_json:
        say_json(_checked(file, graph, found, commands))
    else:
        for line in _findings(found) + _commands(commands) + [_verdict(file, graph, found)]:
            say(line)
    return GraphError.exit_code if errors else 0


def _whole(file: Path, graph: DotGraph) -> tuple[DotGraph, list[Diagnostic]]:
    """The graph with its child pipelines worked in: what they would run counts too; and why it cannot be had."""
    try:
        return inline_children(graph, from_folder(file.absolute().parent)), []
    except (GraphError, ConfigError) as error:
        return graph, [Diagnostic("child_pipeline", ERROR, error.message, fix=error.hint)]


def _checked(
    file: Path, graph: DotGraph, found: Sequence[Diagnostic], commands: Sequence[tuple[str, str]]
) -> dict[str, Any]:
    severities = Counter(finding.severity for finding in found)
    return {
        "file": str(file),
        "name": graph.name,
        "valid": not severities[ERROR],
        "nodes": len(graph.nodes),
        "edges": len(graph.edges),
        "errors": severities[ERROR],
        "warnings": severities["WARNING"],
        "diagnostics": [finding.to_json() for finding in found],
        "tool_commands": [{"node": node, "command": command} for node, command in commands],
    }


def _unread(file: Path, error: GraphError) -> dict[str, Any]:
    """As `_checked`, of a file that holds no graph."""
    finding = Diagnostic("syntax", ERROR, error.message, fix=error.hint, line=error.data.get("line", 0))
    place = {**finding.to_json(), "column": error.data.get("column")}
    return {"file": str(file), "name": None, "valid": False, "nodes": 0, "edges": 0, "errors": 1, "warnings": 0,
            "diagnostics": [place], "tool_commands": []}  # fmt: skip


def _findings(found: Sequence[Diagnostic]) -> list[str]:
    lines = []
    for finding in found:
        where = f"line {finding.line}: " if finding.line else ""
        lines.append(f"{finding.severity:7} {finding.rule}: {where}{finding.message}")
        if finding.fix:
            lines.append(f"        {finding.fix}")
    return [*lines, ""] if lines else []


def _commands(commands: Sequence[tuple[str, str]]) -> list[str]:
    if not commands:
        return []
    lines = ["Shell commands it would run, with --allow-tools only:"]
    for node, command in commands:
        # In full: who allows them should see all of them.
        lines += [f"  {node}:", *(f"    {line}" for line in command.splitlines())]
    return [*lines, ""]


def _verdict(file: Path, graph: DotGraph, found: Sequence[Diagnostic]) -> str:
    severities = Counter(finding.severity for finding in found)
    size = f"{count(len(graph.nodes), 'node')}, {count(len(graph.edges), 'edge')}"
    if severities[ERROR]:
        return f"{file}: cannot be run ({size}; {count(severities[ERROR], 'error')})."
    warned = f"; {count(severities['WARNING'], 'warning')}" if severities["WARNING"] else ""
    return f"{file}: can be run ({size}{warned})."


@click.command("parse")
@_file
@json_option
def parse(file: Path, as_json: bool) -> None:
    """Show what a DOT file says: its nodes and edges with their attributes.

    Defaults, subgraphs and chains are worked in; with --json every attribute is shown.
    """
    graph = read_graph(file)
    if as_json:
        say_json(graph.to_json())
        return
    nodes = list(graph.nodes.values())
    say(f"{graph.name or file.name}: {count(len(nodes), 'node')}, {count(len(graph.edges), 'edge')}")
    say()
    say(table(["Node", "Type", "Label", "Attributes"], [_node_row(graph, node) for node in nodes]))
    if graph.edges:
        say()
        say(table(["From", "To", "Label", "Condition"], [_edge_row(edge) for edge in graph.edges]))


def _node_row(graph: DotGraph, node: DotNode) -> list[str]:
    more = [name for name in node.attributes if name not in ("label", "shape", "type")]
    label = one_line(node.label, 40) if node.label != node.id else "-"
    return [one_line(node.id, 40), graph.kind(node), label, one_line(", ".join(more), 60) or "-"]


def _edge_row(edge: DotEdge) -> list[str]:
    return [one_line(edge.source, 40), one_line(edge.target, 40), one_line(edge.label, 40) or "-",
            one_line(edge.condition, 60) or "-"]  # fmt: skip


@click.command("handlers")
@json_option
def handlers(as_json: bool) -> None:
    """List the kinds of nodes a DOT pipeline may have: type, shape, what each does."""
    if as_json:
        for kind in kinds.KINDS:
            say_json(kind._asdict())
        return
    say(table(["Type", "Shape", "What it does"], [list(kind) for kind in kinds.KINDS]))


@click.command("draw")
@click.argument("what", type=FileOrRun(), metavar="FILE.dot|RUN")
@click.option("-o", "--format", "form", type=click.Choice(FORMATS), default="txt", show_default=True,
              envvar=own("draw", "format"), show_envvar=True,
              help="How it is drawn, on stdout; svg and png need Graphviz.")  # fmt: skip
@store_option
def draw(what: str, form: str, store: str | None) -> None:
    """Draw a DOT pipeline, or a run with the status and cost of each node.

    \b
    ./pipeline.sh draw course.dot
    ./pipeline.sh draw latest -o svg > run.svg
    """  # noqa: D301
    if Path(what).is_file() or what.endswith(_ENDINGS):
        graph, marks = read_graph(what), {}
    else:
        run, store = place_of(what, store)
        place = open_store(store)
        state = state_of(place, head_of(place, resolve(place, run)))
        graph, marks = drawn_graph(place, state), drawn_marks(state)
    if form == "txt":
        say(as_text(graph, marks))
        return
    if form == "png" and sys.stdout.isatty():
        raise ConfigError("A PNG is no text for a terminal.", hint=f"./pipeline.sh draw {what} -o png > graph.png")
    picture = as_picture(graph, "svg" if form == "svg" else "png", marks)
    sys.stdout.buffer.write(picture)


def drawn_graph(store: Store, state: RunState) -> DotGraph:
    """The graph a run is pinned to: its DOT text, or that of a pipeline in Python.

    Raises:
        CheckpointCorrupt: It cannot be read.
    """
    try:
        if "dot" in state.pins:
            return parse_text(json.loads(store.get_blob(state.run_id, state.pins["dot"])), state.run_id)
        if "graph" in state.pins:
            return _plain_graph(state.pipeline, json.loads(store.get_blob(state.run_id, state.pins["graph"])))
    except (ValueError, KeyError, TypeError) as error:
        raise CheckpointCorrupt(f"Run {state.run_id}: its graph cannot be read: {error}.") from error
    raise CheckpointCorrupt(f"Run {state.run_id} holds no graph.", hint="It was imported from a document.")


def _plain_graph(name: str, pinned: Mapping[str, Any]) -> DotGraph:
    nodes = {row["id"]: DotNode(row["id"], {"type": "step"}) for row in pinned["nodes"]}
    edges = [DotEdge(row["source"], row["target"], {"label": row["when"]} if row.get("when") else {}, row["id"])
             for row in pinned["edges"]]  # fmt: skip
    return DotGraph(name, {}, nodes, tuple(edges))


def drawn_marks(state: RunState) -> dict[str, tuple[str, str]]:
    """Node → its last visit's status, how often it was visited, and what all visits cost."""
    spent: dict[str, Spend] = {}
    for key, amount in state.spend.items():
        node = key.step.rpartition("/")[2].partition("#")[0]
        spent.setdefault(node, Spend()).add(amount)
    visits = Counter(step.node for step in state.steps.values())
    marks = {}
    for step in state.steps.values():
        status = _status(state, step.path, step.status)
        if visits[step.node] > 1:
            status += f", {visits[step.node]} visits"
        marks[step.node] = (status, _usd(spent.get(step.node)))
    return marks


def _status(state: RunState, path: str, status: str) -> str:
    if path in state.questions:
        return "waiting"
    if status == COMPLETED and state.steps[path].error:
        return "failed"
    return "running" if status == IN_PROGRESS else status


def _usd(spend: Spend | None) -> str:
    if spend is None or not spend.calls:
        return ""
    high = None if spend.unbounded else spend.usd + spend.high
    return with_unpriced(money_between(spend.usd + spend.low, high), spend.unpriced)
