"""Object servers on this machine: moto, which honours conditional puts, and a proxy before it that misbehaves."""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import socket
import struct
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from email.utils import format_datetime, parsedate_to_datetime
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

_BUCKETS = itertools.count(1)
#: What a proxy does with a request: (method, path) → what goes wrong, or "".
Mishap = Callable[[str, str], str]


class Moto:
    """A moto server in a thread of this process; all its buckets are gone with it."""

    def __init__(self) -> None:
        from moto.server import ThreadedMotoServer

        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        self._server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
        self._server.start()
        # It looks whether a condition holds and then acts; others must not come between, as they cannot in a bucket.
        served: Any = self._server._server
        served.app = _one_by_one(served.app)
        self.endpoint = "http://{}:{}".format(*self._server.get_host_and_port())

    def bucket(self) -> str:
        """A new, empty bucket."""
        from moto.s3.models import s3_backends

        name = f"runs-{next(_BUCKETS)}"
        s3_backends["123456789012"]["aws"].create_bucket(name, "us-east-1")
        return name

    def stop(self) -> None:
        self._server.stop()


def _one_by_one(app: Callable[..., Iterable[bytes]]) -> Callable[..., Iterable[bytes]]:
    """The same server, which does one change after the other."""
    lock = threading.Lock()

    def serve(environ: dict[str, Any], start: Any) -> Iterable[bytes]:
        if environ["REQUEST_METHOD"] in ("GET", "HEAD"):
            return app(environ, start)
        with lock:
            return list(app(environ, start))

    return serve


class _Quiet(ThreadingHTTPServer):
    """A server that says nothing of clients that hang up."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass


@dataclass
class Proxy:
    """Passes requests on to an object server, and does to some of them what networks do."""

    target: str
    #: Says what goes wrong with a request: "" (nothing), "lost" (done, but the answer is cut off), "cut" (not even
    #: done), or a status.
    mishap: Mishap = lambda method, path: ""
    #: A server of old: conditions are not looked at.
    ignores_conditions: bool = False
    #: How far its clock is from ours.
    skew: timedelta = timedelta()
    seen: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                proxy.handle(self)

            do_PUT = do_HEAD = do_POST = do_DELETE = do_GET

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = _Quiet(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.endpoint = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def handle(self, asked: BaseHTTPRequestHandler) -> None:
        body = asked.rfile.read(int(asked.headers.get("Content-Length") or 0))
        self.seen.append(f"{asked.command} {asked.path}")
        wrong = self.mishap(asked.command, asked.path)
        if wrong == "cut":
            self._cut(asked)
            return
        if wrong.isdigit():
            self._answer(asked, int(wrong), {}, b"<Error><Code>SlowDown</Code></Error>")
            return
        status, headers, data = self._pass_on(asked, body)
        if wrong == "lost":
            self._cut(asked)
            return
        self._answer(asked, status, headers, data)

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _pass_on(self, asked: BaseHTTPRequestHandler, body: bytes) -> tuple[int, dict[str, str], bytes]:
        headers = {name: value for name, value in asked.headers.items() if name.lower() != "connection"}
        if self.ignores_conditions:
            headers = {name: value for name, value in headers.items() if not name.lower().startswith("if-")}
        link = HTTPConnection(self.target.removeprefix("http://"))
        try:
            link.request(asked.command, asked.path, body, headers)
            answer = link.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            link.close()

    def _answer(self, asked: BaseHTTPRequestHandler, status: int, headers: dict[str, str], data: bytes) -> None:
        asked.send_response_only(status)
        moved = {}
        for name, value in headers.items():
            lower = name.lower()
            if lower == "date" and self.skew:
                value = format_datetime(parsedate_to_datetime(value) + self.skew, usegmt=True)
            if lower not in ("connection", "transfer-encoding", "content-length"):
                moved[name] = value
        length = headers.get("Content-Length") or headers.get("content-length") if asked.command == "HEAD" else None
        for name, value in {**moved, "Content-Length": length or str(len(data))}.items():
            asked.send_header(name, value)
        asked.end_headers()
        if asked.command != "HEAD":
            asked.wfile.write(data)

    def _cut(self, asked: BaseHTTPRequestHandler) -> None:
        """The other side sees a reset."""
        asked.close_connection = True
        with contextlib.suppress(OSError):
            asked.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            asked.connection.close()


@pytest.fixture(scope="session")
def moto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One server for the whole session; OBJECTS_SERVER=weed: SeaweedFS instead."""
    server: Any
    if os.environ.get("OBJECTS_SERVER") == "weed":
        from tests.servers.real_objects import Weed

        server = Weed(tmp_path_factory.mktemp("weed"))
    else:
        server = Moto()
    yield server
    server.stop()


@pytest.fixture
def objects(moto: Moto, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of a store in a bucket of its own, and an environment in which it is found."""
    for name, value in environ(moto.endpoint).items():
        monkeypatch.setenv(name, value)
    return f"s3://{moto.bucket()}/runs"


@pytest.fixture
def proxy(moto: Moto, objects: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    """What stands before the server of `objects`, for the environment too."""
    made = Proxy(moto.endpoint)
    monkeypatch.setenv("AWS_ENDPOINT_URL", made.endpoint)
    yield made
    made.stop()


CREDENTIALS = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing", "AWS_REGION": "us-east-1"}


def environ(endpoint: str) -> dict[str, str]:
    """What the environment of a process holds that keeps its runs there."""
    return {**CREDENTIALS, "AWS_ENDPOINT_URL": endpoint}
