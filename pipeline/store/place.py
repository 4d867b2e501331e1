"""What a store's URL says, without opening it: `files:DIR` or `memory:`."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import urlsplit

from pipeline.errors import ConfigError

_HINT = "Stores are files:DIR (a folder) and memory: (gone at the end)."


def folder_of(url: str) -> Path | None:
    """The folder of `files:DIR`, absolute: a relative DIR is the caller's. None for `memory:`.

    Raises:
        ConfigError: The URL names no store this program knows.
    """
    scheme, colon, rest = url.partition(":")
    if scheme == "memory" and colon:
        return None
    if scheme == "files" and rest:
        # Not Path.expanduser: it raises where the home of a user is not known.
        return Path(os.path.expanduser(rest)).absolute()
    # Never echo what may be a password.
    shown = f"{urlsplit(url).scheme}:…" if "://" in url else url
    raise ConfigError(f"--store is {shown!r}, which names no store.", hint=_HINT)
