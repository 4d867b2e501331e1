"""The requests: which prompts, in which order, with which data; the shared prefix first, so that it is cached.

`request.data`, and the same JSON between <task_data> marks at the end of the message, is:

- outline:    {"kind", "course", "lessons", "plan" (plan.Plan.to_json), "previous", "faults"}
- entry:      {"kind", "course", "order", "entries" (of the outline), "previous", "faults"}
- lesson:     {"kind", "course", "entry" (scheme.Entry), "entries" (those it builds on), "previous", "faults"}
- correction: {"kind", "course", "entry", "present" (address -> JSON of what may be changed), "findings", "whole"}
- solve:      {"kind", "questions" (without keys)}
- critic:     {"kind", "course", "entry", "lesson", "facts", "former", "void"}

What stands in the prompts already is left out of the JSON that is sent: the catalogue, the findings; "entries" of an
outline, the same for all, stand in the prefix as {"entries"} between such marks of their own. "previous" (null at
first) is the answer that was not accepted, "faults" says why.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import BaseModel

from pipeline.content.cast import cast
from pipeline.content.fields import wire_schema
from pipeline.content.lesson import BLIND_SCHEMA, CORRECTIONS_SCHEMA, LESSON_SCHEMA, AuthorReply, Solutions
from pipeline.content.levels import level_text
from pipeline.frameworks import framework_of, region_of, standing
from pipeline.lessons.course import Course, Group
from pipeline.lessons.course_words import examples_of, kind_of
from pipeline.lessons.plan import Plan
from pipeline.lessons.prompts import fields_of, render
from pipeline.lessons.schemas import (
    CRITIQUE_SCHEMA,
    ENTRY_SCHEMA,
    OUTLINE_SCHEMA,
    Critique,
    Entry,
    EntryDetails,
    Outline,
    OutlineEntry,
)
from pipeline.llm.base import Message, Request, Segment

#: Output tokens a reply may take, thinking included; a truncated one is asked again with more.
MAX_TOKENS = {"entry": 4_000, "lesson": 20_000, "correction": 8_000, "solve": 8_000, "critic": 10_000}
#: An exam is as long as several lessons.
MOCK_TOKENS = 40_000
#: For an outline: some, and so many for each lesson.
OUTLINE_TOKENS, OUTLINE_TOKENS_EACH = 4_000, 300

#: Generated once: making the lesson's takes a tenth of a second.
_schema = cache(wire_schema)


@dataclass(frozen=True, slots=True)
class Draft:
    """An answer that was not accepted."""

    #: The JSON value, or None where the text was no JSON.
    value: Any
    #: One sentence each.
    faults: Sequence[str]


@dataclass(frozen=True)
class Asks:
    """Builds every request of a run from its pinned prompts, course, model and effort."""

    course: Course
    #: Prompt texts by name, as `load_prompts` gives them.
    prompts: Mapping[str, str]
    model: str
    effort: str | None = None
    #: Questions are solved by somebody who sees no key.
    blind_solve: bool = True

    def outline(self, plan: Plan, draft: Draft | None = None) -> Request:
        """Return the request for the outline of the whole scheme."""
        text = self._text("outline", lessons=str(plan.lessons), counts=_counts(plan), reach=_reach(plan))
        data = {
            "kind": "outline",
            "course": without_empty(self.course.to_json()),
            "lessons": plan.lessons,
            "plan": plan.to_json(),
        }
        most = OUTLINE_TOKENS + OUTLINE_TOKENS_EACH * plan.lessons
        return self._request([self._shared()], text, data, Outline, OUTLINE_SCHEMA, draft, most, apart=_COURSE)

    def entry(self, entries: Sequence[OutlineEntry], order: int, draft: Draft | None = None) -> Request:
        """Return the request for the details of one lesson of an outline."""
        entry = entries[order - 1]
        shared = {"entries": [other.model_dump(mode="json") for other in entries]}
        data = {"kind": "entry", "course": self._about([entry]), "order": order, **shared}
        scheme = self._text("scheme", scheme=_marked(shared))
        system = [self._shared(), Segment(scheme + "\n" + self.prompts["entry"], cache=True)]
        people, places = cast(order, region_of(self.course.to_json()))
        values = {"order": str(order), "people": ", ".join(people), "places": ", ".join(places)}
        # Prompts of earlier runs have no place for the names.
        known = {name: value for name, value in values.items() if name in fields_of(self.prompts["detail"])}
        text, most = self._text("detail", **known), MAX_TOKENS["entry"]
        return self._request(system, text, data, EntryDetails, ENTRY_SCHEMA, draft, most, apart=_COURSE | set(shared))

    def lesson(self, entries: Sequence[Entry], order: int, draft: Draft | None = None) -> Request:
        """Return the request for one lesson of a scheme."""
        entry = entries[order - 1]
        used = [other.model_dump(mode="json") for other in entries if other.order in entry.prerequisites]
        data = self._of(entry) | {"kind": "lesson", "entries": used}
        people, places = cast(order, region_of(self.course.to_json()))
        text = self._text(
            "task",
            order=str(order),
            lesson_type=entry.lesson_type,
            points=self._points(entry),
            people=", ".join(people),
            places=", ".join(places),
        )
        most = MOCK_TOKENS if entry.lesson_type == "mock_exam" else MAX_TOKENS["lesson"]
        return self._request(
            [self._author(entries)], text, data, AuthorReply, LESSON_SCHEMA, draft, most, apart=_COURSE
        )

    def correction(
        self, entries: Sequence[Entry], order: int, present: Mapping[str, Any], findings: Sequence[str],
        whole: Sequence[str] = (),
    ) -> Request:  # fmt: skip
        """Return the request for corrections of a lesson.

        Args:
            present: What may be changed, and what has to fit it, as it is now: address -> JSON.
            findings: One line each.
            whole: Addresses of questions that are to be written anew.
        """
        entry = entries[order - 1]
        anew = f"Write these questions anew, each as a whole: {', '.join(whole)}." if whole else ""
        text = self._text(
            "correction", order=str(order), points=self._points(entry), findings=_lines(findings), anew=anew
        )
        data = self._of(entry) | {
            "kind": "correction", "present": dict(present), "findings": list(findings), "whole": list(whole)
        }  # fmt: skip
        return self._request(
            [self._author(entries)], text, data, AuthorReply, CORRECTIONS_SCHEMA, None, MAX_TOKENS["correction"],
            apart=_COURSE | {"findings", "whole"},
        )  # fmt: skip

    def solve(self, questions: Sequence[Mapping[str, Any]], draft: Draft | None = None) -> Request:
        """Return the request for the answers to questions whose keys are not shown."""
        # Too short to be kept in a cache.
        system = [Segment(self.prompts["solver"])]
        data = {"kind": "solve", "questions": [dict(each) for each in questions]}
        most = MAX_TOKENS["solve"]
        return self._request(system, self.prompts["solve"], data, Solutions, BLIND_SCHEMA, draft, most)

    def critic(
        self, entry: Entry, lesson: Mapping[str, Any], facts: Sequence[str], former: Any = None,
        void: Sequence[str] = (),
    ) -> Request:  # fmt: skip
        """Return the request for one judgement; `former`: the form before, and what of it was void."""
        data = self._of(entry) | {"kind": "critic", "lesson": dict(lesson), "facts": list(facts)}
        if void:
            data |= {"former": former, "void": list(void)}
        again = "Your former form is in the task data under former. Fill in the whole form again; void was:\n"
        text = self._text(
            "review", order=str(entry.order), points=self._points(entry), facts=_lines(facts),
            again=f"{again}{_lines(void)}" if void else "",
        )  # fmt: skip
        system = [Segment(render("reviewer", self.prompts["reviewer"], self._frame()), cache=True)]
        apart = _COURSE | {"facts", "void"}
        return self._request(
            system, text, data, Critique, CRITIQUE_SCHEMA, None, MAX_TOKENS["critic"], apart=apart
        )  # fmt: skip

    def _of(self, entry: Entry) -> dict[str, Any]:
        return {"course": self._about([entry]), "entry": entry.model_dump(mode="json")}

    def _points(self, entry: OutlineEntry) -> str:
        """Return the points of an entry, numbered from 1, word for word."""
        known = {
            point.id: f"{point.text} ({'; '.join(point.skills)})" if point.skills else point.text
            for out in self.course.outcomes() for point in out.points
        }  # fmt: skip
        return "\n".join(f"{number}. {ref}: {known.get(ref, '')}" for number, ref in enumerate(entry.points, 1))

    def _request(
        self,
        system: Sequence[Segment],
        text: str,
        data: dict[str, Any],
        answer: type[BaseModel],
        schema: tuple[str, int],
        draft: Draft | None,
        max_tokens: int,
        apart: frozenset[str] = frozenset(),
    ) -> Request:
        """Return a request; keys of the data that are `apart` stand in the prompts already."""
        if data["kind"] in ("outline", "entry", "lesson"):
            data |= {"previous": draft.value if draft else None, "faults": list(draft.faults) if draft else []}
        if draft is not None:
            text = f"{text}\n{self._text('revision', faults=_lines(draft.faults))}"
        return Request(
            model=self.model,
            messages=(Message("user", f"{text}\n{_marked({key: data[key] for key in data if key not in apart})}"),),
            system=tuple(system),
            schema=_schema(answer),
            schema_id=schema[0],
            schema_version=schema[1],
            max_tokens=max_tokens,
            effort=self.effort,
            label=str(data["kind"]),
            data=data,
        )

    def _text(self, name: str, **values: str) -> str:
        return render(name, self.prompts[name], values)

    def _frame(self) -> dict[str, str]:
        course = self.course.to_json()
        return {"level": level_text(course, kind_of(course).unasked), "course": course_text(self.course)}

    def _author(self, entries: Iterable[OutlineEntry]) -> Segment:
        """Return what the author of every lesson reads, its corrections too."""
        prompt, values = self.prompts["author"], {**self._frame(), "scheme": _scheme_text(entries)}
        # Prompts of earlier runs hold their examples themselves.
        if "examples" in fields_of(prompt):
            values["examples"] = self.prompts[examples_of(self.course.subject)].strip()
        return Segment(render("author", prompt, values), cache=True)

    def _shared(self) -> Segment:
        return Segment(render("shared", self.prompts["shared"], self._frame()), cache=True)

    def _about(self, entries: Sequence[OutlineEntry]) -> dict[str, Any]:
        """Return the course cut to the outcomes that these entries name."""
        wanted = {ref for entry in entries for ref in (*entry.outcome_refs, *entry.cross_cutting)}
        full = self.course.to_json()
        groups = [
            {**group, "outcomes": [out for out in group["outcomes"] if out["id"] in wanted]} for group in full["groups"]
        ]
        names = ("id", "subject", "level", "title", "code", "course_id", "framework", "region", "age", "assessment")
        kept = {key: full[key] for key in names if key in full}
        cut: dict[str, Any] = without_empty({**kept, "groups": [group for group in groups if group["outcomes"]]})
        return cut


#: The catalogue stands in the system prompt, as text.
_COURSE = frozenset({"course"})


def _lines(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _scheme_text(entries: Iterable[OutlineEntry]) -> str:
    return "\n".join(f"{row.order}: {row.lesson_type}, {', '.join(row.points)}: {row.label}" for row in entries)


def without_empty(value: Any) -> Any:
    """Return a JSON value without its empty keys (null, "", []), which only cost tokens; False stays."""
    if isinstance(value, dict):
        kept = {key: without_empty(item) for key, item in value.items()}
        return {key: item for key, item in kept.items() if item is not None and item != "" and item != []}
    return [without_empty(item) for item in value] if isinstance(value, list) else value


def task_json(data: Mapping[str, Any]) -> str:
    """Return the data as they stand in the message: JSON with sorted keys; what UTF-8 cannot say is escaped."""
    text = json.dumps(data, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _marked(data: Mapping[str, Any]) -> str:
    return f"<task_data>\n{task_json(data)}\n</task_data>"


def course_text(course: Course) -> str:
    """Return the course as prompts show it: groups, outcomes and points with their ids."""
    _, level, _ = standing(course.to_json())
    lines = [", ".join(filter(None, (course.title, course.code, level or framework_of(course.to_json()).title))) + "."]
    for group in course.groups:
        lines += ["", _group_line(group)]
        for out in group.outcomes:
            lines.append(f"{out.id}: {out.title}")
            for point in out.points:
                skills = f" ({'; '.join(point.skills)})" if point.skills else ""
                lines.append(f"- {point.id}: {point.text}{skills}")
    parts = []
    for part in course.assessment.components:
        facts = part.model_dump(exclude_none=True, exclude={"id", "title"}, exclude_defaults=True)
        parts.append(f"- {part.id}: {part.title}; " + ", ".join(f"{key} {value}" for key, value in facts.items()))
    lines += ["", "Assessment:", *(parts or ["- not stated"])]
    return "\n".join([*lines, "", "Marking:", *(f"- {line}" for line in course.marking or ["not stated"])])


def _group_line(group: Group) -> str:
    notes = [group.kind.replace("_", " "), group.code]
    if group.weight:
        notes.append(f"{group.weight.min} to {group.weight.max} % of each paper")
    if group.cross_cutting:
        notes.append("cross-cutting")
    return f"## {group.title} ({', '.join(note for note in notes if note)})"


def _counts(plan: Plan) -> str:
    return ", ".join(f"{number} {kind}" for kind, number in plan.counts.items())


def _reach(plan: Plan) -> str:
    if not plan.not_covered:
        return "Every outcome of the course is taught, with all its points."
    return (
        f"So few lessons cannot reach the whole course. Teach all points of these outcomes, in this order, "
        f"and nothing of the others: {', '.join(plan.covered)}."
    )
