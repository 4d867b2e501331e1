"""Many courses from one file: a line each, all checked before the first is begun; then one run after the other."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pipeline.app.course import lessons
from pipeline.app.executors import check_executor
from pipeline.app.plan import Plan, plan
from pipeline.app.start import RunResult, author_kind, model_name
from pipeline.app.work import RUN
from pipeline.errors import (
    BudgetExceeded,
    ConfigError,
    CredentialMissing,
    ModelError,
    PipelineError,
    SettingsConflict,
    SpendLimit,
    StoreError,
    WriteFailed,
)
from pipeline.files import read_regular
from pipeline.settings import AUTO, LessonsOptions, option_name, parse_usd

if TYPE_CHECKING:
    from pipeline.engine.events import Listener

#: A course needs these.
_NEEDED = ("subject", "level")
#: What to do where an unfinished run has other settings.
_CHANGED = "With --accept-changes what the changed settings touch is made again."
#: No file of courses is longer; one without an end (a device, a pipe) is not read until memory is full.
_MOST = 1_000_000
_YES, _NO = frozenset({"yes", "true", "1"}), frozenset({"no", "false", "0"})


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ConfigError(f"{text!r} is no whole number") from None


def _at_once(text: str) -> int | str:
    return AUTO if text.lower() == AUTO else _whole(text)


def _yes_or_no(text: str) -> bool:
    if text.lower() not in _YES | _NO:
        raise ConfigError(f"{text!r} is neither yes nor no")
    return text.lower() in _YES


#: Column → what its cells hold: the options of `lessons` that may differ between courses.
COLUMNS: Mapping[str, Callable[[str], Any]] = {
    "subject": str, "level": str, "lessons": _whole, "model": str, "effort": str, "catalogue": Path, "out": Path,
    "max_cost_usd": parse_usd, "budget": str, "concurrency": _at_once, "until": str, "sample": _whole, "prices": Path,
    "batch": _yes_or_no, "batch_min": _whole, "skip_failed": _yes_or_no,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Line:
    """One course of the file."""

    #: Of the file, from 1; the header is the first.
    number: int
    options: LessonsOptions
    #: What a start would do now.
    plan: Plan

    @property
    def lessons_made(self) -> int:
        """Lessons that are there already."""
        return sum(item.action == "reuse" and item.name.startswith("lessons/") for item in self.plan.items)

    @property
    def complete(self) -> bool:
        """Nothing is left to do."""
        return all(item.action != RUN for item in self.plan.items)


@dataclass(frozen=True, slots=True)
class End:
    """How the start of one course ended: with a result, or with what stopped it before it had a run."""

    line: Line
    result: RunResult | None
    error: PipelineError | None

    @property
    def stops_all(self) -> bool:
        """What it met would meet the other courses too, so they are not begun."""
        error = self.result.error if self.result is not None else self.error
        if self.result is not None and self.result.detail == "interrupted":
            return True
        if isinstance(error, BudgetExceeded):
            return "daily" in error.data
        # A model that refuses before there is a run (a wrong key) refuses the next one too; so does a store. What
        # derives from a store's error is of a single run.
        early = self.result is None and (isinstance(error, ModelError) or type(error) is StoreError)
        return early or isinstance(error, (CredentialMissing, SpendLimit, WriteFailed))


def read(path: Path, given: LessonsOptions) -> list[Line]:
    """The courses of a file, checked: nothing is begun, no credential is used.

    Args:
        given: Settings of the courses whose line does not say otherwise.

    Raises:
        ConfigError: The file cannot be read, or lines of it are wrong; names each with its number.
        StoreError: The store cannot be read.
    """
    check_executor(given)
    wrong: list[str] = []
    hints: set[str] = set()
    lines: list[Line] = []
    known: dict[tuple[str, ...], int] = {}
    for number, cells in _rows(path):
        try:
            options = _options(cells, given)
            first = known.setdefault(_key(options), number)
            if first != number:
                raise ConfigError(f"this is the course of line {first} again")
            lines.append(Line(number, options, plan(options)))
        except PipelineError as error:
            # A store that does not answer is no fault of a line; what derives from it is of a single run.
            if type(error) is StoreError:
                raise
            wrong += [f"line {number}: {part}" for part in error.message.splitlines()]
            hints.add(_CHANGED if isinstance(error, SettingsConflict) else error.hint)
    if wrong:
        shared = hints.pop() if len(hints) == 1 else ""
        hint = f"Nothing was begun. {shared}".strip()
        raise ConfigError("\n".join(f"{path.name} {part}" for part in wrong), hint=hint)
    if not lines:
        raise ConfigError(f"{path.name} names no course.", hint="Below the header each line is a course.")
    return lines


def make(lines: Sequence[Line], listen: Callable[[Line], Listener]) -> Iterator[End]:
    """Make the courses in order, each in a run of its own; the one that stands begun is gone on with.

    A course that fails does not keep the next from being begun, unless the next would meet the same.

    Args:
        listen: Called as a course is begun; what it gives is told all of it.
    """
    for line in lines:
        try:
            # Nobody is asked in the middle: what needs a person's yes ends its course, and the others go on.
            end = End(line, lessons(line.options, listener=listen(line), confirm=None), None)
        except PipelineError as error:
            end = End(line, None, error)
        yield end
        if end.stops_all:
            return


def _rows(path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """(number, column → cell) of each line below the header; empty cells and lines are left out.

    Raises:
        ConfigError: It is no such file.
    """
    try:
        text = io.TextIOWrapper(io.BytesIO(read_regular(path, 4 * _MOST)), encoding="utf-8-sig").read()
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path.name} is not UTF-8 text.", hint="Save it as CSV UTF-8.") from None
    if len(text) > _MOST:
        raise ConfigError(f"{path.name} is longer than {_MOST:,} characters.", hint="Is it a table of courses?")
    first = text.partition("\n")[0]
    reader = csv.reader(text.splitlines(keepends=True), strict=True, delimiter=";" if ";" in first else ",")
    try:
        header = [cell.strip().lower().lstrip("-").replace("-", "_") for cell in next(reader, [])]
        _check_header(path, header)
        for row in reader:
            cells = [cell.strip() for cell in row]
            if any(cells):
                names = zip_longest(header[: len(cells)], cells, fillvalue="")
                yield reader.line_num, {name: cell for name, cell in names if cell}
    except csv.Error as error:
        hint = "Look for a quotation mark without its partner."
        raise ConfigError(f"{path.name} line {reader.line_num}: {error}.", hint=hint) from None


def _check_header(path: Path, header: Sequence[str]) -> None:
    where = f"{path.name} line 1"
    if missing := [name for name in _NEEDED if name not in header]:
        raise ConfigError(f"{where}: there is no column {missing[0]!r}.", hint="The first line names the columns.")
    if unknown := [name for name in header if name and name not in COLUMNS]:
        raise ConfigError(f"{where}: {unknown[0]!r} is no column.", hint=f"There are {', '.join(COLUMNS)}.")
    if twice := [name for name in header if name and header.count(name) > 1]:
        raise ConfigError(f"{where}: there are two columns {twice[0]!r}.")


def _options(cells: Mapping[str, str], given: LessonsOptions) -> LessonsOptions:
    """The settings of a line's course.

    Raises:
        ConfigError: A cell is wrong.
    """
    if missing := [name for name in _NEEDED if name not in cells]:
        raise ConfigError(f"the {missing[0]} is missing")
    if "" in cells:
        raise ConfigError("it has more cells than the header has names")
    values: dict[str, Any] = {}
    for name, cell in cells.items():
        try:
            values[name] = COLUMNS[name](cell)
        except ConfigError as error:
            said = error.message if error.message.startswith("--") else f"{option_name(name)}: {error.message}"
            raise ConfigError(said) from None
    options = replace(given, **values, given=given.given | values.keys())
    if not options.dry_run:
        model_name(options.model)
    check_executor(options)
    return options


def _key(options: LessonsOptions) -> tuple[str, ...]:
    """What two lines must not share: they would be one run."""
    from pipeline.lessons.catalogue import Catalogue

    course = Catalogue(options.catalogue).course(options.subject, options.level)
    return course.subject, course.level, author_kind(options.model or model_name(None))
