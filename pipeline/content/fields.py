r"""Field types shared by the lesson schemas: lengths in characters and in words, and the two faces of a model.

One model has two schemas. `wire_schema` is what a provider is asked for: names, enums and
nesting. The pydantic model itself adds counts and lengths; prompts take their numbers from it
(see rules.py), so that what is asked and what is checked cannot differ.

Text fields may hold maths in a small subset of TeX, inline between \( and \), on a line of its
own between \[ and \]. Plain whole numbers, money and units outside formulas stay text. Allowed
inside: digits, a decimal point, single letters, + - = < > / * , ; : ! | ' ( ) [ ] and spaces;
^ and _ followed by one character, one command or a {group}; and the commands of MATHS_COMMANDS,
of which \frac takes two groups, \sqrt one group with an optional [n], \vec \bar
\overrightarrow \text \mathrm one group, \left and \right a bracket, \begin{pmatrix} rows
parted by \\ and cells by & up to \end{pmatrix}. A line break inside maths is an error (it is
what "\neq" becomes when a backslash is lost); so are $, a backslash outside maths and control
characters anywhere.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, GetCoreSchemaHandler, ValidationError
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from pipeline.content.numbers import without_formulas

#: Every TeX command that text may use, without its backslash.
# fmt: off
MATHS_COMMANDS = frozenset(
    {
    "frac", "sqrt", "times", "div", "cdot", "pm", "leq", "geq", "neq", "approx", "equiv", "pi", "theta",
    "alpha", "beta", "lambda", "mu", "Delta", "Omega", "phi", "sin", "cos", "tan", "circ", "angle", "triangle",
    "vec", "bar", "overrightarrow", "text", "mathrm", "left", "right", "begin", "end", "to", "Rightarrow",
    "ldots", "infty", "sum", "parallel", "perp", "pounds", "quad", "%", ",", "{", "}", "\\",
    }
)
# fmt: on

#: Control characters that never belong in text; line feed is allowed (paragraphs).
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")

#: Constraint keywords that a wire schema leaves to the pydantic model.
_LENGTHS = frozenset({"minLength", "maxLength", "minItems", "maxItems", "pattern", "minimum", "maximum"})
_DROPPED = _LENGTHS | {"title", "description", "default", "discriminator", "examples"}

#: At most so many errors go back to the model.
MAX_PROBLEMS = 40
#: Optional properties of a wire schema, counted once for each object in it: providers bound what they compile.
MAX_OPTIONAL = 24


def count_words(text: str) -> int:
    """Return words of a text; a formula counts as one."""
    return len(without_formulas(text, " x ").split())


@dataclass(frozen=True, slots=True)
class Words:
    """A limit on the number of words, checked by pydantic and read by the prompt rules."""

    low: int
    high: int

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def _check(self, text: str) -> str:
        found = count_words(text)
        if not self.low <= found <= self.high:
            raise PydanticCustomError(
                "words",
                "has {found} words, wanted {low} to {high}",
                {"found": found, "low": self.low, "high": self.high},
            )
        return text


@dataclass(frozen=True, slots=True)
class _Printable:
    """Refuses control characters: they are what a lost backslash leaves behind."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def _check(self, text: str) -> str:
        if found := _CONTROL.search(text):
            code = f"U+{ord(found.group()):04X}"
            raise PydanticCustomError(
                "control",
                "holds the control character {code}; write a TeX command with two backslashes in JSON",
                {"code": code},
            )
        return text


#: Text that a person reads; may hold maths.
Text = Annotated[str, _Printable()]
#: An id of the catalogue.
#: Characters of the id of an outcome or a point.
MAX_REF = 60
Ref = Annotated[str, Field(min_length=1, max_length=MAX_REF)]


class Part(BaseModel):
    """Base of every schema: unknown keys are errors, types are not coerced."""

    model_config = ConfigDict(extra="forbid", strict=True)


def wire_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return the JSON schema for structured output: no lengths, no defaults; an optional field may be absent."""
    cleaned: dict[str, Any] = _clean(model.model_json_schema())
    return cleaned


def _clean(node: Any, *, names: bool = False) -> Any:
    """Return a schema node without what the wire leaves out; `names` marks a map from names to nodes."""
    if isinstance(node, list):
        return [_clean(item) for item in node]
    if not isinstance(node, dict):
        return node
    out = {}
    for key, value in node.items():
        if names:
            out[key] = _clean(value)
        elif key not in _DROPPED:
            out["anyOf" if key == "oneOf" else key] = _clean(value, names=key in ("properties", "$defs"))
    if names:
        return out
    if "const" in out:
        out["enum"] = [out.pop("const")]
        out.setdefault("type", "string")
    if out.get("type") == "object":
        out["additionalProperties"] = False
        out["required"] = [name for name, value in node.get("properties", {}).items() if "default" not in value]
    return _without_null(out)


def _without_null(node: dict[str, Any]) -> dict[str, Any]:
    """Return "this or null" as this: an optional field is absent, never null."""
    kept = [each for each in node.get("anyOf", ()) if each != {"type": "null"}]
    if len(kept) == len(node.get("anyOf", ())):
        return node
    return {**node, "anyOf": kept} if len(kept) > 1 else {**kept[0], **{k: v for k, v in node.items() if k != "anyOf"}}


def problems(error: ValidationError) -> list[str]:
    """Return what is wrong, one line each with path, found and wanted; at most MAX_PROBLEMS."""
    lines = [_problem(item) for item in error.errors(include_url=False)]
    if len(lines) > MAX_PROBLEMS:
        lines = [*lines[: MAX_PROBLEMS - 1], f"… and {len(lines) - MAX_PROBLEMS + 1} more of this kind"]
    return lines


def _problem(item: Any) -> str:
    path = ".".join(str(part) for part in item["loc"]) or "the whole answer"
    found = item.get("input")
    shown = repr(found) if isinstance(found, (str, int, float)) else type(found).__name__
    return f"{path}: {item['msg']}; found {shown[:120]}"
