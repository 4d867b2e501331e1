"""Drawings: as text, and as pictures by Graphviz, where nothing of the file is taken over unescaped."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from pipeline.dot.drawing import as_picture, as_text, graphviz_source
from pipeline.dot.parser import parse
from pipeline.errors import ConfigError

GRAPH = parse(
    """digraph G {
    graph [label="A flow", goal="Make\n it well", rankdir=LR]
    done [shape=Msquare]; start [shape=Mdiamond]
    fan [shape=component]; a [label="Left one", prompt=x]; b; join [shape=tripleoctagon]
    critic [goal_gate=true, retry_target=fan, prompt=x]; odd [shape=star]
    start -> fan -> {b a} -> join -> critic
    critic -> done [label="good", condition="outcome=success"]
    critic -> fan [condition="outcome=fail", loop_restart=true]
    critic -> missing
    }"""
)
MARKS = {"fan": ("completed, 2 visits", "$0.24"), "a": ("failed", ""), "b": ("", "$0.01"), "critic": ("running", "")}


def test_text_shows_every_node_once_with_what_leads_on() -> None:
    assert as_text(GRAPH).splitlines() == [
        "A flow: 9 nodes, 9 edges",
        "Goal: Make it well",
        "",
        "start (start)",
        "  → fan",
        "fan (parallel)",
        "  → b",
        "  → a",
        "b (codergen)",
        "  → join",
        "a “Left one” (codergen)",
        "  → join",
        "join (parallel.fan_in)",
        "  → critic",
        "critic (codergen, goal gate)",
        "  → done      good, if outcome=success",
        "  → fan       if outcome=fail, restarts, back",
        "  → missing",
        "  → fan       retry target",
        "missing (codergen)",
        "odd (codergen)",
        "done (exit)",
    ]


def test_text_shows_statuses_and_costs() -> None:
    lines = {line.split(" ", 1)[0]: line for line in as_text(GRAPH, MARKS).splitlines()}
    assert lines["fan"].endswith("completed, 2 visits $0.24")
    assert lines["a"].endswith("failed")
    assert lines["b"].endswith(" $0.01")
    assert lines["join"] == "join (parallel.fan_in)"


NASTY = """digraph "<G>" { graph [label="<b>&amp;\\"]; x"]
    "a]; evil [label=x" [label="</text><script>alert(1)</script>\\\\", shape="box\\"; evil", type=start]
    b [shape="star", label="one\\ntwo \\N \\G"]
    "a]; evil [label=x" -> b [label="\\"]; n9 -> n9 [x=\\"", condition="x=\\"<i>\\""]
}"""


def test_graphviz_source_holds_nothing_unescaped() -> None:
    graph = parse(NASTY)
    source = graphviz_source(graph, {"b": ('failed"]; evil', "$1")})
    again = parse(source)
    assert set(again.nodes) == {"n0", "n1"}
    assert [(edge.source, edge.target) for edge in again.edges] == [("n0", "n1")]
    assert again.nodes["n0"].label == "</text><script>alert(1)</script>\\"
    assert again.nodes["n0"].shape == "box"
    assert again.nodes["n1"].label == 'one two \\N \\G\nfailed"]; evil $1'


def _program(folder: Path, script: str) -> None:
    path = folder / "dot"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def bin_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that stands first on PATH."""
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    return tmp_path


def test_picture_is_what_graphviz_makes_of_our_source(bin_folder: Path) -> None:
    _program(bin_folder, 'printf "%s\\n" "$*"; cat')
    assert as_picture(GRAPH, "svg", MARKS) == b"-Tsvg\n" + graphviz_source(GRAPH, MARKS).encode()
    assert as_picture(GRAPH, "png").startswith(b"-Tpng\n")


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("echo 'Error: syntax error' >&2; exit 1", "Error: syntax error"),
        ("exit 3", "it ended with 3"),
        ("cat >/dev/null", "it ended with 0"),
    ],
)
def test_picture_that_graphviz_does_not_make_is_refused(bin_folder: Path, script: str, says: str) -> None:
    _program(bin_folder, script)
    with pytest.raises(ConfigError, match=says) as caught:
        as_picture(GRAPH, "svg")
    assert caught.value.code == "graphviz_failed"
    assert "-o txt" in caught.value.hint
