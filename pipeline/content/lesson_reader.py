"""Reads a lesson from JSON as far as it can be read: what is unreadable is named, and the rest is checked all the same.

Keys that the schema does not know, nulls and empty optional values say nothing and are left out without a word. A text
that misses its length by a fifth or less only warns.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from functools import lru_cache
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from pipeline.content.addresses import address, item_of
from pipeline.content.fields import count_words
from pipeline.content.findings import Finding, Severity, quoted
from pipeline.content.lesson import Card, ExplainerCard, Item, Lesson, ModellingCard, QuestionCard, WorkedExample

#: The row of shape in the table of checks.
SHAPE = 1
#: A text this much longer or shorter than its limit is warned of only.
SLACK = 0.2
_CARDS: dict[str, type[BaseModel]] = {
    "explainer": ExplainerCard, "modelling": ModellingCard,
    **dict.fromkeys(get_args(QuestionCard.model_fields["kind"].annotation), QuestionCard),
}  # fmt: skip
_OFTEN = {"missing": "is missing", "extra_forbidden": "is no field here"}
#: What pydantic's sentences begin with.
_SAID = re.compile(r"^(?:String|List|Value|Input) should (?:have|be) |, not \d+$")
#: Faults of a value that has the right type all the same.
_SOFT = frozenset(
    {
        "string_too_short", "string_too_long", "too_short", "too_long", "string_pattern_mismatch", "words", "control",
        "greater_than_equal", "less_than_equal",
    }
)  # fmt: skip


@dataclass(frozen=True)
class LessonReading:
    """A lesson as far as it could be read."""

    #: None: not even its frame could be. Where `unread` names places, stand-ins are there.
    lesson: Lesson | None
    #: What pydantic says of it.
    findings: tuple[Finding, ...] = ()
    unread: tuple[str, ...] = field(default=())

    def concerns(self, where: str) -> bool:
        """Return whether a place is one that could be read."""
        return not any(where == name or where.startswith((f"{name}.", f"{name}(")) for name in self.unread)


def tidy(value: Any, kind: Any = Lesson) -> Any:
    """Return a value without keys that its model does not know and without nulls and empty optional values."""
    kind = _plain(kind)
    if isinstance(value, list):
        inner = get_args(kind)[0] if get_origin(kind) is list else None
        return [tidy(each, inner) if inner is not None else each for each in value]
    model = _model(kind, value)
    if model is None or not isinstance(value, dict):
        return value
    kept = {}
    for name, each in value.items():
        info = model.model_fields.get(name)
        if info is not None and (info.is_required() or (each is not None and each != "" and each != [])):
            kept[name] = tidy(each, info.annotation)
    return kept


def read_lesson(data: Any) -> LessonReading:
    """Return a tidied JSON value as a lesson; of one that was read lately, the same object."""
    return _read(json.dumps(data))


@lru_cache(16)
def _read(text: str) -> LessonReading:
    data = json.loads(text)
    try:
        return LessonReading(Lesson.model_validate(data))
    except ValidationError as error:
        errors = error.errors(include_url=False)
    if not isinstance(data, dict) or not isinstance(data.get("cards"), list):
        return LessonReading(None, tuple(_findings(errors)))
    lost: list[str] = []
    relaxed = _Relaxed({_steps(item["loc"]) for item in errors if item["type"] not in _SOFT}, lost)
    lesson = relaxed.model(Lesson, data, ())
    return LessonReading(lesson, tuple(_findings(errors)), tuple(dict.fromkeys(lost)))


def _findings(errors: Any) -> list[Finding]:
    return [_finding(item) for item in errors]


def _finding(item: Any) -> Finding:
    where, found = address(_steps(item["loc"])) or "the lesson", item.get("input")
    if item["type"] in _OFTEN:
        return Finding(SHAPE, "R", where, _OFTEN[item["type"]], "")
    shown = repr(quoted(found)[:60]) if isinstance(found, (str, int, float)) else f"a {type(found).__name__}"
    said = _SAID.sub("", str(item["msg"]).replace(" after validation", ""))
    if isinstance(found, str):
        # A text of a list is measured like a list.
        said = re.sub(r"\bitem(?=s?$)", "character", said)
    size = f" ({len(found)} characters)" if isinstance(found, str) and "character" in said else ""
    return Finding(SHAPE, _severity(item), where, f"{shown}{size}", said[:1].lower() + said[1:])


def _severity(item: Any) -> Severity:
    """Return W for a length that misses its limit by a fifth at most."""
    limits, found = item.get("ctx") or {}, item.get("input")
    if item["type"] == "words":
        size, low, high = count_words(str(found)), limits["low"], limits["high"]
    elif isinstance(found, str) and item["type"].endswith(("too_short", "too_long")):
        size, low, high = len(str(found)), limits.get("min_length", 0), limits.get("max_length", 10**6)
    else:
        return "R"
    return "W" if low * (1 - SLACK) <= size <= high * (1 + SLACK) else "R"


def _steps(loc: Any) -> tuple[str | int, ...]:
    """Return pydantic's way to a value without the tags of unions."""
    return tuple(
        step for place, step in enumerate(loc)
        if not (place == 2 and loc[0] == "cards" and isinstance(step, str))
    )  # fmt: skip


