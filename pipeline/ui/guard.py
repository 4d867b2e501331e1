"""The guard: every request passes here first. Hosts, the token, who may write, how much, and the headers of answers."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: Names that mean this machine; any port of them, as a tunnel may lead here.
LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]"})
#: The most that one request may send, in bytes.
MOST_BYTES = 4 << 20
#: What every answer carries that does not say otherwise itself.
HEADERS = {
    "content-security-policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
    "x-content-type-options": "nosniff",
    # Not no-referrer: a form would then be sent with the Origin "null".
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}
_READS = frozenset({"GET", "HEAD"})
_SAME_SITE = frozenset({"same-origin", "none"})
#: What needs no token: it tells nothing of any run.
_OPEN = re.compile(r"/(healthz|static/.*)")
_HOST = re.compile(r"(\[[0-9a-fA-F:]+\]|[A-Za-z0-9.-]+)(:\d{1,5})?")


class Keys:
    """What lets a browser in: a link that works once, or the token of a file as often as it is given."""

    def __init__(self, secret: str, *, shared: str = "", cookie: str = "desk") -> None:
        """Make the link's token.

        Args:
            secret: What the cookie is derived from: the same over restarts, so that open pages go on.
            shared: The token of a token file; "": there is a link that works once.
            cookie: The cookie's name; browsers send cookies to every port of a machine.
        """
        self.cookie = cookie
        self.value = hmac.new(secret.encode(), b"desk cookie", hashlib.sha256).hexdigest()
        self._shared = shared
        self._link = "" if shared else secrets.token_urlsafe(24)

    @property
    def link(self) -> str:
        """Return the token of the link; "": it was used, or there is none."""
        return self._link

    def takes(self, token: str) -> bool:
        """Return whether a token lets in; the link's does so once."""
        if self._shared:
            return _equal(token, self._shared)
        if not self._link or not _equal(token, self._link):
            return False
        self._link = ""
        return True

    def knows(self, headers: Headers) -> bool:
        """Return whether a request was let in before, or brings the token of the file itself."""
        kind, _, token = headers.get("authorization", "").partition(" ")
        if self._shared and kind.lower() == "bearer" and _equal(token.strip(), self._shared):
            return True
        try:
            found = SimpleCookie(headers.get("cookie", "")).get(self.cookie)
        except CookieError:
            return False
        return found is not None and _equal(found.value, self.value)


def _equal(given: str, wanted: str) -> bool:
    return secrets.compare_digest(given.encode("utf-8", "surrogatepass"), wanted.encode())


