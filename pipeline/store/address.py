"""A store's URL, parsed once: what it names, how people write it, and what one that names none may have meant.

Nothing is opened. What may be a password is never repeated.
"""

from __future__ import annotations

import difflib
import os
import re
import shlex
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from pipeline.errors import ConfigError, SecretRefused
from pipeline.records.redaction import names_secret

_STORES = (
    "Stores are files:DIR (a folder), sqlite:FILE, postgresql://USER@HOST/DATABASE, s3://BUCKET/PREFIX (objects) "
    "and memory: (gone at the end)."
)
_DATABASES = "Write sqlite:FILE or postgresql://USER@HOST:PORT/DATABASE; PGPASSWORD holds a password."
_OBJECTS = "Write s3://BUCKET/PREFIX; the credential and AWS_ENDPOINT_URL come from the environment."
#: How the URL of each kind of store begins.
_BEGINNINGS = {
    "files": "files:",
    "sqlite": "sqlite:",
    "postgresql": "postgresql://",
    "s3": "s3://",
    "memory": "memory:",
}  # fmt: skip
#: What the driver and its server take beside the user, the host and the database.
_LIBPQ = (
    "application_name channel_binding client_encoding connect_timeout gssdelegation gssencmode gsslib hostaddr"
    " keepalives keepalives_count keepalives_idle keepalives_interval krbsrvname load_balance_hosts"
    " max_protocol_version min_protocol_version options passfile port require_auth requirepeer service"
    " ssl_max_protocol_version ssl_min_protocol_version sslcert sslcertmode sslcompression sslcrl sslcrldir sslkey"
    " sslmode sslnegotiation sslrootcert sslsni target_session_attrs tcp_user_timeout"
)
_SETTINGS = frozenset({"unsafe", "single", "host", "user", *_LIBPQ.split()})
#: In the name of what may hold a secret; the file of passwords is none.
_SECRET = re.compile(r"(?!passfile$).*(pass|pw|secret|token|credential)", re.IGNORECASE)
#: A setting's name, as far as it is repeated.
_NAME = re.compile("[A-Za-z][A-Za-z0-9_.-]{0,39}")
#: How a URL begins that names a user, and may hold a password.
_LOGIN = re.compile(r"//[^/]*@")
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_PREFIX = re.compile(r"[A-Za-z0-9_.=-]+(/[A-Za-z0-9_.=-]+)*")
_DATABASE_FILES = (".db", ".sqlite", ".sqlite3")


@dataclass(frozen=True, slots=True)
class StoreUrl:
    """What a store's URL names."""

    #: files, sqlite, postgresql, s3 or memory.
    scheme: str
    #: How people write it: with a whole path, without a password.
    url: str
    #: The folder of `files:`, absolute.
    folder: Path | None = None
    #: The file of `sqlite:`, absolute.
    file: Path | None = None
    #: Of `postgresql:`: what the driver is given, with the password if the URL has one.
    dsn: str = field(default="", repr=False)
    #: The URL holds a password.
    has_password: bool = False
    #: Of `s3:`; the prefix may be "".
    bucket: str = ""
    prefix: str = ""
    #: `?unsafe=1`: a server that may lose what it promised is accepted.
    unsafe: bool = False
    #: `?single=1`: the server serves one connection at a time.
    single: bool = False
    #: `?allow_http=1`: plain http to another machine is accepted.
    allow_http: bool = False


def parse_store_url(url: str) -> StoreUrl:
    """Return what a store's URL names; a relative path counts from the current folder.

    Raises:
        ConfigError: It names no store; the message never repeats what may be a password.
        SecretRefused: It holds a secret where one would be kept with the run.
    """
    if not isinstance(url, str):
        hint = f"Write {suggestion(str(url)) or _STORES}" if isinstance(url, PurePath) else _STORES
        raise ConfigError(f"{url!r} is no store; a store is named by a URL.", hint=hint, code="store_url_invalid")
    scheme, colon, rest = url.partition(":")
    if url.startswith(("postgresql://", "postgres://")):
        return _server(_as_text(url))
    if scheme == "s3" and rest.startswith("//"):
        return _objects(url)
    if scheme == "sqlite" and colon:
        return _file(_as_text(url).removeprefix("sqlite:"))
    if scheme in ("files", "memory"):
        if _LOGIN.match(rest):
            text = f"--store {scheme}://… names a user of a host, which no {scheme}: store has."
            raise ConfigError(text, hint=_STORES, code="store_url_invalid")
        _refuse_settings(f"{scheme}:", rest)
    if scheme == "memory" and colon:
        return StoreUrl(scheme, url)
    if scheme == "files" and rest:
        # Not Path.expanduser: it raises where the home of a user is not known.
        folder = Path(os.path.abspath(os.path.expanduser(rest)))
        return StoreUrl(scheme, f"files:{folder}", folder)
    near = suggestion(url)
    hint = f"Did you mean {near}? {_STORES}" if near else _STORES
    raise ConfigError(f"--store is {_shown(url)!r}, which is not a store.", hint=hint, code="store_url_invalid")


