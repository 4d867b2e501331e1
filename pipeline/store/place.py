"""What a store's URL says, without opening it: a folder, a database, a bucket or memory."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path
from urllib.parse import urlsplit

from pipeline.errors import ConfigError
from pipeline.store.meant import meant, refuse_settings
from pipeline.store.objects.address import is_objects
from pipeline.store.sql.address import is_sql, parse_address

_HINT = (
    "Stores are files:DIR (a folder), sqlite:FILE, postgresql://USER@HOST/DATABASE, s3://BUCKET/PREFIX (objects) "
    "and memory: (gone at the end)."
)

#: How a URL begins that names a user, and may hold a password.
_LOGIN = re.compile(r"//[^/]*@")


def folder_of(url: str) -> Path | None:
    """The folder of `files:DIR`, absolute: a relative DIR is the caller's. None for what is no folder.

    Raises:
        ConfigError: The URL names no store this program knows.
    """
    scheme, colon, rest = url.partition(":")
    if is_objects(url) or is_sql(url):
        return None
    if scheme in ("files", "memory"):
        if _LOGIN.match(rest):
            raise ConfigError(f"--store {scheme}://… names a user of a host, which no {scheme}: store has.", hint=_HINT)
        refuse_settings(f"{scheme}:", rest)
    if scheme == "memory" and colon:
        return None
    if scheme == "files" and rest:
        # Not Path.expanduser: it raises where the home of a user is not known.
        return Path(os.path.expanduser(rest)).absolute()
    hint = f"Did you mean {near}? {_HINT}" if (near := meant(url)) else _HINT
    raise ConfigError(f"--store is {_shown(url)!r}, which names no store.", hint=hint)


def _shown(url: str) -> str:
    """So much of what names no store as cannot be a password: of a connection string or URL how it begins."""
    begin = re.match(r"[^:=@\s]*[:=@\s]", url)
    return url if begin is None or meant(url) else f"{begin[0].strip()}…"


def has_password(url: str) -> bool:
    """Whether the URL of a database holds a password.

    Raises:
        ConfigError: It is none that can be read.
    """
    if not is_sql(url) or url.startswith("sqlite:"):
        return False
    parse_address(url)
    return urlsplit(url).password is not None


def anchored(url: str, folder: Path | None = None) -> str:
    """The URL with a whole path in place of one that counts from `folder` (None: the caller's)."""
    scheme, _, rest = url.partition(":")
    if scheme not in ("files", "sqlite") or not rest or rest.startswith("//"):
        return url
    return f"{scheme}:{os.path.abspath(os.path.join(folder or '', os.path.expanduser(rest)))}"


def store_words(url: str) -> str:
    """` --store URL` for a command that is printed and kept, to be typed in any folder: without a password."""
    return f" --store {shlex.quote(parse_address(url).url if has_password(url) else anchored(url))}"
