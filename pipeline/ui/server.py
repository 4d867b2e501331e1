"""Serve the desk: the address, the link that lets in, and a stop that waits for no stream."""

from __future__ import annotations

import os
import secrets
import socket
import webbrowser
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from pipeline.errors import ConfigError
from pipeline.files import read_regular
from pipeline.store.emergency import folders
from pipeline.ui.desk import Desk
from pipeline.ui.guard import LOOPBACK, Guard, Keys
from pipeline.ui.layout import compile_templates
from pipeline.ui.routes import application

PORT = 8484
_LOCAL = "127.0.0.1"
#: A token of fewer characters can be guessed; no file holds one of more bytes.
_LEAST_TOKEN, _MOST_TOKEN_BYTES = 20, 4096


@dataclass(frozen=True)
class ServerAddress:
    """Where the desk listens, and under which names."""

    host: str = _LOCAL
    port: int = PORT
    token_file: str = ""
    root_path: str = ""
    allowed_hosts: Sequence[str] = ()

    def url(self, token: str = "") -> str:
        """Return what to open."""
        host = _LOCAL if self.host in ("0.0.0.0", "::") else self.host
        host = f"[{host}]" if ":" in host else host
        path = f"/{self.root_path.strip('/')}/".replace("//", "/")
        return f"http://{host}:{self.port}{path}" + (f"?token={token}" if token else "")


class Server(uvicorn.Server):
    """A server whose streams end with the first signal."""

    def __init__(self, desk: Desk, app: ASGIApp) -> None:
        settings: dict[str, Any] = {"lifespan": "off", "server_header": False, "proxy_headers": False}
        super().__init__(uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=1, **settings))
        self._desk = desk

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop: streams end, then the server does."""
        self.stop()

    def stop(self) -> None:
        """Ask it to stop; streams end at their next look, from whatever thread this is called."""
        self._desk.stopping.set()
        self.should_exit = True


def guarded(desk: Desk, address: ServerAddress, keys: Keys) -> Guard:
    """Return the desk's application behind its guard."""
    hosts = {*address.allowed_hosts} | ({address.host} if address.host not in ("0.0.0.0", "::") else set())
    return Guard(application(desk), keys, allowed_hosts=hosts - LOOPBACK, root_path=address.root_path)


def keys_for(address: ServerAddress) -> Keys:
    """Return what lets in: the link of this start, or the token of the file that was named.

    Raises:
        ConfigError: Other machines could reach the desk and there is no token file, or it holds none.
    """
    cookie = f"desk-{address.port}"
    if address.token_file:
        token = _token(address.token_file)
        return Keys(token, shared=token, cookie=cookie)
    if address.host not in (_LOCAL, "::1", "localhost"):
        raise ConfigError(
            f"--host {address.host} lets other machines reach the desk, so it needs --token-file too.",
            code="token_file_missing", hint="Put a long random text into a file of yours alone and name it with "
            "--token-file FILE.",
        )  # fmt: skip
    return Keys(_secret(), cookie=cookie)


def _token(path: str) -> str:
    try:
        token = read_regular(Path(path).expanduser(), _MOST_TOKEN_BYTES).decode("ascii").strip()
    except (OSError, ValueError) as error:
        raise ConfigError(f"--token-file {path} cannot be read: {error}.", code="token_unreadable") from error
    if len(token) < _LEAST_TOKEN or not token.isprintable():
        text = f"--token-file {path} does not hold a token of {_LEAST_TOKEN} or more characters."
        raise ConfigError(text, code="token_too_short")
    return token


def _secret() -> str:
    """Return what cookies are derived from: kept in a file of the user's own, so that open pages outlive a restart."""
    # Not the one that all users of this machine share.
    for folder in folders()[:-1]:
        path = folder.parent / "desk-secret"
        try:
            path.parent.mkdir(0o700, parents=True, exist_ok=True)
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        except FileExistsError:
            return read_regular(path, _MOST_TOKEN_BYTES).decode("ascii")
        except OSError:
            continue
        with os.fdopen(fd, "w", encoding="ascii") as file:
            file.write(made := secrets.token_urlsafe(32))
        return made
    return secrets.token_urlsafe(32)


def listen(address: ServerAddress) -> socket.socket:
    """Return the socket of an address; a port that is taken says so.

    Raises:
        ConfigError: It cannot be listened on.
    """
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((address.host, address.port))
        # From here on the port is taken, and a browser that follows the link waits for the first answer.
        found.listen(128)
    except OSError as error:
        found.close()
        text = f"The desk cannot listen on {address.host} port {address.port}: {error.strerror or error}."
        raise ConfigError(text, code="port_taken", hint="Name another one: --port 0 takes any.") from error
    return found


def serve(store: str | None, address: ServerAddress, *, open_browser: bool, told: Callable[[str, str], None]) -> None:
    """Serve the desk until it is told to stop; no run notices.

    Args:
        told: Is told the store and the link once browsers can connect.

    Raises:
        ConfigError: As `keys_for` and `listen`.
    """
    keys = keys_for(address)
    listener = listen(address)
    address = ServerAddress(
        address.host, listener.getsockname()[1], address.token_file, address.root_path, address.allowed_hosts
    )  # fmt: skip
    keys.cookie = f"desk-{address.port}"
    desk = Desk(store)
    url = address.url(keys.link)
    told(desk.store().url, url)
    if open_browser:
        webbrowser.open(url)
    # While the browser comes up: the first page finds its templates compiled.
    compile_templates()
    Server(desk, guarded(desk, address, keys)).run([listener])
