"""A browser that looks at a desk: Chromium where there is one; console errors fail the test, and so does axe-core."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Error, Page, Route, expect, sync_playwright

from tests.desks import PATIENCE, Served

#: Why a test of pages did not run; tests/conftest.py counts them.
NO_BROWSER = "page test: no Chromium was found"
NO_AXE = "page test: axe-core is not installed (devops/check.sh installs it where there is npm)"
_AXE = Path(sys.prefix, "axe", "node_modules", "axe-core", "axe.min.js")
_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")

#: A busy machine takes its time, be it to show a page or to check a lesson.
expect.set_options(timeout=PATIENCE * 1000)


@dataclass
class Window:
    """A window of the browser, at a desk."""

    page: Page
    served: Served
    #: What the console said, and what the page threw.
    errors: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on(
            "console", lambda said: self.errors.append(said.text) if said.type in ("error", "warning") else None
        )
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))

    def open(self, path: str = "") -> Page:
        """Open a page of the desk; the first time by its link."""
        if not self.served.cookies:
            self.served.enter()
        name, value = next(iter(self.served.cookies.items()))
        self.page.context.add_cookies([{"name": name, "value": value, "url": self.served.url}])
        self.page.goto(self.served.url + path)
        return self.page

    def ready(self) -> Page:
        """Wait until the page's scripts have run, as a hand would that is slower than a test's; the page."""
        self.page.wait_for_load_state("load")
        return self.page

    def press(self, *keys: str) -> None:
        """Press keys, one after the other, on a page whose scripts have run."""
        for key in keys:
            self.ready().keyboard.press(key)

    def hear(self, text: str) -> None:
        """Wait until the console has said a text, rightly: it may come after what it is about is seen."""
        for _ in range(int(PATIENCE / 0.02)):
            if found := next((said for said in self.errors if text in said), ""):
                self.errors.remove(found)
                return
            self.page.wait_for_timeout(20)
        raise AssertionError(f"{text!r} was not said: {self.errors}")

    def slow(self, milliseconds: int) -> None:
        """Answer each request of this window so much later, its scripts too."""
        network = self.page.context.new_cdp_session(self.page)
        network.send("Network.enable")
        network.send("Network.setCacheDisabled", {"cacheDisabled": True})
        speed = {"downloadThroughput": -1, "uploadThroughput": -1}
        network.send("Network.emulateNetworkConditions", {"offline": False, "latency": milliseconds, **speed})

    @contextmanager
    def before_scripts(self, path: str) -> Iterator[Page]:
        """A page of the desk that hands are on before its scripts have come: they do at the end."""
        held: list[Route] = []
        self.open()
        self.page.route("**/*.js*", lambda route: held.append(route))
        self.page.goto(self.served.url + path, wait_until="commit")
        yield self.page
        for script in held:
            script.continue_()
        self.page.unroute("**/*.js*")
        self.ready()

    def findings(self) -> list[str]:
        """What axe-core finds wrong on the page as it is."""
        if not _AXE.exists():
            pytest.skip(NO_AXE)
        self.page.evaluate(_AXE.read_text(encoding="utf-8"))
        found: dict[str, Any] = json.loads(self.page.evaluate("axe.run().then(found => JSON.stringify(found))"))
        return [f"{rule['id']}: {node['html']}" for rule in found["violations"] for node in rule["nodes"]]

    def sideways(self) -> int:
        """How many pixels the page is wider than the window."""
        return int(self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


def chromium_path() -> str | None:
    """The Chromium of this machine; None: Playwright's own, if there is one."""
    return next((found for name in _NAMES if (found := shutil.which(name))), None)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """A browser, for the tests of one file: while it is there, this thread has a running event loop."""
    with sync_playwright() as playwright:
        try:
            started = playwright.chromium.launch(executable_path=chromium_path(), args=["--no-sandbox"])
        except Error:
            pytest.skip(NO_BROWSER)
        yield started
        started.close()


@pytest.fixture
def window(chromium: Browser, desk: Served) -> Iterator[Window]:
    """A window at the test's `desk`: 1280 px wide, light; `page.set_viewport_size`, `emulate_media` change that."""
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(PATIENCE * 1000)
    made = Window(context.new_page(), desk)
    yield made
    context.close()
    assert made.errors == []
