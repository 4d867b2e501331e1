"""Answers in calculator notation, such as 3*sqrt(2) or 2^(-3), as mathematics on the page."""

from __future__ import annotations

import re

from pipeline.publish import mathml
from pipeline.publish.html import Html
from pipeline.publish.prose import words

_PLAIN = re.compile(r"[^*/^()<>=]*\Z")
_NAME = re.compile(r"\b(?:pi|sin|cos|tan)\b")
#: A product sign that school mathematics leaves out: before a letter, a root or a bracket.
_SILENT = re.compile(r"\s*\*\s*(?=[A-Za-z({])")


def shown(value: str) -> Html:
    """The value as it would be written by hand; as typed where it is no simple expression."""
    if _PLAIN.match(value):
        return words(value)
    try:
        return mathml.parse(tex(value))
    except ValueError:
        return words(value)


def tex(value: str) -> str:
    """Calculator notation as TeX of the subset."""
    out = _NAME.sub(lambda match: f"{{\\{match[0]}}}", value.replace("**", "^"))
    out = _SILENT.sub("", out)
    out = out.replace("<=", r"\le ").replace(">=", r"\ge ").replace("*", r"\times ")
    out = _braced(out, r"sqrt\(", r"\sqrt{")
    out = _braced(out, r"\^\s*\(", "^{")
    out = re.sub(r"\^\s*(-?\w+(?:\.\d+)?)", r"^{\1}", out)
    fraction = re.fullmatch(r"\(?\s*(-?)\s*(\d+)\s*/\s*(\d+)\s*\)?", out)
    return rf"{fraction[1]}\frac{{{fraction[2]}}}{{{fraction[3]}}}" if fraction else out


def _braced(value: str, opening: str, tex_opening: str) -> str:
    """Brackets after `opening` become braces."""
    while match := re.search(rf"(?<!\\){opening}", value):
        depth, end = 1, match.end()
        while end < len(value) and depth:
            depth += {"(": 1, ")": -1}.get(value[end], 0)
            end += 1
        inside = value[match.end() : end - 1] if not depth else value[match.end() :]
        value = f"{value[: match.start()]}{tex_opening}{inside}}}{value[end:]}"
    return value
