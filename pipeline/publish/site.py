"""The files of a published course: pages, style sheet, data; the same bundle gives the same bytes."""

from __future__ import annotations

from importlib.resources import files

from pipeline.publish import about_page, answers_page, data, index_page, lesson_page, scheme_page
from pipeline.publish.base import Bundle
from pipeline.publish.page import Page, frame
from pipeline.publish.view import CourseView

STYLE = "site.css"


def build(bundle: Bundle) -> dict[str, bytes]:
    """{path below the published folder: bytes}; the manifest is not among them."""
    view = CourseView(bundle)
    made = {page.path: frame(view, page) for page in pages(view)}
    made[STYLE] = files("pipeline.publish").joinpath(STYLE).read_bytes()
    made.update(data.build(view))
    return made


def pages(view: CourseView) -> list[Page]:
    """Every page of the course."""
    lessons = [
        page for lesson in view.lessons for page in (lesson_page.build(view, lesson), answers_page.build(view, lesson))
    ]
    return [index_page.build(view), scheme_page.build(view), about_page.build(view), answers_page.index(view), *lessons]
