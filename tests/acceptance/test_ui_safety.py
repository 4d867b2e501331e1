"""What keeps others out, in a real browser: another name, another port, a frame; and a prefix, and a copy on a disk."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from playwright.sync_api import Browser, expect

from pipeline.ui.export import export
from tests.browsers import Window, chromium_path
from tests.desks import Served, serving
from tests.runs import Script
from tests.sample_runs import completed_run, failed_run


@contextmanager
def site(page: str) -> Iterator[str]:
    """Another server of this machine, as any page of the web might be; its address."""

    class Other(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(page.encode())

        def log_message(self, format: str, *arguments: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Other) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()


def test_link_leaves_the_address_and_works_once(root: Path, chromium: Browser, desk: Served) -> None:
    context = chromium.new_context()
    page = context.new_page()
    page.goto(desk.link)
    assert page.url == desk.url
    expect(page.locator("h1")).to_have_text("Runs")
    assert page.evaluate("document.cookie") == ""
    other = chromium.new_context().new_page()
    other.goto(desk.link)
    expect(other.locator("body")).to_contain_text("works once")
    other.context.close()
    context.close()


def test_name_that_leads_here_is_not_answered(chromium: Browser, desk: Served) -> None:
    rule = "--host-resolver-rules=MAP evil.example 127.0.0.1"
    browser = chromium.browser_type.launch(executable_path=chromium_path(), args=["--no-sandbox", rule])
    page = browser.new_page()
    for path in ("", f"?token={desk.token}", "api/v1/", "healthz", "static/desk.js"):
        answer = page.goto(f"http://evil.example:{desk.port}/{path}")
        assert answer is not None
        assert answer.status == 400
    browser.close()


def test_form_of_another_port_is_refused_and_a_frame_stays_empty(root: Path, window: Window) -> None:
    script = Script(root)
    page = window.open(f"runs/{script.id}")
    stop = f"{window.served.url}runs/{script.id}/stop"
    with site(f'<form method="post" action="{stop}"><button>Win</button></form>') as address:
        page.goto(address)
        with page.expect_navigation() as gone:
            page.get_by_role("button").click()
        assert gone.value.status == 403
    with site(f'<iframe src="{window.served.url}"></iframe>') as address:
        page.goto(address)
        window.hear("frame-ancestors")
        page.wait_for_load_state("networkidle")
        assert page.frames[1].url == "chrome-error://chromewebdata/"
    # What else that page says comes before it is left.
    page.goto("about:blank")
    window.errors.clear()
    assert script.begin("seed")
    script.leave()


def test_page_runs_no_script_but_its_own(root: Path, window: Window) -> None:
    page = window.open()
    page.evaluate(
        "document.body.append(Object.assign(document.createElement('script'), {textContent: 'window.ran = 1'}))"
    )
    assert page.evaluate("window.ran") is None
    window.hear("Content Security Policy")


def test_desk_is_whole_under_a_prefix(root: Path, chromium: Browser) -> None:
    script = Script(root)
    completed_run(root)
    with serving(f"files:{root}", root_path="/x/desk") as desk:
        context = chromium.new_context()
        page = context.new_page()
        errors: list[str] = []
        page.on("console", lambda said: errors.append(said.text))
        page.goto(f"{desk.url}x/desk/?token={desk.token}")
        assert page.url == f"{desk.url}x/desk/"
        page.locator(f"#run-{script.id} a").first.click()
        page.wait_for_url(f"{desk.url}x/desk/runs/{script.id}")
        expect(page.locator("#connection")).to_have_text("Live, record 1")
        script.begin("seed")
        expect(page.locator("#connection")).to_have_text("Live, record 2")
        page.get_by_role("link", name="Costs", exact=True).first.click()
        page.wait_for_url(f"{desk.url}x/desk/costs")
        page.get_by_role("link", name="Course desk").click()
        page.wait_for_url(f"{desk.url}x/desk/")
        assert errors == []
        context.close()
    script.leave()


def test_copy_opens_from_a_disk(root: Path, tmp_path: Path, chromium: Browser) -> None:
    run = failed_run(root)
    # The browser has a loop of its own in this thread.
    with ThreadPoolExecutor() as pool:
        pool.submit(export, f"files:{root}", tmp_path / "copy", [run], "28 Nov 2026 20:14 UTC").result()
    context = chromium.new_context(viewport={"width": 390, "height": 800})
    page = context.new_page()
    errors: list[str] = []
    page.on("console", lambda said: errors.append(said.text))
    page.goto((tmp_path / "copy/index.html").as_uri())
    page.get_by_role("link", name=run).click()
    expect(page.locator("#connection")).to_have_text("Copy of 28 Nov 2026 20:14 UTC")
    assert page.locator("body").evaluate("body => getComputedStyle(body).margin") == "0px"
    assert page.get_by_role("button").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    page.get_by_role("link", name="lessons/1").first.click()
    expect(page.locator("h1")).to_be_visible()
    assert errors == []
    context.close()
