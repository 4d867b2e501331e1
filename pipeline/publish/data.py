"""The same course for tools: JSON beside the pages, and Markdown for editors."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from pipeline.html import clean
from pipeline.publish import markdown
from pipeline.publish.view import CourseView, LessonView

#: Version of the lessons in data/: of their schema, and raised with it.
_VERSION = 2
#: JSON Schemas of the files in data/; made from the models by tests/data_schemas.py.
SCHEMAS = ("about", "course", "lesson", "scheme")
_SCHEMAS = files("pipeline.publish").joinpath("schema")


def build(view: CourseView) -> dict[str, bytes]:
    """Return {path: bytes} of data/ and markdown/."""
    bundle = view.bundle
    about = {
        "course": bundle.name,
        "draft": bundle.draft,
        **view.rights,
        "about": bundle.about,
        "failed": list(bundle.failed),
        "sign_off": bundle.about.get("sign_off"),
    }
    made = {f"data/schema/{name}.json": _SCHEMAS.joinpath(f"{name}.json").read_bytes() for name in SCHEMAS}
    made |= {
        "data/course.json": _json("course", bundle.course),
        "data/scheme.json": _json("scheme", bundle.scheme),
        "data/about.json": _json("about", about),
    }
    for lesson in view.lessons:
        made[f"data/{lesson.file}.json"] = _json("lesson", _record(lesson))
        made.update({f"markdown/{name}": text for name, text in markdown.files(view, lesson)})
    return made


def _json(schema: str, value: Mapping[str, Any]) -> bytes:
    made = _cleaned({**value, "$schema": f"schema/{schema}.json"})
    return (json.dumps(made, indent=1, sort_keys=True, ensure_ascii=True) + "\n").encode("ascii")


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
