"""What holds for every page: structure, labels, links, bytes, sizes; hostile text stays text."""

from __future__ import annotations

import posixpath
import random
import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from pipeline.publish import site
from pipeline.publish.base import Bundle
from pipeline.publish.page import frame
from pipeline.publish.view import CourseView
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
def test_page_begins_with_a_skip_link_to_main(page: Element) -> None:
    first = next(page.one("body").all("a"))
    assert first.attributes["href"] == "#main"
    assert page.one("main").attributes["id"] == "main"


@every_page
def test_page_is_british_english_and_has_unique_ids(page: Element) -> None:
    assert page.one("html").attributes["lang"] == "en-GB"
    ids = [element.attributes["id"] for element in page.all() if "id" in element.attributes]
    assert len(ids) == len(set(ids))


@every_page
def test_page_references_only_ids_that_exist(page: Element) -> None:
    ids = {element.attributes.get("id") for element in page.all()}
    for element in page.all():
        for name in ("aria-labelledby", "aria-describedby"):
            assert set(element.attributes.get(name, "").split()) <= ids


@every_page
def test_page_gives_every_table_a_caption_and_scopes(page: Element) -> None:
    for table in page.all("table"):
        assert table.one("caption").text.strip()
        assert all(cell.attributes.get("scope") for cell in table.all("th"))
        assert all(cell.text.strip() for cell in table.all("th"))


@every_page
def test_page_gives_every_link_words(page: Element) -> None:
    assert all(link.text.strip() for link in page.all("a"))


@every_page
def test_page_labels_drawings_or_hides_them(page: Element) -> None:
    for drawing in page.all("svg"):
        if drawing.attributes.get("aria-hidden") != "true":
            assert drawing.attributes["role"] == "img"
            assert drawing.one("title").text.strip()


@every_page
def test_page_labels_what_takes_the_focus_to_scroll(page: Element) -> None:
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
def test_site_links_lead_to_pages_and_places_that_exist(name: str) -> None:
    files = SITES[name]
    trees = {path: read(data) for path, data in files.items() if path.endswith(".html")}
    places = {path: {e.attributes.get("id") for e in tree.all()} for path, tree in trees.items()}
    links = 0
    for path, tree in trees.items():
        for element in tree.all("a", "link"):
            target, _, place = element.attributes["href"].partition("#")
            found = posixpath.normpath(posixpath.join(posixpath.dirname(path), target)) if target else path
            assert found in files, f"{path} links to {found}"
            assert not place or place in places[found], f"{path} links to {found}#{place}"
            links += 1
    assert links > len(trees)


@pytest.mark.parametrize("name", SITES)
def test_site_reaches_every_page_from_the_index(name: str) -> None:
    trees = {path: read(data) for path, data in SITES[name].items() if path.endswith(".html")}
    reached, open_pages = {"index.html"}, ["index.html"]
    while open_pages:
        path = open_pages.pop()
        for element in trees[path].all("a"):
            target = element.attributes["href"].partition("#")[0]
            found = posixpath.normpath(posixpath.join(posixpath.dirname(path), target)) if target else path
            if found not in reached:
                reached.add(found)
                open_pages.append(found)
    assert reached == set(trees)


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
    bundle = publishing.bundle(failed=True)
    chance = random.Random(7)
    other = Bundle(
        bundle.name,
        shuffled(bundle.course, chance),
        shuffled(bundle.scheme, chance),
        [shuffled(row, chance) for row in reversed(bundle.lessons)],
        [shuffled(row, chance) for row in bundle.failed],
        shuffled(bundle.about, chance),
        bundle.draft,
    )
    assert site.build(other) == site.build(bundle)


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
    poisoned = Bundle(
        bundle.name,
        publishing.poisoned(bundle.course, _STRUCTURE),
        publishing.poisoned(bundle.scheme, _STRUCTURE),
        publishing.poisoned(list(bundle.lessons), _STRUCTURE),
        [{"order": 4, "label": publishing.HOSTILE, "reason": publishing.HOSTILE}],
        publishing.poisoned(bundle.about, _STRUCTURE),
        bundle.draft,
    )
    files = site.build(poisoned)
    for path, data in files.items():
        if not path.endswith(".html"):
            continue
        source = data.decode("utf-8")
        for element in read(data).all():
            assert element.tag not in {"script", "img"}
            assert not any(name.startswith("on") for name in element.attributes)
            assert not element.attributes.get("href", "").startswith(("http", "javascript"))
        assert "<script" not in source
        assert source.count("</style>") == 1
        assert "\x00" not in source
        assert "alert(1)" in source
    assert all(re.fullmatch(r"[a-z0-9._/-]+", path) for path in files)
