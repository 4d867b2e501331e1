"""Lessons as Markdown, and their answers apart."""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.export.base import Selection
from pipeline.publish import markdown


def files(chosen: Selection) -> Iterator[tuple[str, bytes]]:
    """Yield two files for each lesson."""
    for lesson in chosen.lessons:
        yield from markdown.files(chosen.view, lesson)
