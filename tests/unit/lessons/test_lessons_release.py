"""The verdict is arithmetic over the critic's form; the critic's own word decides nothing."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from pipeline.lessons.release import Verdict, decide, record
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


def changed(which: str, **fields: Any) -> Verdict:
    """The verdict on a good form with another row of a criterion."""
    data = form().model_dump()
    next(row for row in data["judgements"] if row["criterion"] == which).update(fields)
    return decide(Critique.model_validate(data), LESSON)


def test_verdict_releases_a_lesson_at_exactly_both_thresholds() -> None:
    # Two points lost over five criteria are 0.90 to the last digit.
    verdict = decide(form({"F1": 4, "F2": 4, "Q1": 4, "Q2": 4, "Q3": 4, "Q4": 4, "Q5": 4}), LESSON)
    assert (verdict.fidelity, verdict.released, verdict.fixes) == (Fraction(9, 10), True, ())


def test_verdict_holds_a_lesson_just_below_a_threshold_although_the_overall_number_is_high() -> None:
    low = form({"F1": 4, "F2": 4, "F3": 4})
    verdict = decide(low, LESSON)
    assert (verdict.released, verdict.reasons) == (False, ("fidelity is 0.85, wanted 0.90",))
    assert record(low, verdict)["overall"] > 0.85
    verdict = decide(form(dict.fromkeys(("Q1", "Q2", "Q3", "Q4", "Q5", "Q6"), 4)), LESSON)
    assert (verdict.quality, verdict.reasons) == (Fraction(22, 28), ("quality is 0.79, wanted 0.80",))


def test_verdict_one_low_criterion_is_enough() -> None:
    verdict = decide(form({"Q4": 2}), LESSON)
    assert (verdict.quality or 0) > Fraction(8, 10)
    assert verdict.reasons == ("Q4 (distractors diagnose) has 2 of 5",)
    assert verdict.fixes == ("Q4 (distractors diagnose), at card_01: finding of Q4 put Q4 right",)


def test_verdict_of_the_model_against_its_scores_is_recorded_and_not_obeyed() -> None:
    for scores, said, released in (({"F5": 1}, "release", False), ({}, "revise", True)):
        critique = form(scores, verdict=said)
        verdict = decide(critique, LESSON)
        assert verdict.released is released
        assert record(critique, verdict)["model_verdict"] == said
        assert verdict.notes == (f"the critic said {said}, its own scores say otherwise",)


def test_verdict_evidence_that_is_not_in_the_lesson_voids_the_score() -> None:
    for evidence, why in (
        ({"id": "card_01", "quotation": "a fine lesson"}, "the lesson does not say 'a fine lesson'"),
        ({"id": "card_99", "quotation": "in its simplest form"}, "the lesson has no 'card_99'"),
    ):
        verdict = changed("F2", evidence=[evidence])
        assert (verdict.void, verdict.fidelity, verdict.fixes) == ({"F2": why}, None, ())
        assert verdict.reasons == (f"F2 has no score: {why}",)
    # It is found whatever its case, quotation marks and spaces.
    sound = [{"id": "surd", "quotation": "IN its  simplest form\u2026"}, {"id": "title", "quotation": "square factor"}]
    assert changed("F2", evidence=sound).released


def test_verdict_a_criterion_judged_twice_voids_both() -> None:
    void = changed("Q7", criterion="Q6").void
    assert void == {"Q6": "judged 2 times, wanted once", "Q7": "judged 0 times, wanted once"}


def test_verdict_a_missing_part_has_no_score_and_is_to_be_added() -> None:
    verdict = changed("Q3", missing=True, fix="add a misconception to card_01")
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
    data = form({"F1": 4}).model_dump()
    data["judgements"].reverse()
    turned = Critique.model_validate(data)
    shown = record(turned, decide(turned, LESSON))
    assert [row["criterion"] for row in shown["judgements"]] == list(CRITERIA)
    assert (shown["fidelity"], shown["quality"], shown["overall"], shown["released"]) == (0.95, 1.0, 0.9625, True)
