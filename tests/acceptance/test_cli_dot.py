"""`validate`, `parse`, `handlers`, `draw`: DOT pipelines looked at."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from pipeline.clock import SystemClock, iso
from pipeline.records.charge import Charge
from pipeline.records.codec import encode_fact
from pipeline.records.kinds import CallEnded, CallStarted, DecisionAsked, Fact, RunStarted, StepCompleted, StepStarted
from pipeline.records.lines import encode_line
from pipeline.records.values import canonical, digest, encode_value
from pipeline.store.files import FileStore
from tests.runs import HastyDisk
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
QUARTER = Charge("exact", Decimal("0.25"), Decimal("0.25"), tokens={"input": 10})
AT = datetime(2026, 1, 9, 14, 30, 22, tzinfo=UTC)


@pytest.fixture
def flow(tmp_path: Path) -> Path:
    path = tmp_path / "flow.dot"
    path.write_text(FLOW)
    return path


def bad(tmp_path: Path, text: str) -> str:
    path = tmp_path / "bad.dot"
    path.write_text(text)
    return str(path)


def dot_run(root: Path) -> str:
    """A run of the flow: written twice, tested once, waiting for an answer."""
    text = canonical(FLOW)
    facts: list[Fact] = [RunStarted("Flow", {}, {}, {}, pins={"dot": digest(text)})]
    facts += [StepStarted("start#1"), StepCompleted("start#1", {}, "c1", edges=["start->write"])]
    for visit in (1, 2):
        path = f"write#{visit}"
        facts += [StepStarted(path), CallStarted(path, "k" * 64, "m", "b" * 64, label="codergen", worst="1")]
        facts += [
            CallEnded(len(facts), encode_value({"text": "x"}), QUARTER.to_json(), usable=True),
            StepCompleted(path, {}, f"w{visit}", edges=["write->test"]),
        ]
    facts += [StepStarted("test#1"), StepCompleted("test#1", {}, "t", edges=["test->ask"])]
    facts += [StepStarted("ask#1"), DecisionAsked("ask#1", "h", ["Yes", "No"])]
    lines = [encode_line(seq, iso(AT), 1, encode_fact(fact)) for seq, fact in enumerate(facts, 1)]
    run, journal = FileStore(root, SystemClock(), disk=HastyDisk()).create(lines[0], [text], at=AT)
    journal.append(2, lines[1:])
    journal.close()
    return run


def test_validate_says_that_a_sound_graph_can_be_run_and_lists_its_commands(cli: Cli, flow: Path) -> None:
    said = cli("validate", str(flow))
    assert said.code == 0
    assert said.out.splitlines() == [
        "INFO    unbounded_cycle: line 4: The cycle write, test, ask may loop without limit.",
        "        Set max_visits on one of them, like write [max_visits=5].",
        "",
        "Shell commands it would run (only with --allow-tools):",
        "  test:",
        "    make test",
        "    make lint",
        "",
        f"{flow}: can be run (5 nodes, 5 edges).",
    ]


def test_validate_json_is_one_object(cli: Cli, flow: Path) -> None:
    said = cli("validate", str(flow), "--json")
    (data,) = said.json()
    assert said.code == 0
    assert (data["valid"], data["nodes"], data["edges"], data["errors"], data["warnings"]) == (True, 5, 5, 0, 0)
    assert data["tool_commands"] == [{"node": "test", "command": "make test\nmake lint"}]
    assert [finding["rule"] for finding in data["diagnostics"]] == ["unbounded_cycle"]


def test_validate_ends_with_2_where_there_are_errors(cli: Cli, tmp_path: Path) -> None:
    file = bad(tmp_path, "digraph G { start [shape=Mdiamond]\n start -> a }")
    said = cli("validate", file)
    assert said.code == 2
    assert "ERROR   terminal_node: The graph has no exit node." in said.out
    assert "ERROR   edge_target_exists: line 2: " in said.out
    assert said.out.splitlines()[-1] == f"{file}: cannot be run (2 nodes, 1 edge; 2 errors)."
    (data,) = cli("validate", file, "--json").json()
    assert (data["valid"], data["errors"]) == (False, 2)
    assert data["diagnostics"][1]["edge"] == "start->a"


def test_validate_of_text_that_is_no_graph_names_line_and_column(cli: Cli, tmp_path: Path) -> None:
    file = bad(tmp_path, "digraph G {\n  a -- b\n}")
    said = cli("validate", file)
    assert (said.code, said.out) == (2, "")
    assert f"{file}:2:5: '--' has no direction." in said.err
    (data,) = cli("validate", file, "--json").json()
    assert (data["valid"], data["diagnostics"][0]["line"], data["diagnostics"][0]["column"]) == (False, 2, 5)
    assert cli("validate", file, "--json").code == 2


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
    (tmp_path / "latin.dot").write_bytes(b"digraph \xff {}")
    assert "is not UTF-8 text" in cli(command, str(tmp_path / "latin.dot")).err
    assert "Traceback" not in cli(command, str(tmp_path / "folder.dot") + "/").err


def test_parse_shows_nodes_and_edges(cli: Cli, flow: Path) -> None:
    said = cli("parse", str(flow))
    lines = [line.split() for line in said.out.splitlines()]
    assert said.code == 0
    assert lines[0] == ["Flow:", "5", "nodes,", "5", "edges"]
    assert ["write", "codergen", "-", "prompt"] in lines
    assert ["ask", "done", "[Y]", "Yes", "-"] in lines


def test_parse_json_has_everything(cli: Cli, flow: Path) -> None:
    (data,) = cli("parse", str(flow), "--json").json()
    assert (data["name"], data["attributes"]) == ("Flow", {"goal": "Write it"})
    assert [node["id"] for node in data["nodes"]] == ["start", "done", "write", "test", "ask"] or len(
        data["nodes"]
    ) == 6
    assert {"from": "ask", "to": "done"}.items() <= data["edges"][3].items()


def test_handlers_lists_what_is_built_in(cli: Cli) -> None:
    said = cli("handlers")
    assert said.code == 0
    assert any(line.split()[:2] == ["wait.human", "hexagon"] for line in said.out.splitlines())
    rows = cli("handlers", "--json").json()
    assert {"start", "exit", "codergen", "conditional", "wait.human", "tool", "parallel", "parallel.fan_in",
            "stack.manager_loop"} <= {row["type"] for row in rows}  # fmt: skip
    assert all(row["shape"] and row["purpose"] for row in rows)


def test_draw_shows_a_file(cli: Cli, flow: Path) -> None:
    said = cli("draw", str(flow))
    assert said.code == 0
    assert "ask “Well?” (wait.human)" in said.out
    assert "  → write   [N] No, back" in said.out


def test_draw_shows_a_runs_statuses_and_costs(cli: Cli, root: Path) -> None:
    run = dot_run(root)
    lines = {line.split(" ", 1)[0]: line.split() for line in cli("draw", run).out.splitlines()}
    assert lines["write"][-4:] == ["completed,", "2", "visits", "$0.50"]
    assert lines["test"][-1] == "completed"
    assert lines["ask"][-1] == "waiting"
    assert lines["done"] == ["done", "(exit)"]


def test_draw_shows_a_run_of_a_pipeline_in_python(cli: Cli, root: Path) -> None:
    failed_run(root)
    lines = {line.split(" ", 1)[0]: line for line in cli("draw", "latest").out.splitlines()}
    assert "failed" in lines["lessons"]
    assert lines["lessons"].endswith("$0.10 to at most $0.20")
    assert lines["publish"] == "publish (step)"


def test_draw_of_an_unknown_run_says_so(cli: Cli) -> None:
    said = cli("draw", "nope")
    assert said.code == 3
    assert "There is no run 'nope'" in said.err


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


def test_json_of_every_command_is_plain_json(cli: Cli, flow: Path) -> None:
    for arguments in (["validate", str(flow), "--json"], ["parse", str(flow), "--json"], ["handlers", "--json"]):
        for line in cli(*arguments).out.splitlines():
            assert json.loads(line)["v"] == 1
