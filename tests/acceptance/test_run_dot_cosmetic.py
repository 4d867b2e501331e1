"""An edit of a DOT file that changes nothing that is made voids nothing, and the run takes the new text over."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.dots import put, read
from tests.said import Cli

#: Every kind of node, with what a model, a shell and a person do finished and one node ahead.
EVERY = """digraph Every {
  graph [goal="see it"]
  start [shape=Mdiamond]
  plan [prompt="Plan how to $goal", max_visits=7]
  tool [shape=parallelogram, tool_command="echo hello"]
  split [shape=component]
  a [prompt="View A"]
  b [prompt="View B"]
  join [shape=tripleoctagon]
  check [shape=diamond]
  gate [shape=hexagon, label="Go on?"]
  last [prompt="End it"]
  exit [shape=Msquare]
  start -> plan -> tool -> split
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
_NOTHING = """
comment description penwidth xlabel peripheries color fillcolor style fontname fontcolor fontsize tooltip
width height margin ordering layout pos fixedsize image labelloc labeljust rank tailport headport dir
arrowhead arrowtail arrowsize constraint minlen taillabel headlabel decorate sides orientation group id URL
href target name regular skew distortion gradientangle colorscheme class must_write max_agent_turns
is_codergen node_type outputs x_own anything_at_all priority tool_hooks.pre
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "run"


def test_edits_that_change_nothing_void_nothing_and_are_taken_over(cli: Cli, tmp_path: Path, folder: Path) -> None:
    path = put(tmp_path, EVERY)
    assert cli("run", path, "--simulate", "--allow-tools", "--run-dir", str(folder)).code == 8
    more = ", ".join(f'{name}="new {name}"' for name in _NOTHING.split())
    lines = []
    for line in EVERY.splitlines():
        drawn = line.rstrip().endswith("]") and not line.lstrip().startswith("graph")
        lines.append(f"{line.rstrip()[:-1]}, {more}]" if drawn else line)
        lines[-1] += f" [{more}]" if "->" in line and not drawn else ""
    text = "\n".join(lines).replace("graph [", 'graph [rankdir=LR, label="Seen", bgcolor=red, x_own=1, ')
    # The same in other words: quotes, aliases, space, a limit, a label that is no choice, a fan-in's caption.
    text = text.replace("max_visits=7", 'max_visits="9", timeout=5m, model_note=x').replace("prompt=", "llm_prompt=")
    text = text.replace('condition="outcome=success"', 'condition="outcome == success"').replace(
        "label=yes", "label=no"
    )
    text = text.replace("[shape=tripleoctagon", '[shape=tripleoctagon, label="Gather them"')
    text = text.replace('tool_command="echo', 'label="Say it", goal="none", script="echo').replace(
        "plan [", 'plan [label="Planning", '
    )
    put(tmp_path, text)
    before = read(folder / "checkpoint.json")["completed_nodes"]
    said = cli("run", path, "--resume", str(folder), "--allow-tools")
    assert said.code == 8, said.err
    assert "PLAN" not in said.out
    assert read(folder / "checkpoint.json")["completed_nodes"] == before
    assert (folder / "graph.dot").read_text() == text
    assert "Planning" in cli("draw", str(folder)).out
    # Once the run is completed too; then it needs neither permission nor credential.
    assert cli("answer", str(folder), "gate", "A").code == 0
    assert cli("run", path, "--resume", str(folder), "--allow-tools").code == 0
    put(tmp_path, text.replace("new comment", "newer comment"))
    assert cli("run", path, "--resume", str(folder)).code == 0
    assert "newer comment" in (folder / "graph.dot").read_text()
    put(tmp_path, text.replace("new comment", "newest comment").replace("View A", "View Z"))
    said = cli("run", path, "--resume", str(folder), "--allow-tools")
    assert said.code == 2
    assert "a (does something else now)" in said.err
    assert "plan (" not in said.err


def test_writing_down_what_holds_anyway_voids_nothing(cli: Cli, tmp_path: Path, folder: Path) -> None:
    path = put(tmp_path, EVERY)
    assert cli("run", path, "--simulate", "--allow-tools", "--run-dir", str(folder)).code == 8
    said = "plan [shape=box, type=codergen, verdict=optional, weight=0, llm_provider=anthropic, fidelity="
    gate = 'label="Go on?", mode=multiple_choice, question="Go on?"'
    text = EVERY.replace('label="Go on?"', gate).replace("tripleoctagon", "tripleoctagon, join_policy=wait_all")
    put(tmp_path, text.replace("plan [", f"{said}compact, "))
    again = cli("run", path, "--resume", str(folder), "--allow-tools")
    assert again.code == 8, again.err
    assert "PLAN" not in again.out
    for other in (f"{said}full, ", "plan [verdict=required, "):
        put(tmp_path, text.replace("plan [", other))
        again = cli("run", path, "--resume", str(folder), "--allow-tools")
        assert again.code == 2
        assert "plan (does something else now)" in again.err


def test_an_edit_that_only_leads_elsewhere_asks_and_voids_nothing(cli: Cli, tmp_path: Path, folder: Path) -> None:
    path = put(tmp_path, EVERY)
    assert cli("run", path, "--simulate", "--allow-tools", "--run-dir", str(folder)).code == 8
    put(tmp_path, EVERY.replace("max_visits=7", "goal_gate=true"))
    said = cli("run", path, "--resume", str(folder), "--allow-tools")
    assert said.code == 2
    assert "No finished work is touched" in said.err
    said = cli("run", path, "--resume", str(folder), "--allow-tools", "--accept-changes")
    assert said.code == 8, said.err
    assert "PLAN" not in said.out


def test_an_attribute_of_the_graph_that_prompts_name_counts_like_the_goal(
    cli: Cli, tmp_path: Path, folder: Path
) -> None:
    text = EVERY.replace('graph [goal="see it"]', 'graph [goal="see it", tone=calm, mood=x]')
    text = text.replace("View A", "View A, $tone")
    path = put(tmp_path, text)
    assert cli("run", path, "--simulate", "--allow-tools", "--run-dir", str(folder)).code == 8
    put(tmp_path, text.replace("mood=x", "mood=y"))
    assert cli("run", path, "--resume", str(folder), "--allow-tools").code == 8
    put(tmp_path, text.replace("tone=calm", "tone=loud"))
    said = cli("run", path, "--resume", str(folder), "--allow-tools")
    assert said.code == 2
    assert "a (the tone it names differs)" in said.err
    assert "plan (" not in said.err
