"""What holds for every page: structure, labels, links, bytes, sizes; hostile text stays text."""

from __future__ import annotations

import json
import posixpath
import random
import re
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from pipeline.cli.text import for_stream
from pipeline.publish import site
from pipeline.publish.base import Bundle
from pipeline.publish.page import frame
from pipeline.publish.view import CourseView
from pipeline.records.redaction import printable, visible
from tests import publishing
from tests.pages import Element, read
from tests.sites import SITES, TREES, scored


def every_page(check: Callable[[Element], None]) -> Callable[[], None]:
    """Make a test of a check: every page of every site passes it."""

    def test() -> None:
        for place, page in TREES.items():
            try:
                check(page)
            except AssertionError as error:
                error.add_note(f"on the page {place}")
                raise

    test.check = check  # type: ignore[attr-defined]
    return test


@every_page
def test_page_has_one_h1_and_skips_no_level(page: Element) -> None:
    levels = [int(heading.tag[1]) for heading in page.all("h1", "h2", "h3", "h4", "h5", "h6")]
    assert levels.count(1) == 1
    assert levels[0] in (1, 2)
    assert all(after <= before + 1 for before, after in pairwise(levels))


@every_page
def test_page_has_its_landmarks_labelled(page: Element) -> None:
    for tag in ("header", "main", "footer"):
        page.one(tag)
    labels = [nav.attributes.get("aria-label") or nav.attributes.get("aria-labelledby") for nav in page.all("nav")]
    assert labels
    assert all(labels)
    assert len(labels) == len(set(labels))
    assert all(aside.attributes.get("aria-label") for aside in page.all("aside"))


@every_page
def test_page_labels_every_section_by_its_own_heading(page: Element) -> None:
    for section in page.all("section"):
        name = section.attributes["aria-labelledby"]
        assert name in {heading.attributes.get("id") for heading in section.all("h2", "h3")}


@every_page
def test_page_is_british_english_begins_with_a_skip_link_and_names_only_ids_that_exist(page: Element) -> None:
    assert page.one("html").attributes["lang"] == "en-GB"
    assert next(page.one("body").all("a")).attributes["href"] == "#main"
    assert page.one("main").attributes["id"] == "main"
    ids = [element.attributes["id"] for element in page.all() if "id" in element.attributes]
    assert len(ids) == len(set(ids))
    for element in page.all():
        for name in ("aria-labelledby", "aria-describedby"):
            assert set(element.attributes.get(name, "").split()) <= set(ids)


@every_page
def test_page_gives_tables_captions_and_scopes_and_words_to_links_drawings_and_what_scrolls(page: Element) -> None:
    for table in page.all("table"):
        assert table.one("caption").text.strip()
        assert all(cell.attributes.get("scope") and cell.text.strip() for cell in table.all("th"))
    assert all(link.text.strip() for link in page.all("a"))
    for drawing in page.all("svg"):
        if drawing.attributes.get("aria-hidden") != "true":
            assert drawing.attributes["role"] == "img"
            assert drawing.one("title").text.strip()
    for element in page.all():
        if element.attributes.get("tabindex") == "0":
            assert element.attributes.get("role")
            assert element.attributes.get("aria-label")


@every_page
def test_page_runs_and_fetches_nothing(page: Element) -> None:
    forbidden = {"script", "img", "iframe", "object", "embed", "form", "base", "video", "audio", "source", "input"}
    for element in page.all():
        assert element.tag not in forbidden
        assert not any(name.startswith("on") or name == "style" for name in element.attributes)
        for name in ("href", "src"):
            assert not re.match(r"[a-z]+:|/", element.attributes.get(name, ""), re.IGNORECASE)
    policy = next(m for m in page.all("meta") if m.attributes.get("http-equiv") == "Content-Security-Policy")
    assert policy.attributes["content"].startswith("default-src 'none'; style-src 'self' 'sha256-")


@pytest.mark.parametrize("name", SITES)
def test_site_links_lead_to_places_that_exist_and_reach_every_page_from_the_index(name: str) -> None:
    files = SITES[name]
    trees = {path: read(data) for path, data in files.items() if path.endswith(".html")}
    places = {path: {e.attributes.get("id") for e in tree.all()} for path, tree in trees.items()}
    leads: dict[str, set[str]] = {}
    for path, tree in trees.items():
        for element in tree.all("a", "link"):
            target, _, place = element.attributes["href"].partition("#")
            found = posixpath.normpath(posixpath.join(posixpath.dirname(path), target)) if target else path
            assert found in files, f"{path} links to {found}"
            assert not place or place in places[found], f"{path} links to {found}#{place}"
            leads.setdefault(path, set()).add(found)
    reached, before = {"index.html"}, set[str]()
    while reached != before:
        before = reached
        reached = reached.union(*(leads.get(path, ()) for path in reached))
    assert reached == {*trees, "site.css"}


def test_site_marks_the_current_page_in_the_navigation() -> None:
    for path, name in (("index.html", "Topics"), ("scheme.html", "Scheme"), ("about.html", "About")):
        current = [e for e in read(SITES["model"][path]).all("a") if e.attributes.get("aria-current") == "page"]
        assert [e.text for e in current] == [name]


# --- bytes ---------------------------------------------------------------------------------------


