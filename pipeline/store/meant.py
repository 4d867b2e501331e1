"""What a store's URL that cannot be taken was meant to be. A password is never repeated."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Collection, Iterable
from urllib.parse import unquote

from pipeline.errors import ConfigError
from pipeline.records.redaction import names_secret

#: How each kind of store begins.
_KINDS = {"files": "files:", "sqlite": "sqlite:", "postgresql": "postgresql://", "s3": "s3://", "memory": "memory:"}
#: A setting's name, as far as it is repeated.
_NAME = re.compile("[A-Za-z][A-Za-z0-9_.-]{0,39}")
_DATABASES = (".db", ".sqlite", ".sqlite3")


def meant(url: str) -> str:
    """A URL that names a store and is near to one that does not; "" if nothing is."""
    scheme, colon, rest = url.partition(":")
    # What may hold a password is not said again.
    if not url or "@" in url or ("=" in url and " " in url) or names_secret(unquote(url)):
        return ""
    if not colon or "/" in scheme:
        return f"sqlite:{url}" if _is_database(url) else f"files:{url}"
    near = difflib.get_close_matches(scheme.lower(), _KINDS, 1, 0.6)
    rest = rest.lstrip("/") if near and "//" in _KINDS[near[0]] else rest.removeprefix("//")
    return f"{_KINDS[near[0]]}{rest}" if near and rest and ":" not in rest else ""


def refuse_unknown(scheme: str, asked: Iterable[str], known: Collection[str], hint: str) -> None:
    """Refuse settings behind a `?` that nobody reads, by their names; what is no plain name may be a password's end.

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
    raise ConfigError(f"--store {scheme}… has no setting {names}.", hint=hint)


def refuse_settings(scheme: str, name: str) -> None:
    """Refuse a `?` in the name of a file or folder that is not there: it is meant to set something, and nothing can be.

    Raises:
        ConfigError: There is one.
    """
    _, mark, settings = name.partition("?")
    if mark and not os.path.lexists(os.path.expanduser(name)):
        asked = [each.partition("=")[0] for each in settings.split("&")]
        refuse_unknown(scheme, asked, (), f"Write {scheme}NAME, without what follows the question mark.")


def _is_database(path: str) -> bool:
    return path.endswith(_DATABASES) or os.path.isfile(os.path.expanduser(path))