def folder_of(url: str) -> Path | None:
    """Return the folder of `files:DIR`, absolute; None: it is a store of another kind.

    Raises:
        ConfigError: The URL names no store.
    """
    return parse_store_url(url).folder


def has_password(url: str) -> bool:
    """Return whether the URL of a database holds a password.

    Raises:
        ConfigError: It names no store.
    """
    return parse_store_url(url).has_password


def anchored(url: str, folder: Path | None = None) -> str:
    """Return the URL with a whole path in place of one that counts from `folder` (None: the current one)."""
    scheme, _, rest = url.partition(":")
    if scheme not in ("files", "sqlite") or not rest or rest.startswith("//"):
        return url
    return f"{scheme}:{os.path.abspath(os.path.join(folder or '', os.path.expanduser(rest)))}"


def store_words(url: str) -> str:
    """Return ` --store URL` for a command that is printed and kept, to be typed in any folder: without a password."""
    begins = url.startswith(("postgresql://", "postgres://"))
    return f" --store {shlex.quote(parse_store_url(url).url if begins else anchored(url))}"


def suggestion(url: str) -> str:
    """Return a URL that names a store and is near to one that does not; "" if none is."""
    scheme, colon, rest = url.partition(":")
    # What may hold a password is not said again.
    if not url or "@" in url or ("=" in url and " " in url) or names_secret(unquote(url)):
        return ""
    if not colon or "/" in scheme:
        database = url.endswith(_DATABASE_FILES) or os.path.isfile(os.path.expanduser(url))
        return f"sqlite:{url}" if database else f"files:{url}"
    near = difflib.get_close_matches(scheme.lower(), _BEGINNINGS, 1, 0.6)
    rest = rest.lstrip("/") if near and "//" in _BEGINNINGS[near[0]] else rest.removeprefix("//")
    return f"{_BEGINNINGS[near[0]]}{rest}" if near and rest and ":" not in rest else ""


def _shown(url: str) -> str:
    """Return so much of what names no store as cannot be a password: of a connection string or URL how it begins."""
    begin = re.match(r"[^:=@\s]*[:=@\s]", url)
    return url if begin is None or suggestion(url) else f"{begin[0].strip()}…"


def _as_text(url: str) -> str:
    """Refuse a name that no driver takes."""
    try:
        url.encode()
    except UnicodeEncodeError:
        text = "--store is not valid UTF-8."
        raise ConfigError(text, hint=_DATABASES, code="store_url_invalid") from None
    return url


def _file(text: str) -> StoreUrl:
    _refuse_settings("sqlite:", text)
    said, hint = f"--store sqlite:{text} names no file.", _DATABASES
    file = Path(os.path.abspath(os.path.expanduser(text)))
    if "@" in text and text.startswith("//"):
        said = "--store sqlite://… names no file."
    elif text.strip("/") and text.startswith("//"):
        hint = f"Write sqlite:/{text.lstrip('/')} (or sqlite:FILE here)."
    elif text and not text.startswith("//") and not text.endswith("/") and "\0" not in text:
        if not os.path.isdir(file):
            return StoreUrl("sqlite", f"sqlite:{file}", file=file)
        said = f"--store sqlite:{text} names a folder."
    raise ConfigError(said, hint=hint, code="store_url_invalid")


