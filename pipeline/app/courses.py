"""Many courses from one file, a line each, all checked before the first starts; and one course from a form."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from pipeline.app.course import lessons
from pipeline.app.course_work import RUN
from pipeline.app.executors import check_executor
from pipeline.app.model_choice import author_kind, model_name
from pipeline.app.plan import CoursePlan, plan
from pipeline.app.start import RunReport, Start
from pipeline.engine.events import Listener
from pipeline.environment import VARIABLES
from pipeline.errors import (
    BudgetExceeded,
    CatalogueError,
    ConfigError,
    CredentialMissing,
    ModelError,
    PipelineError,
    RunInterrupted,
    SettingsConflict,
    SpendLimit,
    StoreError,
    WriteFailed,
)
from pipeline.files import read_regular
from pipeline.lessons.catalogue import Catalogue
from pipeline.records.budgets import labels_text
from pipeline.settings import AUTO, Execution, Identity, option_name, parse_usd

#: A course needs these.
_NEEDED = ("subject", "level")
#: Characters: no table of courses is longer; a file without an end (a device, a pipe) is not read until memory is full.
MOST = 1_000_000
#: Faults that are told of one table.
_MOST_FAULTS = 50
_YES, _NO = frozenset({"yes", "true", "1"}), frozenset({"no", "false", "0"})


def _whole(text: str, option: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise _wrong(f"{option}: {text!r} is not a whole number") from None


def _at_once(text: str, option: str) -> int | str:
    return AUTO if text.lower() == AUTO else _whole(text, option)


def yes_or_no(text: str, option: str) -> bool:
    """Return whether a cell says yes.

    Raises:
        ConfigError: It says neither.
    """
    if text.lower() not in _YES | _NO:
        raise _wrong(f"{option}: {text!r} is neither yes nor no")
    return text.lower() in _YES


def _text(text: str, _: str) -> str:
    return text


def _path(text: str, _: str) -> Path:
    return Path(text)


#: Column → what reads its cells (text, option): the options of `lessons` that may differ between courses.
COLUMNS: Mapping[str, Callable[[str, str], Any]] = {
    "subject": _text, "level": _text, "lessons": _whole, "model": _text, "provider": _text, "effort": _text,
    "catalogue": _path, "bank": _path, "out": _path, "max_cost_usd": parse_usd,
    "budget": _text, "concurrency": _at_once, "until": _text,
    "sample": _whole, "prices": _path, "batch": yes_or_no, "batch_min": _whole, "skip_failed": yes_or_no,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class CourseLine:
    """One course of the file."""

    #: Of the file, from 1; the header is the first.
    number: int
    asked: Identity
    execution: Execution
    #: What a start would do now.
    plan: CoursePlan

    @property
    def lessons_made(self) -> int:
        """Return lessons that are there already."""
        return sum(item.action == "reuse" and item.name.startswith("lessons/") for item in self.plan.items)

    @property
    def complete(self) -> bool:
        """Return nothing is left to do."""
        return all(item.action != RUN for item in self.plan.items)


@dataclass(frozen=True, slots=True)
class CourseEnd:
    """End of one course's start: a report, or what stopped it before it had a run."""

    line: CourseLine
    report: RunReport | None
    error: PipelineError | None

    @property
    def exit_code(self) -> int:
        """Return the exit code that the course would have had alone."""
        if self.report is not None:
            return self.report.result.exit_code
        return self.error.exit_code if self.error is not None else 1

    @property
    def stops_all(self) -> bool:
        """Return whether the other courses would meet the same, so they are not started."""
        error = self.report.result.error if self.report is not None else self.error
        if self.report is not None and self.report.result.detail == "interrupted":
            return True
        if isinstance(error, BudgetExceeded):
            return error.code in ("day_limit_reached", "limit_reached")
        # A model that refuses before there is a run (a wrong key) refuses the next one too; so does a store. What
        # derives from a store's error is of a single run.
        early = self.report is None and (isinstance(error, ModelError) or type(error) is StoreError)
        return early or isinstance(error, (CredentialMissing, SpendLimit, WriteFailed))