class Guard:
    """An ASGI application around the pages; see the module."""

    def __init__(self, app: ASGIApp, keys: Keys, *, allowed_hosts: Iterable[str] = (), root_path: str = "") -> None:
        """Guard an application.

        Args:
            allowed_hosts: Names that a proxy forwards, besides those of this machine.
            root_path: The prefix under which a proxy shows the desk, whether it takes it off or not.
        """
        self._app = app
        self._keys = keys
        self._named = frozenset(name.lower() for name in allowed_hosts)
        self._root = f"/{root_path.strip('/')}" if root_path.strip("/") else ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or hand it on."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        path = str(scope.get("path", ""))
        send = _with_headers(send, static="/static/" in path)
        if scope["type"] != "http":
            return
        refused = self._refusal(scope)
        if refused:
            await _plain(send, *refused)
            return
        location = self._entrance(scope)
        if location is not None:
            cookie = f"{self._keys.cookie}={self._keys.value}; HttpOnly; SameSite=Strict; Path={self._root or ''}/"
            # A proxy that was spoken to over https says so.
            over_https = Headers(scope=scope).get("x-forwarded-proto", "").lower() == "https"
            await _plain(send, 303, "", location=location, set_cookie=cookie + ("; Secure" if over_https else ""))
            return
        path = scope["path"]
        if not _OPEN.fullmatch(path) and not self._keys.knows(Headers(scope=scope)):
            await _plain(send, 403, _NO_ENTRY + ("" if scope["method"] in _READS else _SEND_AGAIN))
            return
        await self._app(scope, _bounded(receive), send)

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        """Return why a request is not looked at, and take the prefix off its path; None: it is."""
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        name = self._host(hosts[0]) if len(hosts) == 1 else ""
        if not name:
            return 400, "This desk does not answer to that name.\n"
        self._strip(scope)
        if scope["method"] in _READS:
            return None
        if scope["method"] != "POST":
            return 405, "Only GET and POST are understood.\n"
        if not self._is_own(headers, hosts[0], name):
            return 403, "This was sent by another site.\n"
        length = headers.get("content-length", "0")
        if not length.isdecimal() or len(length) > len(str(MOST_BYTES)) or int(length) > MOST_BYTES:
            return 413, _TOO_LARGE
        return None

    def _host(self, text: str) -> str:
        """Return the name of a Host that is answered to; "": it is not."""
        match = _HOST.fullmatch(text)
        name = match[1].lower() if match else ""
        return name if name in LOOPBACK or name in self._named else ""

    def _is_own(self, headers: Headers, host: str, name: str) -> bool:
        """Return whether a page of this desk sent it: the same host and port; a browser says so twice."""
        try:
            origin = urlsplit(headers.get("origin", ""))
            # A proxy may leave out its port, which is then that of its scheme.
            proxy = (origin.hostname or "") in self._named and origin.port is None
        except ValueError:
            return False
        same = origin.netloc.lower() == host.lower() or proxy
        if origin.scheme not in ("http", "https") or not same:
            return False
        site = headers.get("sec-fetch-site")
        # Browsers leave it out where the connection is neither https nor to this machine.
        return site in _SAME_SITE if site is not None else name not in LOOPBACK

    def _strip(self, scope: Scope) -> None:
        path = scope["path"]
        if self._root and path.startswith(f"{self._root}/"):
            scope["path"] = path[len(self._root) :]
            scope["raw_path"] = scope["path"].encode()
        scope["root_path"] = ""

    def _entrance(self, scope: Scope) -> str | None:
        """Return where to go without the token; None: none that lets in was given."""
        if scope["method"] not in _READS or b"token=" not in scope["query_string"]:
            return None
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = [value for name, value in query if name == "token"]
        if len(given) != 1 or not (self._keys.knows(Headers(scope=scope)) or self._keys.takes(given[0])):
            return None
        rest = urlencode([(name, value) for name, value in query if name != "token"])
        last = quote(scope["path"].rpartition("/")[2])
        return f"./{last}" + (f"?{rest}" if rest else "")


_NO_ENTRY = (
    "This desk lets in who has its link. Open the one that `./pipeline.sh ui` printed;\n"
    "it works once: for another, stop the desk with Ctrl-C and start it again. It stops no run.\n"
)
_SEND_AGAIN = """
Nothing was done, and what you typed is not lost: open the link in another tab,
then reload this page; your browser sends it again.
"""
_TOO_LARGE = f"More than {MOST_BYTES >> 20} MB was sent.\n"


def _with_headers(send: Send, *, static: bool) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(raw=message.setdefault("headers", []))
            if static:
                # Asked for again each time, and sent again only where it has changed.
                headers["cache-control"] = "no-cache"
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return sent


def _bounded(receive: Receive) -> Receive:
    """Return what reads a body as far as it may go, whatever length was promised; then it raises status 413."""
    seen = 0

    async def received() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > MOST_BYTES:
            raise HTTPException(413, _TOO_LARGE)
        return message

    return received


async def _plain(send: Send, status: int, text: str, **headers: str) -> None:
    body = text.encode()
    named = {"content-type": "text/plain; charset=utf-8", "content-length": str(len(body)), **headers}
    raw = [(name.replace("_", "-").encode(), value.encode("latin-1")) for name, value in named.items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": body})
