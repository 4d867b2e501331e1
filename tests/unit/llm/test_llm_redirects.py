"""A host that answers with a redirect does not get the key sent on to another one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from pipeline.errors import ModelError
from pipeline.llm.anthropic import AnthropicModel
from pipeline.llm.base import Message, Request
from tests.servers.billing import BillingServer
from tests.unit.llm.conftest import KEY


@pytest.fixture
def redirecting(server: BillingServer) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("content-length") or 0))
            self.send_response(307)
            self.send_header("location", server.url + self.path)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            return

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=http.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{http.server_address[1]}"
    http.shutdown()
    thread.join()
    http.server_close()


def test_redirect_is_an_error_and_the_key_stays_here(server: BillingServer, redirecting: str) -> None:
    model = AnthropicModel("claude-sonnet-5-5", api_key=KEY, base_url=redirecting)
    try:
        with pytest.raises(ModelError) as caught:
            model.complete(Request("claude-sonnet-5-5", [Message("user", "Why?")]))
    finally:
        model.close()
    assert (caught.value.billed, caught.value.data["status"]) == ("no", 307)
    assert server.seen == []