class _Relaxed:
    """Builds models without their limits; what has the wrong type is replaced by a stand-in, whose place is noted."""

    def __init__(self, wrong: set[tuple[str | int, ...]], lost: list[str]) -> None:
        self._wrong, self._lost = wrong, lost

    def model(self, model: type[BaseModel], data: Any, steps: tuple[str | int, ...]) -> Any:
        if steps in self._wrong or (model in _STAND_INS and self._within(steps, model)):
            self._lost.append(address(steps))
            return _STAND_INS.get(model, _STAND_INS[ExplainerCard])
        values = {}
        for name, info in model.model_fields.items():
            at = (*steps, name)
            if at in self._wrong or (name not in data and info.is_required()):
                self._lost.append(address(at))
                values[name] = _nothing(info)
            elif name in data:
                values[name] = self._value(info.annotation, data[name], at)
        return model.model_construct(**values)

    def _within(self, steps: tuple[str | int, ...], model: type[BaseModel]) -> bool:
        """Return whether something in this part is unreadable that is in no smaller part of its own."""
        for wrong in self._wrong:
            if wrong[: len(steps)] == steps and (model in (Item, WorkedExample) or not item_of(address(wrong))):
                return True
        return False

    def _value(self, kind: Any, value: Any, steps: tuple[str | int, ...]) -> Any:
        kind = _plain(kind)
        if get_origin(kind) is list and isinstance(value, list):
            (inner,) = get_args(kind)
            return [self._value(inner, each, (*steps, index)) for index, each in enumerate(value)]
        model = _model(kind, value)
        if model is None and kind == _plain(Card):
            self._lost.append(address(steps))
            return _STAND_INS[ExplainerCard]
        if model is None:
            return value
        if not isinstance(value, dict):
            value = {}
        return self.model(model, value, steps)


def _nothing(info: FieldInfo) -> Any:
    kind = _plain(info.annotation)
    if get_origin(kind) is list:
        return []
    return {str: "", int: 0}.get(kind)


def _plain(kind: Any) -> Any:
    """Return a type without its constraints and without None."""
    while True:
        if get_origin(kind) is Annotated:
            kind = get_args(kind)[0]
        elif get_origin(kind) in (Union, UnionType):
            kinds = [each for each in get_args(kind) if each is not type(None)]
            if len(kinds) > 1:
                return kind
            kind = kinds[0]
        else:
            return kind


_CARD = _plain(Card)


def _model(kind: Any, value: Any) -> type[BaseModel] | None:
    """Return the model that a value is to be of; of cards, by its kind."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return kind
    if kind == _CARD:
        name = value.get("kind") if isinstance(value, dict) else None
        return _CARDS.get(str(name))
    return None


_LINES = ["Work it out.", "Say what it is."]
#: What stands in the place of a part that cannot be read; nothing that a check says of it is passed on.
_STAND_INS: dict[type[BaseModel], BaseModel] = {
    Item: Item(tests=["point 1"], answer="words", working=_LINES, marks=["says what it is"],
               feedback="It is what it is.", ask="Say in a few words what it is."),
    WorkedExample: WorkedExample(working=_LINES, ask="Say in a few words what it is."),
    ExplainerCard: ExplainerCard.model_construct(
        kind="explainer", title="Title", minutes=1, teaches=[1], text="Words.", plain="Words.", non_example="Words.",
        mistakes=[],
    ),
}  # fmt: skip
