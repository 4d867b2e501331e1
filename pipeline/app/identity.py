"""What a course is made from: the settings that decide the work, and the texts a run of it is pinned to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeline.app.start import author_kind
from pipeline.settings import LessonsOptions

if TYPE_CHECKING:
    from pipeline.lessons.course import Course


def identity_of(options: LessonsOptions, model: str, course: Course) -> tuple[dict[str, Any], dict[str, Any]]:
    """What decides the work, and the texts it is pinned to."""
    from pipeline.lessons.prompts import load_prompts
    from pipeline.records.values import value_hash

    prompts = load_prompts()
    pins: dict[str, Any] = {f"prompt:{name}": text for name, text in prompts.items()}
    pins["catalogue"] = course.to_json()
    identity = {
        "author": author_kind(model),
        "model": model,
        "effort": options.effort,
        "lessons": options.lessons,
        "catalogue": course.content_hash(),
        "prompts": value_hash(prompts),
    }
    return identity, pins
