"""Expectations learned from earlier courses: from heads alone, of the same model, the same subject first."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from pipeline.app.cost_estimate import RUNS, CourseHistory, LearnedKind, learn, priced, to_pay, usage
from pipeline.app.course_work import Piece
from pipeline.cost.prices import PriceBook
from pipeline.lessons.catalogue import Catalogue
from pipeline.lessons.estimate import Estimate, Row, lesson_bytes
from pipeline.lessons.schemas import Entry
from pipeline.store.base import Head


def head(name: str, lessons: int, *, model: str = "m", subject: str = "mathematics", **more: Any) -> Head:
    def row(label: str, calls: int, **tokens: int) -> dict[str, Any]:
        return {"label": label, "calls": calls, "tokens": tokens}

    spend = [
        row("outline", 1, input=1000, output=100 * lessons),
        row("lesson", lessons, cache_read=100 * lessons, output=50),
        row("lesson", lessons, cache_read=300 * lessons, output=50),
    ]
    document = {"pipeline": "lessons", "status": "completed", "subject": subject, "spend": spend,
                "identity": {"model": model, "lessons": lessons, "lesson_schema": 2}}  # fmt: skip
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


def test_worst_case_counts_the_second_try_with_twice_the_cap() -> None:
    at, model = datetime(2026, 1, 9, tzinfo=UTC), "claude-sonnet-5-5"
    row = Row("lesson", 2, 2, 1000, 100, 500, most_bytes=4000, max_tokens=500, added=10, marked=0)
    (found,) = priced(Estimate((row,), ()), PriceBook(), model, at)
    tries = [PriceBook().worst(4000, cap, model=model, at=at, added=10, marked=0) or 0 for cap in (500, 1000)]
    assert found.worst_usd == 2 * sum(tries)


def test_a_sample_pays_for_the_prefix_and_corrections_read_what_lessons_wrote() -> None:
    at, model = datetime(2026, 1, 9, tzinfo=UTC), "claude-sonnet-5-5"
    lesson = Row("lesson", 10, 10, 1000, 10_000, 500, most_bytes=4000, max_tokens=500, added=10, marked=0)
    rows = (lesson, replace(lesson, calls=1, output_tokens=1500), replace(lesson, label="correction"))
    kinds = priced(Estimate(rows, ()), PriceBook(), model, at)
    assert [bool(kind.first_usd) for kind in kinds] == [True, False, False]
    pieces = [Piece(f"lessons/{n}", "run", "new", {"lesson": Fraction(1, 10)}) for n in range(10)]
    first, *others = (item.expected_usd or Decimal(0) for item in to_pay(pieces, kinds))
    assert first - others[0] == kinds[0].first_usd > Decimal("0.01")
    assert first + sum(others) == (kinds[0].expected_usd or 0) + (kinds[1].expected_usd or 0)


def test_what_earlier_courses_took_counts_by_the_length_of_a_lesson() -> None:
    at, model = datetime(2026, 1, 9, tzinfo=UTC), "claude-sonnet-5-5"
    lesson = Row("lesson", 3, 10, 1000, 10_000, 400, most_bytes=4000, max_tokens=500, added=10, marked=0)
    exam = replace(lesson, calls=1, output_tokens=1600)
    history = CourseHistory(1, {"lesson": LearnedKind(1, {"input": 100, "output": 1400})})
    asked = Estimate((lesson, exam), ())
    # Three quarters of a call of 800, a quarter of one of 3,200.
    assert [kind.output_tokens for kind in priced(asked, PriceBook(), model, at, history=history)] == [600, 800]


GOOD = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(Path("tests/calibration").glob("*.json"))]


def test_a_lesson_is_as_long_as_expected_from_its_entry() -> None:
    course, sizes = Catalogue().course("mathematics", "national_5"), []
    for row in GOOD:
        text = json.dumps(row["lesson"], ensure_ascii=False, separators=(",", ":")).encode()
        entry = Entry.model_construct(lesson_type=row["entry"]["lesson_type"], points=row["entry"]["points"])
        sizes.append(len(text) / lesson_bytes(course, entry))
    assert all(0.85 < size < 1.15 for size in sizes)
    assert 0.95 < sum(sizes) / len(sizes) < 1.05