def shuffled(value: Any, chance: random.Random) -> Any:
    """The same JSON with its keys in another order."""
    if isinstance(value, dict):
        keys = list(value)
        chance.shuffle(keys)
        return {key: shuffled(value[key], chance) for key in keys}
    return [shuffled(one, chance) for one in value] if isinstance(value, list) else value


def test_site_is_the_same_bytes_again_whatever_the_order_of_keys() -> None:
    bundle, chance = publishing.bundle(failed=True), random.Random(7)
    mixed = {
        name: shuffled(getattr(bundle, name), chance) for name in ("course", "scheme", "lessons", "failed", "about")
    }
    assert site.build(replace(bundle, **{**mixed, "lessons": mixed["lessons"][::-1]})) == site.build(bundle)


def test_site_keeps_its_sizes() -> None:
    long_course = CourseView(publishing.bundle(lessons=110))
    index = frame(long_course, site.index(long_course))
    files = SITES["scored"]
    assert index.count(b"lessons/") == 110
    assert len(index) <= 100_000
    assert len(files["site.css"]) <= 16_000
    assert max(len(data) for path, data in files.items() if path.startswith("lessons/")) <= 60_000
    drawings = re.findall(rb"<svg.*?</svg>", b"".join(files.values()), re.DOTALL)
    assert drawings
    assert max(len(drawing) for drawing in drawings) <= 8_000


# --- hostile text --------------------------------------------------------------------------------

_STRUCTURE = frozenset(
    {"id", "kind", "order", "lesson_type", "outcome_refs", "cross_cutting", "card", "items", "ref", "misconceptions",
     "label", "calculator", "prior", "key_points", "author", "column"}
)  # fmt: skip


def test_site_escapes_everything_from_a_model_or_a_catalogue() -> None:
    bundle = scored()
    parts = (bundle.course, bundle.scheme, list(bundle.lessons), bundle.about)
    course, scheme, lessons, about = (publishing.poisoned(part, _STRUCTURE) for part in parts)
    failed = [{"order": 4, "label": publishing.HOSTILE, "reason": publishing.HOSTILE}]
    files = site.build(Bundle(bundle.name, course, scheme, lessons, failed, about, bundle.draft))
    for path, data in files.items():
        if path.endswith(".html"):
            source = data.decode("utf-8")
            test_page_runs_and_fetches_nothing.check(read(data))  # type: ignore[attr-defined]
            assert "<script" not in source
            assert source.count("</style>") == 1
            assert "\x00" not in source
            assert "alert(1)" in source
    assert all(re.fullmatch(r"[a-z0-9._/-]+", path) for path in files)


HIDDEN = "\u202e\u2066\u200b\u2060\ufeff\u00ad\u2028\u2029\u061c\u200d\U000e0041\ufff9\u3164"
LINKS = (
    "[x](javascript:alert(1)) ![y](//host/a.png) [z](data:text/html,x) [x\\](javascript:1) [x\\\\](javascript:2) "
    "[a][b]\n[b]: javascript:3\n<javascript:4> \\(\\href{javascript:5}{x}\\) \\(x^2\\) "
    "` \\(\\href{1}{x}[x](//host) http://host\\) \\([x](//host)\\) \\([x][b]\\) "
    "http://host/x HTTPS://host ftp://host www.host.com mailto:me@host.com me@host.com"
)
KEPT = "naïve −5 × ½ e\u0301 £2 “q” שלום 👨\u200d👩 می\u200cخواهم \u202f[1, 2)"


def spoilt(value: Any) -> Any:
    """The value with the text in every sentence of it."""
    if isinstance(value, dict):
        return {key: spoilt(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [spoilt(item) for item in value]
    return f"{value} {HIDDEN}{LINKS} {KEPT}" if isinstance(value, str) and " " in value else value


def test_no_published_file_holds_a_link_or_a_hidden_character_of_the_model() -> None:
    bundle = publishing.bundle(lessons=2)
    files = site.build(replace(bundle, lessons=spoilt(bundle.lessons), scheme=spoilt(bundle.scheme)))
    hidden = re.compile(f"[{HIDDEN.replace(chr(0x200D), '')}]")
    for name, data in files.items():
        text = data.decode()
        text = json.dumps(json.loads(text), ensure_ascii=False) if name.endswith(".json") else text
        assert not hidden.search(text), name
        if name.endswith(".md"):
            for pattern in (r"\](\(|\[|:)", r"<javascript", r"\w://|www\.|mailto:|\w@\w", r"\\\(\\href"):
                assert not re.search(pattern, text, re.IGNORECASE), (name, pattern)
            assert "$x^2$" in text
            assert "−5 × ½" in text
        if name.endswith(".html"):
            assert not re.search(r"(href|src)=\"(?!\.\./|[a-z0-9#]|\")", text, re.IGNORECASE), name


def test_text_that_people_read_passes_as_it_is_and_a_terminal_gets_no_commands() -> None:
    for text in (KEPT, "plain", "x² − 3x ≤ 4", "Ελληνικά", "日本語", "👩🏽‍🔬", "נִקּוּד", "हिन्दी"):
        assert visible(text) == printable(text) == for_stream(text, ascii_only=False) == text
    assert for_stream(f"a\x1b[31m\r\x9b{HIDDEN}b\tc\nd", ascii_only=False) == "a[31m  b\tc\nd"
