"""The small languages of DOT files: conditions of both dialects, labels as choices, model stylesheets."""

from __future__ import annotations

import pytest

from pipeline.dot.conditions import compile_condition
from pipeline.dot.labels import accelerator, chosen, normal_label, without_key
from pipeline.dot.parser import parse
from pipeline.dot.stylesheet import apply, parse_stylesheet
from pipeline.errors import GraphError

CONTEXT = {
    "outcome": "fail",
    "preferred_label": "Fix and retry",
    "context.y": "hello world",
    "failure_class": "transient_infra",
    "tool.last_line": "pass",
    "n": "10",
    "ok": "true",
    "no": "false",
    "zero": "0",
    "port": "a",
    "internal.retry_count.plan": "2",
    "context.both": "own",
    "both": "other",
}


def holds(text: str, **more: str) -> bool:
    context = {**CONTEXT, **more}
    return compile_condition(text).holds(lambda key: context.get(key, ""))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", True), ("   ", True),
        ("outcome=fail", True), ("outcome=success", False), ("outcome!=success", True), ("outcome == fail", True),
        ("outcome=failed", True), ("outcome=failure", True), ("outcome!=failed", False), ("outcome=Fail", False),
        ("outcome=FAIL", False), ("status=fail", True), ("status == FAILURE", True), ("status == SUCCESS", False),
        ("outcome.status == FAILURE", True), ("context.outcome=failed", True), ("outcome IN (failed, retry)", True),
        ("outcome=fail && context.failure_class=transient_infra", True),
        ("outcome=fail && context.failure_class!=transient_infra", False),
        ("outcome=fail&&n=10", True), ("outcome=success || n=10", True), ("outcome=success OR n=11", False),
        ("outcome=success && n=10 || port=a", True), ("outcome=success AND (n=10 OR port=a)", False),
        ("NOT outcome=success", True), ("!(outcome=fail)", False), ("!outcome", False), ("NOT NOT ok", True),
        ("!!ok", True), ("ok", True), ("no", False), ("zero", False), ("missing", False), ("!missing", True),
        ("missing=", None), ('missing=""', True), ('missing!=""', False), ("missing!=x", True), ("missing=x", False),
        ("context.y=hello world", True), ('context.y="hello world"', True), ("context.y='hello world'", True),
        ("preferred_label=Fix and retry", True), ("preferred_label=Fix and retry && n=10", True),
        ("context.y CONTAINS lo wo", True), ("context.y contains world", True), ("context.y STARTS_WITH hello", True),
        ("context.y ENDS_WITH hello", False), ('context.y CONTAINS ""', True), ("missing CONTAINS x", False),
        ("context.tool.last_line=pass", True), ("tool.last_line=pass", True), ("context.both=own", True),
        ("context.internal.retry_count.plan=2", True), ("internal.retry_count.plan>=2", True),
        ("n<9", False), ("n<=10", True), ("n>9", True), ("n>=10.5", False), ("n=10.0", False), ("n>abc", False),
        ("context.y<5", False), ("missing<5", False), ("n > -1", True),
        ("port IN (a, b)", True), ("port IN [b, c]", False), ("port in a,b", True), ('port IN ("a")', True),
        ("not=1", False), ("context.port=a AND NOT no", True), ('port="a\\"b"', False), ("outcome=needs_dod", False),
        ("context.no", False), ("outcome.preferred_label=Fix and retry", True), ("outcome STARTS_WITH fai", True),
        ("port=a=b", None), ("a=1 and b=2", None),
    ],
)  # fmt: skip
def test_condition_holds(text: str, expected: bool | None) -> None:
    if expected is None:
        with pytest.raises(GraphError):
            compile_condition(text)
    else:
        assert holds(text) is expected


@pytest.mark.parametrize(
    ("stored", "asked"),
    [
        ("success", "succeeded"), ("succeeded", "success"), ("partial_success", "partial"), ("failure", "fail"),
        ("partially_succeeded", "partial"), ("skip", "skip"), ("needs_dod", "needs_dod"),
    ],
)  # fmt: skip
def test_condition_reads_other_spellings_of_outcomes_on_both_sides(stored: str, asked: str) -> None:
    assert holds(f"outcome={asked}", outcome=stored)
    assert not holds(f"outcome!={asked}", outcome=stored)
    assert holds(f"context.word={asked}", word=stored) is (stored == asked)


