"""A DOT file edited between two starts: what changed is told and asked about; what decides nothing voids nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.dots import GATE, SHIP, put, read
from tests.said import Cli, Said

PASSED = ["start", "write", "review", "publish", "exit"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "run"


def begin(cli: Cli, tmp_path: Path, folder: Path) -> str:
    """A run that waits at its gate with `write` done; the file's path."""
    path = put(tmp_path, GATE)
    assert cli("run", path, "--simulate", "--run-dir", str(folder)).code == 8
    assert cli("answer", str(folder), "review", "A").code == 0
    return path


def go_on(cli: Cli, path: str, folder: Path, *more: str) -> Said:
    return cli("run", path, "--resume", str(folder), *more)


def passed(folder: Path) -> list[str]:
    found: list[str] = read(folder / "checkpoint.json")["completed_nodes"]
    return found


def test_without_the_file_the_stored_graph_goes_on(cli: Cli, tmp_path: Path, folder: Path) -> None:
    path = begin(cli, tmp_path, folder)
    put(tmp_path, "digraph G { nonsense")
    said = cli("run", "--resume", str(folder))
    assert said.code == 0, said.err
    assert (folder / "graph.dot").read_text() == GATE
    assert cli("run", path, "--resume", str(folder)).code == 2


def test_new_nodes_ahead_are_told_and_run(cli: Cli, tmp_path: Path, folder: Path) -> None:
    path = begin(cli, tmp_path, folder)
    more = 'tell [prompt="Tell them"]\n  publish -> tell [weight=1]\n  tell -> exit'
    put(tmp_path, GATE.replace("publish -> exit", f"publish -> exit\n  {more}").replace("digraph", "/* ! */ digraph"))
    said = go_on(cli, path, folder)
    assert said.code == 0, said.err
    assert "step tell is new" in said.out
    assert passed(folder) == [*PASSED[:4], "tell", "exit"]
    assert "Tell them" in (folder / "graph.dot").read_text()


def test_changed_finished_work_is_refused_by_name_and_cost_until_that_is_accepted(
    cli: Cli, tmp_path: Path, folder: Path
) -> None:
    path = begin(cli, tmp_path, folder)
    put(tmp_path, GATE.replace("Write it", "Write it better"))
    before = (folder / "journal.jsonl").read_bytes()
    said = go_on(cli, path, folder)
    assert said.code == 2
    assert all(part in said.err for part in ("write (", "what followed: review", "$0.00", "--accept-changes"))
    assert (folder / "journal.jsonl").read_bytes() == before
    assert (folder / "graph.dot").read_text() == GATE
    assert go_on(cli, path, folder, "--model", "claude-sonnet-5-5").code == 2, "simulations and models are not mixed"
    said = go_on(cli, path, folder, "--accept-changes", "--auto-approve")
    assert said.code == 0, said.err
    assert "Re-running because of changes: write (" in said.out
    assert (folder / "write" / "prompt.md").read_text() == "Write it better"
    assert "Write it better" in (folder / "graph.dot").read_text()


def test_change_that_touches_nothing_finished_asks_for_a_word(cli: Cli, tmp_path: Path, folder: Path) -> None:
    path = begin(cli, tmp_path, folder)
    put(tmp_path, GATE.replace('"Publish"', '"Publish loudly"'))
    said = go_on(cli, path, folder)
    assert said.code == 2
    assert "step publish does something else" in said.err
    assert "No finished work is touched" in said.err
    assert go_on(cli, path, folder, "--accept-changes").code == 0
    assert (folder / "publish" / "prompt.md").read_text() == "Publish loudly"
    assert passed(folder) == PASSED


def test_new_choice_at_a_gate_is_a_new_question(cli: Cli, tmp_path: Path, folder: Path) -> None:
    path = begin(cli, tmp_path, folder)
    more = 'later [prompt="Wait"]\n  review -> later [label="[L] Later"]\n  later -> exit'
    put(tmp_path, GATE.replace("publish -> exit", f"publish -> exit\n  {more}"))
    assert go_on(cli, path, folder).code == 8
    assert "[L] Later" in cli("gates", str(folder)).out


def test_node_that_ended_last_or_is_named_runs_again(cli: Cli, tmp_path: Path, folder: Path) -> None:
    path = put(tmp_path, SHIP)
    cli("run", path, "--simulate", "--run-dir", str(folder))
    for more, steps in ((["--rerun-current"], ["4/4"]), (["--from", "write"], ["3/4", "4/4"])):
        said = go_on(cli, path, folder, *more)
        assert said.code == 0, said.err
        assert [line.split()[1].rstrip(":") for line in said.out.splitlines() if line.startswith("Step ")] == steps


