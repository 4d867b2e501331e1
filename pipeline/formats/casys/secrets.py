"""What is refused because it would be stored: names that say secret, and texts that are Anthropic's keys."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from pipeline.errors import SecretRefused
from pipeline.records.redaction import holds_key

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_SECRET = frozenset({"secret", "secrets", "password", "passwd", "passphrase", "credential", "credentials", "apikey",
                     "authorization"})  # fmt: skip
#: "key" and "token" name harmless things too (a cache's key, a page's token): with these before them they do not.
_KINDS = frozenset({"api", "access", "auth", "bearer", "private", "refresh", "signing", "client"})
_THINGS = frozenset({"key", "token"})


def refuse_secrets(value: Any, where: str) -> None:
    """Let through what may be stored.

    Raises:
        SecretRefused: A name at any depth says that a secret stands there, or a text is one; names the place.
    """
    for place in _secrets(value, where):
        raise SecretRefused(
            f"{place} looks like a secret; secrets are never stored.",
            hint="Let the tool take it from the environment, or lend it through services.",
        )
    if holds_key(value):
        raise SecretRefused(f"{where} holds an API key; secrets are never stored.")


def _secrets(value: Any, where: str) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, item in value.items():
            place = f"{where}.{name}"
            if _says_secret(str(name)):
                yield place
            yield from _secrets(item, place)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _secrets(item, f"{where}[{index}]")


def _says_secret(name: str) -> bool:
    words = [word.lower() for word in _WORD.findall(name)]
    if _SECRET.intersection(words) or words == ["token"]:
        return True
    return any(first in _KINDS and second in _THINGS for first, second in pairwise(words))
