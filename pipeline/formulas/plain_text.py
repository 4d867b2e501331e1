"""A text field as plain text for programs that set no formulas: x², √(2x), (a + 1)/b."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import zip_longest
from xml.etree import ElementTree

from pipeline.html import clean
from pipeline.publish import mathml
from pipeline.publish.tex import TexError

_RAISED = dict(zip("0123456789+−=()nix", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱˣ", strict=True))
_LOWERED = dict(zip("0123456789+−=()aeoxhklmnpst", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑₒₓₕₖₗₘₙₚₛₜ", strict=True))
#: Fractions that have a sign of their own.
_FRACTIONS = {"1/2": "½", "1/3": "⅓", "2/3": "⅔", "1/4": "¼", "3/4": "¾"}
#: Signs with a blank on both sides.
_SPACED = frozenset("=<>≤≥≠≈≡→⇒⇔⇌+−×÷±∓∝∈∪∩")
#: What needs no brackets above a line of division; and below one or a root.
_PRODUCT = re.compile(r"[^\W_]?[\w.,]*√?[^\W_][\w.,]*[⁰¹²³⁴⁵⁶⁷⁸⁹]*|\([^()]*\)")
_ONE = re.compile(r"√?(?:\d[\d.,]*|[^\W\d_])[⁰¹²³⁴⁵⁶⁷⁸⁹]*|\([^()]*\)")
_ACCENTS = {"→": "\u20d7", "←": "\u20d6", "‾": "\u0305", "^": "\u0302", "˙": "\u0307", "¨": "\u0308"}


def plain(value: object) -> str:
    """Return a text field with each formula as a line of characters; one that cannot be set stays as it was typed."""
    return "".join(content if kind == "text" else formula(content) for kind, content, _ in mathml.split(clean(value)))


@lru_cache(4_096)
def formula(tex: str) -> str:
    """Return a formula as a line of characters."""
    try:
        return re.sub(r"[ \u00a0]+", " ", _set(mathml.content(tex))).strip()
    except TexError:
        return tex


def _set(node: ElementTree.Element) -> str:
    parts = list(node)
    match node.tag:
        case "mi" | "mn" | "mtext":
            return node.text or ""
        case "mo":
            return _sign(node)
        case "mfrac":
            return f"{_whole(parts[:1], _PRODUCT)}/{_whole(parts[1:])}"
        case "msqrt":
            return f"√{_whole(parts)}"
        case "mroot":
            return f"{_script(parts[1], _RAISED, '')}√{_whole(parts[:1])}"
        case "mspace":
            return " "
        case "msup" | "mover":
            return _above(parts)
        case "msub" | "munder" | "msubsup" | "munderover":
            scripts = zip(parts[1:], (_LOWERED, _RAISED), "_^", strict=False)
            return _set(parts[0]) + "".join(_script(*each) for each in scripts)
        case "mtable":
            return "; ".join(", ".join(map(_set, row)) for row in parts)
    return _row(parts)


def _row(parts: Sequence[ElementTree.Element]) -> str:
    """Return a row: a blank between a number and the fraction after it, no doubt about what is below a fraction."""
    out = ""
    for part, after in zip_longest(parts, parts[1:]):
        if part.tag != "mfrac":
            out += _set(part) + (" " if part.tag == "mn" and after is not None and after.tag == "mfrac" else "")
            continue
        made = _set(part)
        followed = after is not None and after.tag not in ("mo", "mspace", "mtext", "mfrac")
        out += (_FRACTIONS.get(made) or f"({made})") if followed else made
    return out


def _sign(node: ElementTree.Element) -> str:
    sign = (node.text or "").strip()
    return f" {sign} " if sign in _SPACED and node.get("form") != "prefix" else sign


def _whole(parts: Sequence[ElementTree.Element], one: re.Pattern[str] = _ONE) -> str:
    """Return parts as one thing, in brackets where they are more."""
    made = "".join(map(_set, parts)).strip()
    return made if one.fullmatch(made) else f"({made})"


def _above(parts: Sequence[ElementTree.Element]) -> str:
    sign = (parts[1].text or "").strip()
    if parts[1].tag == "mo" and sign in _ACCENTS:
        return "".join(letter + _ACCENTS[sign] for letter in _set(parts[0]))
    if sign in ("°", "′", "″", "∘"):
        return _set(parts[0]) + ("°" if sign == "∘" else sign)
    return _set(parts[0]) + _script(parts[1], _RAISED, "^")


def _script(node: ElementTree.Element, small: dict[str, str], mark: str) -> str:
    """Return a power or an index in small characters; behind a mark where there are none for it."""
    made = _set(node).replace(" ", "")
    if all(letter in small for letter in made):
        return "".join(small[letter] for letter in made)
    return mark + (made if len(made) == 1 else f"({made})")
