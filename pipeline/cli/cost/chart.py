"""`cost --plot`: what the picture shows, spend by day and by step, and where it is written."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

from pipeline.cli.cost.books import Books
from pipeline.cli.cost.png import png_of
from pipeline.cli.cost.svg import svg_of
from pipeline.cli.cost.table import summary
from pipeline.cli.text import count
from pipeline.cost.report import UNKNOWN, Line, at_least, report
from pipeline.errors import ConfigError

#: More days than this are drawn as months; of steps the dearest are drawn, the others as one.
MOST_DAYS, MOST_STEPS = 62, 16
#: How the file's name ends.
ENDINGS = (".svg", ".png")
_ZERO = Decimal(0)


class Bar(NamedTuple):
    """One bar, in USD: what stands, what was wasted, and what may have been spent beyond both."""

    key: str
    used: Decimal
    wasted: Decimal
    more: Decimal

    @property
    def whole(self) -> Decimal:
        """All of it."""
        return self.used + self.wasted + self.more


class Panel(NamedTuple):
    """One of the two pictures beside each other."""

    title: str
    bars: Sequence[Bar]


def panels(books: Books) -> list[Panel]:
    """Spend by day (by month, where there are many) and by step."""
    by_day, by_step = (report(books.postings, by) for by in ("day", "step"))
    title, bars = _dated([_bar(line) for line in by_day.lines])
    if unknown := by_day.total.unpriced + by_day.total.unbounded:
        title += f"; {count(unknown, 'call')} of unknown cost not in it"
    return [Panel(title, bars), Panel("Spend by step", _dearest([_bar(line) for line in by_step.lines]))]


def _bar(line: Line) -> Bar:
    low = at_least(line.spend)
    return Bar(line.key, low - line.wasted, line.wasted, line.high - line.low)


def _dated(bars: Sequence[Bar]) -> tuple[str, list[Bar]]:
    """Days without gaps; days of one month together where they are too many."""
    known = {bar.key: bar for bar in bars if bar.key != UNKNOWN}
    rest = [bar for bar in bars if bar.key == UNKNOWN]
    if not known:
        return "Spend by day (UTC)", rest
    first, last = (date.fromisoformat(day) for day in (min(known), max(known)))
    if (last - first).days < MOST_DAYS:
        days = [(first + timedelta(days=n)).isoformat() for n in range((last - first).days + 1)]
        return "Spend by day (UTC)", [known.get(day, Bar(day, _ZERO, _ZERO, _ZERO)) for day in days] + rest
    months: dict[str, Bar] = {}
    for day, bar in sorted(known.items()):
        months[day[:7]] = _joined(day[:7], [*filter(None, [months.get(day[:7])]), bar])
    return "Spend by month (UTC)", [*months.values(), *rest]


def _dearest(bars: Sequence[Bar]) -> list[Bar]:
    if len(bars) <= MOST_STEPS:
        return list(bars)
    chosen = set(sorted(bars, key=lambda bar: -bar.whole)[: MOST_STEPS - 1])
    others = [bar for bar in bars if bar not in chosen]
    kept = [bar for bar in bars if bar in chosen]
    return [*kept, _joined(f"{count(len(others), 'other step')}", others)]


def _joined(key: str, bars: Sequence[Bar]) -> Bar:
    used, wasted, more = (sum((getattr(bar, part) for bar in bars), _ZERO) for part in ("used", "wasted", "more"))
    return Bar(key, used, wasted, more)


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
        handle, name = tempfile.mkstemp(prefix=f".{file.name}-", dir=file.parent)
        try:
            with open(handle, "wb") as out:
                out.write(data)
            os.chmod(name, 0o666 & ~_umask())
            os.replace(name, file)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise
    except OSError as error:
        raise ConfigError(f"The picture {file} cannot be written: {error.strerror}.") from None


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


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
