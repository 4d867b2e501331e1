"""The whole way on the pages: make a course, lose its process, resume, review, publish."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

from playwright.sync_api import expect

from pipeline.app.stores import open_store
from tests.browsers import Window

NEW = "A person wrote this feedback by hand, and it says why."


def test_course_is_made_lost_resumed_reviewed_and_published(root: Path, out: Path, window: Window) -> None:
    page = window.open("new")
    page.get_by_label("Subject").select_option("mathematics")
    page.get_by_label("Level").select_option("national_5")
    page.get_by_label("Lessons, 1 to 120").fill("3")
    page.get_by_label("Publish only what was reviewed").check()
    expect(page.locator("#plan h2")).to_contain_text("3 lessons by offline")
    window.press("Escape")
    page.get_by_role("button", name="Start").click()
    page.wait_for_url("**/runs/*", wait_until="commit")
    store = open_store(f"files:{root}")
    [head] = store.heads()
    run = head.run_id
    os.kill(store.holder(run)["pid"], signal.SIGKILL)
    expect(page.locator("#status")).to_contain_text("process is gone")

    page.locator("h1").click()
    window.press(".")
    expect(page.get_by_role("button", name="Resume")).to_be_focused()
    window.press("Enter")
    expect(page.locator("#status")).to_contain_text("waits for a person")
    assert window.findings() == []

    page.goto(f"{window.served.url}runs/{run}/review")
    for done in range(2):
        expect(page.locator("#queue-head")).to_have_text(f"{done} of 3 approved")
        if not done:
            page.locator(".decide [name=by]").fill("M. Reid")
        page.get_by_role("button", name="Approve").click()
    expect(page.locator("#queue-head")).to_have_text("2 of 3 approved")
    page.locator("#part").select_option("c1.q1")
    window.press("Escape", "e")
    page.get_by_label("Explanation").fill(NEW)
    expect(page.locator("#checks .agrees")).to_be_visible()
    page.get_by_role("button", name="Check and save").click()
    expect(page.locator("#queue-head")).to_have_text("3 of 3 approved")

    page.goto(f"{window.served.url}runs/{run}")
    page.get_by_role("button", name="Resume").click()
    expect(page.locator("#status")).to_contain_text("completed")
    expect(page).to_have_title(re.compile("^Completed"))
    texts = [file.read_text(encoding="utf-8") for file in (out / "course_c84775-draft").glob("answers/*.html")]
    assert sum(NEW in text for text in texts) == 1
    assert sum("Edited and reviewed by M. Reid." in text for text in texts) == 1
