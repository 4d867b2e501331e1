"""DOT files on disk, read as text."""

from __future__ import annotations

import io
from pathlib import Path

from pipeline.dot.model import DotGraph
from pipeline.dot.parse import parse
from pipeline.errors import ConfigError
from pipeline.files import read_regular

#: A pipeline's text is not larger than this.
MAX_BYTES = 16 * 1024 * 1024


def read_text(path: str | Path) -> str:
    """The file's text; its lines end as Python's do.

    Raises:
        ConfigError: There is no such file, or it is no text in UTF-8.
    """
    path = Path(path)
    try:
        data = read_regular(path, MAX_BYTES)
        if len(data) > MAX_BYTES:
            raise ConfigError(f"{path} is larger than {MAX_BYTES // 2**20} MiB.", hint="Name a DOT file.")
        return io.TextIOWrapper(io.BytesIO(data), encoding="utf-8-sig").read()
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is no text in UTF-8.", hint="Save it as UTF-8.") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError(f"{path} cannot be read: {reason}.", hint="Name a DOT file.") from None


def read_graph(path: str | Path) -> DotGraph:
    """The graph of a file.

    Raises:
        ConfigError: As `read_text`.
        GraphError: It holds no graph; names the file, line and column.
    """
    return parse(read_text(path), str(path))
