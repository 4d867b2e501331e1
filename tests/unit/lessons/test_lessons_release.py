"""One rule over the critic's form says what is released; what rests on no words of the lesson counts for nothing."""

from __future__ import annotations

from typing import Any

import pytest

from pipeline.lessons.release import Verdict, decide, record
from pipeline.lessons.schemas import CRITERIA, FIDELITY, Critique
from tests.small_lesson import LESSON


def form(scores: dict[str, int] | None = None, **more: Any) -> Critique:
    rows = [
        {
            "criterion": key,
            "evidence": [{"path": "c2.text", "quotation": "the surd is in its simplest form"}],
            "finding": f"finding of {key}",
            "score": {**dict.fromkeys(CRITERIA, 5), **(scores or {})}[key],
            "fix": f"put {key} right",
            "paths": ["c2.text", "c4.q1"],
        }
        for key in CRITERIA
    ]
    return Critique.model_validate({"claims": [], "judgements": rows, "concerns": [], **more})


def changed(which: str, **fields: Any) -> Verdict:
    """The verdict on a good form with another row of a criterion."""
    data = form().model_dump()
    next(row for row in data["judgements"] if row["criterion"] == which).update(fields)
    return decide(Critique.model_validate(data), LESSON)


@pytest.mark.parametrize("key", CRITERIA)
def test_lesson_is_released_at_the_least_score_of_each_criterion_and_not_below(key: str) -> None:
    least = 4 if key in FIDELITY else 3
    assert decide(form({key: least}), LESSON).released
    below = decide(form({key: least - 1}), LESSON)
    (finding,) = below.findings
    assert not below.released
    assert finding.where == "c2.text"
    assert finding.also == ("c4.q1",)
    assert finding.found.startswith(f"{key} (")
    assert finding.wanted == f"put {key} right"


def test_all_at_their_least_are_released() -> None:
    scores = {key: 4 if key in FIDELITY else 3 for key in CRITERIA}
    critique = form(scores)
    verdict = decide(critique, LESSON)
    assert (verdict.released, verdict.findings) == (True, ())
    shown = record(critique, verdict)
    assert (shown["fidelity"], shown["quality"], shown["released"]) == (0.75, 0.5, True)


def test_evidence_that_is_not_in_the_lesson_voids_the_score() -> None:
    for evidence, why in (
        ({"path": "c2.text", "quotation": "a fine lesson"}, "the lesson does not say 'a fine lesson'"),
        ({"path": "c99", "quotation": "in its simplest form"}, "the lesson has no 'c99'"),
    ):
        verdict = changed("F2", evidence=[evidence])
        assert (verdict.void, verdict.released, verdict.findings) == ({"F2": why}, False, ())
    # It is found whatever its case, quotation marks and spaces.
    sound = [
        {"path": "keywords.1", "quotation": "IN its  simplest form\u2026"},
        {"path": "c4.q1", "quotation": "Write"},
    ]
    assert changed("F2", evidence=sound).released
    void = changed("Q7", criterion="Q6").void
    assert void == {"Q6": "judged 2 times, wanted once", "Q7": "judged 0 times, wanted once"}


def test_wrong_claim_holds_the_lesson_where_the_lesson_says_it() -> None:
    claim = {"path": "c2.text", "quotation": "A surd is a root", "status": "wrong", "reason": "4 has a whole root"}
    (finding,) = decide(form(claims=[claim]), LESSON).findings
    assert finding.line() == "c2.text: 'A surd is a root' is wrong; wanted 4 has a whole root"
    assert decide(form(claims=[{**claim, "status": "unsure"}]), LESSON).released
    assert decide(form(claims=[{**claim, "quotation": "nobody wrote this"}]), LESSON).released


def test_concern_blocks_only_with_words_of_the_lesson() -> None:
    concern = {"category": "advice", "act": "block", "path": "c2.text", "quotation": "A surd is a root"}
    (finding,) = decide(form(concerns=[concern]), LESSON).findings
    assert finding.found == "'A surd is a root' must not stand (advice)"
    assert decide(form(concerns=[{**concern, "quotation": "never said"}]), LESSON).released
    assert decide(form(concerns=[{**concern, "act": "label"}]), LESSON).released


def test_record_keeps_criteria_in_their_order() -> None:
    data = form({"F1": 4}).model_dump()
    data["judgements"].reverse()
    turned = Critique.model_validate(data)
    shown = record(turned, decide(turned, LESSON))
    assert [row["criterion"] for row in shown["judgements"]] == list(CRITERIA)
    assert (shown["fidelity"], shown["quality"]) == (0.95, 1.0)
