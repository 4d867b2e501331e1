"""Prompts and the rules in them: texts from files, numbers from the schemas that check the answers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

from annotated_types import Ge, Le, MaxLen, MinLen
from pydantic import BaseModel, StringConstraints
from pydantic.fields import FieldInfo

from pipeline.content import lesson, shape
from pipeline.content.checks import ROWS
from pipeline.content.checks_quantities import without_calculator
from pipeline.content.fields import MATHS_COMMANDS, Words
from pipeline.content.spelling import respelt
from pipeline.drawing import figure
from pipeline.errors import ConfigError
from pipeline.files import read_regular
from pipeline.frameworks import region_of
from pipeline.lessons import schemas
from pipeline.lessons.course_words import CALCULATORS, course_words, kind_of
from pipeline.lessons.plan import MAX_OUTCOMES, MAX_POINTS, POINT_LIMITS
from pipeline.lessons.release import RULE
from pipeline.maths import forms, notation, units
from pipeline.publish.view import has_calculators

LESSON_MODELS: tuple[type[BaseModel], ...] = (
    lesson.Lesson, lesson.Misconception, lesson.Cycle, lesson.ExplainerCard, lesson.ModellingCard,
    lesson.WorkedExample, lesson.QuestionCard, lesson.Item, lesson.Option, lesson.WrongAnswer, lesson.QuestionPart,
    lesson.Figure, lesson.Note,
)  # fmt: skip
OUTLINE_MODELS: tuple[type[BaseModel], ...] = (schemas.Outline, schemas.OutlineEntry)
ENTRY_MODELS: tuple[type[BaseModel], ...] = (schemas.EntryDetails,)
CRITIC_MODELS: tuple[type[BaseModel], ...] = (
    schemas.Critique, schemas.Claim, schemas.Judgement, schemas.Evidence, schemas.Concern,
)  # fmt: skip


def rule_tables(course: Mapping[str, Any]) -> dict[str, str]:
    """Return every text a prompt file may hold, by name: generated from the schemas, and what the course decides."""
    region, words, calculators = region_of(course), course_words(course), has_calculators(course)
    tables = {
        "lesson_fields": model_rules(LESSON_MODELS),
        "outline_fields": model_rules(OUTLINE_MODELS),
        "entry_fields": model_rules(ENTRY_MODELS),
        "critic_fields": model_rules(CRITIC_MODELS),
        "release_rule": RULE,
        "criteria": "\n".join(f"- {key}: {name}" for key, name in schemas.CRITERION_NAMES.items()),
        "shape_rules": _lines(shape.rules()),
        "check_rules": _lines(
            row.rule for row in ROWS if row.rule and (calculators or row.check is not without_calculator)
        ),
        "notation_lines": _lines(notation.prompt_lines()),
        "unit_lines": _lines(units.prompt_lines(region.currency, region.coin, customary="customary" in region.units)),
        "form_lines": "\n".join(forms.prompt_lines(region.coin_name)).replace("factorise", region.factorise),
        "figure_kinds": _lines(figure.prompt_lines()),
        "lesson_limits": "\n".join(_lesson_limits()),
        "maths_commands": " ".join(f"\\{name}" for name in sorted(MATHS_COMMANDS)),
    }
    # Schemas speak of any course: here their words become those of its region and its kind of subject.
    other = [*kind_of(course).fields, ("natural setting", words["natural_setting"])]
    for old, new in other if calculators else [*other, CALCULATORS]:
        tables = {name: text.replace(old, new) for name, text in tables.items()}
    return {name: _fill(name, text, _TABLE, words) for name, text in (words | tables).items()}


def _lines(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def model_rules(models: tuple[type[BaseModel], ...]) -> str:
    """Return one block a model: its meaning, then a line for each field that has a limit or a description."""
    return "\n\n".join("\n".join(_model_lines(model)) for model in models)


def limits(info: FieldInfo) -> str:
    """Return a field's limits in words, those of a list's texts too; "" where it has none."""
    kinds = [info.annotation, *get_args(info.annotation)]
    inner = next((get_args(each)[0] for each in kinds if get_origin(each) is list), None)
    own, each = _limits(info.metadata, str(info.annotation)), _limits(_text_rules(inner))
    alone = next((_limits(_text_rules(kind)) for kind in kinds if get_origin(kind) is Annotated), "")
    return ", ".join(part for part in (own or alone, f"each {each}" if each else "") if part)


def _text_rules(kind: Any) -> list[Any]:
    """Return the limits of an annotated text; patterns are said by descriptions."""
    if get_origin(kind) is not Annotated or get_args(kind)[0] is not str:
        return []
    found: list[Any] = []
    for rule in get_args(kind)[1:]:
        if isinstance(rule, StringConstraints):
            found += [MinLen(rule.min_length)] if rule.min_length else []
            found += [MaxLen(rule.max_length)] if rule.max_length else []
        else:
            found += rule.metadata if isinstance(rule, FieldInfo) else [rule]
    return found


def _limits(rules: Sequence[Any], kind: str = "") -> str:
    low: Any = None
    high: Any = None
    unit = ""
    for rule in rules:
        if isinstance(rule, Words):
            highs = [other.max_length for other in rules if isinstance(other, MaxLen)]
            return f"{rule.low} to {rule.high} words" + (f", at most {highs[0]} characters" if highs else "")
        if isinstance(rule, MinLen):
            low, unit = rule.min_length, " entries" if kind.startswith("list") else " characters"
        elif isinstance(rule, MaxLen):
            high, unit = rule.max_length, " entries" if kind.startswith("list") else " characters"
        elif isinstance(rule, Ge):
            low = rule.ge
        elif isinstance(rule, Le):
            high = rule.le
    return _range(low, high, unit)


def _range(low: Any, high: Any, unit: str) -> str:
    if low is None and high is None:
        return ""
    if high is None:
        return f"at least {low}{unit}"
    if low in (None, 0) and unit:
        return f"at most {high}{unit}"
    return f"exactly {low}{unit}" if low == high else f"{low or 0} to {high}{unit}"


def _model_lines(model: type[BaseModel]) -> Iterator[str]:
    doc = " ".join((model.__doc__ or "").split())
    yield f"{model.__name__}: {doc}"
    for name, info in model.model_fields.items():
        parts = [part for part in (limits(info), info.description or "") if part]
        if parts:
            yield f"- {name}: {'; '.join(parts)}."


def _lesson_limits() -> Iterator[str]:
    yield f"- A teach lesson has 1 to {MAX_OUTCOMES} outcomes and 1 to {MAX_POINTS} points, 2 or more where it can."
    for kind, limit in POINT_LIMITS.items():
        yield f"- A lesson of type {kind} draws on at most {limit} points, all taught before it."


#: Prompt file → the values its requests give it.
PLACEHOLDERS: Mapping[str, frozenset[str]] = {
    "shared": frozenset({"course", "level"}),
    "outline": frozenset({"lessons", "counts", "reach"}),
    "entry": frozenset(),
    "detail": frozenset({"order", "people", "places"}),
    "scheme": frozenset({"scheme"}),
    "revision": frozenset({"faults"}),
    "author": frozenset({"course", "level", "scheme", "examples"}),
    "examples_mathematics": frozenset(),
    "examples_science": frozenset(),
    "examples_computing": frozenset(),
    "examples_words": frozenset(),
    "task": frozenset({"order", "lesson_type", "points", "people", "places"}),
    "correction": frozenset({"order", "points", "findings", "anew"}),
    "solver": frozenset(),
    "solve": frozenset(),
    "reviewer": frozenset({"course", "level"}),
    "review": frozenset({"order", "points", "facts", "again"}),
}
#: Prompts of lessons of today's schema. Raise the schema's version, and they get other names.
LESSON_PROMPTS = (
    "author", "examples_mathematics", "examples_science", "examples_computing", "examples_words",
    "task", "correction", "solver", "solve", "reviewer", "review",
)  # fmt: skip
#: Prompts of lessons of schema 1; a run that is pinned to them has none of today's.
EARLIER_PROMPTS = frozenset({"lesson", "write", "critic", "judge"})
_FOLDER = Path(__file__).with_name("prompts")
_TABLE = re.compile(r"\[\[([a-z_]+)\]\]")
_VALUE = re.compile(r"\{\{([a-z_]+)\}\}")


def load_prompts(course: Mapping[str, Any], folder: Path = _FOLDER) -> dict[str, str]:
    """Return every prompt by name, tables filled in, checked: what a run of a course pins as "prompt:NAME".

    Args:
        course: Its JSON.

    Raises:
        ConfigError: A file is missing or unknown, or holds an unknown placeholder; names it.
    """
    there = {path.stem for path in folder.glob("*.md")}
    if there != set(PLACEHOLDERS):
        wrong = ", ".join(sorted(there ^ set(PLACEHOLDERS)))
        raise ConfigError(f"{folder}: prompt files missing or unknown: {wrong}", code="invalid_prompt")
    tables, region = rule_tables(course), region_of(course)
    prompts = {}
    for name in PLACEHOLDERS:
        text = _text(folder / f"{name}.md")
        # Here money is in pounds and spelling British, there both are those of the region.
        prompts[name] = _respelt(_fill(name, text, _TABLE, tables).replace("£", region.currency), region.spelling)
        _check(name, prompts[name])
    return prompts


def _respelt(text: str, spelling: str) -> str:
    """Return a prompt in a spelling; the name of a card stays."""
    return "modelling".join(respelt(part, spelling) for part in text.split("modelling"))


def _text(path: Path) -> str:
    try:
        return read_regular(path).decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not UTF-8 text.", code="invalid_prompt", hint="Save it as UTF-8.") from None
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}.", code="unreadable_file") from None


def render(name: str, text: str, values: Mapping[str, str]) -> str:
    """Return the prompt with its values.

    Raises:
        ConfigError: A placeholder has no value, or a value no placeholder.
    """
    unused = set(values) - fields_of(text)
    if unused:
        raise ConfigError(f"prompt {name}: no placeholder for {', '.join(sorted(unused))}", code="invalid_prompt")
    return _fill(name, text, _VALUE, values)


def fields_of(text: str) -> set[str]:
    """Return the values that a prompt has a place for."""
    return set(_VALUE.findall(text))


def _fill(name: str, text: str, pattern: re.Pattern[str], values: Mapping[str, str]) -> str:
    missing = sorted({found for found in pattern.findall(text) if found not in values})
    if missing:
        raise ConfigError(f"prompt {name}: unknown placeholder {', '.join(missing)}", code="invalid_prompt")
    return pattern.sub(lambda match: values[match[1]], text)


def _check(name: str, text: str) -> None:
    found, wanted = fields_of(text), PLACEHOLDERS[name]
    if found != wanted:
        wrong = ", ".join(sorted(found ^ wanted))
        raise ConfigError(f"prompt {name}: placeholders missing or unknown: {wrong}", code="invalid_prompt")
