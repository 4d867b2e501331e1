r"""Texts with expressions in them: <expr> and <expr; form>, the same inside and outside \( \)."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from pipeline.maths.display import inside, prose

_EXPRESSION = re.compile(r"<(?!\s)([^<>]+?)(?<!\s)>")
_DELIMITER = re.compile(r"\\[()\[\]]")


class PlainWords(str):
    """Hold the words of a name that is no number; they are printed as they are, inside and outside formulas."""


class TextPiece(NamedTuple):
    """Words as they are, and the expression behind them with its form; "" at the end of a text."""

    words: str
    code: str = ""
    form: str = ""
    #: The expression stands in a formula.
    maths: bool = False


@lru_cache(8_192)
def pieces(text: str) -> list[TextPiece]:
    """Return the words and expressions of a text, in order."""
    found: list[TextPiece] = []
    place, maths = 0, False
    for match in _EXPRESSION.finditer(text):
        words = text[place : match.start()]
        for delimiter in _DELIMITER.findall(words):
            maths = delimiter in ("\\(", "\\[")
        code, _, form = match[1].partition(";")
        found.append(TextPiece(words, code.strip(), form.strip(), maths))
        place = match.end()
    return [*found, TextPiece(text[place:])]


def filled(text: str, show: Callable[[TextPiece], str], *, figure: bool = False) -> str:
    r"""Return a text with its expressions printed.

    Args:
        show: Returns what stands for an expression, in TeX without \( \), or PlainWords.
        figure: A line of a figure: plain characters, no \( \), no commas in numbers.
    """
    out = []
    for piece in pieces(text):
        shown = show(piece) if piece.code else ""
        if figure:
            shown = re.sub(r"(?<=\d),(?=\d{3})", "", shown)
        elif piece.code and not isinstance(shown, PlainWords):
            shown = inside(shown) if piece.maths else prose(shown)
        out += [piece.words, shown]
    return "".join(out)
