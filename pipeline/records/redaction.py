"""What never goes onto a screen or a page, or into a record: credentials, and characters that change what is seen."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_KEY = re.compile(r"\bsk-ant-[\w\-]{6,}")
_SECRETS = (
    (re.compile(r"\bsk-[\w\-]{6,}"), "[key]"),
    # The ids of Amazon's keys, and Google's tokens.
    (re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"), "[key]"),
    (re.compile(r"\bya29\.[\w\-.]{6,}"), "[key]"),
    # The base64 of user and password; "Basic mathematics" is a subject.
    (re.compile(r"\b[Bb]asic\s+(?=\S+[0-9A-Z=])[A-Za-z0-9+/]{8,}=*"), "Basic [key]"),
    (re.compile(r"(?i)\bbearer\s+[^\s\"',;]+"), "Bearer [key]"),
    (
        re.compile(
            r"(?i)((?:x-)?api[-_ ]?key|authorization|(?:auth|access|security|session)[-_ ]token)(\W{1,4})[^\s\"',;]{6,}"
        ),
        r"\1\2[key]",
    ),
    # A command with a database's URL needs its user, who is no secret; elsewhere a name alone may be a token.
    (re.compile(r"(\bpostgres(?:ql)?://[^:/@\s]*)(?::[^/\s]*)?@"), r"\1@"),
    (re.compile(r"(?<!\bpostgres)(?<!\bpostgresql)://[^/@\s]+@"), "://"),
)


#: Characters that show nothing and change what stands around them: directions, zero widths, fillers, tags.
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff"
    "\uffa0\ufff9-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
#: Scripts and pictures whose signs a joiner binds together or keeps apart.
_JOINED = "\u0590-\u18af\u2190-\u2bff\ufe0f\U0001f000-\U0001faff"
_JOINER = re.compile(f"(?<![{_JOINED}])[\u200c\u200d]|[\u200c\u200d](?![{_JOINED}])")
_SEPARATORS = {0x2028: " ", 0x2029: " "}
#: C0 but tab and newline, DEL, C1: no terminal, table or picture gets them; half a character is none.
_CONTROLS: dict[int, str | None] = {
    **dict.fromkeys((*range(9), *range(11, 32), *range(127, 160))),
    **dict.fromkeys(range(0xD800, 0xE000), "?"),
}


def visible(text: str) -> str:
    """Return the text without invisible characters that change how the rest is read; the one gate for all sinks.

    Accents, minus signs, scripts from right to left and joined pictures stay; a line separator becomes a blank.
    """
    if text.isascii():
        return text
    return _JOINER.sub("", _INVISIBLE.sub("", text)).translate(_SEPARATORS)


def printable(text: str) -> str:
    """Return the text as a terminal, table or picture may get it: visible, and no command to whatever shows it."""
    return visible(text.translate(_CONTROLS))


def without_keys(text: str) -> str:
    """Return the text with everything that looks like a credential replaced."""
    for pattern, shown in _SECRETS:
        text = pattern.sub(shown, text)
    return text


#: A setting by whose name its value is a secret, in a URL, a connection string, JSON or a line of a file. It begins
#: where a word does, and never gives back what it took: a text may be one word of a million characters.
_NAMED = re.compile(
    r"""((?<![\w-])(?>[\w-]*(?:passw(?:or)?d|passphrase|pwd|secret|credential|api[-_]?key|access[-_]?key
        |(?:\b|_|-)token(?!s)|\bpass(?==|%3d)))[\w-]*+)
        (\s*(?:=|%3d)\s*|["']\s*:\s*)
        ('(?:[^'\\]|\\.)*'?|"(?:[^"\\]|\\.)*"?|[^\s&,;'"]+)""",
    re.IGNORECASE | re.VERBOSE,
)


def without_secrets(text: str) -> str:
    """Return the text as an error may say it: without keys and the values of settings that are named as secrets."""
    return _NAMED.sub(r"\1\2[secret]", without_keys(text))


def names_secret(text: str) -> bool:
    """Return whether a text sets something that is named as a secret."""
    return _NAMED.search(text) is not None


def holds_key(value: Any) -> bool:
    """Return whether a text, or a text in a list or mapping, holds one of Anthropic's keys."""
    if isinstance(value, str):
        return _KEY.search(value) is not None
    if isinstance(value, Mapping):
        return any(holds_key(part) for pair in value.items() for part in pair)
    return isinstance(value, list | tuple) and any(map(holds_key, value))