#: Every kind of node, with what a model, a shell and a person do finished and one node ahead.
EVERY = """digraph Every {
  graph [goal="see it", tone=calm, mood=x]
  start [shape=Mdiamond]
  plan [prompt="Plan how to $goal", max_visits=7]
  tool [shape=parallelogram, tool_command="echo hello"]
  also [shape=parallelogram, script="echo also"]
  split [shape=component]
  a [prompt="View A, $tone"]
  b [prompt="View B"]
  join [shape=tripleoctagon]
  check [shape=diamond]
  gate [shape=hexagon, label="Go on?"]
  last [prompt="End it"]
  exit [shape=Msquare]
  start -> plan -> tool -> also -> split
  split -> a -> join
  split -> b -> join
  join -> check
  check -> gate [label=yes, condition="outcome=success"]
  check -> exit [condition="outcome!=success"]
  gate -> last [label="[A] Approve"]
  last -> exit
}
"""
#: What Graphviz draws by, prose, what other engines read, and what nothing reads.
NOTHING = """
comment description penwidth xlabel peripheries color fillcolor style fontname fontcolor fontsize tooltip
width height margin ordering layout pos fixedsize image labelloc labeljust rank tailport headport dir
arrowhead arrowtail arrowsize constraint minlen taillabel headlabel decorate sides orientation group id URL
href target name regular skew distortion gradientangle colorscheme class must_write max_agent_turns
is_codergen node_type outputs x_own anything_at_all priority tool_hooks.pre
"""


@pytest.fixture
def every(cli: Cli, tmp_path: Path, folder: Path) -> str:
    path = put(tmp_path, EVERY)
    assert cli("run", path, "--simulate", "--allow-tools", "--run-dir", str(folder)).code == 8
    return path


def edited(cli: Cli, path: str, folder: Path, text: str, *more: str) -> Said:
    Path(path).write_text(text)
    return cli("run", path, "--resume", str(folder), "--allow-tools", *more)


def test_edits_that_change_nothing_void_nothing_and_are_taken_over(cli: Cli, folder: Path, every: str) -> None:
    more = ", ".join(f'{name}="new {name}"' for name in NOTHING.split())
    lines = []
    for line in EVERY.splitlines():
        drawn = line.rstrip().endswith("]") and not line.lstrip().startswith("graph")
        lines.append(f"{line.rstrip()[:-1]}, {more}]" if drawn else line)
        lines[-1] += f" [{more}]" if "->" in line and not drawn else ""
    text = "\n".join(lines).replace("graph [", 'graph [rankdir=LR, label="Seen", bgcolor=red, x_own=1, ')
    # The same in other words: quotes, aliases, space, a limit, a label that is no choice, a fan-in's caption.
    for old, new in {
        "max_visits=7": 'max_visits="9", timeout=5m, model_note=x', "prompt=": "llm_prompt=", "label=yes": "label=no",
        'condition="outcome=success"': 'condition="outcome == success"', "mood=x": "mood=y",
        "[shape=tripleoctagon": '[shape=tripleoctagon, label="Gather them"', "plan [": 'plan [label="Planning", ',
        'tool_command="echo': 'label="Say it", goal="none", script="echo',
    }.items():  # fmt: skip
        text = text.replace(old, new)
    before = passed(folder)
    said = edited(cli, every, folder, text)
    assert said.code == 8, said.err
    assert "PLAN" not in said.out
    assert passed(folder) == before
    assert (folder / "graph.dot").read_text() == text
    assert "Planning" in cli("draw", str(folder)).out
    # Once the run is completed too; then it needs neither permission nor credential.
    assert cli("answer", str(folder), "gate", "A").code == 0
    assert edited(cli, every, folder, text).code == 0
    Path(every).write_text(text.replace("new comment", "newer comment"))
    assert cli("run", every, "--resume", str(folder)).code == 0
    assert "newer comment" in (folder / "graph.dot").read_text()


def test_writing_down_what_holds_anyway_voids_nothing(cli: Cli, folder: Path, every: str) -> None:
    gate = 'label="Go on?", mode=multiple_choice, question="Go on?"'
    text = EVERY.replace('label="Go on?"', gate).replace("tripleoctagon", "tripleoctagon, join_policy=wait_all")
    plan = "plan [shape=box, type=codergen, verdict=optional, weight=0, llm_provider=anthropic, fidelity=compact, "
    said = edited(cli, every, folder, text.replace("plan [", plan))
    assert said.code == 8, said.err
    assert "PLAN" not in said.out


@pytest.mark.parametrize(
    ("old", "new", "void"),
    [
        ("View B", "View Z", "b (does something else now)"), ("plan [", "plan [fidelity=full, ", "plan (does"),
        ("plan [", "plan [verdict=required, ", "plan (does"), ("echo hello", "echo bye", "tool (does"),
        ("echo also", "echo bye", "also (does"), ("see it", "sink it", "plan (the goal it names differs)"),
        ("tone=calm", "tone=loud", "a (the tone it names differs)"), ("max_visits=7", "goal_gate=true", ""),
    ],
)  # fmt: skip
def test_edit_that_decides_something_asks_and_voids_what_it_is_about(
    cli: Cli, folder: Path, every: str, old: str, new: str, void: str
) -> None:
    said = edited(cli, every, folder, EVERY.replace(old, new))
    assert said.code == 2
    told = [name for name in ("plan", "tool", "also", "a", "b") if f" {name} (" in said.err]
    assert told == ([void.partition(" ")[0]] if void else [])
    assert (void or "No finished work is touched") in said.err
    if not void:
        said = edited(cli, every, folder, EVERY.replace(old, new), "--accept-changes")
        assert (said.code, "PLAN" in said.out) == (8, False)
