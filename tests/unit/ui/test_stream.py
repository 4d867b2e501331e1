"""Server-sent events of the real server: a run's records, and the parts of a page."""

from __future__ import annotations

import http.client
import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from jinja2 import ChoiceLoader, DictLoader

from pipeline.app.run_index import RunNow
from pipeline.ui import layout, routes, stream
from pipeline.ui.desk import Desk
from pipeline.ui.pages import Data, StreamRoute
from tests.desks import PATIENCE, Served, serving
from tests.runs import Script
from tests.sample_runs import completed_run


@dataclass
class Heard:
    """One message; a comment has its text only."""

    id: int
    event: str
    data: str
    comment: str = ""


class Listener:
    """A client of a stream."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self._response = response

    def messages(self) -> Iterator[Heard]:
        """What comes until the stream ends, comments too."""
        lines: list[str] = []
        while line := self._response.readline():
            text = line.decode().rstrip("\n")
            if text:
                lines.append(text)
                continue
            fields = [each.partition(": ") for each in lines]
            values = {name: value for name, _, value in fields if name}
            data = "\n".join(value for name, _, value in fields if name == "data")
            comment = next((value for name, _, value in fields if not name), "") or (
                lines[0][2:] if lines and lines[0].startswith(": ") else ""
            )
            yield Heard(int(values.get("id", 0)), values.get("event", ""), data, comment)
            lines = []

    def until(self, found: Callable[[Heard], bool]) -> list[Heard]:
        """What comes up to the message that is waited for."""
        heard = []
        for message in self.messages():
            heard.append(message)
            if found(message):
                return heard
        raise AssertionError(f"the stream ended: {heard}")


@contextmanager
def listening(desk: Served, path: str, **headers: str) -> Iterator[Listener]:
    connection = http.client.HTTPConnection("127.0.0.1", desk.port, timeout=PATIENCE)
    try:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request("GET", f"/{path}", headers={"Cookie": desk.cookie, **named})
        response = connection.getresponse()
        assert response.status == 200, response.read()
        assert response.headers["content-type"].startswith("text/event-stream")
        assert (response.headers["cache-control"], response.headers["x-accel-buffering"]) == ("no-store", "no")
        yield Listener(response)
    finally:
        connection.close()


def ids(heard: list[Heard]) -> list[int]:
    return [message.id for message in heard if message.id]


def test_records_come_once_and_in_order_over_lost_connections(root: Path, desk: Served) -> None:
    script = Script(root)
    script.begin("seed").complete("seed", {})
    path = f"api/v1/runs/{script.id}/events"
    with listening(desk, path) as first:
        heard = first.until(lambda message: message.id == 3)
    assert [json.loads(message.data)["kind"] for message in heard if message.id] == [
        "run_started", "step_started", "step_completed",
    ]  # fmt: skip
    script.begin("sow").complete("sow", {})
    with listening(desk, f"{path}?after=1", Last_Event_ID="3") as second:
        heard += second.until(lambda message: message.id == 5)
        script.begin("lessons")
        heard += second.until(lambda message: message.id == 6)
    with listening(desk, f"{path}?after=6") as third:
        script.end("completed")
        last = third.until(lambda message: message.event == "end")
    assert ids(heard) + ids(last) == [1, 2, 3, 4, 5, 6, 7]
    assert (last[-1].event, last[-2].id) == ("end", 7)


def test_stream_of_a_finished_run_is_its_records_and_the_end(root: Path, desk: Served) -> None:
    run = completed_run(root)
    with listening(desk, f"api/v1/runs/{run}/events") as listener:
        heard = list(listener.messages())
    assert ids(heard) == list(range(1, len(ids(heard)) + 1))
    assert heard[-1].event == "end"


def test_stream_of_no_run_is_an_error(desk: Served) -> None:
    assert desk.get("runs/20260101_000000/events").status == 404
    got = desk.get("api/v1/runs/20260101_000000/events")
    assert (got.status, got.json["error"]["code"]) == (404, "run_not_found")


def test_places_that_are_no_numbers_are_the_beginning(root: Path, desk: Served) -> None:
    run = completed_run(root)
    for text in ("%C2%B2", "9" * 5000, "-1"):
        assert desk.get(f"api/v1/runs/{run}/events?after={text}").text.count("id: 1\n") == 1
    assert desk.get("review/events").status == 200


def test_silence_is_broken_by_a_comment(root: Path, desk: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "BEAT", 1.0)
    script = Script(root)
    with listening(desk, f"api/v1/runs/{script.id}/events?after=1") as listener:
        heard = listener.until(lambda message: message.comment == "beat")
    assert ids(heard) == []
    script.leave()


def test_stream_ends_where_its_run_is_deleted(root: Path, desk: Served) -> None:
    run = Script(root).leave()
    with listening(desk, f"api/v1/runs/{run}/events") as listener:
        listener.until(lambda message: message.id == 1)
        desk.desk.store().delete(run)
        assert list(listener.messages()) == []


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> str:
    """A stream of two parts of a page about a run: what stands, and what never changes; its path."""
    texts = {
        "_stands.html": '<p id="stands">{{ part.word }} {{ part.q }} {{ url("") }}</p>',
        "_same.html": "<p id=same>",
    }

    def stands(desk: Desk, run: str, query: Any) -> Data:
        now = desk.watched(run)
        return {"word": "gone" if now.head.gone else f"record {now.state.seq}", "q": query.get("q", "")}

    found = {"stands": ("_stands.html", stands), "same": ("_same.html", lambda desk, run, query: {})}
    path = "runs/{run}/test-events"
    monkeypatch.setattr(routes, "STREAMS", (*routes.STREAMS, StreamRoute(path, found)))
    environment = layout.environment()
    monkeypatch.setattr(environment, "loader", ChoiceLoader([DictLoader(texts), environment.loader]))  # type: ignore[list-item]
    return path


def count_looks(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The runs that streams look at from now on, look by look."""
    looks, watched = list[str](), desk.watched

    def counted(run: str) -> RunNow:
        looks.append(run)
        return watched(run)

    monkeypatch.setattr(desk, "watched", counted)
    return looks


