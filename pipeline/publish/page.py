"""The frame of every page: head, draft banner, navigation, landmarks, footer."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import dataclass

from pipeline.html import Html, clean, el, section
from pipeline.publish.base import Download
from pipeline.publish.view import CourseView

INDEX, SCHEME, ABOUT = "index.html", "scheme.html", "about.html"
NAV = ((INDEX, "Topics"), (SCHEME, "Scheme"), ("answers/index.html", "Answers"), (ABOUT, "About"))

#: Folder of the files to take away.
DOWNLOADS = "downloads"


@dataclass(frozen=True)
class Page:
    """One page before it is framed."""

    #: Path below the published folder.
    path: str
    title: str
    body: Html
    #: For teachers, or a draft: search engines stay away.
    hidden: bool = False
    #: The text at the foot of each printed sheet.
    foot: str = ""


def link(page: str, target: str) -> str:
    """Return a relative link from one page's path to another's ("lessons/01-a.html#q1")."""
    return ("../" if "/" in page else "") + target


def downloads(view: CourseView, page: str, lesson: int, *, for_teacher: bool) -> Html | None:
    """Return links to a lesson's files to take away, or of the whole course (0), where it was published with any."""
    found = [each for each in view.bundle.downloads if (each.lesson, each.for_teacher) == (lesson, for_teacher)]
    rows = [el("li", el("a", _words(each), href=link(page, f"{DOWNLOADS}/{each.path}"))) for each in found]
    return section("downloads", "To take away", el("ul", rows), cls="downloads") if rows else None


def _words(file: Download) -> str:
    """Return what a file is, its format and its size: "Core worksheet (docx, 37 KB)"."""
    size = max(1, round(len(file.data) / 1000))
    return f"{file.label[:1].upper()}{file.label[1:]} ({file.path.partition('/')[0]}, {size}\u202fKB)"


def frame(view: CourseView, page: Page) -> bytes:
    """Return the page as UTF-8 HTML."""
    whole = el("html", _head(view, page), _body(view, page), lang=view.region.language)
    return f"<!DOCTYPE html>\n{whole}\n".encode()


def _head(view: CourseView, page: Page) -> Html:
    draft = view.bundle.draft
    title = page.title if page.title == view.title else f"{page.title} – {view.title}"
    foot = page.foot or f"{view.title}. {page.title}" if page.title != view.title else view.title
    foot += ". Draft." if draft else "."
    rule = f'@page{{@bottom-left{{content:"{_css_text(foot)}";font:9pt sans-serif}}}}'
    digest = base64.b64encode(hashlib.sha256(rule.encode()).digest()).decode("ascii")
    policy = (
        f"default-src 'none'; style-src 'self' 'sha256-{digest}'; img-src 'self'; base-uri 'none'; form-action 'none'"
    )
    return el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=policy),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="robots", content="noindex") if draft or page.hidden else None,
        el("title", f"Draft: {title}" if draft else title),
        el("link", rel="stylesheet", href=link(page.path, "site.css")),
        el("style", Html(rule)),
    )


def _css_text(value: str) -> str:
    """Return words inside a quoted CSS string: all but plain letters, digits and spaces is escaped by number.

    The space after an escape ends it and is not shown.
    """
    return re.sub(r"[^A-Za-z0-9 ]", lambda match: f"\\{ord(match[0]):x} ", clean(value).replace("\n", " "))


def _body(view: CourseView, page: Page) -> Html:
    items = [
        el(
            "li",
            el("a", view.region.said(name), href=link(page.path, to), aria_current="page" if page.path == to else None),
        )
        for to, name in NAV
    ]
    home = el("a", view.title, href=link(page.path, INDEX), cls="home")
    menu = el("nav", el("ul", items), aria_label="Course")
    about = el("a", "About this course", href=link(page.path, ABOUT))
    return el(
        "body",
        el("a", "Skip to the content", href="#main", cls="skip"),
        _banner(view) if view.bundle.draft else None,
        el("header", el("div", home, menu, cls="wrap"), cls="top"),
        el("main", el("div", page.body, cls="wrap"), id="main", tabindex="-1"),
        el("footer", el("div", el("p", by_line(view), " ", about, "."), cls="wrap"), cls="end"),
    )


def _banner(view: CourseView) -> Html:
    words = f"made without a model and {view.readers}. Check it before you use it with a class."
    said = el("p", el("strong", "Offline draft:"), f" {words}", cls="wrap")
    return el("div", said, cls="draft", role="region", aria_label="Draft notice")


def by_line(view: CourseView) -> str:
    """Return who wrote the course and who has read it, in one or two sentences."""
    about = view.bundle.about
    author = "the offline author, without a model" if view.offline else str(about.get("model") or "a model")
    if view.signed:
        return f"Written by {author}; reviewed by {view.signed}."
    if view.reviewed:
        some = f"a person reviewed {view.reviewed} of {len(view.lessons)} lessons"
        return f"Written by {author}. Code checked what code can check; {some}."
    if not view.scored:
        return f"Written by {author}. Nobody has read it: code checked what code can check."
    return f"Written by {author}. Code checked what code can check, a critic model scored it; no teacher has read it."
