"""The desk in a real browser: what is live, what happens when the connection or the server is lost, and the keys."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Route, expect

from tests.browsers import Window
from tests.desks import Served, serving
from tests.runs import Script
from tests.sample_runs import completed_run, failed_run
from tests.servers.ports import free_ports


@pytest.fixture
def desk(root: Path) -> Iterator[Served]:
    """The desk on a port that nobody takes while it is down."""
    (port,) = free_ports(1)
    with serving(f"files:{root}", port=port) as served:
        yield served


def test_page_of_a_run_follows_its_records_and_says_when_its_process_is_gone(root: Path, window: Window) -> None:
    script = Script(root)
    script.begin("seed")
    page = window.open(f"runs/{script.id}")
    word = page.locator("#connection")
    expect(word).to_have_text("Live, record 2")
    script.complete("seed", {})
    expect(word).to_have_text("Live, record 3")
    expect(page.locator("#log li").first).to_contain_text("step completed")
    assert "Running" in page.title()
    script.leave()
    expect(page.locator("#status")).to_contain_text("process is gone")
    assert window.findings() == []


def test_run_that_ends_ends_its_stream(root: Path, window: Window) -> None:
    script = Script(root)
    page = window.open(f"runs/{script.id}")
    expect(page.locator("#connection")).to_have_text("Live, record 1")
    script.end("completed")
    expect(page.locator("#connection")).to_have_text("Ended")


def test_stream_is_followed_where_the_own_script_comes_last(root: Path, window: Window) -> None:
    script = Script(root)
    held: list[Route] = []
    page = window.open()
    page.route("**/desk.js*", lambda route: held.append(route))
    page.goto(f"{window.served.url}runs/{script.id}", wait_until="commit")
    # Whatever needs no own script goes on meanwhile.
    page.wait_for_timeout(1000)
    for route in held:
        route.continue_()
    expect(page.locator("#connection")).to_have_text("Live, record 1")
    script.leave()


def test_lost_connection_is_said_and_mends_itself(root: Path, window: Window) -> None:
    script = Script(root)
    page = window.open(f"runs/{script.id}")
    expect(page.locator("#connection")).to_have_text("Live, record 1")
    window.served.stop()
    expect(page.locator("#connection")).to_have_text("Connection lost at record 1; trying again")
    expect(page.locator("h1")).to_be_visible()
    script.begin("seed").complete("seed", {})
    with serving(f"files:{root}", port=window.served.port):
        # Whoever was let in by the server before is let in by this one.
        expect(page.locator("#connection")).to_have_text("Live, record 3")
        page.reload()
        expect(page.locator("#connection")).to_have_text("Live, record 3")
        # It would connect again to the server that goes now, and say so.
        page.goto("about:blank")
    script.leave()
    # The console says that the connection was refused, rightly.
    window.errors[:] = [said for said in window.errors if "ERR_" not in said and "sse" not in said.lower()]


def test_keys_lead_through_the_list_and_can_be_switched_off(root: Path, window: Window) -> None:
    runs = [completed_run(root), failed_run(root)]
    page = window.open()
    window.press("?")
    expect(page.locator("#keys")).to_be_visible()
    assert window.findings() == []
    window.press("?")
    expect(page.locator("#keys")).to_be_hidden()
    window.press("j", "j", "k", "j", "Enter")
    page.wait_for_url(f"**/runs/{runs[1]}")
    # Both keys are one way within a second and a half of the page's clock, which stands.
    page.clock.set_fixed_time(0)
    window.press("g", "r")
    page.wait_for_url(window.served.url)
    window.press("?")
    page.get_by_label("Keys off").check()
    window.press("?", "j")
    assert page.evaluate("document.activeElement.closest('[data-row]')") is None
