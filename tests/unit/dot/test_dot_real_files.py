"""Real pipelines of the field: each has as many nodes and edges as its manifest says, and can be run."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from pipeline.dot.diagnostics import ERROR
from pipeline.dot.drawing import as_text, graphviz_source
from pipeline.dot.parser import parse, read_graph
from pipeline.dot.rules import check, tool_commands
from pipeline.dot.stylesheet import apply

FOLDER = Path(__file__).resolve().parents[4] / "shared" / "dots"


def _manifest() -> list[dict[str, str]]:
    path = FOLDER / "MANIFEST.tsv"
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines, delimiter="\t"))


ROWS = _manifest()
real = pytest.mark.skipif(not ROWS, reason="the real files are not beside this copy")


@real
@pytest.mark.parametrize("row", ROWS, ids=[row["file"] for row in ROWS])
def test_real_file_has_the_counts_of_its_manifest(row: dict[str, str]) -> None:
    graph = read_graph(FOLDER / row["file"])
    assert (len(graph.nodes), len(graph.edges)) == (int(row["nodes"]), int(row["edges"]))
    assert all(node.declared for node in graph.nodes.values())
    assert graph.start
    assert graph.exits


@real
@pytest.mark.parametrize("row", ROWS, ids=[row["file"] for row in ROWS])
def test_real_file_can_be_run_drawn_and_parsed_again(row: dict[str, str]) -> None:
    graph = apply(read_graph(FOLDER / row["file"]))
    assert [finding for finding in check(graph) if finding.severity == ERROR] == []
    drawing = as_text(graph)
    assert all(name in drawing for name in graph.nodes)
    drawn = parse(graphviz_source(graph))
    assert len(drawn.nodes) == len(graph.nodes)
    assert len(drawn.edges) >= len(graph.edges)


@real
def test_real_files_keep_what_lesser_parsers_lose() -> None:
    loop = read_graph(FOLDER / "streamweave_beads_worker_loop.dot")
    assert "→" in loop.text("label")
    consensus = read_graph(FOLDER / "strongdm_consensus_task.dot")
    assert sum(bool(node.text("llm_prompt")) for node in consensus.nodes.values()) == 15
    assert consensus.number("default_max_retry") == 3
    assert consensus.nodes["CheckDoD"].seconds("timeout") == 120
    styled = apply(read_graph(FOLDER / "fabro_styled.dot"))
    models = {name: node.text("llm_model") for name, node in styled.nodes.items()}
    assert (models["plan"], models["implement"], models["critical_review"]) == (
        "claude-sonnet-4-5", "claude-opus-4-6", "gpt-5.2",
    )  # fmt: skip
    template = read_graph(FOLDER / "kilroy_reference_template.dot")
    assert template.nodes["dod_a"].classes == ("branch-a", "dod-fanout")
    assert template.nodes["check_toolchain"].number("max_retries") == 0
    assert len(tool_commands(template)) == 6
    sprint = read_graph(FOLDER / "tracker_sprint_exec.dot")
    assert "printf 'sprint_id\\ttitle" in sprint.nodes["EnsureLedger"].command
