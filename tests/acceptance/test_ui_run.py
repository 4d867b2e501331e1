"""The pages of a run, an item and a call in a real browser: wide and narrow, light and dark, by the keyboard alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browsers import Window
from tests.runs import Script
from tests.sample_runs import large_run
from tests.unit.ui.test_call_page import ask, begun
from tests.unit.ui.test_run_page import course, send

WIDTHS = (320, 390, 1280, 1920)


def look(window: Window) -> None:
    """Nothing is wider than the window, and axe-core finds nothing."""
    for width in WIDTHS:
        window.page.set_viewport_size({"width": width, "height": 900})
        assert window.sideways() <= 0
    assert window.findings() == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_run_an_item_and_a_call_are_shown_in_every_width(root: Path, window: Window, scheme: str) -> None:
    script = course(root, made=5)
    seq = send(script, 6)
    run = script.leave()
    window.page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    for path in (f"runs/{run}", f"runs/{run}/items/lessons/5", f"runs/{run}/calls/{seq}"):
        window.open(path)
        look(window)


def test_the_map_of_items_is_moved_in_by_keys(root: Path, window: Window) -> None:
    run = large_run(root, 100_000)
    window.page.emulate_media(color_scheme="dark")
    page = window.open(f"runs/{run}")
    look(window)
    page.set_viewport_size({"width": 1280, "height": 900})
    area = page.get_by_role("slider", name="Map of items")
    area.focus()
    assert area.get_attribute("aria-valuetext") == "Items 1 to 50: 50 completed"
    window.press("ArrowDown", "ArrowRight", "ArrowLeft", "End", "ArrowLeft", "Home", *["ArrowRight"] * 9)
    assert area.get_attribute("aria-valuetext") == "Items 451 to 500: 49 completed, 1 failed"
    window.press("Enter")
    page.wait_for_url("**from=451**")
    expect(page.locator("#items tbody tr").first).to_have_id("item-451")
    expect(page.locator("#items tbody tr").first).to_contain_text("lessons/parts/451")
    page.get_by_role("link", name="failed 200").click()
    page.wait_for_url("**state=failed**")
    expect(page.locator("#items tbody tr")).to_have_count(100)
    page.get_by_role("link", name="Next 100").click()
    page.wait_for_url("**from=50500**")
    expect(page.locator("#items tbody tr").first).to_contain_text("the reply is no JSON")


def test_a_long_segment_of_a_prompt_is_loaded_when_it_is_opened(root: Path, window: Window) -> None:
    script = begun(root)
    seq = ask(script, "reply", system="<b>rules</b> " * 600)
    run = script.leave()
    page = window.open(f"runs/{run}/calls/{seq}")
    text = page.locator("details.segment pre").first
    assert text.text_content() == ""
    page.locator("details.segment summary").first.press("Enter")
    text.filter(has_text="<b>rules</b>").wait_for()


def test_the_script_of_a_lesson_never_runs(root: Path, window: Window) -> None:
    script = Script(root)
    script.begin("seed").complete("seed", {}).begin("sow").complete("sow", {}).begin("lessons")
    seq = ask(script, '{"cards": "<script>document.title = 1</script><img src=x onerror=alert(1)>"}')
    run = script.leave()
    for view in ("text", "json", "page"):
        page = window.open(f"runs/{run}/calls/{seq}?view={view}")
        assert page.title().startswith("Completed: call")
