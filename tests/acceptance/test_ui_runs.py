"""The page of runs in a real browser: 10,000 runs, a selection over pages, a killed process, keys alone."""

from __future__ import annotations

import os
import signal
from datetime import timedelta
from pathlib import Path

import pytest
from playwright.sync_api import expect

from pipeline.app.processes import start
from pipeline.app.run_index import RunFilter
from pipeline.app.stores import open_store
from tests.browsers import Window
from tests.runs import BEGIN
from tests.sample_runs import completed_run, corrupt_run, dead_run, failed_run, original_run
from tests.waiting_pipeline import SLOW


def ten_thousand(root: Path) -> list[str]:
    """So many runs, newest first: copies of one that failed, a minute apart."""
    source = root / failed_run(root)
    files = {name: (source / name).read_bytes() for name in ("journal.jsonl", "checkpoint.json")}
    names = [source.name]
    for number in range(1, 10_000):
        folder = root / f"{BEGIN + timedelta(minutes=number):%Y%m%d_%H%M%S}"
        folder.mkdir(mode=0o700)
        for name, text in files.items():
            (folder / name).write_bytes(text)
        names.append(folder.name)
    return names[::-1]


def test_ten_thousand_runs_are_paged_filtered_and_selected_over_pages(root: Path, window: Window) -> None:
    names = ten_thousand(root)
    window.served.desk.runs.look(RunFilter())
    page = window.open()
    expect(page.locator("#counts")).to_contain_text("10,000")
    assert page.locator("tbody tr").count() == 50
    page.get_by_label(f"Select {names[1]}").check()
    page.get_by_role("link", name="Older").click()
    expect(page.locator("tbody tr").first).to_have_id(f"run-{names[50]}")
    expect(page.locator("[data-chosen]")).to_have_text("1 selected (1 on other pages)")
    page.get_by_label(f"Select {names[51]}").check()
    expect(page.locator("[data-chosen]")).to_have_text("2 selected (1 on other pages)")
    page.reload()
    expect(page.get_by_label(f"Select {names[51]}")).to_be_checked()
    page.locator("#f-q").fill(names[7000])
    page.get_by_role("button", name="Filter").click()
    expect(page.locator("caption")).to_contain_text("1 run matches")
    expect(page.locator("[data-chosen]")).to_have_text("2 selected (2 on other pages)")
    with page.expect_download() as found:
        page.get_by_role("button", name="Export CSV").click()
    assert found.value.path().read_text().count("\n") == 3
    page.get_by_role("button", name="Delete …").click()
    expect(page.locator("#choice-head")).to_have_text("Delete 2 runs?")
    expect(page.locator(".say")).to_contain_text("stays on the account: $0.15")
    assert window.findings() == []
    window.ready().get_by_role("button", name="Delete 2 runs").click()
    expect(page.locator("#chosen")).to_be_hidden()
    assert not [name for name in (names[1], names[51]) if (root / name).exists()]
    page.get_by_role("link", name="Clear filters").first.click()
    expect(page.locator("#counts")).to_contain_text("9,998")


def test_killed_process_is_seen_without_a_reload_and_its_run_resumed(
    root: Path, tmp_path: Path, window: Window
) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    completed_run(root)
    url = f"files:{root}"
    begun = start(["run", f"{tmp_path / 'slow.py'}:PIPELINE", "--yes"], url)
    page = window.open()
    window.slow(700)
    row = page.locator(f"#run-{begun.run}")
    expect(row).to_contain_text("running")
    expect(page).to_have_title("1 running: Runs")
    os.kill(begun.pid, signal.SIGKILL)
    expect(row).to_contain_text("process is gone")
    expect(page.locator("#counts")).to_contain_text("process is gone 1")
    page.get_by_label(f"Select {begun.run}").check()
    page.get_by_role("button", name="Resume …").click()
    expect(page.locator("#choice-head")).to_have_text("Resume 1 run?")
    window.ready().get_by_role("button", name="Resume 1 run").click()
    expect(row).to_contain_text("running")
    expect(page.locator("#chosen")).to_be_hidden()
    # Another run is told, and not pushed in under the pointer.
    first = page.locator("tbody tr").first.get_attribute("id")
    other = failed_run(tmp_path / "other")
    os.rename(tmp_path / "other" / other, root / "20990109_143022")
    expect(page.locator("#new-runs")).to_contain_text("1 new run")
    assert page.locator("tbody tr").first.get_attribute("id") == first
    page.get_by_role("link", name="show").click()
    expect(page.locator("tbody tr").first).to_have_id("run-20990109_143022")
    (tmp_path / "go").touch()
    expect(row).to_contain_text("completed")
    assert open_store(url).holder(begun.run) == {}


def test_runs_are_chosen_and_opened_by_keys_alone(root: Path, window: Window) -> None:
    names = [completed_run(root), dead_run(root)][::-1]
    page = window.open()
    window.press("j", "x")
    expect(page.get_by_label(f"Select {names[0]}")).to_be_checked()
    window.press("j", "k", "x")
    expect(page.locator("#chosen")).to_be_hidden()
    window.press("x")
    page.locator("#f-q").focus()
    for _ in range(20):
        window.press("Tab")
        if page.evaluate("document.activeElement.textContent") == "Delete …":
            break
    window.press("Enter")
    expect(page.locator("#choice-head")).to_have_text("Delete 1 run?")
    window.press(".", "Enter")
    expect(page.locator("tbody tr")).to_have_count(1)
    window.press("/")
    page.keyboard.type("physics")
    window.press("Enter")
    expect(page.locator("caption")).to_contain_text("1 run matches")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_kind_of_run_is_shown_on_every_width(root: Path, window: Window, scheme: str) -> None:
    for make in (failed_run, completed_run, dead_run, original_run, corrupt_run):
        make(root)
    window.page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    for path in ("", "?status=failed", "?q=nothing", "?ask=stop&run=20260109_143022&run=20260110_143022"):
        page = window.open(path)
        for width in (320, 390, 1280, 1920):
            page.set_viewport_size({"width": width, "height": 900})
            assert window.sideways() <= 0, f"{path} at {width}"
            if width in (390, 1280):
                assert window.findings() == []


def test_page_of_fifty_runs_is_light(root: Path, window: Window) -> None:
    store = root
    for day in range(1, 51):
        completed_run(store, day)
    assert len(window.served.get("").body) <= 80_000
