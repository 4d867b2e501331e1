"""Presentation MathML as trees of arrays that maths.typ sets: strings stay strings, nothing is markup."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib.resources import files
from typing import Any
from xml.etree.ElementTree import Element

#: A formula as typst sets it: its kind, then parts.
Tree = list[Any]

#: What makes a formula higher than the line that it stands in.
TALL = frozenset({"mfrac", "munderover", "mtable"})
_HIGH = TALL | {"msqrt", "mroot"}
_ACCENTS = {"→": "\u20d7", "←": "\u20d6", "^": "\u0302", "˙": "\u0307", "¨": "\u0308", "~": "\u0303"}
#: Signs that may stand round a row.
_OPEN, _CLOSE = frozenset("([{|‖⟨"), frozenset(")]}|‖⟩")
#: Signs whose usual room in typst is not that of the pages.
_CLASSES = {"/": "normal", "%": "normal", "°": "normal", "|": "normal", "?": "normal", ":": "relation"}


@cache
def source() -> str:
    """Return maths.typ: the functions that set trees."""
    return (files("pipeline.formulas") / "maths.typ").read_text(encoding="utf-8")


def tree(node: Element) -> Tree:
    """Return presentation MathML as the tree that paper.typ sets."""
    if (made := _TAGS.get(node.tag)) is not None:
        return made(list(node))
    text = node.text or ""
    match node.tag:
        case "mtable":
            return _table(node)
        case "mn":
            return ["number", text]
        case "mi":
            return _letter(text, node.get("mathvariant"))
        case "mo":
            return _sign(text, node)
        case "mspace":
            return ["gap", float(str(node.get("width")).removesuffix("em"))]
    return ["words", text]


def _letter(text: str, variant: str | None) -> Tree:
    if variant == "bold":
        return ["bold", text]
    return ["sign", text] if len(text) == 1 and variant is None else ["upright", text]


def _sign(text: str, node: Element) -> Tree:
    if node.get("form") == "prefix":
        return ["class", "unary", text]
    if node.get("fence"):
        return ["sign", text]
    if text in _CLASSES or (node.get("lspace") == "0" and text not in _OPEN | _CLOSE):
        return ["class", _CLASSES.get(text, "normal"), text]
    return ["sign", text] if len(text) == 1 else ["words", text]


def _row(parts: Sequence[Element]) -> Tree:
    fenced = bool(parts) and (_grows(parts[0], _OPEN) or _grows(parts[-1], _CLOSE))
    # Brackets round what is no higher than they are stay as they are.
    fenced = fenced and any(node.tag in _HIGH for part in parts for node in part.iter())
    return ["fenced" if fenced else "row", *map(tree, parts)]


def _grows(node: Element, signs: frozenset[str]) -> bool:
    return node.tag == "mo" and (node.text or "") in signs and node.get("stretchy") != "false"


def _scripts(kind: str, below: int | None, above: int | None) -> Callable[[Sequence[Element]], Tree]:
    def made(parts: Sequence[Element]) -> Tree:
        base = tree(parts[0])
        if above is not None and set(parts[above].text or "") == {"′"}:
            if below is not None:
                base = ["scripts", base, tree(parts[below]), None]
            return ["primes", base, len(parts[above].text or "")]
        under, over = (None if place is None else tree(parts[place]) for place in (below, above))
        return [kind, base, under, over]

    return made


def _over(parts: Sequence[Element]) -> Tree:
    sign = parts[1].text or ""
    return ["overline", tree(parts[0])] if sign == "‾" else ["accent", tree(parts[0]), _ACCENTS[sign]]


def _table(node: Element) -> Tree:
    rows = [[tree(cell) for cell in row] for row in node]
    side = str(node.get("columnalign") or "")
    return ["lines", *rows] if " " in side else ["matrix", side, rows]


_TAGS: dict[str, Callable[[Sequence[Element]], Tree]] = {
    "mrow": _row,
    "mtd": _row,
    "mfrac": lambda parts: ["fraction", *map(tree, parts)],
    "msqrt": lambda parts: ["root", *map(tree, parts)],
    "mroot": lambda parts: ["nth", *map(tree, parts)],
    "msub": _scripts("scripts", 1, None),
    "msup": _scripts("scripts", None, 1),
    "msubsup": _scripts("scripts", 1, 2),
    "munder": _scripts("limits", 1, None),
    "munderover": _scripts("limits", 1, 2),
    "mover": _over,
}
