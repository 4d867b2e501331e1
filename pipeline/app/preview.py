"""One lesson as pupils see it, in a single document for a frame: the published page with its style, and no way out."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from pipeline.content.lesson_reader import tidy
from pipeline.errors import ConfigError
from pipeline.frameworks import region_of
from pipeline.html import Html, el
from pipeline.lessons.earlier import current
from pipeline.llm.answers import json_in
from pipeline.publish import answers_page, lesson_page
from pipeline.publish.base import Bundle
from pipeline.publish.site import STYLE
from pipeline.publish.view import CourseView
from pipeline.records.run import RunState
from pipeline.store.base import Store
from pipeline.travel.values import Reader

#: What leads to other pages is not shown; a question that a link names stands out.
_OWN = ".pager, .go { display: none } .q:target { outline: 2px solid; outline-offset: .4rem }"
#: What reading a lesson that is none may raise.
_SENSELESS = (LookupError, TypeError, ValueError, AttributeError)


@dataclass(frozen=True)
class Preview:
    """A document, and the policy that it is to be sent with: no script, nothing from elsewhere, framed by us alone."""

    html: str
    policy: str


def preview(store: Store, state: RunState, row: Mapping[str, Any], *, answers: bool = False) -> Preview:
    """Return a lesson of a run's course.

    Args:
        answers: Its answers, as the teacher sees them.
        row: As lessons are recorded: {"order", "lesson"} and, where they are known, "schema", "checks", "critic".

    Raises:
        ConfigError: It is no lesson of the run's scheme of work.
        CheckpointCorrupt: The run's course cannot be read.
    """
    reader = Reader(store, state.run_id)
    try:
        scheme = reader.blob(state.steps["sow#1"].artifacts["scheme"])
        entry = next(each for each in scheme["entries"] if each["order"] == row["order"])
        whole = {"checks": {"warnings": []}, "critic": None, **row}
        lesson = current({**whole, "lesson": tidy(row["lesson"])}, entry)
        course = reader.blob(state.pins["catalogue"])
        view = CourseView(Bundle("preview", course, scheme, [lesson], about={"author": "model"}))
        shown = view.lessons[0]
        page = answers_page.build(view, shown, alone=True) if answers else lesson_page.build(view, shown)
    except (*_SENSELESS, StopIteration) as error:
        raise ConfigError("This is no lesson that a page can show.", code="no_lesson") from error
    style, policy = _style()
    head = el("head", el("meta", charset="utf-8"), el("title", page.title), el("style", Html(style)))
    body = el("body", el("main", el("div", page.body, cls="wrap"), id="main"))
    page_html = el("html", head, body, lang=region_of(course).language)
    return Preview(f"<!DOCTYPE html>\n{page_html}\n", policy)


def lesson_in(text: str) -> Mapping[str, Any] | None:
    """Return the lesson that a reply holds; None where it holds none."""
    try:
        found = json_in(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and isinstance(found.get("cards"), list) else None


@cache
def _style() -> tuple[str, str]:
    """Return the style of published pages, and the policy that allows it alone."""
    text = files("pipeline.publish").joinpath(STYLE).read_text(encoding="utf-8") + _OWN
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")
    rules = ("default-src 'none'", f"style-src 'sha256-{digest}'", "base-uri 'none'", "form-action 'none'",
             "frame-ancestors 'self'", "sandbox")  # fmt: skip
    return text, "; ".join(rules)
