"""Expectations learned from earlier courses: from heads alone, of the same model, the same subject first."""

from __future__ import annotations

from typing import Any

from pipeline.app.cost_estimate import RUNS, learn, usage
from pipeline.store.base import Head


def head(name: str, lessons: int, *, model: str = "m", subject: str = "mathematics", **more: Any) -> Head:
    spend = [
        {"label": "outline", "outcome": "used", "calls": 1, "tokens": {"input": 1000, "output": 100 * lessons}},
        {"label": "lesson", "outcome": "used", "calls": lessons, "tokens": {"cache_read": 100 * lessons, "output": 50}},
        {
            "label": "lesson",
            "outcome": "wasted",
            "calls": lessons,
            "tokens": {"cache_read": 300 * lessons, "output": 50},
        },
    ]
    document = {"pipeline": "lessons", "status": "completed", "subject": subject, "spend": spend,
                "identity": {"model": model, "lessons": lessons}}  # fmt: skip
    return Head(name, {**document, **more})


def test_expect_learns_calls_a_lesson_and_tokens_a_call_with_what_was_wasted() -> None:
    found = learn([head("2", 6), head("1", 18)], "m")
    assert found.runs == 2
    assert (found.kinds["outline"].calls, found.kinds["lesson"].calls) == (1, 2)
    assert found.kinds["lesson"].tokens == {"cache_read": 200, "output": 200 / 48}
    assert found.kinds["outline"].tokens == {"input": 1000, "output": 1200}


def test_expect_looks_at_completed_courses_of_the_model_only_and_at_the_newest() -> None:
    others = [head("9", 6, model="other"), head("8", 6, status="failed"), head("7", 6, pipeline="own")]
    assert learn([*others, Head("6", {}, corrupt="damaged")], "m").runs == 0
    assert learn([head(str(n), 6) for n in range(RUNS + 5)], "m").runs == RUNS


def test_expect_prefers_the_same_subject() -> None:
    heads = [head("3", 6, subject="physics"), head("2", 6), head("1", 6)]
    assert learn(heads, "m", "mathematics").runs == 2
    assert learn(heads, "m", "biology").runs == 3


def test_expect_prices_as_cached_or_as_if_nothing_had_been() -> None:
    tokens = {"input": 10.4, "cache_read": 100, "cache_write_5m": 20, "output": 7}
    assert usage(tokens)["cache_read_input_tokens"] == 100
    assert usage(tokens, cached=False) == {"input_tokens": 130, "output_tokens": 7}
