"""Nodes that run shell commands: only where allowed, in bounds, without secrets, never twice unasked."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from pipeline.engine.events import Event
from pipeline.errors import ConfigError, NeedsConfirmation
from pipeline.formats.attractor.handlers import shell
from pipeline.formats.attractor.handlers.tool import MOST_CONTEXT, check_allowed
from tests.unit.formats.acting import Act


def tool(command: str, more: str = "") -> Act:
    text = command.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return Act(f'graph [goal="ship it"]\nt [shape=parallelogram, tool_command="{text}"{more}]\nstart -> t -> exit')


def ran(command: str, more: str = "", **options: Any) -> Act:
    act = tool(command, more)
    act.go(allow_tools=True, **options)
    return act


def test_a_commands_output_stands_in_the_context() -> None:
    act = ran("echo one; echo two; echo aside >&2")
    assert act.state.status == "completed"
    assert act.context("tool.output") == act.context("tool_stdout") == "one\ntwo"
    assert (act.context("tool.last_line"), act.context("tool.exit_code")) == ("two", 0)
    assert act.visit("t").outputs["stderr"] == act.context("tool.stderr") == "aside"


@pytest.mark.parametrize(
    ("command", "more", "said"),
    [
        ("echo started; echo it broke >&2; exit 3", "", "exit code 3: it broke"),
        ("exit 3", ", auto_status=true", "exit code 3"),
        ('echo \'{"outcome": "success"}\' > $PIPELINE_NODE_DIR/outcome.json; exit 3', "", "exit code 3"),
        ("echo nonsense > $PIPELINE_NODE_DIR/outcome.json", "", "outcome.json is not JSON"),
    ],
)
def test_a_failing_command_fails_the_node_and_says_why(command: str, more: str, said: str) -> None:
    act = ran(command, more)
    assert act.state.status == "failed"
    assert said in str((act.visit("t").error or {})["message"])
    assert act.visit("t").context["tool.exit_code"] == (3 if "exit 3" in command else 0)


def test_a_command_whose_time_is_over_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    left = tmp_path / "left"
    act = ran(f"(sleep 30; touch {left}) & sleep 30", ", timeout=300ms")
    error = act.visit("t").error or {}
    assert (act.state.status, error["class"]) == ("failed", "transient_infra")
    assert "did not end within 0.3 s" in str(error["message"])
    assert not left.exists()


def test_nothing_runs_where_commands_are_not_allowed(tmp_path: Path) -> None:
    act = tool(f"touch {tmp_path}/made")
    with pytest.raises(ConfigError) as caught:
        check_allowed(act.dot, {})
    assert caught.value.code == "tools_not_allowed"
    assert caught.value.data["commands"] == [("t", f"touch {tmp_path}/made")]
    check_allowed(act.dot, {"allow_tools": True})
    result = act.go()
    assert result.detail == "stopped_as_asked"
    assert "touch" in str(result.error)
    assert not (tmp_path / "made").exists()
    assert act.state.status == "in_progress"


@pytest.mark.parametrize(
    ("command", "value", "output"),
    [
        # Values are variables: no shell reads them as text of the command.
        ('printf %s "$goal|$v|$unknown|$(echo $HOME | wc -l)"', "$(touch trap); touch trap # `touch trap`",
         "ship; it|$(touch trap); touch trap # `touch trap`||1"),
        # Names with dots are, too.
        ('echo "$first.output ${tool.exit_code} $first.output.txt $tool.none $v.md"', "it",
         "a b 0 a b.txt .none it.md"),
        # None replaces what the shell lives by, or what this process has; none is longer than a command can take.
        ("echo $PATH $LD_PRELOAD $HELD", "/evil", None), ("echo $v", "x" * 120_000, "$v is longer than"),
    ],
    ids=["text", "dots", "held", "long"],
)  # fmt: skip
def test_values_of_the_run_reach_a_command_as_variables_and_are_never_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, value: str, output: str | None
) -> None:
    monkeypatch.setenv("HELD", "ours")
    updates = dict.fromkeys(("v", "PATH", "LD_PRELOAD", "HELD"), value)
    reply = json.dumps({"outcome": "success", "context_updates": updates})
    act = Act(
        f'graph [goal="ship; it"]\nfirst [shape=parallelogram, tool_command="echo a b"]\na [prompt=A]\n'
        f"t [shape=parallelogram, tool_command={json.dumps(command)}]\nstart -> first -> a -> t -> exit", [reply],
    )  # fmt: skip
    act.go(allow_tools=True, services={"workdir": tmp_path})
    assert act.context("HELD") == value or value.startswith("x")
    said = str((act.visit("t").error or {}).get("message", act.context("tool.output")))
    if output is None:
        assert ("/evil" in said, said.endswith(" ours")) == (False, True)
    else:
        assert said == output or output in said
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "value", "secret"),
    [
        ("ANTHROPIC_API_KEY", "x", True), ("ANTHROPIC_BASE_URL", "x", True), ("AWS_SECRET_ACCESS_KEY", "x", True),
        ("GITHUB_TOKEN", "x", True), ("openaikey", "x", True), ("DB_PASSWORD", "x", True),
        ("NOTE", "my sk-ant-api03-abcdefgh", True), ("HOME", "/root", False), ("KEYBOARD", "de", False),
        ("TOKENIZER", "x", False),
    ],
)  # fmt: skip
def test_variables_that_are_secrets_are_told_by_name_and_value(name: str, value: str, secret: bool) -> None:
    assert shell.is_secret(name, value) is secret


def test_commands_do_not_see_secrets_and_what_looks_like_a_key_is_not_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "hidden-value")
    monkeypatch.setenv("VISIBLE", "seen")
    act = ran("printf '\\377'; echo \"[$ANTHROPIC_API_KEY] $VISIBLE sk-ant-api03-abcdefghij\"")
    assert act.context("tool.output") == "\N{REPLACEMENT CHARACTER}[] seen [key]"
    assert "allow_tools" not in act.state.execution


def test_the_shell_runs_where_it_is_told_to(tmp_path: Path) -> None:
    act = tool("pwd")
    act.go(allow_tools=True, services={"workdir": tmp_path})
    assert act.context("tool.output") == str(tmp_path)
    other = tool("pwd")
    other.go(allow_tools=True)
    assert other.context("tool.output") == os.getcwd()


def test_a_long_output_is_cut_in_the_context_and_kept_whole_beside() -> None:
    act = ran("yes abc | head -n 50000; echo last")
    shown = act.context("tool.output")
    blob = act.visit("t").artifacts["t.stdout"]
    whole = json.loads(act.store.get_blob(act.run_id, blob))
    assert whole.count("\n") == 50_001
    value = shown if isinstance(shown, str) else json.loads(act.store.get_blob(act.run_id, shown["$blob"]))
    assert len(value) < MOST_CONTEXT + 100
    assert value.endswith("last")
    assert "left out" in value
    assert act.context("tool.last_line") == "last"


@pytest.mark.parametrize("name", ["outcome.json", "status.json"])
def test_the_outcome_that_a_command_leaves_is_the_nodes(name: str) -> None:
    document = '{"outcome": "needs_work", "context_updates": {"n": "1", "internal.x": "2"}, "notes": "so"}'
    command = f"printf '%s' '{json.dumps(document)[1:-1]}' > $PIPELINE_NODE_DIR/{name}"
    act = Act(
        f't [shape=parallelogram, tool_command="{command}"]\nb [shape=parallelogram, tool_command="true"]\nstart -> t\n'
        't -> b [condition="outcome=needs_work"]\nt -> exit\nb -> exit'
    )
    assert act.go(allow_tools=True).status == "completed"
    assert act.order == ["start", "t", "b", "exit"]
    assert (act.context("n"), act.context("internal.x")) == ("1", None)


def test_an_outcome_of_an_earlier_visit_is_never_taken_for_this_ones(tmp_path: Path) -> None:
    once = tmp_path / "once"
    command = (
        f'test -e {once} || (touch {once}; echo \'{{\\"outcome\\": \\"again\\"}}\' > $PIPELINE_NODE_DIR/outcome.json)'
    )
    text = (
        f't [shape=parallelogram, tool_command="{command}"]\nstart -> t\n'
        't -> t [condition="outcome=again"]\nt -> exit [condition="outcome=success"]'
    )
    for place in (None, str(tmp_path / "there")):
        once.unlink(missing_ok=True)
        act = Act(text)
        assert act.go(allow_tools=True, stage_dir=place).status == "completed"
        assert act.order == ["start", "t", "t#2", "exit"]


def test_a_command_that_was_cut_off_is_not_repeated_without_a_word() -> None:
    act = tool("echo x")
    spec = act.definition.steps["t"]
    assert (spec.effect, spec.repeatable) == ("external", False)
    act.dying_after("t")
    act.go(allow_tools=True)
    act.yes = False
    with pytest.raises(NeedsConfirmation, match="has side effects"):
        act.go(allow_tools=True)
    act.yes = True
    assert act.go(allow_tools=True).status == "completed"


def test_commands_that_run_are_ended_where_the_process_leaves_at_once(tmp_path: Path) -> None:
    done: list[shell.Done] = []
    up = tmp_path / "up"
    os.mkfifo(up)
    work = threading.Thread(
        target=lambda: done.append(
            shell.run(f"echo > {up}; sleep 300", cwd=tmp_path, environment=shell.environment({}), seconds=250)
        )
    )
    work.start()
    up.read_text()
    shell.leave(Event("leaving", ""))
    work.join(120)
    assert [(one.exit_code, one.timed_out) for one in done] == [(-9, False)]
