"""Drawings: as text, and as pictures by Graphviz, where nothing of the file is taken over unescaped."""

from __future__ import annotations

import os
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


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ('printf "%s\\n" "$*"; cat', ""), ("echo 'Error: syntax error' >&2; exit 1", "Error: syntax error"),
        ("cat >/dev/null", "it ended with 0"),
    ],
)  # fmt: skip
def test_picture_is_what_graphviz_makes_of_our_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, says: str
) -> None:
    (tmp_path / "dot").write_text(f"#!/bin/sh\n{script}\n")
    (tmp_path / "dot").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    if says:
        with pytest.raises(ConfigError, match=says) as caught:
            as_picture(GRAPH, "svg")
        assert caught.value.code == "graphviz_failed"
    else:
        assert as_picture(GRAPH, "svg", MARKS) == b"-Tsvg\n" + graphviz_source(GRAPH, MARKS).encode()
