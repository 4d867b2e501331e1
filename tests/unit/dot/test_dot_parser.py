"""What the parser makes of DOT text: statements, defaults, subgraphs, chains, values, strings and comments."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.dot.model import DotGraph
from pipeline.dot.parser import class_of, parse
from pipeline.dot.values import Duration


def body(text: str) -> DotGraph:
    return parse("digraph G {\n" + text + "\n}")


def pairs(graph: DotGraph) -> list[tuple[str, str]]:
    return [(edge.source, edge.target) for edge in graph.edges]


def test_parse_reads_name_attributes_nodes_and_edges() -> None:
    graph = parse(
        'digraph Flow { graph [goal="Make it", rankdir=LR]; label = "A flow"\n a [shape=box, label="A"]; b; a -> b }'
    )
    assert graph.name == "Flow"
    assert graph.attributes == {"goal": "Make it", "rankdir": "LR", "label": "A flow"}
    assert (list(graph.nodes), pairs(graph)) == (["a", "b"], [("a", "b")])
    assert graph.nodes["a"].attributes == {"shape": "box", "label": "A"}
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


def test_parse_separates_attributes_by_commas_semicolons_or_space() -> None:
    graph = body('a [x=1, y=2; z=3\n w="4" v=5,] [u=6]; b [\n]; c[x=1 ,, y=2];')
    assert graph.nodes["a"].attributes == {"x": 1, "y": 2, "z": 3, "w": "4", "v": 5, "u": 6}
    assert (graph.nodes["b"].attributes, graph.nodes["c"].attributes) == ({}, {"x": 1, "y": 2})


def test_parse_takes_dotted_keys_bare_and_in_quotes() -> None:
    graph = body('a [human.default_choice="[Y] Yes", "manager.poll_interval"=45s]')
    assert graph.nodes["a"].attributes == {
        "human.default_choice": "[Y] Yes",
        "manager.poll_interval": Duration("45s", 45.0),
    }


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (r"one\ntwo\tthree", "one\ntwo\tthree"),
        (r"say \"hi\"", 'say "hi"'),
        (r"C:\\new\\tab", r"C:\new\tab"),
        (r"printf 'a\\tb\\n'", r"printf 'a\tb\n'"),
        (r"grep '^\[ \]' \d+", r"grep '^\[ \]' \d+"),
        ("first \\\nsecond", "first second"),
        ("first \\\r\nsecond", "first second"),
        ("line one\nline two", "line one\nline two"),
        ("see http://x.org/a // b /* c */ # d", "see http://x.org/a // b /* c */ # d"),
        ("pick → claim — done 日本", "pick → claim — done 日本"),
        (r"ends with a backslash \\", "ends with a backslash \\"),
        ("{ } [ ] -> ; = ,", "{ } [ ] -> ; = ,"),
    ],
)
def test_parse_reads_strings_in_one_pass(written: str, text: str) -> None:
    graph = body(f'a [p="{written}", q=1]')
    assert graph.nodes["a"].attributes == {"p": text, "q": 1}


def test_parse_leaves_comments_out_but_not_within_strings() -> None:
    graph = parse(
        "// first\n# second\ndigraph G { # third\n/* a -> x\n */ a -> b // c -> d\n  # e -> f\n"
        'b [label="# no // comment"] /**/ c; #g\n d # h\n}\n// after\n# last'
    )
    assert pairs(graph) == [("a", "b")]
    assert set(graph.nodes) == {"a", "b", "c", "d"}
    assert graph.nodes["b"].label == "# no // comment"


def test_parse_gives_defaults_to_later_declarations_only() -> None:
    graph = body("a; node [shape=box, timeout=5m]; b; c [shape=diamond]; node [timeout=9m]; d")
    shown = {name: (node.text("shape"), node.text("timeout")) for name, node in graph.nodes.items()}
    assert shown == {"a": ("", ""), "b": ("box", "5m"), "c": ("diamond", "5m"), "d": ("box", "9m")}


def test_parse_gives_edge_defaults_to_later_edges_only() -> None:
    graph = body("a -> b; edge [weight=2, label=x]; b -> c [label=y]; c -> d")
    assert [(edge.weight, edge.label) for edge in graph.edges] == [(0, ""), (2, "y"), (2, "x")]


def test_parse_scopes_defaults_to_their_subgraph() -> None:
    graph = body("node [m=0] subgraph s { node [m=1] edge [weight=5] a -> b; a; b; { node [m=2] c } d } e; e -> a")
    assert {name: node.number("m") for name, node in graph.nodes.items()} == {"a": 1, "b": 1, "c": 2, "d": 1, "e": 0}
    assert [edge.weight for edge in graph.edges] == [5, 0]


def test_parse_makes_classes_of_subgraph_labels() -> None:
    graph = body(
        'subgraph cluster_a { label="Loop A (1)"; a [class="code, hard fast"]; subgraph { b; label="In" } }\n'
        "subgraph { label=Late; d -> a } subgraph { e } c"
    )
    assert graph.nodes["a"].classes == ("code", "hard", "fast", "loop-a-1")
    assert graph.nodes["b"].classes == graph.nodes["b"].groups == ("in", "loop-a-1")
    assert (graph.nodes["c"].classes, graph.nodes["d"].classes, graph.nodes["e"].classes) == ((), ("late",), ())


@pytest.mark.parametrize(
    ("label", "name"),
    [("Loop A", "loop-a"), ("  Plan\n Fan-out!", "plan-fan-out"), ("Ä→", ""), ("", ""), ("v1.2_x", "v12x")],
)
def test_class_of_a_label(label: str, name: str) -> None:
    assert class_of(label) == name


def test_parse_chains_give_their_attributes_to_every_edge() -> None:
    graph = body('a -> b -> c -> a [label=next, condition="outcome=success"]')
    assert pairs(graph) == [("a", "b"), ("b", "c"), ("c", "a")]
    assert [(edge.label, edge.condition) for edge in graph.edges] == [("next", "outcome=success")] * 3


def test_parse_joins_every_member_of_a_group() -> None:
    graph = body("a -> {b c; d} -> subgraph s { e; f -> e } [weight=1]")
    assert pairs(graph) == [("f", "e"), ("a", "b"), ("a", "c"), ("a", "d"), *((x, y) for x in "bcd" for y in "ef")]
    assert [edge.weight for edge in graph.edges] == [0] + [1] * 9


def test_parse_numbers_parallel_edges_and_keeps_self_loops() -> None:
    graph = body("a -> b [condition=x]; a -> a; a -> b [condition=y]; a -> b")
    assert [edge.id for edge in graph.edges] == ["a->b", "a->a", "a->b#2", "a->b#3"]
    assert [edge.id for edge in graph.outgoing("a")] == ["a->b", "a->a", "a->b#2", "a->b#3"]
    assert (len(graph.incoming("b")), graph.edge("a->b#2"), graph.edge("b->a")) == (3, graph.edges[2], None)


def test_parse_tolerates_ports_quoted_ids_numbers_and_keyword_like_names() -> None:
    graph = body(
        'a:out -> b:in:ne; "a" -> "two words":"p" ; 1 -> 2.5; my-node -> a.b; nodes -> edge_1; graphics; Node -> a;'
        ' "node" [x=1]; subgraph_x -> rankdir; "a:b"->a'
    )
    assert pairs(graph) == [
        ("a", "b"), ("a", "two words"), ("1", "2.5"), ("my-node", "a.b"), ("nodes", "edge_1"), ("Node", "a"),
        ("subgraph_x", "rankdir"), ("a:b", "a"),
    ]  # fmt: skip
    assert {"graphics", "node"} <= set(graph.nodes)


def test_parse_reads_keywords_in_any_case() -> None:
    graph = parse("DiGraph G { NODE [m=1]; Edge [weight=3]; GRAPH [goal=x]; a -> b; a; SUBGRAPH s { c } }")
    assert (graph.nodes["a"].number("m"), graph.edges[0].weight, graph.goal) == (1, 3, "x")
    assert list(graph.nodes) == ["a", "b", "c"]


def test_parse_knows_which_nodes_nothing_declares() -> None:
    graph = body("a -> b -> missing\na [x=1]\n{rank=same; a; b}\na [y=2]")
    assert {node.id: node.declared for node in graph.nodes.values()} == {"a": True, "b": True, "missing": False}
    assert graph.nodes["a"].attributes == {"x": 1, "y": 2}
    assert (graph.nodes["a"].line, graph.nodes["a"].repeated, graph.nodes["b"].repeated) == (2, (5,), ())


def test_parse_gives_a_node_the_defaults_where_it_is_declared() -> None:
    graph = body("a -> b; {rank=same; c} node [m=7]; a [x=1]; c [x=2]")
    assert [graph.nodes[name].number("m") for name in "abc"] == [7, None, 7]


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
    assert {name: graph.kind(name) for name in "htdpfwmbo"} == {
        "h": "wait.human", "t": "tool", "d": "conditional", "p": "parallel", "f": "parallel.fan_in", "w": "tool",
        "m": "stack.manager_loop", "b": "codergen", "o": "own",
    }  # fmt: skip


def test_graph_takes_a_command_without_a_shape_for_a_tool() -> None:
    graph = body('a [script="make"] b [script="make", prompt=x] c [script="make", shape=box] d [script=" "]')
    assert [graph.kind(name) for name in "abcd"] == ["tool", "codergen", "codergen", "codergen"]


def test_parse_takes_dotted_and_hyphenated_keys_everywhere() -> None:
    graph = body('stack.child_dotfile="child.dot"\n a [prompt-ref="#one", context.gate_topic="x"]')
    assert graph.attributes == {"stack.child_dotfile": "child.dot"}
    assert graph.nodes["a"].attributes == {"prompt-ref": "#one", "context.gate_topic": "x"}


def test_graph_takes_start_and_exit_by_their_ids_where_no_shape_says_them() -> None:
    graph = body("Start [shape=circle] Exit [shape=doublecircle] a; Start -> a -> Exit")
    assert (graph.start, graph.exits) == ("Start", ("Exit",))
    shaped = body("start [prompt=x] go [shape=Mdiamond] end [type=tool] fin [shape=Msquare]")
    assert (shaped.start, shaped.exits) == ("go", ("fin",))
    assert body("a -> b").start == ""


def test_graph_of_the_split_dialect_reads_its_shapes() -> None:
    graph = body(
        'graph [dialect="split"] a [shape=ellipse] b [shape=hexagon] c [shape=house] d [shape=component]\n'
        "f [shape=invhouse] m [shape=tab] z [shape=ellipse]; a -> b -> c -> d -> f -> m -> z"
    )
    kinds = [graph.kind(name) for name in "abcdfmz"]
    assert kinds == ["start", "parallel", "wait.human", "tool", "parallel.fan_in", "stack.manager_loop", "exit"]


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
