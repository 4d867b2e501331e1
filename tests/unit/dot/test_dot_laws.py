"""Laws of the parser: what is written in any style is read back; no text makes it fail otherwise than it says."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.dot.conditions import compile_condition
from pipeline.dot.parser import parse
from pipeline.dot.rules import check
from pipeline.dot.stylesheet import apply, parse_stylesheet
from pipeline.dot.values import Duration, Value
from pipeline.errors import GraphError

T = TypeVar("T")
CALM = settings(max_examples=150)

WORDS = st.sampled_from(["a", "b1", "Start", "nodes", "graph_x", "EDGE2", "_", "é", "a.b", "my-node", "7", "node"])
KEYS = st.sampled_from(["label", "human.default_choice", "x", "b_c", "_a.b.c", "prompt-ref", "node", "graph"])
#: No id is blank, "." or "..", or holds what paths are made of.
IDS = WORDS | st.builds(
    "{}{}".format,
    st.sampled_from("aZé_7"),
    st.text(st.characters(exclude_categories=["C"], exclude_characters="#/\\>"), max_size=8),
)
VALUES: st.SearchStrategy[Value] = st.one_of(
    st.text(max_size=40),
    st.integers(-(10**12), 10**12),
    st.booleans(),
    st.floats(-1e6, 1e6, allow_nan=False).map(lambda number: float(f"{number:.6f}")),
    st.integers(0, 10_000).map(lambda number: Duration(f"{number}s", float(number))),
)
ATTRIBUTES = st.dictionaries(KEYS, VALUES, max_size=4)
GAPS = st.sampled_from([" ", "\n", "\t", " /* } ] */ ", ' // -> "\n', "\n# [ {\n", "  "])


def written(value: Value) -> str:
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.text if isinstance(value, Duration) else f"{value:.6f}" if isinstance(value, float) else str(value)


@st.composite
def styled(draw: st.DrawFn, attributes: dict[str, Value]) -> str:
    """An attribute list in one of the ways people write it."""
    if not attributes:
        return draw(st.sampled_from(["", "[]", "[ ]"]))
    parts = [f"{key}{draw(GAPS)}={draw(GAPS)}{written(value)}" for key, value in attributes.items()]
    between = draw(st.sampled_from([",", ", ", ";", "\n", " "]))
    return f"[{draw(GAPS)}{between.join(parts)}{draw(st.sampled_from(['', ',', ' ', ';']))}]"


@st.composite
def graphs(draw: st.DrawFn) -> tuple[str, dict[str, dict[str, Value]], list[tuple[str, str, dict[str, Value]]]]:
    """(text, nodes with attributes, edges with attributes)."""
    names = draw(st.lists(IDS, min_size=1, max_size=6, unique=True))
    nodes = {name: draw(ATTRIBUTES) for name in names}
    ends = draw(st.lists(st.tuples(st.sampled_from(names), st.sampled_from(names)), max_size=8))
    edges = [(source, target, draw(ATTRIBUTES)) for source, target in ends]
    end = draw(st.sampled_from([";", "\n", ";\n"]))
    lines = [f"{written(name)}{draw(GAPS)}{draw(styled(attributes))}{end}" for name, attributes in nodes.items()]
    for source, target, attributes in edges:
        arrow = draw(st.sampled_from(["->", " -> ", "\n->\n"]))
        lines.append(f"{written(source)}{arrow}{written(target)}{draw(styled(attributes))}{end}")
    return "digraph" + draw(GAPS) + "G {" + draw(GAPS) + "".join(lines) + "}", nodes, edges


@settings(CALM, max_examples=60)
@given(graphs())
def test_dot_what_is_written_is_read_back(
    made: tuple[str, dict[str, dict[str, Value]], list[tuple[str, str, dict[str, Value]]]],
) -> None:
    text, nodes, edges = made
    graph = parse(text)
    assert {name: dict(node.attributes) for name, node in graph.nodes.items()} == nodes
    assert [(edge.source, edge.target, dict(edge.attributes)) for edge in graph.edges] == edges
    assert len({edge.id for edge in graph.edges}) == len(edges)


def tried(read: Callable[[str], T], text: str) -> tuple[T | None, GraphError | None]:
    """What was read, or the error it was refused with; any other error is a fault."""
    try:
        return read(text), None
    except GraphError as error:
        return None, error


PIECES = st.sampled_from([
    "digraph", "graph", "strict", "subgraph", "node", "edge", "{", "}", "[", "]", "->", "--", "=", ",", ";", ":", "+",
    '"', "\\", "\\\n", "/*", "*/", "//", "#", "<", ">", "a", "b", "label", "condition", '"x"', "1", "-2", "3s", ".5",
    "\n", " ", "\t", "→", "\x00", "\ufeff", "é", "shape=Mdiamond", "shape=Msquare", 'condition="a=1"', "goal_gate=true",
    'model_stylesheet="* { model: x; }"', "retry_target=a", "shape=component", "dialect=split",
])  # fmt: skip


@CALM
@given(st.lists(PIECES, max_size=40).map(" ".join) | st.lists(PIECES, max_size=40).map("".join) | st.text())
def test_dot_no_text_fails_otherwise_than_as_a_graph_error(text: str) -> None:
    for source in (text, "digraph G {" + text, "digraph G {" + text + "}"):
        graph, error = tried(parse, source)
        if error is not None:
            assert error.message.startswith("<text>:")
            assert error.data["line"] <= source.count("\n") + 1
        if graph is not None:
            assert all(finding.message for finding in check(graph))
            assert len(graph.to_json()["nodes"]) == len(graph.nodes)


CONDITION_PIECES = st.sampled_from([
    "outcome", "context.x", "=", "==", "!=", "<", ">=", "&&", "||", "AND", "OR", "NOT", "!", "(", ")", "IN", "CONTAINS",
    "success", "fail", "3", '"q"', "'", '"', "a b", ",", "[", "]", "&", "é", "not", "in", " ",
])  # fmt: skip


@CALM
@given(st.lists(CONDITION_PIECES, max_size=14).map(" ".join) | st.text(max_size=60))
def test_dot_no_condition_or_stylesheet_fails_otherwise(text: str) -> None:
    condition, error = tried(compile_condition, text)
    assert error is None or error.message.startswith("Condition ")
    assert condition is None or condition.holds(lambda key: {"outcome": "success"}.get(key, "")) in (True, False)
    _, error = tried(parse_stylesheet, text)
    assert error is None or error.message.startswith("model_stylesheet, line ")


@CALM
@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from("abcdef")), max_size=14), st.booleans())
def test_dot_rules_and_styles_take_any_shape(edges: list[tuple[str, str]], gates: bool) -> None:
    gate = "[goal_gate=true]" if gates else ""
    text = "digraph G { a [shape=Mdiamond] f [shape=Msquare]" + "".join(f" {name} {gate};" for name in "bcde")
    graph = apply(parse(text + "".join(f" {source} -> {target};" for source, target in edges) + "}"))
    found = {finding.node for finding in check(graph) if finding.rule == "reachability"}
    near = {"a"}
    while more := {target for source, target in edges if source in near} - near:
        near |= more
    assert found == set("abcdef") - near
