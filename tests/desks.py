"""A desk to look at in tests: the real server on this machine, a client with its cookie, and a browser."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from pipeline.ui.desk import Desk
from pipeline.ui.server import Server, ServerAddress, guarded, keys_for, listen
from tests.pages import Element, read

#: Seconds that a test waits for the server at most.
PATIENCE = 60.0


@dataclass(frozen=True)
class Got:
    """What the server answered."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def page(self) -> Element:
        """The tree of the page."""
        return read(self.body)


@dataclass
class Served:
    """A desk that is served."""

    desk: Desk
    port: int
    #: The token of its link, until it is used.
    token: str
    #: Stops the server and waits for it.
    stop: Callable[[], None]
    cookies: dict[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    @property
    def link(self) -> str:
        return f"{self.url}?token={self.token}"

    def ask(self, method: str, path: str, headers: Mapping[str, str] | None = None, body: bytes = b"") -> Got:
        """One request as it is, without a cookie."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request(method, path, body or None, dict(headers or {}))
            response = connection.getresponse()
            return Got(response.status, {name.lower(): value for name, value in response.getheaders()}, response.read())
        finally:
            connection.close()

    def enter(self) -> None:
        """Take the cookie for the link's token."""
        got = self.ask("GET", f"/?token={self.token}")
        assert got.status == 303, got.text
        name, _, value = got.headers["set-cookie"].partition(";")[0].partition("=")
        self.cookies[name] = value

    @property
    def cookie(self) -> str:
        if not self.cookies:
            self.enter()
        return "; ".join(f"{name}={value}" for name, value in self.cookies.items())

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> Got:
        """GET a path below the root ("runs/ID"), with the cookie."""
        return self.ask("GET", f"/{path}", {"Cookie": self.cookie, **(headers or {})})

    def data(self, path: str) -> Any:
        """The data of a page."""
        got = self.get(f"api/v1/{path}")
        assert got.status == 200, got.text
        return got.json

    def post(
        self,
        path: str,
        fields: Mapping[str, str] | list[tuple[str, str]] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Got:
        """Send a form as a browser does."""
        own = {
            "Content-Type": "application/x-www-form-urlencoded",
            "Cookie": self.cookie,
            "Origin": f"http://127.0.0.1:{self.port}",
            "Sec-Fetch-Site": "same-origin",
        }
        got = self.ask("POST", f"/{path}", {**own, **(headers or {})}, urlencode(fields or {}).encode())
        if "set-cookie" in got.headers:
            name, _, value = got.headers["set-cookie"].partition(";")[0].partition("=")
            self.cookies[name] = value
        return got


@contextmanager
def serving(store_url: str, **address: Any) -> Iterator[Served]:
    """A desk of a store, on a free port; gone at the end."""
    at = ServerAddress(**{"port": 0, **address})
    listener = listen(at)
    port = listener.getsockname()[1]
    keys = keys_for(ServerAddress(**{**address, "port": port}))
    desk = Desk(store_url)
    server = Server(desk, guarded(desk, ServerAddress(**{**address, "port": port}), keys))
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()

    def stop() -> None:
        server.stop()
        thread.join(PATIENCE)
        assert not thread.is_alive(), "the server did not stop"

    try:
        for _ in range(int(PATIENCE / 0.02)):
            if server.started:
                break
            threading.Event().wait(0.02)
        assert server.started
        yield Served(desk, port, keys.link, stop)
    finally:
        stop()
        listener.close()
