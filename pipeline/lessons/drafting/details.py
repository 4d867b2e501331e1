"""Decides what an offline scheme says of one lesson besides its place: time, calculator, needs, setting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.frameworks import region_of
from pipeline.lessons.course_words import examples_of
from pipeline.lessons.drafting.course import outcomes, printable
from pipeline.lessons.drafting.exam import timed_components
from pipeline.publish.view import has_calculators

Json = dict[str, Any]

#: Minutes of a lesson, and of an exam at most.
LESSON_MINUTES, MOST_MINUTES = 50, 180
#: Earlier lessons that are named as needed, at most.
MOST_NAMED = 20
_SETTINGS = (
    "Bus and ferry times around {place}", "Prices in shops and cafés in {place}", "A school sports day in {place}",
    "A walk and its map near {place}", "A community garden in {place}", "{evening} in the hall in {place}",
    "Recycling figures of a school in {place}", "Repairs to a boat in {place}", "Weather records from {place}",
    "A youth club's budget in {place}",
)  # fmt: skip


def details(course: Mapping[str, Any], entries: Sequence[Mapping[str, Any]], order: int) -> Json:
    """Return the details of the entry with this order."""
    entry = next(entry for entry in entries if entry["order"] == order)
    exam = entry["lesson_type"] == "mock_exam"
    titles = {outcome.id: outcome.title for outcome in outcomes(course)}
    region, in_words = region_of(course), examples_of(str(course["subject"])) == "examples_words"
    place = region.places[order * 7 % len(region.places)]
    # A subject in words has its setting in its points.
    context = "The time, the place and the texts of the points" if in_words else _SETTINGS[order % len(_SETTINGS)]
    calculators = has_calculators(course) or not in_words
    names = [printable(titles.get(ref, ref), 80) for ref in entry["outcome_refs"]]
    return {
        "order": order,
        "calculator": "exam_conditions" if exam else "mixed" if calculators else "non_calc",
        "minutes": exam_minutes(course) if exam else LESSON_MINUTES,
        "prerequisites": needed(entries, entry),
        "summary": _summary(region.said(_SUMMARIES[entry["lesson_type"]]), names),
        "emphasis": [region.said(_EMPHASIS[entry["lesson_type"]])],
        "context": context.format(place=place, evening=region.evening),
    }


def exam_minutes(course: Mapping[str, Any]) -> int:
    """Return the time of all question papers together, at most three hours."""
    return max(5, min(sum(paper.minutes for paper in timed_components(course)), MOST_MINUTES))


def needed(entries: Sequence[Mapping[str, Any]], entry: Mapping[str, Any]) -> list[int]:
    """Return the orders of earlier lessons that an entry builds on, rising."""
    earlier = [other for other in entries if other["order"] < entry["order"]]
    teach = [other for other in earlier if other["lesson_type"] == "teach"]
    if entry["lesson_type"] == "teach":
        chosen = [other for other in teach if other["block"] == entry["block"]][-1:]
    else:
        asked = set(entry["outcome_refs"])
        chosen = [other for other in teach if asked & set(other["outcome_refs"])]
        if entry["lesson_type"] == "revision" and len(chosen) < 3:
            chosen = earlier[-3:]
    return sorted({other["order"] for other in chosen})[-MOST_NAMED:]


_EMPHASIS = {
    "teach": "Pupils should say each step in words before they work alone",
    "independent_practice": "Pupils choose the method themselves, without a model beside them",
    "formative_assessment": "Look for the step where an answer goes wrong, not only at the total",
    "revision": "Recall before re-reading: notes stay closed at first",
    "mock_exam": "Keep to the time of each paper and show all working",
}
_SUMMARIES = {
    "teach": "Starter on what is needed, then explanation, worked example and questions on {names}; exit ticket.",
    "independent_practice": "Pupils work alone through questions that get harder on {names}, with feedback.",
    "formative_assessment": "A short assessment without notes on {names}; the mark scheme shows what to teach again.",
    "revision": "Pupils recall earlier lessons with notes closed, then practise questions on {names}.",
    "mock_exam": "A paper under exam conditions that draws on {names}, with a mark scheme for each question.",
}


def _summary(template: str, names: Sequence[str]) -> str:
    shown = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
    return template.format(names=printable(shown, 360))
