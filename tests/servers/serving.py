"""An HTTP server of the tests: on a free port of this machine, in a thread of its own."""

from __future__ import annotations

import socket
import struct
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Generic, Self, TypeVar

Owner = TypeVar("Owner")


class Http(ThreadingHTTPServer, Generic[Owner]):
    """Knows whom its handlers answer for."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 256
    owner: Owner

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is normal here; anything else is a fault of this server and is shown."""
        if not isinstance(sys.exc_info()[1], (ConnectionError, TimeoutError)):
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    """Keeps connections open and says nothing."""

    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        return

    def _cut(self, reset: bool = False) -> None:
        """End the connection in the middle; a reset also throws away what the client has not read yet."""
        self.close_connection = True
        if reset:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
        else:
            self.connection.shutdown(socket.SHUT_WR)


class Serving:
    """What owns such a server; a context manager."""

    def __init__(self, handler: type[Handler], port: int = 0) -> None:
        self._http: Http[Any] = Http(("127.0.0.1", port), handler)
        self._http.owner = self
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()
