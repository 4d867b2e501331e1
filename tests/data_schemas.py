"""The published JSON Schemas of a course's data, from the models: python -m tests.data_schemas."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from pipeline.content.lesson import Lesson
from pipeline.lessons.course import Course
from pipeline.lessons.schemas import Entry, Scheme
from pipeline.publish.questions import SENTENCES

FOLDER = Path(__file__).resolve().parents[1] / "pipeline/publish/schema"
_DIALECT = "https://json-schema.org/draft/2020-12/schema"
#: What holds authors to a size or a wording; readers need not rely on it, and a person's edit may pass it.
_LIMITS = frozenset({"minLength", "maxLength", "minItems", "maxItems", "minimum", "maximum", "pattern", "title"})
_TEXT, _ANY = {"type": "string"}, {"type": "object"}
_REFERENCE = {"$schema": {"type": "string", "description": "the schema of this file, below the folder of the file"}}


def _shape(node: Any) -> Any:
    """Return a schema without limits."""
    if isinstance(node, Mapping):
        return {key: _properties(value) if key in ("properties", "$defs") else _shape(value)
                for key, value in node.items() if key not in _LIMITS}  # fmt: skip
    return [_shape(each) for each in node] if isinstance(node, list) else node


def _properties(table: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _shape(node) for name, node in table.items()}


def _model(model: type[BaseModel], title: str) -> dict[str, Any]:
    made = _shape(model.model_json_schema())
    made["properties"] = _REFERENCE | made["properties"]
    return {"$schema": _DIALECT, "title": title, **made}


def _object(title: str, description: str, **properties: Any) -> dict[str, Any]:
    return {
        "$schema": _DIALECT, "title": title, "description": description, "type": "object",
        "additionalProperties": False, "properties": _REFERENCE | properties,
        "required": ["$schema", *(name for name, node in properties.items() if not node.pop("optional", False))],
    }  # fmt: skip


def _by_address(description: str, values: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "description": description, "additionalProperties": values}


def _lesson() -> dict[str, Any]:
    parts = {model.__name__: _shape(model.model_json_schema()) for model in (Lesson, Entry)}
    inner = {name: node for part in parts.values() for name, node in part.pop("$defs", {}).items()}
    where = "address of a question: c4.q2 is the second of the fourth card"
    made = _object(
        "Lesson",
        "A lesson: what was written, its place in the scheme of work, and what code and critic found of it.",
        schema={"const": 2, "description": "version of the lesson's form"},
        order={"type": "integer", "description": "place in the scheme of work, from 1"},
        entry={"$ref": "#/$defs/Entry", "description": "its entry in the scheme of work"},
        lesson={"$ref": "#/$defs/Lesson", "description": "what was written; the right option stands first"},
        checks={
            "type": "object",
            "description": "what code found",
            "properties": {
                "warnings": {"type": "array", "description": "findings that did not stop the lesson"},
                "by": _by_address(f"how the answer was checked, by {where}", {"enum": list(SENTENCES)}),
                "wrong": _by_address("value of a wrong answer, by its address", _TEXT),
                "blind": _by_address("what a second solver found, by address", {"enum": ["agreed", "differs"]}),
            },
        },
        critic={"type": ["object", "null"], "description": "scores and findings of the critic; null: none was asked"},
        review={
            **_ANY, "description": "who approved or edited it: by (names), edited", "optional": True,
        },
        questions={
            "type": "array",
            "description": "its questions as pages number them",
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["number", "address", "marks", "checked"],
                "properties": {
                    "number": {"type": "integer"},
                    "address": {**_TEXT, "description": where},
                    "marks": {"type": "integer"},
                    "checked": {"enum": list(SENTENCES), "description": "how its answer was checked"},
                    "key": {**_TEXT, "description": "letter of the right option, as pages order them"},
                },
            },
        },
    )  # fmt: skip
    return made | {"$defs": inner | parts}


def schemas() -> dict[str, str]:
    """Return file name → text."""
    about = _object(
        "About",
        "Who made the course, and what it may be used for.",
        course={**_TEXT, "description": "name of the published folder"},
        draft={"type": "boolean", "description": "made without a model"},
        licence={**_TEXT, "description": 'as the course file names it, or "not stated"'},
        attribution={**_TEXT, "description": 'as the course file names it, or "not stated"'},
        about={**_ANY, "description": "author, model, critic, effort, hashes of prompts and course file"},
        failed={"type": "array", "description": "lessons that are not there: order, label, reason", "items": _ANY},
        sign_off={"type": ["object", "null"], "description": "name: who has read all of it; changes"},
    )
    made = {
        "course": _model(Course, "Course"), "scheme": _model(Scheme, "Scheme of work"), "lesson": _lesson(),
        "about": about,
    }  # fmt: skip
    return {f"{name}.json": json.dumps(each, indent=1, ensure_ascii=True) + "\n" for name, each in made.items()}


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, text in schemas().items():
        (FOLDER / name).write_text(text, encoding="ascii")
