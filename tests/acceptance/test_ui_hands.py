"""What hands do while a page is slow or is swapped: nothing typed or chosen is lost, and nothing is done twice."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browsers import Window
from tests.reviews import drafted as drafted
from tests.reviews import run as run
from tests.runs import Script
from tests.sample_runs import completed_run, failed_run

COURSE = "new?subject=mathematics&level=national_5&lessons=2&model=claude-sonnet-5-5"


def test_what_is_open_and_selected_stays_so_while_the_run_goes_on(root: Path, window: Window) -> None:
    script = Script(root)
    script.begin("seed")
    page = window.open(f"runs/{script.id}")
    expect(page.locator("#connection")).to_have_text("Live, record 2")
    page.get_by_text("Stop …").click()
    page.evaluate("getSelection().selectAllChildren(document.querySelector('#log li'))")
    selected = page.evaluate("String(getSelection())")
    script.complete("seed", {}).begin("sow").call("sow", "entry/1", None)
    expect(page.locator("#status")).to_contain_text("0 of 1 sow")
    expect(page.get_by_role("button", name="Stop the run")).to_be_visible()
    assert page.evaluate("String(getSelection())") == selected
    script.leave()


def test_runs_selected_before_the_script_runs_are_selected_and_forgotten_once_acted_upon(
    root: Path, window: Window
) -> None:
    names = [completed_run(root), failed_run(root)]
    with window.before_scripts("") as page:
        page.get_by_label(f"Select {names[0]}").check()
    expect(page.locator("[data-chosen]")).to_have_text("1 selected")
    with window.before_scripts(f"?ask=delete&run={names[0]}") as page:
        page.get_by_role("button", name="Delete 1 run").click()
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page.locator("#chosen")).to_be_hidden()


def test_plan_and_time_follow_what_was_typed_before_the_scripts_came(root: Path, window: Window) -> None:
    done = failed_run(root)
    with window.before_scripts(COURSE) as page:
        page.get_by_label("Lessons, 1 to 120").fill("5")
    expect(page.locator("#plan h2")).to_contain_text("5 lessons by")
    # The button that is focused is the same one when the plan comes.
    page.get_by_label("Lessons, 1 to 120").fill("4")
    page.get_by_role("button", name="Start").focus()
    expect(page.locator("#plan h2")).to_contain_text("4 lessons by")
    expect(page.get_by_role("button", name="Start")).to_be_focused()
    page.reload()
    expect(page.locator("#plan h2")).to_contain_text("4 lessons by")
    with window.before_scripts(f"runs/{done}/time") as page:
        page.get_by_role("slider").press("Home")
    expect(page.locator("#moment h2").first).to_have_text("At the start")
    # Back is to the page as it was, with all that its script does.
    page.get_by_role("slider").press("ArrowRight")
    expect(page.locator("#moment h2").first).to_have_text("seed completed")
    page.go_back()
    expect(page.locator("#moment h2").first).to_have_text("At the start")
    window.press("?")
    expect(page.locator("#keys")).to_be_visible()


def test_start_at_another_price_than_was_shown_shows_it_first(
    root: Path, window: Window, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-api03-not-a-real-key-0123456789")
    page = window.open(COURSE)
    window.ready()
    window.slow(1_000)
    page.get_by_label("Lessons, 1 to 120").fill("60")
    page.get_by_role("button", name="Start").click()
    expect(page.locator("#say")).to_contain_text("another price")
    expect(page.locator("#plan h2")).to_contain_text("60 lessons by")
    assert not root.exists()
    window.hear("the server responded with a status of 409")
    # Where no answer comes, the plan that stands there is not what is typed, and the page says so.
    window.served.stop()
    window.ready().get_by_label("Lessons, 1 to 120").fill("3")
    expect(page.locator("#connection")).to_have_text("Connection lost")
    window.errors.clear()


def test_two_clicks_decide_once(root: Path, run: str, window: Window) -> None:
    page = window.open(f"runs/{run}/review?item=1")
    page.locator(".decide [name=by]").fill("M. Reid")
    page.get_by_role("button", name="Approve").dblclick()
    expect(page.locator("#queue-head")).to_have_text("1 of 2 approved")
    expect(page.locator("#lesson-head")).to_contain_text("Lesson 2")
    window.ready()
    page.locator("[data-key=r]").click()
    page.locator("#note").fill("Shorter, please.")
    page.get_by_role("link", name="Previous").or_(page.get_by_role("link", name="Next")).first.click()
    page.go_back()
    expect(page.locator("#note")).to_have_value("Shorter, please.")
    page.reload()
    expect(page.locator("#note")).to_have_value("Shorter, please.")


def test_form_sent_without_the_cookie_says_how_it_is_sent_again(root: Path, run: str, window: Window) -> None:
    page = window.open(f"runs/{run}/review?item=1")
    page.locator(".decide [name=by]").fill("M. Reid")
    window.ready()
    page.context.clear_cookies()
    page.get_by_role("button", name="Approve").click()
    expect(page.locator("body")).to_contain_text("reload this page")
    window.served.enter() if not window.served.cookies else None
    name, value = next(iter(window.served.cookies.items()))
    page.context.add_cookies([{"name": name, "value": value, "url": window.served.url}])
    page.reload()
    expect(page.locator("#queue-head")).to_have_text("1 of 2 approved")
    window.errors.clear()
