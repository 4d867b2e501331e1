"""What the parser says of text that is no graph: where, what stands there, what would be right."""

from __future__ import annotations

import pytest

from pipeline.dot.cursor import MAX_ID
from pipeline.dot.parse import MAX_DEPTH, parse
from pipeline.errors import GraphError


@pytest.mark.parametrize(
    ("text", "place", "says", "hint"),
    [
        ("", "1:1", "there is no graph", "digraph NAME {"),
        ("hello", "1:1", "'hello' begins no graph", "digraph NAME {"),
        ("graph G { a -- b }", "1:1", "no directions", "digraph"),
        ("strict digraph G { }", "1:1", "'strict' would merge", "digraph NAME {"),
        ("digraph G a", "1:11", "'a' stands where the graph should open", "'{'"),
        ("digraph G { a -> b", "1:19", "the '{' of line 1 is not closed", "'}'"),
        ("digraph G {\n a\n}\ndigraph H { }", "4:1", "a second graph begins here", "one graph"),
        ("digraph G { } }", "1:15", "'}' stands after the graph's end", "'}' too many"),
        ("digraph G {\n  a -- b\n}", "2:5", "'--' has no direction", "'->'"),
        ("digraph G { a -> b -- c }", "1:20", "'--' has no direction", "'->'"),
        ("digraph G {\n  a -> ;\n}", "2:8", "after '->' stands ';'", "Name the node"),
        ("digraph G { a -> }", "1:18", "after '->' stands '}'", "Name the node"),
        ("digraph G { -> a }", "1:13", "'->' leads from nowhere", "Name the node"),
        ("digraph G { [x=1] }", "1:13", "'[' belongs to no node", "NAME ["),
        ("digraph G { a [x=1 }", "1:20", "'}' stands in the attributes that begin on line 1", "']'"),
        ("digraph G {\n a [x=1\n b [y=2]\n}", "3:2", "'b' in the attributes that begin on line 2 has no '='", "']'"),
        ("digraph G { a [label=two words] }", "1:26", "'words'", "in quotes"),
        ("digraph G { a [x=] }", "1:18", "'x' has no value: here stands ']'", 'x="…"'),
        ("digraph G { a [label] }", "1:16", "has no '='", "key=value"),
        ("digraph G { a [label=<b>x</b>] }", "1:22", "HTML labels", 'label="…"'),
        ('digraph G {\n a [x="1]\n}', "2:7", "the string that begins here does not end", "Close it"),
        ("digraph G { /* a }", "1:13", "the comment that begins here does not end", "*/"),
        ("digraph G { a [x=“1”] }", "1:18", "'“' is no quote", "straight"),
        ("digraph G { a [x “1”] }", "1:18", "'“' is no quote", "straight"),
        ("digraph G { a → b }", "1:15", "'→' is no edge", "'->'"),
        ("digraph G { a [x='1'] }", "1:18", "a single quote begins no string", "double"),
        ("digraph G { a [m=openai/gpt] }", "1:24", "'/' does not belong here", "in quotes"),
        ("digraph G { a [c=#fff] }", "1:18", "'#' does not belong here", "in quotes"),
        ("digraph G { node -> a }", "1:13", "'node' is a keyword", "in quotes"),
        ("digraph G { a -> graph }", "1:18", "'graph' is a keyword", "in quotes"),
        ("digraph G { a -> b label=x }", "1:20", "'label' stands outside of brackets", "[ ]"),
        ('digraph G { "a#b" }', "1:13", "a node's id holds no '#'", "label"),
        ('digraph G { "a/b" -> c }', "1:13", "a node's id holds no '/'", "label"),
        ('digraph G { c -> "a->b" }', "1:18", "a node's id holds no '->'", "label"),
        ('digraph G { "a\\nb" }', "1:13", "a node's id holds no", "label"),
        ('digraph G { "" }', "1:13", "a node's id is empty", "name"),
        ('digraph G { ".." }', "1:13", "'..' is no node's id", "name"),
        ("digraph G { " + "x" * (MAX_ID + 1) + " }", "1:13", "more than 200 characters", "label"),
        ("digraph G { a: }", "1:16", "after ':' stands '}'", "port"),
        ('digraph G { x="a" + 3 }', "1:21", "after '+' stands '3'", "strings"),
        ("digraph G { subgraph s a }", "1:24", "the subgraph should open", "'{'"),
        ("digraph G { , }", "1:13", "',' begins no statement", "key=value"),
        ("digraph G { x = }", "1:17", "'x' has no value", "x="),
    ],
)
def test_parse_error_names_place_and_remedy(text: str, place: str, says: str, hint: str) -> None:
    with pytest.raises(GraphError) as caught:
        parse(text, "flow.dot")
    assert caught.value.message.startswith(f"flow.dot:{place}: "), caught.value.message
    assert says in caught.value.message
    assert hint in caught.value.hint
    assert caught.value.exit_code == 2
    line, _, column = place.partition(":")
    assert (caught.value.data["line"], caught.value.data["column"]) == (int(line), int(column))


def test_parse_error_of_a_missing_quote_points_back() -> None:
    with pytest.raises(GraphError, match=r"^x:3:11: the string") as caught:
        parse('digraph G {\n a [p="one]\n b [p="two"]\n}', "x")
    assert "or the one before it" in caught.value.hint


def test_parse_error_comes_where_reading_stops_not_at_a_later_bad_character() -> None:
    with pytest.raises(GraphError, match=r"^x:2:5: '--' has no direction"):
        parse("digraph G {\n  a -- b\n  c [x=<b>]\n}", "x")


def test_parse_survives_subgraphs_deep_in_each_other() -> None:
    at_most = "digraph G {" + "{" * MAX_DEPTH + "a" + "}" * MAX_DEPTH + "}"
    assert list(parse(at_most).nodes) == ["a"]
    with pytest.raises(GraphError, match="more than 100 deep"):
        parse("digraph G {" + "{" * 100_000)
    with pytest.raises(GraphError, match="more than 100 deep"):
        parse("digraph G {" + "a -> {" * 100_000)


def test_parse_survives_long_lists() -> None:
    graph = parse("digraph G {" + "a [x=1];" * 5_000 + " -> ".join(f"n{i}" for i in range(5_000)) + "}")
    assert (len(graph.nodes), len(graph.edges)) == (5_001, 4_999)