@pytest.mark.parametrize(
    ("text", "column", "hint"),
    [
        ("outcome=", 9, '""'), ("=x", 1, "KEY=VALUE"), ("outcome=a &", 11, "'&&'"), ("outcome=a | b=c", 11, "'||'"),
        ("outcome=success &&", 19, "KEY=VALUE"), ("&& outcome", 1, "KEY=VALUE"), ("(a=1", 5, "Close"),
        ("a=1)", 4, "&&"), ("a b", 3, "CONTAINS"), ("a. = 1", 1, "letters"), ('a="x', 3, '"'),
        ("a IN (1, 2", 11, "Close"), ("a IN ()", 7, '""'), ("outcome===x", 10, '""'),
    ],
)  # fmt: skip
def test_condition_error_names_column_and_remedy(text: str, column: int, hint: str) -> None:
    with pytest.raises(GraphError) as caught:
        compile_condition(text)
    assert (caught.value.code, caught.value.data["column"]) == ("condition_syntax", column)
    assert f"column {column}: " in caught.value.message
    assert hint in caught.value.hint


def test_condition_lists_its_clauses_with_their_sign() -> None:
    condition = compile_condition("outcome=fail && !(n>3 || NOT port)")
    assert [(clause.key, clause.operator, clause.literals, negated) for clause, negated in condition.clauses()] == [
        ("outcome", "=", ("fail",), False),
        ("n", ">", ("3",), True),
        ("port", "", (), False),
    ]


@pytest.mark.parametrize("text", ["!" * 100_000 + "x", "(" * 100_000 + "x", "NOT " * 50_000 + "x"])
def test_condition_survives_deep_nesting(text: str) -> None:
    with pytest.raises(GraphError) as caught:
        compile_condition(text)
    assert caught.value.code == "condition_syntax"


@pytest.mark.parametrize(
    ("label", "key", "plain", "normal"),
    [
        ("[Y] Yes, go on", "Y", "Yes, go on", "yes, go on"), ("[ok]  Fine", "OK", "Fine", "fine"),
        ("[R]etry", "R", "Retry", "retry"), ("[A]pprove all", "A", "Approve all", "approve all"),
        ("y) Yes", "Y", "Yes", "yes"), ("N - No", "N", "No", "no"), ("Approve", "A", "Approve", "approve"),
        ("  Fix   It ", "F", "Fix   It", "fix it"), ("re-do all", "R", "re-do all", "re-do all"),
        ("[A]", "A", "[A]", "[a]"), ("…", "", "…", "…"), ("", "", "", ""), ("3) Third", "3", "Third", "third"),
        ("[not a key] x", "N", "[not a key] x", "[not a key] x"),
    ],
)  # fmt: skip
def test_label_as_a_choice(label: str, key: str, plain: str, normal: str) -> None:
    assert (accelerator(label), without_key(label), normal_label(label)) == (key, plain, normal)


CHOICES, TARGETS = ("[A] Approve", "Revise it", "Reject"), ("ship", "write", "end")


@pytest.mark.parametrize(
    ("said", "choice"),
    [
        ("[a] approve", 0), ("approve", 0), ("a", 0), ("A", 0), ("ship", 0), ("yes", 0), ("app", 0), ("revise  IT", 1),
        ("rev", 1), ("write", 1), ("no", 2), ("r", None), ("re", None), ("later", None), ("", None),
    ],
)  # fmt: skip
def test_choice_that_a_person_means(said: str, choice: int | None) -> None:
    assert chosen(said, CHOICES, TARGETS) == ("" if choice is None else CHOICES[choice])
    assert chosen(said, ()) == said
    assert (chosen("no", ("Ship", "Decline")), chosen("n", ("Next", "No"))) == ("Decline", "")


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


def test_stylesheet_knows_classes_of_subgraphs_and_sets_nothing_that_it_does_not_know() -> None:
    assert styled('subgraph { label="Hard"; a } b', ".hard { model: m; prompt: x }") == {
        "a": ("m", "", ""), "b": ("", "", ""),
    }  # fmt: skip


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
