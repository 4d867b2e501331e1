"""What `sqlite:FILE` and `postgresql://…` say, without loading a database library. A password is never shown."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from pipeline.errors import ConfigError
from pipeline.records.redaction import names_secret
from pipeline.store.address import refuse_settings, refuse_unknown

_POSTGRES = ("postgresql://", "postgres://")
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
_HINT = "Write sqlite:FILE or postgresql://USER@HOST:PORT/DATABASE; PGPASSWORD holds a password."


@dataclass(frozen=True, slots=True)
class Address:
    """Which database."""

    #: How people write it, without a password.
    url: str
    #: The file of a SQLite database, else None.
    file: Path | None = None
    #: What the driver is given, with the password if the URL has one.
    dsn: str = field(default="", repr=False)
    #: A server that may lose what it promised is accepted.
    unsafe: bool = False
    #: The server serves one connection at a time.
    single: bool = False


def is_sql(url: str) -> bool:
    """Whether a store's URL names a database."""
    return url.startswith(("sqlite:", *_POSTGRES))


def parse_address(url: str) -> Address:
    """The database a URL names.

    Raises:
        ConfigError: The URL is none; the message never repeats what may be a password.
    """
    try:
        url.encode()
    except UnicodeEncodeError:
        # Neither driver takes such a name.
        raise ConfigError("--store holds bytes that are no UTF-8 text.", hint=_HINT) from None
    if url.startswith("sqlite:"):
        return _file(url.removeprefix("sqlite:"))
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
        raise ConfigError("--store postgresql://… cannot be read.", hint=_HINT) from None
    name = parts.path.strip("/")
    if not known or not name or parts.fragment or "/" in name:
        raise ConfigError("--store postgresql://… names no host or no database.", hint=_HINT)
    # Also within a setting that sets others, and where the driver would read a name as a connection string.
    told = (unquote(parts.path), unquote(parts.username or ""), *asked.values())
    if any(map(_SECRET.match, asked)) or any(names_secret(unquote(each)) for each in told):
        raise ConfigError("--store postgresql://… holds a password among its settings.", hint=_HINT)
    if "@" in name:
        hint = "Set PGPASSWORD to the password; a / within it must be written %2F in a URL, an @ in a name %40."
        raise ConfigError("--store postgresql://… has an @ behind the host.", hint=hint)
    refuse_unknown("postgresql://", asked, _SETTINGS, _HINT)
    unsafe, single = (_is_on(name, asked.pop(name, "0")) for name in ("unsafe", "single"))
    user, at, host = parts.netloc.rpartition("@")
    shown = urlsplit(url)._replace(scheme="postgresql", netloc=user.partition(":")[0] + at + host)
    # The driver would take what follows an @ within a password for the host, and say it aloud.
    quoted = user.replace("@", "%40") + at + host
    dsn = parts._replace(scheme="postgresql", netloc=quoted, query=urlencode(asked))
    return Address(urlunsplit(shown), None, urlunsplit(dsn), unsafe, single)


def _is_on(name: str, value: str) -> bool:
    if value not in ("0", "1"):
        raise ConfigError(f"--store postgresql://… sets {name} to neither 1 nor 0.", hint=f"Write ?{name}=1.")
    return value == "1"


def _file(text: str) -> Address:
    path = os.path.expanduser(text)
    refuse_settings("sqlite:", text)
    if "@" in text and text.startswith("//"):
        raise ConfigError("--store sqlite://… names no file.", hint=_HINT)
    if text.strip("/") and text.startswith("//"):
        whole = f"/{text.lstrip('/')}"
        raise ConfigError(f"--store sqlite:{text} names no file.", hint=f"Write sqlite:{whole} (or sqlite:FILE here).")
    if not text or text.startswith("//") or text.endswith("/") or "\0" in text:
        raise ConfigError(f"--store sqlite:{text} names no file.", hint=_HINT)
    file = Path(os.path.abspath(path))
    if os.path.isdir(file):
        raise ConfigError(f"--store sqlite:{text} names a folder.", hint=_HINT)
    return Address(f"sqlite:{file}", file)
