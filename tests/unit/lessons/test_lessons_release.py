"""The verdict is arithmetic over the critic's form; the critic's own word decides nothing."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from pipeline.lessons.release import decide, record
from pipeline.lessons.schemas import CRITERIA, Critique

LESSON: dict[str, Any] = {
    "title": "Simplifying surds with a square factor",
    "cards": [{"id": "card_01", "text": "A surd is in its simplest form when no square divides it."}],
    "keywords": [{"term": "surd"}],
}


def form(scores: dict[str, int] | None = None, *, verdict: str = "release", **more: Any) -> Critique:
    rows = [
        {
            "criterion": key,
            "evidence": [{"id": "card_01", "quotation": "in its simplest form"}],
            "finding": f"finding of {key}",
            "missing": False,
            "score": {**dict.fromkeys(CRITERIA, 5), **(scores or {})}[key],
            "fix": f"put {key} right",
        }
        for key in CRITERIA
    ]
    data: dict[str, Any] = {"claims": [], "judgements": rows, "concerns": [], "verdict": verdict}
    return Critique.model_validate({**data, **more})


def change(critique: Critique, which: str, **fields: Any) -> Critique:
    data = critique.model_dump()
    next(row for row in data["judgements"] if row["criterion"] == which).update(fields)
    return Critique.model_validate(data)


def test_verdict_releases_a_lesson_at_exactly_both_thresholds() -> None:
    # Two points lost over five criteria are 0.90 to the last digit.
    scores = {"F1": 4, "F2": 4, "Q1": 4, "Q2": 4, "Q3": 4, "Q4": 4, "Q5": 4}
    verdict = decide(form(scores), LESSON)
    assert verdict.fidelity == Fraction(9, 10)
    assert verdict.released
    assert verdict.fixes == ()


def test_verdict_holds_a_lesson_just_below_fidelity_although_the_overall_number_is_high() -> None:
    verdict = decide(form({"F1": 4, "F2": 4, "F3": 4}), LESSON)
    assert not verdict.released
    assert verdict.reasons == ("fidelity is 0.85, wanted 0.90",)
    shown = record(form({"F1": 4, "F2": 4, "F3": 4}), verdict)
    assert shown["overall"] > 0.85


def test_verdict_holds_a_lesson_just_below_quality() -> None:
    verdict = decide(form(dict.fromkeys(("Q1", "Q2", "Q3", "Q4", "Q5", "Q6"), 4)), LESSON)
    assert verdict.quality == Fraction(22, 28)
    assert verdict.reasons == ("quality is 0.79, wanted 0.80",)


def test_verdict_one_low_criterion_is_enough() -> None:
    verdict = decide(form({"Q4": 2}), LESSON)
    assert verdict.quality is not None
    assert verdict.quality > Fraction(8, 10)
    assert verdict.reasons == ("Q4 (distractors diagnose) has 2 of 5",)
    assert verdict.fixes == ("Q4 (distractors diagnose), at card_01: finding of Q4 put Q4 right",)


def test_verdict_pass_of_the_model_over_low_scores_is_recorded_and_not_obeyed() -> None:
    critique = form({"F5": 1}, verdict="release")
    verdict = decide(critique, LESSON)
    assert not verdict.released
    assert record(critique, verdict)["model_verdict"] == "release"
    assert verdict.notes == ("the critic said release, its own scores say otherwise",)


def test_verdict_revise_of_the_model_over_high_scores_is_not_obeyed_either() -> None:
    verdict = decide(form(verdict="revise"), LESSON)
    assert verdict.released
    assert verdict.notes == ("the critic said revise, its own scores say otherwise",)


@pytest.mark.parametrize(
    ("evidence", "why"),
    [
        ({"id": "card_01", "quotation": "a fine lesson"}, "the lesson does not say 'a fine lesson'"),
        ({"id": "card_99", "quotation": "in its simplest form"}, "the lesson has no 'card_99'"),
    ],
)
def test_verdict_evidence_that_is_not_in_the_lesson_voids_the_score(evidence: dict[str, str], why: str) -> None:
    verdict = decide(change(form(), "F2", evidence=[evidence]), LESSON)
    assert verdict.void == {"F2": why}
    assert verdict.fidelity is None
    assert verdict.reasons == (f"F2 has no score: {why}",)
    assert verdict.fixes == ()


def test_verdict_evidence_is_found_whatever_its_case_quotes_and_spaces() -> None:
    evidence = [
        {"id": "surd", "quotation": "IN its  simplest form\u2026"},
        {"id": "title", "quotation": "square factor"},
    ]
    assert decide(change(form(), "F2", evidence=evidence), LESSON).released


def test_verdict_a_criterion_judged_twice_voids_both() -> None:
    critique = change(form(), "Q7", criterion="Q6")
    assert decide(critique, LESSON).void == {"Q6": "judged 2 times, wanted once", "Q7": "judged 0 times, wanted once"}


def test_verdict_a_missing_part_has_no_score_and_is_to_be_added() -> None:
    verdict = decide(change(form(), "Q3", missing=True, fix="add a misconception to card_01"), LESSON)
    assert verdict.reasons == ("Q3 (misconceptions real and corrected): its part is missing",)
    assert verdict.fixes[0].endswith("add a misconception to card_01")
    assert verdict.void == {}


def test_verdict_a_wrong_claim_holds_the_lesson_and_an_unsure_one_does_not() -> None:
    claim = {"id": "card_01", "claim": "every root is a surd", "status": "wrong", "reason": "4 has a whole root"}
    verdict = decide(form(claims=[claim]), LESSON)
    assert verdict.reasons == ("card_01: 'every root is a surd' is wrong: 4 has a whole root",)
    assert decide(form(claims=[{**claim, "status": "unsure"}]), LESSON).released


def test_verdict_a_concern_blocks_only_with_words_of_the_lesson() -> None:
    concern = {"category": "advice", "act": "block", "quotation": "in its simplest form"}
    verdict = decide(form(concerns=[concern]), LESSON)
    assert verdict.reasons == ("advice: 'in its simplest form' must not be published",)
    assert verdict.fixes == ("take out 'in its simplest form' (advice)",)
    assert decide(form(concerns=[{**concern, "quotation": "never said"}]), LESSON).released
    assert decide(form(concerns=[{**concern, "act": "label"}]), LESSON).released


def test_record_keeps_criteria_in_their_order_and_numbers_as_json() -> None:
    critique = form({"F1": 4})
    data = critique.model_dump()
    data["judgements"].reverse()
    turned = Critique.model_validate(data)
    shown = record(turned, decide(turned, LESSON))
    assert [row["criterion"] for row in shown["judgements"]] == list(CRITERIA)
    assert (shown["fidelity"], shown["quality"], shown["overall"], shown["released"]) == (0.95, 1.0, 0.9625, True)
