"""What to do about a server's refusal: by its SQLSTATE, or by the driver's words where it let nobody in."""

from __future__ import annotations

import re
import shlex
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from pipeline.store.sql.address import Address
from pipeline.store.sql.single import way_in

#: A right is missing; somebody ended a statement, or a limit of its time did.
_DENIED, _ENDED = "42501", "57014"
#: Time limits that a server, a database or a role may have, by the SQLSTATE of what they end.
_LIMITS = {
    _ENDED: "statement_timeout",
    "55P03": "lock_timeout",
    "25P03": "idle_in_transaction_session_timeout",
    "25P04": "transaction_timeout",
}
#: SQLSTATEs of what another try may do: serialization failure, deadlock, a limit of time, no room for one more.
_AGAIN = frozenset({"40001", "40P01", "53300", *_LIMITS})
#: Classes of them: the server goes down or comes up, a connection is cut.
_AGAIN_CLASSES = ("57P", "08")
#: SQLSTATEs of a name that is taken.
_TAKEN = frozenset({"42P07", "42710"})
#: In the words of SQLite, which has no code for it.
_TAKEN_WORDS = re.compile(r"(?:table|view|index) .* already exists")
#: What the driver adds for its own users: an excerpt of our statement, a question.
_ADDED = re.compile(r"\s+(?:LINE \d+: .*|Is the server running [^?]*\?)", re.DOTALL)
_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")
#: The schema that a URL's options name first.
_SCHEMA = re.compile(rf"search_path=({_PLAIN.pattern})")
_MORE_ROOM = (
    "Wait until others have left, or have who runs the server let more in: max_connections, "
    "ALTER ROLE {role} CONNECTION LIMIT -1; (if it serves one connection at a time, add ?single=1 to --store.)"
)
#: By SQLSTATE: what to do.
_BY_STATE = {
    "25006": "Name a server and a user that may write; reading works as it is. (SHOW default_transaction_read_only;)",
    "3F000": "Make the schema that --store names, as who owns the database: CREATE SCHEMA …;",
    "53300": _MORE_ROOM,
}
#: What the driver says where nobody is let in, what to do, and whether the same again comes to the same.
_BEFORE = tuple(
    (re.compile(words), hint, lasting)
    for words, hint, lasting in (
        (
            "no password supplied|password authentication failed",
            "Set PGPASSWORD to the password of {name}, or write it into ~/.pgpass.", True,
        ),
        ('database ".*" does not exist$', "Make it: {createdb}", True),
        ('role ".*" does not exist$', "Name a user that the server has: postgresql://USER@HOST:PORT/DATABASE", True),
        ("is not permitted to log in", "Have who runs the server type: ALTER ROLE {role} LOGIN;", True),
        ("too many (?:clients|connections)|connection slots are reserved", _MORE_ROOM, False),
        (
            "does not support SSL",
            "Have who runs the server set ssl = on; or, where nobody else can listen, take sslmode out of --store.",
            True,
        ),
        (
            "certificate verify failed|root certificate|does not match host name",
            "Name the file of who vouches for the server's certificate: add ?sslmode=verify-full&sslrootcert=FILE "
            "to --store.",
            True,
        ),
        (
            "^(?!.*SSL encryption).*pg_hba.conf.*no encryption",
            "If the server takes SSL alone, add ?sslmode=require to --store; else have its pg_hba.conf let this user "
            "in from this machine.",
            True,
        ),
        ("pg_hba.conf", "Have the server's pg_hba.conf let this user in from this machine.", True),
    )
)  # fmt: skip


class Refusal(NamedTuple):
    """What a refusal means for who reads it."""

    hint: str
    #: The same again may come to something else.
    again: bool


def refusal(state: str, words: str, address: Address) -> Refusal:
    """What a refusal means.

    Args:
        state: Its SQLSTATE; "" where the driver has none, as for all that happens before a connection stands.
        words: The driver's; where they are in another language than English, the hint is a general one.
    """
    again = state in _AGAIN or state.startswith(_AGAIN_CLASSES)
    if not state:
        for known, hint, lasting in _BEFORE:
            if known.search(words):
                full = address.single and not lasting
                return Refusal(way_in(words, True) if full else _filled(hint, address), not lasting)
        again = True
    return Refusal(_hint(state, words, address) or way_in(words, address.single), again)


def sentence(words: str) -> str:
    """What the driver says, without what it adds to it."""
    return _ADDED.sub("", words)


def is_taken(words: str) -> bool:
    """Whether SQLite says that a name is taken."""
    return _TAKEN_WORDS.match(words) is not None


def own_place(address: Address) -> str:
    """What to do where another program's tables stand in the way."""
    if address.file is not None:
        return "Name a file that no other program uses: --store sqlite:FILE"
    return (
        "Name a database that no other program uses; or a schema of its own in this one: CREATE SCHEMA pipeline; "
        "then add ?options=-csearch_path=pipeline to --store."
    )


def _hint(state: str, words: str, address: Address) -> str:
    if state == _DENIED:
        return _rights(words, address)
    if state in _TAKEN:
        return f"Another program made it. {own_place(address)}"
    if state == _ENDED and "user request" in words:
        return "Somebody ended the statement on the server; give the same command again."
    if limit := _LIMITS.get(state):
        return _filled(
            f"Type on the server: ALTER ROLE {{role}} SET {limit} = 0; or add ?options=-c{limit}=0 to --store.", address
        )
    return _filled(_BY_STATE.get(state, ""), address)


def _filled(hint: str, address: Address) -> str:
    return hint.format(name=_name(address) or "the user", role=_role(address), createdb=_createdb(address))


def _name(address: Address) -> str:
    return unquote(urlsplit(address.url).username or "")


def _role(address: Address) -> str:
    """The user as SQL names it."""
    name = _name(address) or "USER"
    return name if _PLAIN.fullmatch(name) or name == "USER" else '"{}"'.format(name.replace('"', '""'))


def _rights(words: str, address: Address) -> str:
    role = _role(address)
    found = _SCHEMA.search(unquote(urlsplit(address.url).query))
    schema = found[1] if found else "public"
    if "for schema" in words:
        return f"Have who owns the database type: GRANT USAGE, CREATE ON SCHEMA {schema} TO {role};"
    return (
        "Have who owns the tables type: "
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role}; "
        f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA {schema} TO {role}; (SELECT alone is enough to read.)"
    )


def _createdb(address: Address) -> str:
    parts = urlsplit(address.url)
    given = (("-h", parts.hostname), ("-p", parts.port), ("-U", parts.username))
    words = [f"{option} {shlex.quote(unquote(str(value)))}" for option, value in given if value]
    return " ".join(["createdb", *words, shlex.quote(unquote(parts.path.strip("/")))])
