"""`validate`, `parse`, `handlers`, `draw`: DOT pipelines looked at."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.said import Cli
from tests.sample_runs import failed_run

FLOW = """digraph Flow {
    graph [goal="Write it"]
    start [shape=Mdiamond]; done [shape=Msquare]
    write [prompt="Write $goal"]
    test [shape=parallelogram, tool_command="make test
make lint"]
    ask [shape=hexagon, label="Well?"]
    start -> write -> test -> ask
    ask -> done [label="[Y] Yes"]
    ask -> write [label="[N] No"]
}
"""


@pytest.fixture
def flow(tmp_path: Path) -> Path:
    path = tmp_path / "flow.dot"
    path.write_text(FLOW)
    return path


def test_validate_says_that_a_sound_graph_can_be_run_and_lists_its_commands(cli: Cli, flow: Path) -> None:
    said = cli("validate", str(flow))
    assert said.code == 0
    assert said.out.splitlines() == [
        "INFO    unbounded_cycle: line 4: The cycle write, test, ask has no limit of its own; it ends after 100 visits "
        "of a node.",
        "        Set max_visits on one of them, like write [max_visits=5].",
        "",
        "Shell commands it would run (only with --allow-tools):",
        "  test:",
        "    make test",
        "    make lint",
        "",
        f"{flow}: can be run (5 nodes, 5 edges).",
    ]
    (data,) = cli("validate", str(flow), "--json").json()
    assert [data[name] for name in ("v", "valid", "nodes", "edges", "errors", "warnings")] == [1, True, 5, 5, 0, 0]
    assert data["tool_commands"] == [{"node": "test", "command": "make test\nmake lint"}]
    assert [finding["rule"] for finding in data["diagnostics"]] == ["unbounded_cycle"]


def test_validate_ends_with_2_where_there_are_errors(cli: Cli, flow: Path) -> None:
    flow.write_text("digraph G { start [shape=Mdiamond]\n start -> a }")
    said = cli("validate", str(flow))
    assert said.code == 2
    assert "ERROR   edge_target_exists: line 2: " in said.out
    assert said.out.splitlines()[-1] == f"{flow}: cannot be run (2 nodes, 1 edge; 2 errors)."
    (data,) = cli("validate", str(flow), "--json").json()
    assert (data["valid"], data["errors"], data["diagnostics"][1]["edge"]) == (False, 2, "start->a")
    # Text that is no graph.
    flow.write_text("digraph G {\n  a -- b\n}")
    said = cli("validate", str(flow))
    assert (said.code, said.out) == (2, "")
    assert f"{flow}:2:5: " in said.err
    said = cli("validate", str(flow), "--json")
    finding = said.json()[0]["diagnostics"][0]
    assert (said.code, finding["line"], finding["column"]) == (2, 2, 5)


CHILD = """digraph Child {
    start [shape=Mdiamond]; exit [shape=Msquare]; run [shape=parallelogram, tool_command="make child"]
    start -> run -> exit
}
"""


def test_validate_reads_child_pipelines_and_lists_their_commands(cli: Cli, tmp_path: Path) -> None:
    parent = tmp_path / "parent.dot"
    parent.write_text(FLOW.replace("[prompt=", '[shape=house, stack.child_dotfile="child.dot", prompt='))
    missing = cli("validate", str(parent))
    assert missing.code == 2
    assert "child_pipeline" in missing.out
    (tmp_path / "child.dot").write_text(CHILD)
    found = cli("validate", str(parent))
    assert (found.code, found.err) == (0, "")
    assert "write.run:\n    make child" in found.out


@pytest.mark.parametrize("command", ["validate", "parse", "draw"])
def test_files_that_cannot_be_read_are_named(cli: Cli, tmp_path: Path, command: str) -> None:
    said = cli(command, str(tmp_path / "no.dot"))
    assert (said.code, said.out) == (2, "")
    assert "no.dot cannot be read: No such file or directory." in said.err
    assert cli("draw", "nope").code == 3
    (tmp_path / "latin.dot").write_bytes(b"digraph \xff {}")
    assert "is not UTF-8 text" in cli(command, str(tmp_path / "latin.dot")).err
    assert "Traceback" not in cli(command, str(tmp_path / "folder.dot") + "/").err


def test_parse_and_draw_show_nodes_and_edges(cli: Cli, flow: Path) -> None:
    said = cli("parse", str(flow))
    lines = [line.split() for line in said.out.splitlines()]
    assert (said.code, lines[0]) == (0, ["Flow:", "5", "nodes,", "5", "edges"])
    assert ["write", "codergen", "-", "prompt"] in lines
    assert ["ask", "done", "[Y]", "Yes", "-"] in lines
    (data,) = cli("parse", str(flow), "--json").json()
    assert (data["name"], data["attributes"], len(data["nodes"])) == ("Flow", {"goal": "Write it"}, 5)
    assert {"from": "ask", "to": "done"}.items() <= data["edges"][3].items()
    drawn = cli("draw", str(flow)).out
    assert "ask “Well?” (wait.human)" in drawn
    assert "  → write   [N] No, back" in drawn


def test_handlers_lists_what_is_built_in(cli: Cli) -> None:
    said = cli("handlers")
    assert said.code == 0
    assert any(line.split()[:2] == ["wait.human", "hexagon"] for line in said.out.splitlines())
    rows = cli("handlers", "--json").json()
    assert {"start", "exit", "codergen", "conditional", "wait.human", "tool", "parallel", "parallel.fan_in",
            "stack.manager_loop"} <= {row["type"] for row in rows}  # fmt: skip
    assert all(row["shape"] and row["purpose"] for row in rows)


def test_draw_shows_a_run_of_a_pipeline_in_python(cli: Cli, root: Path) -> None:
    failed_run(root)
    lines = {line.split(" ", 1)[0]: line for line in cli("draw", "latest").out.splitlines()}
    assert "failed" in lines["lessons"]
    assert lines["lessons"].endswith("$0.10 to at most $0.20")
    assert lines["publish"] == "publish (step)"


def test_draw_as_a_picture_needs_graphviz(
    cli: Cli, flow: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    said = cli("draw", str(flow), "-o", "svg")
    assert (said.code, said.out) == (2, "")
    assert "Graphviz is not installed" in said.err
    assert "-o txt" in said.err
    program = tmp_path / "dot"
    program.write_text("#!/bin/sh\nwhile read -r line; do :; done\necho '<svg/>'\n")
    program.chmod(0o755)
    said = cli("draw", str(flow), "--format", "svg")
    assert (said.code, said.out) == (0, "<svg/>\n")
