"""`validate`, `parse`, `handlers`, `draw`: DOT pipelines looked at, never run."""

from __future__ import annotations

import base64
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from pipeline.app.run_graph import drawn_graph, drawn_marks
from pipeline.app.stores import head_of, open_store, place_of, state_of
from pipeline.app.words import count, one_line
from pipeline.cli.options import NamedPath, RunName, common_options, json_option, own_option
from pipeline.cli.text import say, say_json, table, tell
from pipeline.dot import kinds
from pipeline.dot.diagnostics import ERROR, WARNING, Diagnostic
from pipeline.dot.drawing import as_picture, as_text
from pipeline.dot.model import DotGraph
from pipeline.dot.parser import read_graph
from pipeline.dot.rules import check, tool_commands
from pipeline.errors import ConfigError, GraphError
from pipeline.formats.attractor.children import from_folder, inline_children
from pipeline.store.reader import resolve

#: What `draw -o` takes.
FORMATS = ("txt", "svg", "png")
#: Names that are files also where no such file lies.
_ENDINGS = (".dot", ".gv", ".fabro")

_file = click.argument("file", type=NamedPath(), metavar="FILE.dot")


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
        fault = Diagnostic("syntax", ERROR, error.message, fix=error.hint, line=error.data.get("line", 0))
        say_json(_checked(file, None, [fault], [], column=error.data.get("column")))
        return error.exit_code
    # What its child pipelines would run counts too.
    whole, faults = graph, list[Diagnostic]()
    try:
        whole = inline_children(graph, from_folder(file.absolute().parent))
    except (GraphError, ConfigError) as error:
        faults = [Diagnostic("child_pipeline", ERROR, error.message, fix=error.hint)]
    found = [*faults, *check(graph)]
    commands = tool_commands(whole)
    tell([_checked(file, graph, found, commands)], _report(file, graph, found, commands), as_json=as_json)
    return GraphError.exit_code if any(finding.severity == ERROR for finding in found) else 0


def _checked(
    file: Path,
    graph: DotGraph | None,
    found: Sequence[Diagnostic],
    commands: Sequence[tuple[str, str]],
    **place: Any,
) -> dict[str, Any]:
    """Return what `validate --json` says; `graph` None: the file holds none, `place` says where reading stopped."""
    severities = Counter(finding.severity for finding in found)
    return {
        "file": str(file),
        "name": graph.name if graph else None,
        "valid": not severities[ERROR],
        "nodes": len(graph.nodes) if graph else 0,
        "edges": len(graph.edges) if graph else 0,
        "errors": severities[ERROR],
        "warnings": severities[WARNING],
        "diagnostics": [{**finding.to_json(), **place} for finding in found],
        "tool_commands": [{"node": node, "command": command} for node, command in commands],
    }


def _report(
    file: Path, graph: DotGraph, found: Sequence[Diagnostic], commands: Sequence[tuple[str, str]]
) -> Iterator[str]:
    for finding in found:
        where = f"line {finding.line}: " if finding.line else ""
        yield f"{finding.severity:7} {finding.rule}: {where}{finding.message}"
        if finding.fix:
            yield f"        {finding.fix}"
    if found:
        yield ""
    if commands:
        yield "Shell commands it would run (only with --allow-tools):"
        for node, command in commands:
            # In full: they should be read before they are allowed.
            yield f"  {node}:"
            yield from (f"    {line}" for line in command.splitlines())
        yield ""
    severities = Counter(finding.severity for finding in found)
    size = f"{count(len(graph.nodes), 'node')}, {count(len(graph.edges), 'edge')}"
    warned = f"; {count(severities[WARNING], 'warning')}" if severities[WARNING] else ""
    if severities[ERROR]:
        yield f"{file}: cannot be run ({size}; {count(severities[ERROR], 'error')})."
    else:
        yield f"{file}: can be run ({size}{warned})."


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
    rows = []
    for node in nodes:
        more = ", ".join(name for name in node.attributes if name not in ("label", "shape", "type"))
        label = one_line(node.label, 40) if node.label != node.id else "-"
        rows.append([one_line(node.id, 40), graph.kind(node), label, one_line(more, 60) or "-"])
    say(table(["Node", "Type", "Label", "Attributes"], rows))
    if graph.edges:
        say()
        say(table(["From", "To", "Label", "Condition"], [
            [one_line(edge.source, 40), one_line(edge.target, 40), one_line(edge.label, 40) or "-",
             one_line(edge.condition, 60) or "-"]
            for edge in graph.edges
        ]))  # fmt: skip


@click.command("handlers")
@json_option
def handlers(as_json: bool) -> None:
    """List the kinds of nodes a DOT pipeline may have: type, shape, what each does."""
    if as_json:
        for kind in kinds.KINDS:
            say_json(kind._asdict())
        return
    say(table(["Type", "Shape", "What it does"], list(map(list, kinds.KINDS))))


@click.command("draw")
@click.argument("what", type=FileOrRun(), metavar="FILE.dot|RUN")
@own_option("draw", "-o", "--format", "form", type=click.Choice(FORMATS), default="txt", show_default=True,
            help="Output format, on stdout; svg and png need Graphviz.")  # fmt: skip
@common_options
def draw(what: str, form: str, as_json: bool, store: str | None) -> None:
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
        drawn = as_text(graph, marks)
        tell([{"format": form, "drawing": drawn}], [drawn], as_json=as_json)
        return
    if form == "png" and not as_json and sys.stdout.isatty():
        hint = f"./pipeline.sh draw {what} -o png > graph.png"
        raise ConfigError("A PNG cannot be shown in a terminal.", code="binary_output", hint=hint)
    picture = as_picture(graph, "svg" if form == "svg" else "png", marks)
    if as_json:
        text = picture.decode() if form == "svg" else base64.b64encode(picture).decode()
        say_json({"format": form, "drawing": text})
        return
    sys.stdout.buffer.write(picture)