def read(path: Path, asked: Identity, execution: Execution) -> list[CourseLine]:
    """Return the courses of a file, checked as `check` does.

    Raises:
        ConfigError: The file cannot be read, or as `check`.
    """
    try:
        text = io.TextIOWrapper(io.BytesIO(read_regular(path, 4 * MOST)), encoding="utf-8-sig").read()
    except OSError as error:
        raise _wrong(f"{path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise _wrong(f"{path.name} is not UTF-8 text.", "Save it as CSV UTF-8.") from None
    return check(text, path.name, asked, execution)


def check(text: str, name: str, asked: Identity, execution: Execution) -> list[CourseLine]:
    """Return the courses of a table, checked: nothing is started, no credential is used.

    Args:
        text: CSV, the names of the columns first.
        name: What the table is called.
        asked, execution: Settings of the courses whose line does not say otherwise.

    Raises:
        ConfigError: It is no such table, or lines of it are wrong; names each with its number, and data["lines"]
            has (number, what is wrong) of each.
        StoreError: The store cannot be read.
    """
    check_executor(execution)
    wrong: list[tuple[int, str]] = []
    hints: set[str] = set()
    lines: list[CourseLine] = []
    known: dict[tuple[str, ...], int] = {}
    for number, cells in _rows(text, name):
        if len(wrong) >= _MOST_FAULTS:
            wrong.append((number, "this line and those below it were not looked at"))
            break
        try:
            its_identity, its_execution = _settings(cells, asked, execution)
            course = Catalogue(its_identity.catalogue).course(its_identity.subject, its_identity.level)
            # Two lines that share these would be one run.
            key = course.subject, course.level, author_kind(
                model_name(its_identity.model, its_identity.provider, its_execution.base_url)
            )  # fmt: skip
            if (first := known.setdefault(key, number)) != number:
                raise _wrong(f"duplicate of line {first}")
            lines.append(CourseLine(number, its_identity, its_execution, plan(its_identity, its_execution)))
        except PipelineError as error:
            # A store that does not answer is no fault of a line; what derives from it is of a single run.
            if type(error) is StoreError:
                raise
            wrong += [(number, part) for part in error.message.splitlines()]
            changed = "Use --accept-changes to run again what the changed settings affect."
            hints.add(changed if isinstance(error, SettingsConflict) else error.hint)
    if wrong:
        shared = hints.pop() if len(hints) == 1 else ""
        told = "\n".join(f"{name} line {number}: {part}" for number, part in wrong)
        raise _wrong(told, f"Nothing was started. {shared}".strip(), lines=wrong)
    if not lines:
        raise _wrong(f"{name} lists no courses.", "List one course per line below the header.")
    return lines


def make(lines: Sequence[CourseLine], listen: Callable[[CourseLine], Listener]) -> Iterator[CourseEnd]:
    """Make the courses in order, each in a run of its own; an unfinished run of a course is resumed.

    A course that fails does not keep the next from being started, unless the next would meet the same.

    Args:
        listen: Called as a course starts; the listener it returns hears all of that course's events.
    """
    for line in lines:
        try:
            # No questions in between: what needs a person's yes ends its course, and the others go on.
            end = CourseEnd(line, lessons(Start.of(line.asked, line.execution, listen(line))), None)
        except PipelineError as error:
            end = CourseEnd(line, None, error)
        yield end
        if end.stops_all:
            return


def exit_code(codes: Sequence[int]) -> int:
    """Return 130 where it was interrupted, else the code of the first course that did not finish."""
    stopped = RunInterrupted.exit_code
    return stopped if stopped in codes else next((code for code in codes if code), 0)


def _rows(text: str, name: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield (number, column → cell) of each line below the header; empty cells and lines are left out.

    Raises:
        ConfigError: It is no such table.
    """
    if len(text) > MOST:
        raise _wrong(f"{name} is longer than {MOST:,} characters.", "Is it a table of courses?")
    first = text.partition("\n")[0]
    reader = csv.reader(text.splitlines(keepends=True), strict=True, delimiter=";" if ";" in first else ",")
    try:
        header = [cell.strip().lower().lstrip("-").replace("-", "_") for cell in next(reader, [])]
        _check_header(name, header)
        for row in reader:
            cells = [cell.strip() for cell in row]
            if any(cells):
                names = zip_longest(header[: len(cells)], cells, fillvalue="")
                yield reader.line_num, {column: cell for column, cell in names if cell}
    except csv.Error as error:
        hint = "Look for an unmatched quotation mark."
        raise _wrong(f"{name} line {reader.line_num}: {error}.", hint) from None


def _check_header(name: str, header: Sequence[str]) -> None:
    where = f"{name} line 1"
    if missing := [column for column in _NEEDED if column not in header]:
        raise _wrong(f"{where}: the column {missing[0]!r} is missing.", "The first line names the columns.")
    if unknown := [column for column in header if column and column not in COLUMNS]:
        raise _wrong(f"{where}: unknown column {unknown[0]!r}.", f"Columns: {', '.join(COLUMNS)}.")
    if twice := [column for column in header if column and header.count(column) > 1]:
        raise _wrong(f"{where}: duplicate column {twice[0]!r}.")


def _settings(cells: Mapping[str, str], asked: Identity, execution: Execution) -> tuple[Identity, Execution]:
    """Return the settings of a line's course.

    Raises:
        ConfigError: A cell is wrong.
    """
    if missing := [name for name in _NEEDED if name not in cells]:
        raise _wrong(f"the {missing[0]} is missing")
    if "" in cells:
        raise _wrong("it has more cells than the header")
    values = {name: COLUMNS[name](cell, option_name(name)) for name, cell in cells.items()}
    asked, execution = _with_values(asked, execution, values)
    if not execution.dry_run:
        model_name(asked.model, asked.provider, execution.base_url)
    check_executor(execution)
    return asked, execution


def _with_values(asked: Identity, execution: Execution, values: Mapping[str, Any]) -> tuple[Identity, Execution]:
    """Return the settings with other values; each goes where it belongs."""
    own = {name: value for name, value in values.items() if name in Identity.__slots__}
    how = {name: value for name, value in values.items() if name not in own}
    return (
        replace(asked, **own, given=asked.given | own.keys()),
        replace(execution, **how, given=execution.given | how.keys()),
    )


def _wrong(message: str, hint: str = "", **data: Any) -> ConfigError:
    return ConfigError(message, code="invalid_course_file", hint=hint, **data)


# --- one course from a form ----------------------------------------------------------------------


#: Field → what reads it (text, option).
FIELDS: Mapping[str, Callable[[str, str], Any]] = {
    **COLUMNS, "daily_budget_usd": parse_usd, "blind_solve": yes_or_no, "review": yes_or_no,
    "force": yes_or_no, "downloads": _text, "labels": lambda text, _: labels_text(text),
}  # fmt: skip
#: Fields that are given as a bare option where they say yes; of these the first have one for no, too.
_SWITCHES = ("batch", "blind_solve", "review", "force", "skip_failed")
_WITH_NO = frozenset({"batch", "blind_solve", "review"})


@dataclass(frozen=True, slots=True)
class CourseFields:
    """Hold the settings that were read from a form, and its faults."""

    asked: Identity
    execution: Execution
    #: Field → what is wrong with it, for people.
    errors: Mapping[str, str]


def defaults() -> dict[str, str]:
    """Return what the environment sets, by field."""
    return {name: text for name in FIELDS if (text := os.environ.get(VARIABLES.get(name) or "", ""))}


def read_fields(typed: Mapping[str, str], store: str, *, starting: bool = False) -> CourseFields:
    """Return the settings of a start; an empty field is the environment's, else the program's default.

    Args:
        store: URL of the store; "": the default one.
        starting: The model needs its credential now.
    """
    values = defaults() | {name: text.strip() for name, text in typed.items() if name in FIELDS and text.strip()}
    asked, errors = Identity(), dict[str, str]()
    execution = Execution(store=store, given=frozenset({"store"}) if store else frozenset())
    for name, text in values.items():
        try:
            if not text.isprintable():
                raise ConfigError(f"{option_name(name)} holds a character that cannot be typed.", code="invalid_option")
            asked, execution = _with_values(asked, execution, {name: FIELDS[name](text, option_name(name))})
        except ConfigError as error:
            errors[name] = f"{error.message} {error.hint}".strip()
    errors |= {name: f"Choose a {name}." for name in ("subject", "level") if name not in values}
    if not errors:
        errors |= _refusals(asked, execution, starting=starting)
    return CourseFields(asked, execution, errors)


def _refusals(asked: Identity, execution: Execution, *, starting: bool) -> dict[str, str]:
    """Return what only shows once all fields are read."""
    try:
        Catalogue(asked.catalogue).course(asked.subject, asked.level)
    except CatalogueError as error:
        return {"level": error.message}
    try:
        model_name(asked.model if starting else None, asked.provider, execution.base_url)
    except ConfigError as error:
        return {"model": f"{error.message} {error.hint}"}
    return {}


def arguments(typed: Mapping[str, str]) -> list[str]:
    """Return the options of the `lessons` command that say the same as the fields."""
    found = []
    for name, text in typed.items():
        option, text = option_name(name), text.strip()
        if name not in FIELDS or not text:
            continue
        if name not in _SWITCHES:
            found.append(f"{option}={text}")
        elif yes_or_no(text, option):
            found.append(option)
        elif name in _WITH_NO:
            found.append(f"--no-{option[2:]}")
    return found
