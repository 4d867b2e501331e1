"""A node that runs a shell command: only if this process was allowed to, never twice without a person's word.

Values of the run reach the command as environment variables, never as text of the command: what a model wrote is not
run. What the command leaves in $PIPELINE_NODE_DIR/outcome.json (or status.json) is its outcome.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pipeline.dot.model import DotGraph
from pipeline.dot.names import NAME
from pipeline.dot.rules import tool_commands
from pipeline.errors import ConfigError, Pause
from pipeline.formats.attractor.handlers import shell
from pipeline.formats.attractor.handlers.prompt import expand, name_value
from pipeline.formats.attractor.handlers.registry import Visit
from pipeline.formats.attractor.outcome import FAIL, RETRY, NodeOutcome, allowed, failure
from pipeline.records.run import bare

#: The option that permits commands; given each time, never recorded.
ALLOW = "allow_tools"
#: Of a command's output the context keeps so many characters: the beginning, and three times as much of the end.
MOST_CONTEXT = 64 * 1024
#: Of stderr a failure's reason keeps so many.
_MOST_REASON = 2000
#: A value that a command is given is not longer than this (bytes); the system takes no more.
_MOST_VALUE = 100_000


def tool(visit: Visit) -> NodeOutcome:
    """Run the node's command; its exit code decides, or the outcome that it leaves.

    Raises:
        Pause: This process may not run commands.
    """
    ctx, node = visit.ctx, visit.node
    if not node.command.strip():
        return failure(f"Node {node.id!r} has no command.", "deterministic")
    if not ctx.options.get(ALLOW):
        # No failure that a graph could route around: the run waits until it is allowed.
        raise Pause("stopped_as_asked", _refusal([(node.id, node.command)]))
    with shell.OutcomeFolder.of(ctx) as left:
        try:
            command, values = with_variables(visit, node.command)
            visited = {"PIPELINE_VISIT": bare(ctx.path), "PIPELINE_ATTEMPT": str(ctx.attempt)}
            variables = shell.environment({**values, **left.variables(node.id), **visited})
            done = shell.run(
                command, cwd=shell.workdir(visit), environment=variables, seconds=node.seconds("timeout")
            )  # fmt: skip
        except (OSError, ValueError) as error:
            return failure(f"The command could not be run: {error}", "deterministic")
        said = left.read()
    return _outcome(visit, done, said)


def check_allowed(graph: DotGraph, options: Mapping[str, Any]) -> None:
    """Refuse a graph whose commands are not allowed; to be asked before a run begins or is resumed.

    Raises:
        ConfigError: Lists the commands; data["commands"] has them as (node, command).
    """
    commands = tool_commands(graph)
    if commands and not options.get(ALLOW):
        raise _refusal(commands)


def _refusal(commands: list[tuple[str, str]]) -> ConfigError:
    listed = "\n".join(f"  {node}: {command}" for node, command in commands)
    return ConfigError(
        f"This pipeline runs shell commands; pass --allow-tools to permit them:\n{listed}", code="tools_not_allowed",
        hint="Read the commands first; --allow-tools holds for this start only.", commands=commands,
    )  # fmt: skip


def _outcome(visit: Visit, done: shell.Done, said: NodeOutcome | None) -> NodeOutcome:
    """Return what a command came to: its outputs, and the outcome by its exit code or by what it says."""
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
        made = failure(f"The command did not end within {node.seconds('timeout'):g} s.", "transient_infra")
    elif done.exit_code:
        how = f"exit code {done.exit_code}" if done.exit_code >= 0 else f"signal {-done.exit_code}"
        text = (done.stderr.strip() or done.stdout.strip())[-_MOST_REASON:]
        reason = f"The command ended with {how}" + (f": {text}" if text else ".")
        if made.status not in (FAIL, RETRY):
            made = failure(reason, made.failure_class)
        elif not made.failure_reason:
            made = replace(made, failure_reason=reason)
    updates = allowed(said.context_updates if said else {}, ctx)
    return replace(made, context_updates={**told, **updates}, outputs=outputs)


def shortened(text: str) -> tuple[str, bool]:
    """Return an output as the context keeps it, without the newline at its end; and whether something was left out."""
    text = text.rstrip("\r\n")
    if len(text) <= MOST_CONTEXT:
        return text, False
    head = MOST_CONTEXT // 4
    left_out = len(text) - MOST_CONTEXT
    return f"{text[:head]}\n[… {left_out} characters left out …]\n{text[-(MOST_CONTEXT - head) :]}", True


def with_variables(visit: Visit, command: str) -> tuple[str, dict[str, str]]:
    """Return a command, and the run's values that it asks for by names that mean nothing else there.

    `$tool.output`, which no variable can be called, becomes `${tool_output}`.

    Raises:
        ValueError: A value is too long for a command.
    """
    found = dict[str, str]()

    def give(name: str) -> str | None:
        variable = re.sub(r"\W", "_", name)
        value = name_value(visit, name) if shell.may_be_given(variable) else None
        if value is None:
            return None
        if len(value.encode("utf-8", "surrogatepass")) > _MOST_VALUE:
            raise ValueError(f"${name} is longer than {_MOST_VALUE} bytes; a command cannot take it")
        found[variable] = value.replace("\x00", "")
        return f"${{{variable}}}" if variable != name else None

    # The shell reads $plan.response as $plan, so the first part of a name is given, too.
    for name in dict.fromkeys((each[1] or each[2]).partition(".")[0] for each in NAME.finditer(command)):
        give(name)
    return expand(command, give), found
