"""Time, Costs, New run and Questions in a real browser: by keyboard, without script, two people at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from pipeline.app.gates import gates
from pipeline.app.processes import start
from pipeline.app.stores import open_store
from pipeline.store.reader import load
from tests.acceptance.dots import GATE
from tests.browsers import Window
from tests.sample_runs import completed_run, failed_run
from tests.unit.ui.test_questions import await_status

COURSE = "new?subject=mathematics&level=national_5&lessons=2&model=claude-sonnet-5-5"


@pytest.fixture(autouse=True)
def out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIPELINE_OUT", str(tmp_path / "site"))


@pytest.fixture
def waiting(root: Path, tmp_path: Path) -> str:
    """A run that asks whether to publish."""
    (tmp_path / "gate.dot").write_text(GATE)
    run = start(["run", str(tmp_path / "gate.dot"), "--model=offline", "--yes"], f"files:{root}").run
    await_status(open_store(f"files:{root}"), run, "waiting_for_human")
    return run


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_are_whole_in_every_width(root: Path, window: Window, waiting: str, scheme: str) -> None:
    failed = failed_run(root)
    completed_run(root)
    window.page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    time = f"runs/{failed}/time?at=sow&with=@2&plan=1"
    for path in (time, "costs", "costs?by=step", COURSE, "new", "new/courses", "questions"):
        page = window.open(path)
        for width in (320, 390, 1920, 1280):
            page.set_viewport_size({"width": width, "height": 900})
            assert window.sideways() <= 0, (path, width)
        assert window.findings() == [], path
        assert page.locator("h1").count() == 1


def test_slider_follows_the_keys_and_keeps_its_focus(root: Path, window: Window) -> None:
    run = failed_run(root)
    page = window.open(f"runs/{run}/time")
    slider = page.get_by_label("Checkpoint, 0 (start) to 4")
    slider.focus()
    window.press("ArrowLeft", "ArrowLeft")
    expect(page.locator("#moment h2").first).to_have_text("sow completed")
    expect(page).to_have_url(f"{window.served.url}runs/{run}/time?point=2")
    expect(slider).to_be_focused()
    expect(page.locator("#moment")).to_contain_text("Expanding pairs of brackets")
    page.get_by_role("link", name="seed").first.click()
    expect(page.locator("#moment h2").first).to_have_text("seed completed")
    page.get_by_label("To another point of this run").select_option(index=4)
    page.get_by_role("button", name="Compare").press("Enter")
    expect(page.get_by_role("region", name="Differences")).to_contain_text("not started")
    assert window.findings() == []


def test_slider_works_without_script(root: Path, window: Window, chromium: Browser) -> None:
    run = failed_run(root)
    window.open()
    context = chromium.new_context(java_script_enabled=False)
    context.add_cookies([
        {"name": name, "value": value, "url": window.served.url} for name, value in window.served.cookies.items()
    ])  # fmt: skip
    page = context.new_page()
    page.goto(f"{window.served.url}runs/{run}/time")
    page.get_by_role("slider").press("Home")
    page.get_by_role("slider").press("ArrowRight")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.locator("#moment h2").first).to_have_text("seed completed")
    page.goto(f"{window.served.url}{COURSE}")
    expect(page.get_by_role("button", name="Start, expected")).to_be_visible()
    context.close()


def test_plan_appears_as_one_types_and_start_goes_to_the_run(root: Path, window: Window) -> None:
    page = window.open("new")
    page.get_by_label("Subject").select_option("mathematics")
    page.get_by_label("Level").select_option("national_5")
    expect(page.locator("#plan h2")).to_contain_text("National 5 Mathematics, 18 lessons by offline")
    page.get_by_label("Lessons, 1 to 120").fill("500")
    expect(page.locator("#fault-lessons")).to_contain_text("it can be 1 to 120")
    page.get_by_label("Lessons, 1 to 120").fill("1")
    expect(page.locator("#fault-lessons")).to_be_empty()
    expect(page.locator("#plan h2")).to_contain_text("1 lesson by offline")
    assert window.findings() == []
    assert not root.exists(), "a plan keeps nothing"
    page.get_by_label("Model").press("Enter")
    page.get_by_role("button", name="Start").focus()
    window.press("Enter")
    page.wait_for_url("**/runs/*")
    store = open_store(f"files:{root}")
    (head,) = store.heads()
    assert page.url.endswith(f"runs/{head.run_id}")
    await_status(store, head.run_id, "completed")


def test_two_people_answer_and_the_second_sees_the_first(
    root: Path, window: Window, waiting: str, chromium: Browser
) -> None:
    page = window.open("questions")
    other = window.page.context.browser
    assert other is not None
    context = other.new_context()
    name, value = next(iter(window.served.cookies.items()))
    context.add_cookies([{"name": name, "value": value, "url": window.served.url}])
    second = context.new_page()
    second.goto(f"{window.served.url}questions")
    for person, at in (("M. Reid", page), ("J. Low", second)):
        at.get_by_label("Your name (kept for the next time)").fill(person)
    page.get_by_role("button", name="[A] Approve").press("Enter")
    page.wait_for_url(f"**/runs/{waiting}")
    expect(second.locator("#new-questions")).to_contain_text("1 run of these asks no more")
    second.get_by_role("button", name="[R] Revise").click()
    expect(second.locator("h1")).to_have_text("This question was answered already")
    for text in ("M. Reid answered first", "[A] Approve", "J. Low"):
        expect(second.locator("main")).to_contain_text(text)
    context.close()
    store = open_store(f"files:{root}")
    await_status(store, waiting, "completed")
    assert [answer.by for answer in load(store, waiting).decisions.values()] == ["M. Reid"]
    assert list(gates(store)) == []
