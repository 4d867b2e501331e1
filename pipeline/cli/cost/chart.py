"""`cost --plot`: where the picture is written, and what is said of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline.cli.cost.books import Books
from pipeline.cli.cost.panels import panels
from pipeline.cli.cost.png import png_of
from pipeline.cli.cost.svg import svg_of
from pipeline.cli.cost.table import summary
from pipeline.cost.report import report
from pipeline.errors import ConfigError
from pipeline.files import replace_file

#: How the file's name ends.
ENDINGS = (".svg", ".png")


def check(file: Path) -> None:
    """Refuse a file of another kind before anything is read.

    Raises:
        ConfigError: Its name ends otherwise.
    """
    if file.suffix.lower() not in ENDINGS:
        raise ConfigError(
            f"--plot {file} is neither an .svg nor a .png.", hint="Name the file after the form: --plot costs.svg"
        )


def draw(books: Books, file: Path) -> None:
    """Write the picture; a file of that name is replaced at once, or not at all.

    Raises:
        ConfigError: It cannot be written, or a .png is asked for and matplotlib is not installed.
    """
    shown = panels(books)
    data = png_of(shown) if file.suffix.lower() == ".png" else svg_of(shown).encode()
    try:
        replace_file(file, data)
    except OSError as error:
        raise ConfigError(f"The picture {file} cannot be written: {error.strerror}.") from None


def lines_of(books: Books, file: Path) -> Iterator[str]:
    """What to tell people: the file, and what stands in no picture."""
    yield f"Drawn:  {file}"
    yield from summary(books, report(books.postings).total)


def json_lines(file: Path) -> Iterator[Mapping[str, Any]]:
    """What to tell programs."""
    yield {"type": "plot", "file": str(file)}


def csv_rows(file: Path) -> Iterator[Sequence[object]]:
    """The same as a table."""
    yield ["file"]
    yield [file]
