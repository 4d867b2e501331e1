"""The same course for tools: JSON beside the pages, and Markdown for editors."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pipeline.html import clean
from pipeline.publish import markdown
from pipeline.publish.view import CourseView, LessonView

#: Version of the lessons in data/: of their schema, and raised with it.
_VERSION = 2


def build(view: CourseView) -> dict[str, bytes]:
    """Return {path: bytes} of data/ and markdown/."""
    bundle = view.bundle
    files: dict[str, bytes] = {
        "data/course.json": _json(bundle.course),
        "data/scheme.json": _json(bundle.scheme),
        "data/about.json": _json(
            {
                "course": bundle.name,
                "draft": bundle.draft,
                "about": bundle.about,
                "failed": list(bundle.failed),
                "sign_off": bundle.about.get("sign_off"),
            }
        ),
    }
    for lesson in view.lessons:
        files[f"data/{lesson.file}.json"] = _json(_record(lesson))
        files.update({f"markdown/{name}": text for name, text in markdown.files(view, lesson)})
    return files


def _json(value: object) -> bytes:
    return (json.dumps(_cleaned(value), indent=1, sort_keys=True, ensure_ascii=True) + "\n").encode("ascii")


def _cleaned(value: object) -> object:
    """Return the value with every text in it as pages show it."""
    if isinstance(value, Mapping):
        return {clean(key): _cleaned(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_cleaned(item) for item in value]
    return clean(value) if isinstance(value, str) else value


def _record(lesson: LessonView) -> dict[str, Any]:
    """Return the lesson with its entry, what code and critic found, and its questions as pages show them."""
    shown = [
        {"number": question.number, "address": question.address, "marks": question.marks, "checked": question.checked}
        | ({"key": question.key.letter} if question.key else {})
        for question in lesson.questions
    ]
    stored = {"lesson": lesson.lesson, "checks": lesson.checks, "critic": lesson.critic}
    stored |= {"review": lesson.review} if lesson.review else {}
    return {"schema": _VERSION, "order": lesson.order, "entry": lesson.entry, **stored, "questions": shown}
