"""The pages of a run, an item and a call in a real browser: wide and narrow, light and dark, by the keyboard alone."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from pipeline.clock import iso
from pipeline.records.codec import encode_fact
from pipeline.records.kinds import TaskCompleted, TaskFailed
from pipeline.records.lines import encode_line
from pipeline.records.values import encode_value
from tests.browsers import Window
from tests.runs import BEGIN, Script
from tests.unit.ui.test_call_page import ask, begun
from tests.unit.ui.test_run_page import course, send

WIDTHS = (320, 390, 1280, 1920)


def look(window: Window) -> None:
    """Nothing is wider than the window, and axe-core finds nothing."""
    for width in WIDTHS:
        window.page.set_viewport_size({"width": width, "height": 900})
        assert window.sideways() <= 0
    assert window.findings() == []


def many(root: Path, items: int) -> str:
    """A run with so many items, every 500th of them failed; its process is gone."""
    script = begun(root)
    lines = []
    for number in range(1, items + 1):
        name, error = f"parts/{number}", {"type": "TaskRejected", "message": "the reply is no JSON"}
        fact = TaskCompleted("lessons#1", name, encode_value(number), hash="0" * 16, item="0" * 16)
        failed = TaskFailed("lessons#1", name, error)
        at = iso(BEGIN + timedelta(seconds=60 + number * 0.1))
        lines.append(encode_line(script._seq + number, at, 1, encode_fact(fact if number % 500 else failed)))
    for place in range(0, items, 1000):
        script._journal.append(script._seq + 1 + place, lines[place : place + 1000], sync=False)
    script._journal.close()
    return script.id


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
    run = many(root, 100_000)
    window.page.emulate_media(color_scheme="dark")
    page = window.open(f"runs/{run}")
    look(window)
    page.set_viewport_size({"width": 1280, "height": 900})
    area = page.get_by_role("slider", name="Map of items")
    area.focus()
    assert area.get_attribute("aria-valuetext") == "Items 1 to 50: 50 completed"
    for key in ("ArrowDown", "ArrowRight", "ArrowLeft", "End", "ArrowLeft", "Home", *["ArrowRight"] * 9):
        page.keyboard.press(key)
    assert area.get_attribute("aria-valuetext") == "Items 451 to 500: 49 completed, 1 failed"
    page.keyboard.press("Enter")
    page.wait_for_url("**from=451**")
    assert page.locator("#items tbody tr").first.inner_text().split()[:2] == ["451", "lessons/parts/451"]
    page.get_by_role("link", name="failed 200").click()
    page.wait_for_url("**state=failed**")
    assert page.locator("#items tbody tr").count() == 100
    page.get_by_role("link", name="Next 100").click()
    page.wait_for_url("**from=50500**")
    assert "the reply is no JSON" in page.locator("#items tbody tr").first.inner_text()


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
