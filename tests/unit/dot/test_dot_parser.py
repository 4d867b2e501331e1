"""What the parser makes of DOT text; and what it says of text that is no graph: where, and what is right."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.dot.model import DotGraph
from pipeline.dot.parser import MAX_DEPTH, MAX_ID, parse
from pipeline.dot.values import Duration
from pipeline.errors import GraphError


def body(text: str) -> DotGraph:
    return parse("digraph G {\n" + text + "\n}")


@pytest.mark.parametrize(
    ("text", "nodes", "edges"),
    [
        # Attributes are apart by commas, semicolons or space; keys may have dots and hyphens, and stand in quotes.
        ('a [x=1, y=2; z=3\n w="4" v=5,] [u=6]; b [\n]; c[x=1 ,, y=2];',
         {"a": {"x": 1, "y": 2, "z": 3, "w": "4", "v": 5, "u": 6}, "b": {}, "c": {"x": 1, "y": 2}}, ""),
        ('a [human.default_choice="[Y] Yes", "manager.interval"=45s, prompt-ref="#one"]',
         {"a": {"human.default_choice": "[Y] Yes", "manager.interval": Duration("45s", 45), "prompt-ref": "#one"}}, ""),
        # Comments, but not within strings.
        ('# x\n/* a -> x\n */ a -> b // c -> d\n  # e -> f\nb [p="# no // comment"] /**/ c; #g\n d # h\n',
         {"a": {}, "b": {"p": "# no // comment"}, "c": {}, "d": {}}, "a>b"),
        # Defaults hold for what is declared later, within their subgraph; an edge declares nothing.
        ("a; node [m=5]; b; c [m=6]; node [m=9]; d; f -> e; {rank=same; g}; node [m=7]; e [x=1]; g [x=2]",
         {"a": {}, "b": {"m": 5}, "c": {"m": 6}, "d": {"m": 9}, "f": {"m": 9}, "e": {"m": 7, "x": 1},
          "g": {"m": 7, "x": 2}}, "f>e"),
        ("node [m=0] subgraph s { node [m=1] edge [weight=5] a -> b; a; b; { node [m=2] c } d } e; e -> a",
         {"a": {"m": 1}, "b": {"m": 1}, "c": {"m": 2}, "d": {"m": 1}, "e": {"m": 0}}, "a>b:5 e>a"),
        # Chains and groups: every member, with the same attributes.
        ("a -> {b c; d} -> subgraph s { e; f -> e } [weight=1]", None,
         "f>e a>b:1 a>c:1 a>d:1 b>e:1 b>f:1 c>e:1 c>f:1 d>e:1 d>f:1"),
        ("edge [weight=2]; a -> b -> c; a -> c [weight=3]", None, "a>b:2 b>c:2 a>c:3"),
        # Ports, ids in quotes, numbers, names like keywords; keywords in any case.
        ('a:out -> b:in:ne; "a" -> "two_words":"p" ; 1 -> 2.5; my-node -> a.b; nodes -> edge_1; Node -> a; "a:b"->a',
         None, "a>b a>two_words 1>2.5 my-node>a.b nodes>edge_1 Node>a a:b>a"),
        ('NODE [m=1]; Edge [weight=3]; a -> b; a; SUBGRAPH s { c }; "node" [m=2]; graphics',
         {"a": {"m": 1}, "b": {"m": 1}, "c": {"m": 1}, "node": {"m": 2}, "graphics": {"m": 1}}, "a>b:3"),
    ],
)  # fmt: skip
def test_parse_reads_statements(text: str, nodes: dict[str, Any] | None, edges: str) -> None:
    graph = body(text)
    if nodes is not None:
        assert {name: node.attributes for name, node in graph.nodes.items()} == nodes
    shown = (f"{edge.source}>{edge.target}" + (f":{edge.weight:g}" if edge.weight else "") for edge in graph.edges)
    assert " ".join(shown) == edges


def test_parse_reads_name_and_attributes_of_the_graph() -> None:
    graph = parse(
        'DiGraph Flow { GRAPH [goal="Make it", rankdir=LR]; label = "A flow"\n stack.child="c.dot" a [label="A"] b }'
    )
    assert graph.name == "Flow"
    assert graph.attributes == {"goal": "Make it", "rankdir": "LR", "label": "A flow", "stack.child": "c.dot"}
    assert (graph.nodes["a"].label, graph.nodes["b"].label, graph.goal) == ("A", "b", "Make it")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3), ("-3", -3), ("0.5", 0.5), (".5", 0.5), ("-1.", -1.0), ("true", True), ("false", False),
        ("5m", Duration("5m", 300)), ("900s", Duration("900s", 900)), ("250ms", Duration("250ms", 0.25)),
        ("2h", Duration("2h", 7200)), ("1d", Duration("1d", 86400)), ("1.5h", Duration("1.5h", 5400)),
        ("box", "box"), ("wait.human", "wait.human"), ("summary:medium", "summary:medium"), ("True", "True"),
        ("claude-opus-4.6", "claude-opus-4.6"), ("gpt-5.2", "gpt-5.2"), ("1.2.3", "1.2.3"), ("16x9", "16x9"),
        ('"3"', "3"), ('"true"', "true"), ('""', ""), ("größe", "größe"), ("1" * 5000, "1" * 5000),
        ('"a" + "b" + "\\n"', "ab\n"),
    ],
)  # fmt: skip
def test_parse_types_values(text: str, value: Any) -> None:
    found = body(f"a [x={text}]").nodes["a"].attributes["x"]
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (r"one\ntwo\tthree", "one\ntwo\tthree"), (r"say \"hi\"", 'say "hi"'), (r"C:\\new\\tab", r"C:\new\tab"),
        (r"printf 'a\\tb\\n'", r"printf 'a\tb\n'"), (r"grep '^\[ \]' \d+", r"grep '^\[ \]' \d+"),
        ("first \\\nsecond", "first second"), ("first \\\r\nsecond", "first second"),
        ("line one\nline two", "line one\nline two"),
        ("see http://x.org/a // b /* c */ # d", "see http://x.org/a // b /* c */ # d"),
        ("pick → claim — done 日本", "pick → claim — done 日本"),
        (r"ends with a backslash \\", "ends with a backslash \\"), ("{ } [ ] -> ; = ,", "{ } [ ] -> ; = ,"),
    ],
)  # fmt: skip
def test_parse_reads_strings_in_one_pass(written: str, text: str) -> None:
    graph = body(f'a [p="{written}", q=1]')
    assert graph.nodes["a"].attributes == {"p": text, "q": 1}


def test_parse_makes_classes_of_subgraph_labels() -> None:
    graph = body(
        'subgraph cluster_a { label="Loop A (1)"; a [class="code, hard fast"]; subgraph { b; label="In" } }\n'
        "subgraph { label=Late; d -> a } subgraph { e } c"
    )
    assert graph.nodes["a"].classes == ("code", "hard", "fast", "loop-a-1")
    assert graph.nodes["b"].classes == graph.nodes["b"].groups == ("in", "loop-a-1")
    assert (graph.nodes["c"].classes, graph.nodes["d"].classes, graph.nodes["e"].classes) == ((), ("late",), ())


def test_parse_numbers_parallel_edges_and_keeps_self_loops() -> None:
    graph = body("a -> b [condition=x]; a -> a; a -> b [condition=y]; a -> b")
    assert [edge.id for edge in graph.edges] == ["a->b", "a->a", "a->b#2", "a->b#3"]
    assert [edge.id for edge in graph.outgoing("a")] == ["a->b", "a->a", "a->b#2", "a->b#3"]
    assert (len(graph.incoming("b")), graph.edge("a->b#2"), graph.edge("b->a")) == (3, graph.edges[2], None)


def test_parse_knows_which_nodes_nothing_declares() -> None:
    graph = body("a -> b -> missing\na [x=1]\n{rank=same; a; b}\na [y=2]")
    assert {node.id: node.declared for node in graph.nodes.values()} == {"a": True, "b": True, "missing": False}
    assert graph.nodes["a"].attributes == {"x": 1, "y": 2}
    assert (graph.nodes["a"].line, graph.nodes["a"].repeated, graph.nodes["b"].repeated) == (2, (5,), ())


def test_parse_keeps_the_source_and_lines() -> None:
    source = '\ufeffdigraph {\r\n  a [x="1\r\n2"]\r\n\r\n  a -> b\r\n}'
    graph = parse(source)
    assert (graph.source, graph.name) == (source, "")
    assert (graph.nodes["a"].line, graph.edges[0].line) == (2, 5)


def test_graph_finds_start_exits_and_kinds() -> None:
    graph = body(
        "s [shape=Mdiamond] e1 [shape=Msquare] e2 [type=exit] h [shape=hexagon] t [type=exec] d [shape=diamond]\n"
        "p [shape=component] f [shape=tripleoctagon] w [shape=parallelogram]\n"
        "m [shape=house] b [shape=star] o [type=own]"
    )
    assert (graph.start, graph.exits) == ("s", ("e1", "e2"))
    assert [graph.kind(name) for name in "htdpfwmbo"] == [
        "wait.human", "tool", "conditional", "parallel", "parallel.fan_in", "tool", "stack.manager_loop", "codergen",
        "own",
    ]  # fmt: skip
    split = body(
        'graph [dialect="split"] a [shape=ellipse] b [shape=hexagon] c [shape=house] d [shape=component]\n'
        "f [shape=invhouse] m [shape=tab] z [shape=ellipse]; a -> b -> c -> d -> f -> m -> z"
    )
    assert [split.kind(name) for name in "abcdfmz"] == [
        "start", "parallel", "wait.human", "tool", "parallel.fan_in", "stack.manager_loop", "exit",
    ]  # fmt: skip


def test_graph_takes_start_and_exit_by_their_ids_where_no_shape_says_them() -> None:
    graph = body("Start [shape=circle] Exit [shape=doublecircle] a; Start -> a -> Exit")
    assert (graph.start, graph.exits) == ("Start", ("Exit",))
    shaped = body("start [prompt=x] go [shape=Mdiamond] end [type=tool] fin [shape=Msquare]")
    assert (shaped.start, shaped.exits) == ("go", ("fin",))
    assert body("a -> b").start == ""


def test_node_prompt_and_command_take_the_first_that_is_set() -> None:
    graph = body(
        'a [prompt="P", llm_prompt="L"] b [prompt=" ", llm_prompt="L", goal="G"] c [goal="G"] d [label="D"] e\n'
        't [tool_command="one", script="two"] u [script="two"] v [command="three"]'
    )
    assert [graph.nodes[name].prompt for name in "abcde"] == ["P", "L", "G", "D", "e"]
    assert [graph.nodes[name].command for name in "tuva"] == ["one", "two", "three", ""]


def test_graph_json_has_nodes_with_ids_and_edges_with_ends() -> None:
    graph = body('graph [goal=x] a [timeout=5m, class="k"] ; a -> b [label=L, weight=2]; b')
    data = graph.to_json()
    assert (data["name"], data["attributes"]) == ("G", {"goal": "x"})
    assert data["nodes"][0] == {
        "id": "a", "label": "a", "shape": "box", "classes": ["k"], "line": 2, "type": "codergen",
        "attributes": {"timeout": "5m", "class": "k"},
    }  # fmt: skip
    assert data["edges"] == [
        {"from": "a", "to": "b", "id": "a->b", "label": "L", "condition": None, "line": 2,
         "attributes": {"label": "L", "weight": 2}}
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("value", "number", "flag", "seconds", "text"),
    [
        ("3", 3, None, 3.0, "3"), ('"3"', 3, None, 3.0, "3"), ("300", 300, None, 300.0, "300"),
        ('"300"', 300, None, 300.0, "300"), ("2.0", 2, None, 2.0, "2.0"), ("2.5", None, None, 2.5, "2.5"),
        ("1", 1, True, 1.0, "1"), ("0", 0, False, 0.0, "0"), ("true", None, True, None, "true"),
        ('"False"', None, False, None, "False"), ("yes", None, True, None, "yes"), ("5m", None, None, 300.0, "5m"),
        ('"5 m"', None, None, 300.0, "5 m"), ('" 250ms"', None, None, 0.25, " 250ms"),
        ("abc", None, None, None, "abc"), ('""', None, None, None, ""),
    ],
)  # fmt: skip
def test_accessors_read_what_is_wanted(
    value: str, number: int | None, flag: bool | None, seconds: float | None, text: str
) -> None:
    node = body(f"a [x={value}]").nodes["a"]
    assert (node.number("x"), node.flag("x"), node.seconds("x"), node.text("x")) == (number, flag, seconds, text)
    assert (node.number("y"), node.flag("y"), node.seconds("y"), node.text("y", "z")) == (None, None, None, "z")


@pytest.mark.parametrize(
    ("text", "place", "hint"),
    [
        ("", "1:1", "digraph NAME {"), ("graph G { a -- b }", "1:1", "digraph"),
        ("strict digraph G { }", "1:1", "digraph NAME {"), ("digraph G { a -> b", "1:19", "'}'"),
        ("digraph G {\n a\n}\ndigraph H { }", "4:1", "one graph"), ("digraph G { } }", "1:15", "'}' too many"),
        ("digraph G {\n  a -- b\n}", "2:5", "'->'"), ("digraph G {\n  a -> ;\n}", "2:8", "Name the node"),
        ("digraph G { -> a }", "1:13", "Name the node"), ("digraph G { [x=1] }", "1:13", "NAME ["),
        ("digraph G { a [x=1 }", "1:20", "']'"), ("digraph G { a [label=two words] }", "1:26", "in quotes"),
        ("digraph G { a [x=] }", "1:18", 'x="…"'), ("digraph G { a [label] }", "1:16", "key=value"),
        ("digraph G { a [label=<b>x</b>] }", "1:22", 'label="…"'), ('digraph G {\n a [x="1]\n}', "2:7", "Close it"),
        ("digraph G { /* a }", "1:13", "*/"), ("digraph G { a [x=“1”] }", "1:18", "straight"),
        ("digraph G { a → b }", "1:15", "'->'"), ("digraph G { a [x='1'] }", "1:18", "double"),
        ("digraph G { a [m=openai/gpt] }", "1:24", "in quotes"), ("digraph G { node -> a }", "1:13", "in quotes"),
        ("digraph G { a -> b label=x }", "1:20", "[ ]"), ('digraph G { "a#b" }', "1:13", "label"),
        ('digraph G { "a\\nb" }', "1:13", "label"), ('digraph G { "" }', "1:13", "name"),
        ('digraph G { ".." }', "1:13", "name"), ("digraph G { " + "x" * (MAX_ID + 1) + " }", "1:13", "label"),
        ("digraph G { a: }", "1:16", "port"), ('digraph G { x="a" + 3 }', "1:21", "strings"),
        ("digraph G { subgraph s a }", "1:24", "'{'"), ("digraph G { , }", "1:13", "key=value"),
    ],
)  # fmt: skip
def test_parse_error_names_place_and_remedy(text: str, place: str, hint: str) -> None:
    with pytest.raises(GraphError) as caught:
        parse(text, "flow.dot")
    assert caught.value.message.startswith(f"flow.dot:{place}: "), caught.value.message
    assert caught.value.code == "dot_syntax"
    assert hint in caught.value.hint
    assert caught.value.exit_code == 2
    line, _, column = place.partition(":")
    assert (caught.value.data["line"], caught.value.data["column"]) == (int(line), int(column))


def test_parse_survives_subgraphs_deep_in_each_other() -> None:
    at_most = "digraph G {" + "{" * MAX_DEPTH + "a" + "}" * MAX_DEPTH + "}"
    assert list(parse(at_most).nodes) == ["a"]
    for text in ("{", "a -> {"):
        with pytest.raises(GraphError) as caught:
            parse("digraph G {" + text * 100_000)
        assert caught.value.code == "dot_syntax"
