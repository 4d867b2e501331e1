"""What to do about a server's refusal: by its SQLSTATE, or by the driver's words where it let nobody in."""

from __future__ import annotations

import re
import shlex
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from pipeline.store.sql.address import Address
from pipeline.store.sql.single import way_in

#: A right is missing.
_DENIED = "42501"
#: What the driver adds for its own users: an excerpt of our statement, a question.
_ADDED = re.compile(r"\s+(?:LINE \d+: .*|Is the server running [^?]*\?)", re.DOTALL)
_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")


class Refusal(NamedTuple):
    """What a refusal means for who reads it."""

    hint: str
    #: The same again comes to the same.
    lasting: bool = False


def refusal(state: str, words: str, address: Address) -> Refusal:
    """What a refusal means.

    Args:
        state: Its SQLSTATE; "" where the driver has none, as for all that happens before a connection stands.
        words: The driver's; where they are in another language than English, the hint is a general one.
    """
    if state == _DENIED:
        return Refusal(_rights(words, address), True)
    if not state:
        parts = urlsplit(address.url)
        if "no password supplied" in words or "password authentication failed" in words:
            user = unquote(parts.username or "the user")
            return Refusal(f"Set PGPASSWORD to the password of {user}, or write it into ~/.pgpass.", True)
        if "database " in words and words.endswith(" does not exist"):
            return Refusal(f"Make it: {_createdb(address)}", True)
        if "role " in words and words.endswith(" does not exist"):
            return Refusal("Name a user that the server has: postgresql://USER@HOST:PORT/DATABASE", True)
        if "pg_hba.conf" in words:
            return Refusal("Have the server's pg_hba.conf let this user in from this machine.", True)
    return Refusal(way_in(words, address.single))


def sentence(words: str) -> str:
    """What the driver says, without what it adds to it."""
    return _ADDED.sub("", words)


def _rights(words: str, address: Address) -> str:
    name = unquote(urlsplit(address.url).username or "USER")
    user = name if _PLAIN.fullmatch(name) else '"{}"'.format(name.replace('"', '""'))
    if "for schema" in words:
        return f"Have who owns the database type: GRANT USAGE, CREATE ON SCHEMA public TO {user};"
    return (
        "Have who owns the tables type: "
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {user}; "
        f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {user}; (SELECT alone is enough to read.)"
    )


def _createdb(address: Address) -> str:
    parts = urlsplit(address.url)
    given = (("-h", parts.hostname), ("-p", parts.port), ("-U", parts.username))
    words = [f"{option} {shlex.quote(unquote(str(value)))}" for option, value in given if value]
    return " ".join(["createdb", *words, shlex.quote(unquote(parts.path.strip("/")))])
