"""Conditions on edges: one grammar for both dialects, compiled once and asked against any context.

either  = both {("||" | "OR") both}
both    = single {("&&" | "AND") single}
single  = ("!" | "NOT") single | "(" either ")" | key [operator literal] | key "IN" "(" literal, … ")"
operator = "=" "==" "!=" "<" "<=" ">" ">=" "CONTAINS" "STARTS_WITH" "ENDS_WITH"

A missing key is ""; text is compared exactly.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from pipeline.dot.tokens import unescaped
from pipeline.errors import GraphError

#: Gives the text of a key; "" for one that is not there.
Lookup: TypeAlias = Callable[[str], str]

#: How deep parentheses and negations may be nested.
MAX_DEPTH = 100
#: Other spellings of an outcome; both sides of a comparison are read so.
OUTCOMES: Mapping[str, str] = {
    "failure": "fail",
    "failed": "fail",
    "succeeded": "success",
    "partial": "partial_success",
    "partially_succeeded": "partial_success",
}
#: The split dialect's words, which it compares with `status`.
_STATUSES: Mapping[str, str] = {
    "SUCCESS": "success", "FAILURE": "fail", "FAIL": "fail", "PARTIAL": "partial_success", "SKIPPED": "skipped",
    "PARTIAL_SUCCESS": "partial_success", "RETRY": "retry",
}  # fmt: skip
#: Keys under which the value of a key is looked for, in order.
_PLACES: Mapping[str, tuple[str, ...]] = {"status": ("status", "outcome"), "outcome.status": ("outcome", "status")}

_TOKEN = re.compile(
    r"""
      \s+
    | "(?P<double>[^"\\]*+(?:\\.[^"\\]*+)*+)" | '(?P<single>[^'\\]*+(?:\\.[^'\\]*+)*+)'
    | (?P<mark>&&|\|\||==|!=|<=|>=|[=<>!(),\[\]])
    | (?P<word>[^\s&|=<>!(),\[\]"']+)
    | (?P<bad>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_NUMBER = re.compile(r"[+-]?(?:[0-9]{1,300}(?:\.[0-9]{0,300})?|\.[0-9]{1,300})")
_KEY = re.compile(r"[^\W\d][\w-]*(?:\.[\w-]+)*")
_WORDS = {"CONTAINS", "STARTS_WITH", "ENDS_WITH", "IN"}
_COMPARING = {"=", "==", "!=", "<", "<=", ">", ">="}


def outcome_word(text: str) -> str:
    """Return an outcome as it is stored: failed → fail, succeeded → success, partial → partial_success."""
    return OUTCOMES.get(text, text)


@dataclass(frozen=True, slots=True)
class Clause:
    """One comparison, or a bare key."""

    #: As written.
    key: str
    #: "=", "!=", "<", "<=", ">", ">=", "CONTAINS", "STARTS_WITH", "ENDS_WITH", "IN"; "": whether it is true.
    operator: str
    #: What it is compared with; several for IN, none for a bare key.
    literals: tuple[str, ...]

    @property
    def about_outcome(self) -> bool:
        """Return whether it asks for the outcome, so that other spellings of outcomes count as the same."""
        return self.key.removeprefix("context.") in ("outcome", "status", "outcome.status")

    @property
    def words(self) -> list[str]:
        """Return what it is compared with, outcomes as they are stored."""
        return [outcome_word(text) for text in self.literals] if self.about_outcome else [*self.literals]

    def holds(self, lookup: Lookup) -> bool:
        value = next((found for name in self._places() if (found := lookup(name))), "")
        if not self.operator:
            return value.strip().lower() not in ("", "false", "0")
        literals = self.literals
        if self.about_outcome and self.operator in ("=", "!=", "IN"):
            value, *others = map(self._outcome, (value, *literals))
            literals = tuple(others)
        if self.operator == "IN":
            return value in literals
        return _OPERATORS[self.operator](value, literals[0])

    def _places(self) -> tuple[str, ...]:
        for prefix in ("context.", "outcome."):
            if self.key.startswith(prefix) and self.key not in _PLACES:
                return (self.key, self.key.removeprefix(prefix))
        return _PLACES.get(self.key, (self.key,))

    def _outcome(self, text: str) -> str:
        return outcome_word(text) if self.key == "outcome" else _STATUSES.get(text, outcome_word(text))


def _numbers(compare: Callable[[float, float], bool]) -> Callable[[str, str], bool]:
    def holds(value: str, literal: str) -> bool:
        left, right = value.strip(), literal.strip()
        if not (_NUMBER.fullmatch(left) and _NUMBER.fullmatch(right)):
            return False
        return compare(float(left), float(right))

    return holds


_OPERATORS: Mapping[str, Callable[[str, str], bool]] = {
    "=": lambda value, literal: value == literal,
    "!=": lambda value, literal: value != literal,
    "<": _numbers(lambda left, right: left < right),
    "<=": _numbers(lambda left, right: left <= right),
    ">": _numbers(lambda left, right: left > right),
    ">=": _numbers(lambda left, right: left >= right),
    "CONTAINS": lambda value, literal: literal in value,
    "STARTS_WITH": lambda value, literal: value.startswith(literal),
    "ENDS_WITH": lambda value, literal: value.endswith(literal),
}


@dataclass(frozen=True, slots=True)
class Group:
    """Parts joined by "AND" or "OR"; or one under "NOT"."""

    word: str
    parts: tuple[Clause | Group, ...]

    def holds(self, lookup: Lookup) -> bool:
        found = (part.holds(lookup) for part in self.parts)
        return any(found) if self.word == "OR" else all(found) is (self.word == "AND")


Part: TypeAlias = Clause | Group


@dataclass(frozen=True, slots=True)
class Condition:
    """A compiled condition."""

    #: As written.
    text: str
    #: None: nothing is asked, it always holds.
    part: Part | None

    def holds(self, lookup: Lookup) -> bool:
        return self.part is None or self.part.holds(lookup)

    def clauses(self) -> Iterator[tuple[Clause, bool]]:
        """Yield every comparison in it, and whether an odd number of negations applies to it."""
        ahead: list[tuple[Part, bool]] = [] if self.part is None else [(self.part, False)]
        while ahead:
            part, negated = ahead.pop()
            if isinstance(part, Clause):
                yield part, negated
            else:
                ahead += [(inner, negated is not (part.word == "NOT")) for inner in reversed(part.parts)]


@lru_cache(maxsize=4096)
def compile_condition(text: str) -> Condition:
    """Return the condition that a text says; blank text always holds.

    Raises:
        GraphError: It says none; names the column and what would be right.
    """
    return Condition(text, _Reader(text).whole() if text.strip() else None)


def readable(text: str) -> Condition | None:
    """Return the condition that a text says; None if it cannot be read, which the rule condition_syntax reports."""
    try:
        return compile_condition(text)
    except GraphError:
        return None


class _Reader:
    """One pass over the tokens of a condition."""

    def __init__(self, text: str) -> None:
        self._text = text
        #: (kind, text, begin, end); of a mark the kind is the mark.
        self._tokens: list[tuple[str, str, int, int]] = []
        for match in _TOKEN.finditer(text):
            if kind := match.lastgroup:
                body = match[kind]
                self._tokens.append((body if kind == "mark" else kind, body, match.start(), match.end()))
        self._tokens.append(("end", "", len(text), len(text)))
        self._at = 0
        self._depth = 0

    def whole(self) -> Part:
        part = self._either()
        if self._kind != "end":
            raise self._error("the end", "Join comparisons with && or ||.")
        return part

    def _either(self) -> Part:
        return self._joined("OR", "||", lambda: self._joined("AND", "&&", self._single))

    def _joined(self, word: str, mark: str, read: Callable[[], Part]) -> Part:
        parts = [read()]
        while self._kind == mark or self._is_word(word):
            self._at += 1
            parts.append(read())
        return parts[0] if len(parts) == 1 else Group(word, tuple(parts))

    def _single(self) -> Part:
        negative = self._kind == "!" or (self._is_word("NOT") and self._tokens[self._at + 1][0] not in _COMPARING)
        if not negative and self._kind != "(":
            return self._clause()
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self._error("", what=f"more than {MAX_DEPTH} parentheses are nested.")
        self._at += 1
        if negative:
            part: Part = Group("NOT", (self._single(),))
        else:
            part = self._either()
            self._close(")", "Close the parenthesis.")
        self._depth -= 1
        return part

    def _close(self, mark: str, hint: str) -> None:
        if self._kind != mark:
            raise self._error(repr(mark), hint)
        self._at += 1

    def _clause(self) -> Clause:
        if self._kind != "word":
            raise self._error("a key", "Write KEY=VALUE, like outcome=success.")
        key = self._tokens[self._at][1]
        if not _KEY.fullmatch(key):
            raise self._error("", "A key is made of letters, digits, '_', '-' and dots.", what=f"{key!r} is not a key.")
        self._at += 1
        kind, word = self._kind, self._tokens[self._at][1].upper()
        if kind in _COMPARING:
            self._at += 1
            return Clause(key, "=" if kind == "==" else kind, (self._literal(),))
        if kind == "word" and word in _WORDS:
            self._at += 1
            return Clause(key, word, self._list() if word == "IN" else (self._literal(),))
        if kind == "word" and word not in ("AND", "OR"):
            raise self._error("an operator", "Operators are = != < <= > >= CONTAINS STARTS_WITH ENDS_WITH IN.")
        return Clause(key, "", ())

    def _list(self) -> tuple[str, ...]:
        close = {"(": ")", "[": "]"}.get(self._kind)
        if close is None:
            return tuple(item.strip() for item in self._literal(commas=True).split(","))
        self._at += 1
        items = [self._literal()]
        while self._kind == ",":
            self._at += 1
            items.append(self._literal())
        self._close(close, "Close the list.")
        return tuple(items)

    def _literal(self, *, commas: bool = False) -> str:
        """Read a quoted text, or all words up to the next mark, AND or OR."""
        kind, text, begin, end = self._tokens[self._at]
        if kind in ("double", "single"):
            self._at += 1
            return unescaped(text).replace("\\'", "'")
        first = self._at
        while self._kind == "word" or (commas and self._kind == ","):
            if self._at > first and (self._is_word("AND") or self._is_word("OR")):
                break
            end = self._tokens[self._at][3]
            self._at += 1
        if self._at == first:
            raise self._error("a value", 'Write an empty text as "".')
        return self._text[begin:end]

    @property
    def _kind(self) -> str:
        return self._tokens[self._at][0]

    def _is_word(self, word: str) -> bool:
        return self._tokens[self._at][:2] == ("word", word)

    def _error(self, wanted: str, hint: str = "", what: str = "") -> GraphError:
        kind, text, begin, _ = self._tokens[self._at]
        what = what or f"expected {wanted}, found {'the end' if kind == 'end' else repr(text)}."
        if kind == "bad":
            what, hint = f"{text!r} does not belong here.", "Put the value in quotes."
            if text in "&|":
                hint = f"Write {text * 2!r}."
            elif text in "\"'":
                what, hint = "this text is not closed.", f"Close it with {text}."
        shown = self._text if len(self._text) <= 80 else self._text[:79] + "…"
        message = f"Condition {shown!r}, column {begin + 1}: {what}"
        return GraphError(message, code="condition_syntax", hint=hint, condition=self._text, column=begin + 1)
