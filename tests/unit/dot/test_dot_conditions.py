"""The condition language of both dialects: what holds, what is refused and how that is said."""

from __future__ import annotations

import pytest

from pipeline.dot.conditions import compile_condition, outcome_word
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
        ("context.no", False), ("port=a=b", None), ("a=1 and b=2", None),
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


def test_condition_prefixes_are_not_spellings() -> None:
    assert holds("outcome STARTS_WITH partial", outcome="partial_success")
    assert outcome_word("odd") == "odd"


def test_condition_status_reads_the_context_first() -> None:
    assert holds("status=ready", status="ready")
    assert holds("status=fail")
    assert holds("outcome.preferred_label=Fix and retry")


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


@pytest.mark.parametrize("text", ["!" * 100_000 + "x", "(" * 100_000 + "x", "NOT " * 50_000 + "x"])
def test_condition_survives_deep_nesting(text: str) -> None:
    with pytest.raises(GraphError) as caught:
        compile_condition(text)
    assert caught.value.code == "condition_syntax"


def test_condition_survives_length() -> None:
    assert holds(" && ".join(["n=10"] * 5_000))
    assert not holds(" || ".join(["n=11"] * 5_000))


def test_condition_lists_its_clauses_with_their_sign() -> None:
    condition = compile_condition("outcome=fail && !(n>3 || NOT port)")
    assert [(clause.key, clause.operator, clause.literals, negated) for clause, negated in condition.clauses()] == [
        ("outcome", "=", ("fail",), False),
        ("n", ">", ("3",), True),
        ("port", "", (), False),
    ]
