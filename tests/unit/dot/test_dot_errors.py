"""What the parser says of text that is no graph: where, what stands there, what would be right."""

from __future__ import annotations

import pytest

from pipeline.dot.parser import MAX_DEPTH, MAX_ID, parse
from pipeline.errors import GraphError


@pytest.mark.parametrize(
    ("text", "place", "hint"),
    [
        ("", "1:1", "digraph NAME {"),
        ("hello", "1:1", "digraph NAME {"),
        ("graph G { a -- b }", "1:1", "digraph"),
        ("strict digraph G { }", "1:1", "digraph NAME {"),
        ("digraph G a", "1:11", "'{'"),
        ("digraph G { a -> b", "1:19", "'}'"),
        ("digraph G {\n a\n}\ndigraph H { }", "4:1", "one graph"),
        ("digraph G { } }", "1:15", "'}' too many"),
        ("digraph G {\n  a -- b\n}", "2:5", "'->'"),
        ("digraph G { a -> b -- c }", "1:20", "'->'"),
        ("digraph G {\n  a -> ;\n}", "2:8", "Name the node"),
        ("digraph G { a -> }", "1:18", "Name the node"),
        ("digraph G { -> a }", "1:13", "Name the node"),
        ("digraph G { [x=1] }", "1:13", "NAME ["),
        ("digraph G { a [x=1 }", "1:20", "']'"),
        ("digraph G {\n a [x=1\n b [y=2]\n}", "3:2", "']'"),
        ("digraph G { a [label=two words] }", "1:26", "in quotes"),
        ("digraph G { a [x=] }", "1:18", 'x="…"'),
        ("digraph G { a [label] }", "1:16", "key=value"),
        ("digraph G { a [label=<b>x</b>] }", "1:22", 'label="…"'),
        ('digraph G {\n a [x="1]\n}', "2:7", "Close it"),
        ("digraph G { /* a }", "1:13", "*/"),
        ("digraph G { a [x=“1”] }", "1:18", "straight"),
        ("digraph G { a [x “1”] }", "1:18", "straight"),
        ("digraph G { a → b }", "1:15", "'->'"),
        ("digraph G { a [x='1'] }", "1:18", "double"),
        ("digraph G { a [m=openai/gpt] }", "1:24", "in quotes"),
        ("digraph G { a [c=#fff] }", "1:18", "in quotes"),
        ("digraph G { node -> a }", "1:13", "in quotes"),
        ("digraph G { a -> graph }", "1:18", "in quotes"),
        ("digraph G { a -> b label=x }", "1:20", "[ ]"),
        ('digraph G { "a#b" }', "1:13", "label"),
        ('digraph G { "a/b" -> c }', "1:13", "label"),
        ('digraph G { c -> "a->b" }', "1:18", "label"),
        ('digraph G { "a\\nb" }', "1:13", "label"),
        ('digraph G { "" }', "1:13", "name"),
        ('digraph G { ".." }', "1:13", "name"),
        ("digraph G { " + "x" * (MAX_ID + 1) + " }", "1:13", "label"),
        ("digraph G { a: }", "1:16", "port"),
        ('digraph G { x="a" + 3 }', "1:21", "strings"),
        ("digraph G { subgraph s a }", "1:24", "'{'"),
        ("digraph G { , }", "1:13", "key=value"),
        ("digraph G { x = }", "1:17", "x="),
    ],
)
def test_parse_error_names_place_and_remedy(text: str, place: str, hint: str) -> None:
    with pytest.raises(GraphError) as caught:
        parse(text, "flow.dot")
    assert caught.value.message.startswith(f"flow.dot:{place}: "), caught.value.message
    assert caught.value.code == "dot_syntax"
    assert hint in caught.value.hint
    assert caught.value.exit_code == 2
    line, _, column = place.partition(":")
    assert (caught.value.data["line"], caught.value.data["column"]) == (int(line), int(column))


def test_parse_error_of_a_missing_quote_points_back() -> None:
    with pytest.raises(GraphError, match=r"^x:3:11: ") as caught:
        parse('digraph G {\n a [p="one]\n b [p="two"]\n}', "x")
    assert "or the one before it" in caught.value.hint


def test_parse_error_comes_where_reading_stops_not_at_a_later_bad_character() -> None:
    with pytest.raises(GraphError, match=r"^x:2:5: "):
        parse("digraph G {\n  a -- b\n  c [x=<b>]\n}", "x")


def test_parse_survives_subgraphs_deep_in_each_other() -> None:
    at_most = "digraph G {" + "{" * MAX_DEPTH + "a" + "}" * MAX_DEPTH + "}"
    assert list(parse(at_most).nodes) == ["a"]
    for text in ("{", "a -> {"):
        with pytest.raises(GraphError) as caught:
            parse("digraph G {" + text * 100_000)
        assert caught.value.code == "dot_syntax"


def test_parse_survives_long_lists() -> None:
    graph = parse("digraph G {" + "a [x=1];" * 5_000 + " -> ".join(f"n{i}" for i in range(5_000)) + "}")
    assert (len(graph.nodes), len(graph.edges)) == (5_001, 4_999)