def test_parts_are_sent_when_their_html_changes_and_say_when_the_owner_is_gone(
    root: Path, parts: str, desk: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = Script(root)
    script.begin("seed")
    with listening(desk, f"{parts.format(run=script.id)}?after=2&at=runs/{script.id}&q=a") as listener:
        [begun] = listener.until(lambda message: bool(message.data))[-1:]
        assert begun.id == 2
        assert re.findall(r'hx-partial id="(\w+)" hx-swap="outerMorph"', begun.data) == ["stands", "same"]
        assert '<p id="stands">record 2 a ../</p>' in begun.data
        script.complete("seed", {})
        [changed] = listener.until(lambda message: bool(message.data))[-1:]
        assert (changed.id, "same" in changed.data) == (3, False)
        looks = count_looks(desk.desk, monkeypatch)
        script.leave()
        [gone] = listener.until(lambda message: bool(message.data))[-1:]
        assert "gone a" in gone.data
        # Within two seconds: three looks that found nothing, and one whose parts look too.
        assert stream.EVERY <= 0.5
        assert len(looks) <= 6


def test_record_that_comes_while_parts_are_made_is_told_with_them(
    root: Path, parts: str, desk: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.app.run_index.FRESH_SECONDS", -1.0)
    script, watched, looks = Script(root), desk.desk.watched, list[str]()

    def meanwhile(run: str) -> RunNow:
        now = watched(run)
        looks.append(run)
        # Between the stream's own look and that of its parts.
        if len(looks) == 2:
            script.begin("seed")
        return now

    monkeypatch.setattr(desk.desk, "watched", meanwhile)
    with listening(desk, f"{parts.format(run=script.id)}?after=1") as listener:
        [told] = listener.until(lambda message: bool(message.data))[-1:]
    assert (told.id, "record 2" in told.data) == (2, True)
    script.leave()


def test_page_stream_ends_with_the_run(root: Path, parts: str, desk: Served) -> None:
    run = completed_run(root)
    with listening(desk, f"{parts.format(run=run)}?after=1") as listener:
        heard = list(listener.messages())
    assert [message.event for message in heard if message.data] == ["", "end"]


def test_server_stops_at_once_with_open_streams(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A stream that ended at its next look only would be cut.
    monkeypatch.setattr(stream, "EVERY", 1000.0)
    script = Script(root)
    ended = threading.Event()
    with serving(f"files:{root}") as desk, listening(desk, f"api/v1/runs/{script.id}/events") as listener:
        listener.until(lambda message: message.id == 1)

        def listen_on() -> None:
            list(listener.messages())
            ended.set()

        threading.Thread(target=listen_on, daemon=True).start()
        desk.stop()
        assert ended.wait(PATIENCE)
    script.leave()
