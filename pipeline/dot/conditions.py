"""Conditions on edges: one grammar for both dialects, compiled once and asked against any context.

either  = both {("||" | "OR") both}
both    = single {("&&" | "AND") single}
single  = ("!" | "NOT") single | "(" either ")" | key [operator literal] | key "IN" "(" literal, … ")"
operator = "=" "==" "!=" "<" "<=" ">" ">=" "CONTAINS" "STARTS_WITH" "ENDS_WITH"
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from pipeline.dot.clauses import Both, Clause, Either, Lookup, Not, Part
from pipeline.dot.clauses import outcome_word as outcome_word
from pipeline.dot.lexer import unescaped
from pipeline.errors import GraphError

#: Parentheses and negations may stand this deep in each other.
MAX_DEPTH = 100

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
_KEY = re.compile(r"[^\W\d][\w-]*(?:\.[\w-]+)*")
_WORDS = {"CONTAINS", "STARTS_WITH", "ENDS_WITH", "IN"}
_COMPARING = {"=", "==", "!=", "<", "<=", ">", ">="}


@dataclass(frozen=True, slots=True)
class Condition:
    """A compiled condition."""

    #: As written.
    text: str
    #: None: nothing is asked, it always holds.
    part: Part | None

    def holds(self, lookup: Lookup) -> bool:
        """Whether it holds where `lookup` gives the text of a key, "" for one that is not there."""
        return self.part is None or self.part.holds(lookup)

    def clauses(self) -> Iterator[tuple[Clause, bool]]:
        """Every comparison in it, and whether it stands under an odd number of negations."""
        ahead: list[tuple[Part, bool]] = [] if self.part is None else [(self.part, False)]
        while ahead:
            part, negated = ahead.pop()
            if isinstance(part, Clause):
                yield part, negated
            elif isinstance(part, Not):
                ahead.append((part.part, not negated))
            else:
                ahead += [(inner, negated) for inner in reversed(part.parts)]


@lru_cache(maxsize=4096)
def compile_condition(text: str) -> Condition:
    """The condition that a text says; blank text always holds.

    Raises:
        GraphError: It says none; names the column and what would be right.
    """
    return Condition(text, _Reader(text).whole() if text.strip() else None)


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
            raise self._error(f"{self._shown()} stands where it should end.", "Join comparisons with && or ||.")
        return part

    def _either(self) -> Part:
        parts = [self._both()]
        while self._kind == "||" or self._is_word("OR"):
            self._at += 1
            parts.append(self._both())
        return parts[0] if len(parts) == 1 else Either(tuple(parts))

    def _both(self) -> Part:
        parts = [self._single()]
        while self._kind == "&&" or self._is_word("AND"):
            self._at += 1
            parts.append(self._single())
        return parts[0] if len(parts) == 1 else Both(tuple(parts))

    def _single(self) -> Part:
        negative = self._kind == "!" or (self._is_word("NOT") and self._tokens[self._at + 1][0] not in _COMPARING)
        if not negative and self._kind != "(":
            return self._clause()
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self._error(f"more than {MAX_DEPTH} parentheses stand in each other.")
        self._at += 1
        if negative:
            part: Part = Not(self._single())
        else:
            part = self._either()
            if self._kind != ")":
                raise self._error(f"{self._shown()} stands where ')' should.", "Close the parenthesis.")
            self._at += 1
        self._depth -= 1
        return part

    def _clause(self) -> Clause:
        if self._kind != "word":
            raise self._error(f"{self._shown()} stands where a key should.", "Write KEY=VALUE, like outcome=success.")
        key = self._tokens[self._at][1]
        if not _KEY.fullmatch(key):
            raise self._error(f"{key!r} is no key.", "A key is made of letters, digits, '_', '-' and dots.")
        self._at += 1
        kind, word = self._kind, self._tokens[self._at][1].upper()
        if kind in _COMPARING:
            self._at += 1
            return Clause(key, "=" if kind == "==" else kind, (self._literal(),))
        if kind == "word" and word in _WORDS:
            self._at += 1
            return Clause(key, word, self._list() if word == "IN" else (self._literal(),))
        if kind == "word" and word not in ("AND", "OR"):
            raise self._error(
                f"{self._shown()} is no operator.", "There are = != < <= > >= CONTAINS STARTS_WITH ENDS_WITH IN."
            )
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
        if self._kind != close:
            raise self._error(f"{self._shown()} stands where {close!r} should.", "Close the list.")
        self._at += 1
        return tuple(items)

    def _literal(self, *, commas: bool = False) -> str:
        """A quoted text, or all words up to the next mark, AND or OR."""
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
            raise self._error(f"{self._shown()} stands where a value should.", 'Nothing is written "".')
        return self._text[begin:end]

    @property
    def _kind(self) -> str:
        return self._tokens[self._at][0]

    def _is_word(self, word: str) -> bool:
        return self._tokens[self._at][:2] == ("word", word)

    def _shown(self) -> str:
        kind, text, _, _ = self._tokens[self._at]
        return "the end" if kind == "end" else repr(text)

    def _error(self, what: str, hint: str = "") -> GraphError:
        kind, text, begin, _ = self._tokens[self._at]
        if kind == "bad":
            what, hint = f"{text!r} does not belong here.", "Put the value in quotes."
            if text in "&|":
                hint = f"Write {text * 2!r}."
            elif text in "\"'":
                what, hint = "the text that begins here does not end.", f"Close it with {text}."
        shown = self._text if len(self._text) <= 80 else self._text[:79] + "…"
        message = f"Condition {shown!r}, column {begin + 1}: {what}"
        return GraphError(message, hint=hint, condition=self._text, column=begin + 1)
