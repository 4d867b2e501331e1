"""A node that runs a shell command: only where this process was allowed to, never twice without a person's word.

Values of the run reach the command as environment variables, never as text of the command: what a model wrote is not
run. What the command leaves in $PIPELINE_NODE_DIR/outcome.json (or status.json) is its outcome.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pipeline.dot.model import DotGraph
from pipeline.dot.rules import tool_commands
from pipeline.engine.step import StepContext
from pipeline.errors import ConfigError, Pause
from pipeline.formats.attractor.children import CHILD_OF
from pipeline.formats.attractor.handlers import shell
from pipeline.formats.attractor.handlers.expansion import Names, expand, named
from pipeline.formats.attractor.handlers.left import LEFT_IN, astray, marks, node_folder, read_outcome
from pipeline.formats.attractor.handlers.registry import Visit
from pipeline.formats.attractor.handlers.results import allowed
from pipeline.formats.attractor.outcome import FAIL, RETRY, NodeOutcome, failure
from pipeline.records.run import bare

#: The option that permits commands; given each time, never recorded.
ALLOW = "allow_tools"
#: Folder in which commands run; a service, not recorded. Where it is not given: the one this process stands in.
WORKDIR = "workdir"
#: Attribute of a supervisor, or of its graph.
_CHILD_PLACE = "stack.child_workdir"
#: Of a command's output the context keeps so many characters: the beginning, and three times as much of the end.
MOST_CONTEXT = 64 * 1024
#: Of stderr a failure's reason keeps so many.
_MOST_REASON = 2000
#: A value that a command is given is not longer than this (bytes); the system takes no more.
_MOST_VALUE = 100_000
#: What a variable's name does not hold.
_NO_NAME = re.compile(r"\W")
_TIMED_OUT = "transient_infra"


def tool(visit: Visit) -> NodeOutcome:
    """Run the node's command; its exit code decides, or the outcome that it leaves.

    Raises:
        Pause: Nobody has allowed commands to this process.
    """
    ctx, node = visit.ctx, visit.node
    command = node.command
    if not command.strip():
        return failure(f"Node {node.id!r} has no command.", "deterministic")
    if not ctx.options.get(ALLOW):
        # No failure that a graph could route around: the run stands still until somebody allows it.
        raise Pause("stopped_as_asked", _refusal([(node.id, command)]))
    with node_folder(ctx) as folder:
        shared = Path(str(ctx.options.get(LEFT_IN) or folder)).absolute()
        before = marks(shared)
        try:
            prepared, values = with_variables(visit, command)
            variables = {**values, **places(ctx, folder)}
            done = shell.run(
                prepared, cwd=workdir(visit), environment=shell.environment(variables), seconds=node.seconds("timeout")
            )
        except (OSError, ValueError) as error:
            return failure(f"The command could not be run: {error}", "deterministic")
        said = read_outcome(folder) or astray(shared, folder, before)
    return _outcome(visit, done, said)


def check_allowed(graph: DotGraph, options: Mapping[str, Any]) -> None:
    """Refuse a graph whose commands nobody has allowed; to be asked before a run begins or goes on.

    Raises:
        ConfigError: Lists the commands; data["commands"] has them as (node, command).
    """
    commands = tool_commands(graph)
    if commands and not options.get(ALLOW):
        raise _refusal(commands)


def _refusal(commands: list[tuple[str, str]]) -> ConfigError:
    listed = "\n".join(f"  {node}: {command}" for node, command in commands)
    return ConfigError(
        f"This pipeline runs shell commands, which nobody has allowed:\n{listed}",
        hint="Read them; --allow-tools lets this process run them.", commands=commands,
    )  # fmt: skip


def _outcome(visit: Visit, done: shell.Done, said: NodeOutcome | None) -> NodeOutcome:
    """What a command came to: its outputs, and the outcome by its exit code or by what it says."""
    ctx, node = visit.ctx, visit.node
    shown, cut = shortened(done.stdout)
    if cut:
        ctx.save(f"{node.id}.stdout", done.stdout)
    last = next((line.strip() for line in reversed(done.stdout.splitlines()) if line.strip()), "")
    errors = done.stderr[-_MOST_REASON:].rstrip("\r\n")
    told = {
        "tool.output": shown, "tool_stdout": shown, "tool.last_line": last, "tool.stderr": errors,
        "tool.exit_code": done.exit_code,
    }  # fmt: skip
    outputs = {"output": shown, "stderr": errors, "exit_code": done.exit_code}
    if done.cut:
        outputs["cut"] = shell.MOST_OUTPUT
    made = said or NodeOutcome()
    if done.timed_out:
        made = failure(f"The command did not end within {node.seconds('timeout'):g} s.", _TIMED_OUT)
    elif done.exit_code and made.status not in (FAIL, RETRY):
        made = failure(_reason(done), made.failure_class)
    elif done.exit_code and not made.failure_reason:
        made = replace(made, failure_reason=_reason(done))
    updates = allowed(said.context_updates if said else {}, ctx)
    return replace(made, context_updates={**told, **updates}, outputs=outputs)


def _reason(done: shell.Done) -> str:
    how = f"exit code {done.exit_code}" if done.exit_code >= 0 else f"signal {-done.exit_code}"
    text = (done.stderr.strip() or done.stdout.strip())[-_MOST_REASON:]
    return f"The command ended with {how}" + (f": {text}" if text else ".")


def shortened(text: str) -> tuple[str, bool]:
    """An output as the context keeps it, without the newline at its end; and whether something was left out."""
    text = text.rstrip("\r\n")
    if len(text) <= MOST_CONTEXT:
        return text, False
    head = MOST_CONTEXT // 4
    left_out = len(text) - MOST_CONTEXT
    return f"{text[:head]}\n[… {left_out} characters left out …]\n{text[-(MOST_CONTEXT - head) :]}", True


def workdir(visit: Visit) -> Path:
    """Where commands run: the run's folder; in a child pipeline the one that its supervisor names below that.

    Raises:
        ValueError: It names one that does not lie there.
    """
    place = Path(str(visit.ctx.services.get(WORKDIR) or os.getcwd()))
    supervisor = visit.graph.nodes.get(visit.node.text(CHILD_OF))
    while supervisor is not None:
        if said := (supervisor.text(_CHILD_PLACE) or visit.graph.text(_CHILD_PLACE)).strip():
            found = (place / said).resolve()
            if not found.is_relative_to(place.resolve()):
                raise ValueError(f"{_CHILD_PLACE} {said!r} does not lie below {place}")
            return found
        supervisor = visit.graph.nodes.get(supervisor.text(CHILD_OF))
    return place


def places(ctx: StepContext, folder: Path) -> dict[str, str]:
    """What a command may know of where it stands."""
    return {
        "PIPELINE_NODE_DIR": str(folder),
        "PIPELINE_NODE": ctx.node.id,
        "PIPELINE_VISIT": bare(ctx.path),
        "PIPELINE_ATTEMPT": str(ctx.attempt),
        "ATTRACTOR_STAGE_DIR": str(folder),
    }


def with_variables(visit: Visit, command: str) -> tuple[str, dict[str, str]]:
    """A command, and the run's values that it asks for by names that stand for nothing else there.

    `$tool.output`, which no variable can be called, becomes `${tool_output}`.

    Raises:
        ValueError: A value is too long for a command.
    """
    names, found = Names(visit), dict[str, str]()

    def give(name: str) -> str | None:
        variable = _NO_NAME.sub("_", name)
        value = names.get(name) if shell.may_be_given(variable) else None
        if value is None:
            return None
        if len(value.encode("utf-8", "surrogatepass")) > _MOST_VALUE:
            raise ValueError(f"${name} is longer than {_MOST_VALUE} bytes; a command cannot take it")
        found[variable] = value.replace("\x00", "")
        return variable if variable != name else None

    for name in named(command):
        give(name)
    return expand(command, lambda name: f"${{{variable}}}" if (variable := give(name)) else None), found
