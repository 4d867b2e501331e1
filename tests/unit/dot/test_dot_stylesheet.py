"""Model stylesheets: which rule wins, what they set, what is refused."""

from __future__ import annotations

import pytest

from pipeline.dot.parser import parse
from pipeline.dot.stylesheet import apply, parse_stylesheet
from pipeline.errors import GraphError

SHEET = """
    /* first */ #plan { llm_model: by-id; }
    .code { llm_model: claude-opus-4.6; reasoning_effort: high }
    box { llm_model = by-shape; llm_provider: "open ai" ; }
    * { model: any; provider: anthropic; reasoning_effort: low;}
    .branch-a, .hard { llm_model: later; }
"""


def styled(nodes: str, sheet: str = SHEET, more: str = "") -> dict[str, tuple[str, str, str]]:
    graph = apply(parse(f"digraph G {{ graph [model_stylesheet={_quoted(sheet)} {more}] {nodes} }}"))
    names = ("llm_model", "llm_provider", "reasoning_effort")
    return {node.id: (node.text(names[0]), node.text(names[1]), node.text(names[2])) for node in graph.nodes.values()}


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '\\"') + '"'


def test_stylesheet_the_more_particular_rule_wins_and_of_equals_the_later() -> None:
    made = styled(
        'plan [class=code]; a [class=code]; b; c [shape=hexagon]; d [class="code,hard"]; e [class="branch-a"]'
    )
    assert made == {
        "plan": ("by-id", "open ai", "high"),
        "a": ("claude-opus-4.6", "open ai", "high"),
        "b": ("by-shape", "open ai", "low"),
        "c": ("any", "anthropic", "low"),
        "d": ("later", "open ai", "high"),
        "e": ("later", "open ai", "low"),
    }


def test_stylesheet_a_nodes_own_attribute_beats_it_and_it_beats_the_graphs() -> None:
    made = styled('plan [llm_model=own]; a [model="mine", reasoning=high]; b', more="llm_model=graph, llm_provider=g")
    assert [made[name][0] for name in ("plan", "a", "b")] == ["own", "mine", "by-shape"]
    assert made["a"][2] == "high"
    assert styled("a", "", 'llm_model=graph, reasoning_effort="max"')["a"] == ("graph", "", "max")
    assert styled('a [llm_model=""]', "* { model: x }")["a"][0] == "x"


def test_stylesheet_classes_come_from_subgraphs_too() -> None:
    assert styled('subgraph { label="Hard"; a } b', ".hard { model: m; }") == {"a": ("m", "", ""), "b": ("", "", "")}


def test_stylesheet_sets_nothing_it_does_not_know() -> None:
    graph = apply(parse('digraph G { graph [model_stylesheet="* { prompt: x; max_tokens: 5; }"] a }'))
    assert graph.nodes["a"].attributes == {"max_tokens": "5"}


def test_stylesheet_ids_may_stand_in_quotes() -> None:
    rules = parse_stylesheet('#"two words" { model: m }').rules
    assert rules[0].fits(parse('digraph G { "two words" }').nodes["two words"])


@pytest.mark.parametrize("text", ["", "  ", "/* nothing */", "* { }", "*{;;}"])
def test_stylesheet_may_say_nothing(text: str) -> None:
    assert apply(parse(f'digraph G {{ graph [model_stylesheet="{text}"] a }}')).nodes["a"].attributes == {}


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("* {", 1), ("x", 1), ("\n{ }", 2), ("* { model }", 1), ("* { model: ; }", 1),
        ("*\n{ model: x\n provider: z }", 3), ("* { a: 1 } }", 1), ("a, { }", 1), ("a b { }", 1),
        ('* { model: "x" "y" }', 1), ("/* open", 1),
    ],
)  # fmt: skip
def test_stylesheet_error_names_line_and_remedy(text: str, line: int) -> None:
    with pytest.raises(GraphError) as caught:
        parse_stylesheet(text)
    assert (caught.value.code, caught.value.data["line"]) == ("stylesheet_syntax", line)
    assert caught.value.hint
