"""What an answer or a recorded value is read as: a pydantic model, a dataclass, or what a JSON schema describes.

pydantic is loaded when the first model or dataclass is given, never before.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from pipeline.errors import ConfigError, InvalidValue
from pipeline.llm.answers import faults, json_in
from pipeline.records.values import decode_value, encode_value, is_model, is_typed

if TYPE_CHECKING:
    from pydantic import TypeAdapter

Value = TypeVar("Value")
#: Faults that are listed; of more, only their number.
_MOST_FAULTS = 20
#: Classes that are kept ready.
_MOST_KEPT = 256


class Misfit(ValueError):
    """A text is no value of a form; `faults` says why, "PLACE: fault" each."""

    def __init__(self, found: Sequence[str]) -> None:
        more = [f"and {len(found) - _MOST_FAULTS} more"] if len(found) > _MOST_FAULTS else []
        self.faults = [*found[:_MOST_FAULTS], *more]
        super().__init__("; ".join(self.faults))


class AnswerForm(Protocol):
    """What an answer or a recorded value shall be."""

    @property
    def name(self) -> str:
        """Return the form as people call it."""

    @property
    def schema(self) -> Mapping[str, Any]:
        """Return its JSON schema.

        Raises:
            ConfigError: It has none.
        """

    def read(self, text: str) -> Any:
        """Return the value that a JSON text says.

        Raises:
            Misfit: The text is no JSON, or no value of this form.
        """


def form_of(returns: Any) -> AnswerForm:
    """Return the form that a pydantic model, a dataclass or a JSON schema is.

    Raises:
        ConfigError: It is none of these.
    """
    if isinstance(returns, Mapping):
        return _SchemaForm(returns)
    if isinstance(returns, type) and (is_model(returns) or is_dataclass(returns)):
        return _class_form(returns)
    shown = getattr(returns, "__name__", None) or repr(returns)
    raise ConfigError(
        f"{shown} is no form of an answer: give a pydantic model, a dataclass or a JSON schema.",
        code="invalid_form", hint="A list or a single value becomes the one field of a model or dataclass.",
    )  # fmt: skip


def typed(value: Any, form: type[Value]) -> Value:
    """Return a recorded value (an output, an item, an artifact) as the pydantic model or dataclass that it was.

    Raises:
        ConfigError: `form` is no such class.
        InvalidValue: The value is not of this form.
    """
    wanted = form_of(form)
    try:
        found: Value = wanted.read(encode_value(value).decode("ascii"))
        return found
    except Misfit as error:
        text = f"The value is no {wanted.name}: {error}."
        raise InvalidValue(text, code="value_misfit", faults=error.faults) from None


def copied(value: Any, where: str) -> Any:
    """Return a copy of a value as its record gives it back: a pydantic model or dataclass as one, the rest as JSON.

    Raises:
        InvalidValue: It is no JSON value, or is not read back from what is recorded of it.
    """
    text = encode_value(value, where)
    return typed(decode_value(text), type(value)) if is_typed(type(value)) else decode_value(text)


@dataclass(frozen=True, slots=True)
class _SchemaForm:
    """A JSON schema; an answer is the JSON value."""

    schema: Mapping[str, Any]

    @property
    def name(self) -> str:
        return str(self.schema.get("title") or "the schema")

    def read(self, text: str) -> Any:
        value = _json(text)
        if found := faults(value, self.schema):
            raise Misfit(found)
        return value


@dataclass(frozen=True, slots=True)
class _ClassForm:
    """A pydantic model or a dataclass; an answer is an instance."""

    cls: type
    adapter: TypeAdapter[Any]

    @property
    def name(self) -> str:
        return self.cls.__name__

    @property
    def schema(self) -> Mapping[str, Any]:
        from pydantic.errors import PydanticUserError

        try:
            return self.adapter.json_schema()
        except PydanticUserError as error:
            raise _no_form(self.cls, error) from None

    def read(self, text: str) -> Any:
        from pydantic import ValidationError

        value = _json(text)
        try:
            # As JSON, so that a strict model takes a text for a date.
            return self.adapter.validate_json(json.dumps(value))
        except ValidationError as error:
            rows = error.errors(include_url=False, include_context=False, include_input=False)
            raise Misfit([f"{_place(row['loc'])}: {row['msg']}" for row in rows]) from None


@lru_cache(_MOST_KEPT)
def _class_form(cls: type) -> _ClassForm:
    from pydantic import TypeAdapter
    from pydantic.errors import PydanticUserError

    try:
        return _ClassForm(cls, TypeAdapter(cls))
    except (PydanticUserError, NameError, TypeError) as error:
        raise _no_form(cls, error) from None


def _no_form(cls: type, error: Exception) -> ConfigError:
    why = str(error).partition("\n")[0]
    text = f"{cls.__name__} cannot be the form of an answer: {why}"
    return ConfigError(text, code="invalid_form", hint="Its fields must be types that JSON can say.")


def _json(text: str) -> Any:
    try:
        return json_in(text)
    except ValueError as error:
        raise Misfit([f"the answer: is no JSON ({error})"]) from None


def _place(keys: Sequence[int | str]) -> str:
    """Return where in a value something is, as the schema's faults say it."""
    found = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys).removeprefix(".")
    return found or "the answer"