def _server(url: str) -> StoreUrl:
    try:
        parts = urlsplit(url)
        asked = dict(parse_qsl(parts.query, keep_blank_values=True))
        known = parts.hostname is not None or "host" in asked
        if parts.port == 0:
            raise ValueError("no port")
        for host in f"{parts.hostname or ''},{asked.get('host', '')}".split(","):
            # Of a name that no host can have the driver would speak in words of Python.
            _ = host.startswith("/") or host.encode("idna")
    except ValueError:
        text = "--store postgresql://… cannot be read."
        raise ConfigError(text, hint=_DATABASES, code="store_url_invalid") from None
    name = parts.path.strip("/")
    # Also within a setting that sets others, and where the driver would read a name as a connection string.
    told = (unquote(parts.path), unquote(parts.username or ""), *asked.values())
    problem, hint, code = "", _DATABASES, "store_url_invalid"
    if not known or not name or parts.fragment or "/" in name:
        problem = "names no host or no database"
    elif any(map(_SECRET.match, asked)) or any(names_secret(unquote(each)) for each in told):
        problem, code = "holds a password among its settings", "store_url_secret"
    elif "@" in name:
        problem = "has an @ after the host"
        hint = "Set PGPASSWORD to the password; a / within it must be written %2F in a URL, an @ in a name %40."
    if problem:
        raise ConfigError(f"--store postgresql://… {problem}.", hint=hint, code=code)
    _refuse_unknown("postgresql://", asked, _SETTINGS, _DATABASES)
    unsafe, single = (_is_on(name, asked.pop(name, "0")) for name in ("unsafe", "single"))
    user, at, host = parts.netloc.rpartition("@")
    shown = parts._replace(scheme="postgresql", netloc=user.partition(":")[0] + at + host)
    # The driver would take what follows an @ within a password for the host, and say it aloud.
    quoted = user.replace("@", "%40") + at + host
    dsn = urlunsplit(parts._replace(scheme="postgresql", netloc=quoted, query=urlencode(asked)))
    secret = parts.password is not None
    return StoreUrl("postgresql", urlunsplit(shown), dsn=dsn, has_password=secret, unsafe=unsafe, single=single)


def _is_on(name: str, value: str) -> bool:
    if value not in ("0", "1"):
        text = f"--store postgresql://… sets {name} to neither 1 nor 0."
        raise ConfigError(text, hint=f"Write ?{name}=1.", code="store_setting_invalid")
    return value == "1"


def _objects(url: str) -> StoreUrl:
    parts = urlsplit(url)
    if "@" in parts.netloc:
        raise SecretRefused(
            "--store s3://… holds a user or a password, which would be kept with the run.",
            hint="Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY instead.",
        )
    asked = dict(parse_qsl(parts.query, keep_blank_values=True))
    prefix = parts.path.strip("/")
    _refuse_unknown("s3://", asked, ("allow_http",), _OBJECTS)
    problem = ""
    if not _BUCKET.fullmatch(parts.netloc) or (prefix and not _PREFIX.fullmatch(prefix)) or parts.fragment:
        problem = "names no bucket, or a prefix with unusual characters"
    elif any(frame in (".", "..") for frame in prefix.split("/")):
        problem = "has a prefix that leads elsewhere"
    if problem:
        raise ConfigError(f"--store s3://… {problem}.", hint=_OBJECTS, code="store_url_invalid")
    shown = f"s3://{parts.netloc}/{prefix}".rstrip("/")
    allowed = asked.get("allow_http") == "1"
    return StoreUrl("s3", shown, bucket=parts.netloc, prefix=prefix, allow_http=allowed)


def _refuse_unknown(scheme: str, asked: Iterable[str], known: Collection[str], hint: str) -> None:
    """Refuse settings behind a `?` that mean nothing, by their names; what is no plain name may be a password's end.

    Raises:
        ConfigError: There are some.
    """
    unknown = [name for name in asked if name not in known]
    if not unknown:
        return
    names = ", ".join(repr(name) if _NAME.fullmatch(name) else "of such a name" for name in unknown)
    near = [found for name in unknown for found in difflib.get_close_matches(name.lower(), known, 1)]
    if near:
        hint = f"Did you mean {', '.join(near)}?"
    raise ConfigError(f"--store {scheme}… has no setting {names}.", hint=hint, code="unknown_store_setting")


def _refuse_settings(scheme: str, name: str) -> None:
    """Refuse a `?` in the name of a file or folder that is not there: it is meant to set something, and cannot.

    Raises:
        ConfigError: There is one.
    """
    _, mark, settings = name.partition("?")
    if mark and not os.path.lexists(os.path.expanduser(name)):
        asked = [each.partition("=")[0] for each in settings.split("&")]
        _refuse_unknown(scheme, asked, (), f"Write {scheme}NAME, without what follows the question mark.")
