"""From the data of a page to its HTML: the templates, what they may call, and what stands around every page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from pipeline.app import words
from pipeline.app.run_list import GONE
from pipeline.app.run_trail import UNWRITTEN
from pipeline.environment import typed
from pipeline.records.redaction import visible
from pipeline.records.statuses import COMPLETED, FAILED, PENDING, SKIPPED
from pipeline.ui.pages import url_to

FOLDER = Path(__file__).resolve().parent
#: The pages that every page links to, where there is one: path, word.
NAVIGATION = (("", "Runs"), ("new", "New run"), ("costs", "Costs"), ("review", "Review"), ("questions", "Questions"))

#: How a status is drawn, colour only repeats it: word → (symbol of the sprite, class). Any other word is pending.
_SHAPES: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys((COMPLETED, "approved", "agrees"), ("s-done", "st-done")),
    **dict.fromkeys(("reused", "edited", "read from cache"), ("s-reused", "st-done")),
    "running": ("s-run", "st-run"),
    **dict.fromkeys((PENDING, "to review"), ("s-pending", "st-idle")),
    "waits for a person": ("s-wait", "st-wait"),
    **dict.fromkeys(("finding", "severe", "outcome unknown"), ("s-wait", "st-fail")),
    "waits for a batch": ("s-batch", "st-wait"),
    **dict.fromkeys((FAILED, "conflict", "cannot be read"), ("s-failed", "st-fail")),
    **dict.fromkeys((GONE, "connection lost"), ("s-gone", "st-fail")),
    **dict.fromkeys(("interrupted", "cut off", "begun", "stopped as asked"), ("s-paused", "st-idle")),
    **dict.fromkeys(
        ("stopped at the ceiling", "paused by a rate limit", "stopped by the account's limit"), ("s-paused", "st-fail")
    ),
    **dict.fromkeys((SKIPPED, UNWRITTEN), ("s-skipped", "st-idle")),
}


@dataclass(frozen=True)
class Here:
    """Where a page is shown: `here` in its template."""

    #: Its path below the root, and its query.
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    #: Who is at the desk; "": not known.
    by: str = ""
    #: The paths that there are of NAVIGATION.
    pages: frozenset[str] = frozenset()
    #: When a copy was written, as people read it; "": it is no copy, and its buttons work.
    copied: str = ""
    #: Turns a path below the root and a query into a URL of this page.
    link: Callable[[str, Mapping[str, Any]], str] | None = None

    def url(self, path: str = "", **query: Any) -> str:
        """Return the URL of a path below the root; `url` in templates."""
        return self.link(path, query) if self.link else url_to(path, query, here=self.path)

    def static(self, name: str) -> str:
        """Return the URL of a file of the desk's own."""
        return url_to(f"static/{name}", here=self.path)

    @property
    def navigation(self) -> Iterator[tuple[str, str, bool]]:
        """Return the links at the top of the page: path, word, whether the page belongs there."""
        for path, word in NAVIGATION:
            if path in self.pages:
                yield path, word, self._current == path

    @property
    def places(self) -> Iterator[tuple[str, str, str]]:
        """Return the pages that keys lead to: key, path, word."""
        for path, word in NAVIGATION:
            if path in self.pages:
                yield word[0].lower() if path != "review" else "v", path, word

    @property
    def _current(self) -> str:
        first, _, rest = self.path.partition("/")
        if first == "runs":
            return "review" if "/review" in f"/{rest}" and "review" in self.pages else ""
        return first


@cache
def environment() -> Environment:
    """Return the templates: everything that they print is escaped."""
    found = Environment(
        loader=FileSystemLoader(FOLDER / "templates"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, finalize=_printed,
    )  # fmt: skip
    found.filters.update(
        money=_money, upper=_upper, when=_when, duration=_duration, count=words.count, size=words.size,
        one_line=words.one_line,
    )  # fmt: skip
    found.globals.update(shape_of=_shape_of)
    return found


def compile_templates() -> None:
    """Compile every template, which takes longer than any page."""
    for name in environment().list_templates(extensions=["html"]):
        environment().get_template(name)


def _printed(value: Any) -> Any:
    """Return what a template prints: nothing for None, and no character that changes what stands around it."""
    return "" if value is None else visible(value) if type(value) is str else value


def render(template: str, data: Mapping[str, Any], here: Here, **more: Any) -> str:
    """Return the HTML of a template."""
    known = {"url": here.url, "here": here, "error": None, "form": {}, "live": None, **data, **more}
    return typed(environment().get_template(template).render(known))


def _shape_of(word: str) -> tuple[str, str]:
    """Return the symbol and the class of a status word."""
    return _SHAPES.get(word, ("s-pending", "st-idle"))


def _money(usd: Any) -> str:
    """Return $1.32, under a cent four decimals; nothing where nothing is known."""
    return "" if usd is None or usd == "" else words.money(usd)


def _upper(usd: Any) -> str:
    """Return "to $2.62"; nothing where no more is possible."""
    return f"to {_money(usd)}" if usd else ""


def _when(moment: Any) -> str:
    """Return a recorded time as `2026-01-09 14:30:22`, in UTC."""
    return words.when(moment) if moment else ""


def _duration(seconds: float | None) -> str:
    """Return seconds for people: 3 s, 4 min 47 s, 1 h 12 min."""
    return "" if seconds is None else words.duration(seconds)
