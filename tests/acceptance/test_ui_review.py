"""Two lessons reviewed in a real browser, by keys alone: approve, edit, see the edit on the published page."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from pipeline.app.review import CourseReview, ReviewDecision, decide
from pipeline.app.stores import open_store
from pipeline.records.run import RunState
from pipeline.store.reader import load
from tests.browsers import Window
from tests.reviews import NEW
from tests.reviews import drafted as drafted
from tests.reviews import run as run
from tests.said import Cli


def state(root: Path, run: str) -> RunState:
    return load(open_store(f"files:{root}"), run)


def heading(page: Page) -> str:
    return page.locator("#lesson-head").inner_text()


def test_lessons_are_approved_and_edited_by_keys_and_published_so(
    cli: Cli, root: Path, out: Path, run: str, window: Window
) -> None:
    page = window.open(f"runs/{run}/review?item=1")
    expect(page.locator("#queue-head")).to_have_text("0 of 2 approved")
    assert page.frame_locator("iframe[name=lesson]").locator("h1").inner_text() in heading(page)
    # The name is asked for once: the form does not go without it.
    window.press("a")
    expect(page.locator(".decide [name=by]")).to_be_focused()
    page.keyboard.type("M. Reid")
    window.press("Escape", "a")
    expect(page.locator("#queue-head")).to_have_text("1 of 2 approved")
    assert heading(page).startswith("Lesson 2")
    window.press("u")
    expect(page.locator("[data-key=u]")).to_be_disabled()
    window.press("k" if page.locator("[data-key=k]").count() else "j")
    expect(page.locator("#lesson-head")).to_contain_text("Lesson 1")
    window.press("u")
    expect(page.locator("#queue-head")).to_have_text("0 of 2 approved")
    window.press("a")
    expect(page.locator("#queue-head")).to_have_text("1 of 2 approved")
    page.locator("#part").select_option("c1.q1")
    window.press("e")
    # What is typed at once goes into the first field: a page that focuses nothing takes letters for its keys.
    expect(page.get_by_label("Question", exact=True)).to_be_focused()
    field = page.get_by_label("Explanation")
    field.press("Control+a")
    page.keyboard.type(NEW)
    expect(page.locator("#checks .agrees")).to_be_visible()
    expect(page.locator("#checks ins")).to_have_text(NEW)
    assert window.findings() == []
    window.press("Control+Enter")
    expect(page.locator("#queue-head")).to_have_text("2 of 2 approved")
    assert cli("lessons", "--resume", run).code == 0
    published = next((out / "course_c84775-draft").glob("answers/02-*.html"))
    page.goto(published.as_uri())
    expect(page.get_by_text(NEW)).to_be_visible()
    expect(page.get_by_text("Edited and reviewed by M. Reid.")).to_be_visible()


def test_edit_that_fails_its_checks_is_told_at_once_and_what_was_typed_is_kept(
    root: Path, run: str, window: Window
) -> None:
    page = window.open(f"runs/{run}/review?item=1&edit=c1.q1")
    # What is typed is saved or left: nobody approves the old text by mistake.
    assert page.locator("[data-key=a]").count() == 0
    field = page.get_by_label("Answer", exact=True)
    right = field.input_value()
    field.fill("123456789")
    expect(page.locator("#checks .fault").first).to_be_visible()
    # Gone and come back, also over a restart of the browser's page: nothing typed is lost.
    page.goto(page.url.partition("&edit")[0])
    page.locator("#part").select_option("c1.q1")
    window.press("e")
    expect(page.get_by_label("Answer", exact=True)).to_have_value("123456789")
    page.locator("#edit [name=by]").fill("M. Reid")
    page.get_by_role("button", name="Check and save").click()
    expect(page.locator("[aria-invalid]").first).to_have_value("123456789")
    window.hear("the server responded with a status of 400")
    assert state(root, run).reviews == {}
    page.get_by_label("Answer", exact=True).fill(right)
    page.get_by_label("Explanation").fill(NEW)
    page.get_by_role("button", name="Check and save").click()
    expect(page.locator("#queue-head")).to_have_text("1 of 2 approved")


def test_what_is_typed_before_the_script_runs_is_kept(run: str, window: Window) -> None:
    edit = f"runs/{run}/review?item=1&edit=c1.q1"
    page = window.open(edit)
    page.get_by_label("Explanation").fill("Kept from before.")
    window.slow(1_000)
    page.goto(window.served.url + edit, wait_until="commit")
    page.get_by_label("Question", exact=True).fill("Typed at once.")
    assert not page.evaluate("document.readyState === 'complete'"), "the script was not slow"
    window.ready()
    expect(page.get_by_label("Explanation")).to_have_value("Kept from before.")
    expect(page.get_by_label("Question", exact=True)).to_have_value("Typed at once.")


def test_who_looks_sees_what_another_decides_and_is_told_when_too_late(root: Path, run: str, window: Window) -> None:
    page = window.open(f"runs/{run}/review?item=2")
    expect(page.locator("#connection")).to_contain_text("Live")
    store = open_store(f"files:{root}")
    decide(store, run, 2, ReviewDecision("approve", "A. Lee"))
    expect(page.locator("#queue-head")).to_have_text("1 of 2 approved")
    expect(page.locator("#queue .current")).to_contain_text("A. Lee")
    page.locator(".decide [name=by]").fill("M. Reid")
    window.press("Escape", "a")
    expect(page.locator("#say")).to_contain_text("A. Lee decided about lesson 2: approved")
    window.hear("the server responded with a status of 409")
    window.press("r")
    expect(page.locator("#note")).to_be_focused()
    page.keyboard.type("Shorter, please.")
    window.press("Control+Enter")
    expect(page.locator("#queue-head")).to_contain_text("1 to be made again")
    assert CourseReview.of(store, run).lesson(2).status == "redo"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_of_the_review_are_whole_at_every_width(root: Path, run: str, window: Window, scheme: str) -> None:
    window.page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    for path in ("review", f"runs/{run}/review", f"runs/{run}/review?item=1&edit=c1.q1"):
        page = window.open(path)
        for width in (320, 390, 1280, 1920):
            page.set_viewport_size({"width": width, "height": 900})
            assert window.sideways() <= 0, f"{path} at {width}"
            for bar in page.locator(".decide").all():
                # It leaves the screen to the lesson.
                stays = bar.evaluate("bar => getComputedStyle(bar).position") == "sticky"
                box = bar.bounding_box()
                assert not stays or (box and box["height"] < 160), f"{path} at {width}"
        assert window.findings() == [], path


def test_what_was_typed_before_the_scripts_came_is_checked(run: str, window: Window) -> None:
    page = window.open(f"runs/{run}/review?item=1")
    held: list[Route] = []
    page.route("**/*.js*", lambda route: held.append(route))
    page.goto(f"{window.served.url}runs/{run}/review?item=1&edit=c1.q1", wait_until="commit")
    page.get_by_label("Explanation").fill(NEW)
    for script in held:
        script.continue_()
    expect(page.locator("#checks ins")).to_have_text(NEW)
