"""Providers whose look-ups trickle or never end: a start says so after a bounded time, and has cost nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest

from pipeline.clock import SystemClock
from pipeline.llm import look_ups
from tests.said import Cli
from tests.servers.serving import Handler, Http, Serving

COURSE = ("lessons", "--subject", "maths", "--level", "N5", "--lessons", "2", "--yes")
CLOCK = SystemClock()
#: Seconds a server trickles: longer than a start may take on a busy machine.
TRICKLES = 300.0


class Trickling(Serving):
    """Answers every look-up with something that does not end for a long time."""

    def __init__(self, how: str) -> None:
        self.how, self.paid, self.stopping = how, 0, Event()
        super().__init__(_Handler)

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        super().__exit__()


class _Handler(Handler):
    server: Http[Trickling]

    def do_POST(self) -> None:
        self.server.owner.paid += self.path.endswith(("/messages", "/completions"))
        self.do_GET()

    def do_GET(self) -> None:
        owner, until = self.server.owner, CLOCK.monotonic() + TRICKLES
        self.close_connection = True
        self.wfile.write(b"HTTP/1.1 200 OK\r\n")
        if owner.how != "headers":
            self.wfile.write(b"content-type: application/json\r\n\r\n")
        piece = {"headers": b"x-more: a\r\n", "body": b" ", "endless": b" " * 1_000_000}[owner.how]
        while CLOCK.monotonic() < until and not owner.stopping.is_set():
            self.wfile.write(piece)
            owner.stopping.wait(0 if owner.how == "endless" else 0.05)


@pytest.fixture(params=["headers", "body", "endless"])
def trickling(request: pytest.FixtureRequest, root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Trickling]:
    # The many bytes come as fast as they can.
    monkeypatch.setattr(look_ups, "CHECK_SECONDS", 100.0 if request.param == "endless" else 1.0)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-of-nobody")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    with Trickling(request.param) as made:
        yield made


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
def test_look_up_that_trickles_keeps_no_start_waiting(
    cli: Cli, root: Path, trickling: Trickling, provider: str
) -> None:
    url = trickling.url + ("/v1" if provider == "openai" else "")
    model = ("--model", "llama-3") if provider == "openai" else ()
    said = cli(*COURSE, "--provider", provider, "--base-url", url, "--max-cost-usd", "none", *model)
    assert said.code == 4, said.err
    reason = "with more than 20,000,000 bytes" if trickling.how == "endless" else "in full within 1 s"
    assert f"{reason} (2 tries failed)." in said.err
    assert "Try again later; nothing was started." in said.err
    assert trickling.paid == 0
    assert cli("list", "--json").json() == []
