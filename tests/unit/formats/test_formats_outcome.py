"""What a node came to: outcome words, status.json, what the engine is told."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.formats.attractor.outcome import NodeOutcome, failure, from_json, normalise, to_engine


@pytest.mark.parametrize(
    ("said", "word"),
    [
        ("success", "success"),
        ("SUCCEEDED", "success"),
        ("Failed", "fail"),
        ("FAILURE", "fail"),
        ("PARTIAL", "partial_success"),
        ("partially_succeeded", "partial_success"),
        (" retry ", "retry"),
        ("needs_dod", "needs_dod"),
        ("Port", "Port"),
    ],
)
def test_outcome_words_have_one_spelling_and_others_stay(said: str, word: str) -> None:
    assert normalise(said) == word


def test_status_document_is_read_whole() -> None:
    assert from_json({
        "outcome": "failed", "preferred_next_label": "Fix", "suggested_next_ids": ["a", "b"],
        "context_updates": {"k": 1}, "notes": "n", "failure_reason": "r", "failure_class": "auth", "other": [],
    }) == NodeOutcome("fail", "Fix", ("a", "b"), {"k": 1}, "n", "r", "auth")  # fmt: skip


def test_status_document_may_say_status_and_preferred_label() -> None:
    found = from_json({"status": "yes", "preferred_label": "go", "preferred_next_label": "stay"})
    assert (found.status, found.preferred_label) == ("yes", "go")


@pytest.mark.parametrize(
    ("document", "named"),
    [
        ([], "the document"),
        ({}, "'outcome'"),
        ({"outcome": ""}, "'outcome'"),
        ({"outcome": 3}, "'outcome'"),
        ({"outcome": "success", "preferred_label": ["x"]}, "'preferred_label'"),
        ({"outcome": "success", "suggested_next_ids": "a"}, "'suggested_next_ids'"),
        ({"outcome": "success", "suggested_next_ids": [1]}, "'suggested_next_ids'"),
        ({"outcome": "success", "context_updates": "x"}, "'context_updates'"),
        ({"outcome": "success", "notes": {}}, "'notes'"),
    ],
)
def test_status_document_of_wrong_types_is_a_failure_that_names_the_key(document: Any, named: str) -> None:
    found = from_json(document, "outcome.json")
    assert (found.status, found.failure_class) == ("fail", "validation")
    assert named in found.failure_reason
    assert found.failure_reason.startswith("outcome.json: ")


def test_engine_is_told_of_a_failure_by_its_error_and_of_the_way_on_by_hints() -> None:
    made = to_engine(NodeOutcome("failure", "Fix", ("a",), {"k": 1}, "n", "boom", "auth", {"response": "r"}))
    assert made.label == "fail"
    assert made.error == {"type": "NodeFailed", "message": "boom", "class": "auth"}
    assert (made.hints["preferred_label"], made.hints["suggested_next_ids"]) == ("Fix", ("a",))
    assert made.context == {"k": 1}
    assert made.outputs == {"response": "r", "preferred_label": "Fix", "suggested_next_ids": ["a"], "notes": "n"}


def test_engine_is_told_notes_where_a_failure_gives_no_reason() -> None:
    made = to_engine(NodeOutcome("fail", notes="the tests are red"))
    assert made.error is not None
    assert made.error["message"] == "the tests are red"


def test_word_of_the_graphs_own_is_no_failure() -> None:
    made = to_engine(NodeOutcome("needs_dod"))
    assert (made.label, made.error, made.outputs) == ("needs_dod", None, {})


def test_failure_says_why() -> None:
    assert failure("no", "auth", outputs={"a": 1}) == NodeOutcome(
        "fail", failure_reason="no", failure_class="auth", outputs={"a": 1}
    )
