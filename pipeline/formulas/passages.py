"""Text fields as paragraphs, list items and formulas of runs: what pages show, for formats that are not HTML."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from pipeline.html import Html
from pipeline.publish import prose

#: Elements of HTML that have no end, which XML wants; and what only tells a browser where to break a line.
_VOID = (("<br>", "<br/>"), ("<wbr>", ""), ('<span class="keep">', ""), ("</span>", ""))


@dataclass(frozen=True, slots=True)
class Run:
    """Words of one look; a line break is one."""

    text: str
    raised: bool = False
    #: Mathematics that could not be set, as it was typed.
    code: bool = False


@dataclass(frozen=True, slots=True)
class Formula:
    """Mathematics inside a line, or on one of its own."""

    #: Presentation MathML: an mrow.
    content: Element
    tex: str


Piece = Run | Formula


@dataclass(frozen=True, slots=True)
class Passage:
    """A paragraph, an item of a list ("ul", "ol") or a formula on a line of its own ("formula")."""

    kind: str
    pieces: Sequence[Piece]


@lru_cache(4_096)
def blocks(value: str) -> Sequence[Passage]:
    r"""Return a text field with its paragraphs, lists and \[ … \] formulas."""
    return tuple(_passages(_tree(prose.blocks(value))))


@lru_cache(4_096)
def line(value: str) -> Sequence[Piece]:
    """Return a text field that holds one line."""
    return tuple(_pieces(_tree(prose.inline(value))))


def _tree(markup: Html) -> Element:
    source = str(markup)
    for void, closed in _VOID:
        source = source.replace(void, closed)
    return ElementTree.fromstring(f"<div>{source}</div>")


def _passages(tree: Element) -> Iterator[Passage]:
    for block in tree:
        if block.tag in ("ul", "ol"):
            yield from (Passage(block.tag, tuple(_pieces(item))) for item in block)
        else:
            yield Passage("formula" if block.tag == "div" else "p", tuple(_pieces(block)))


def _pieces(line: Element) -> list[Piece]:
    """Return what a line holds; pieces of one formula, which pages may break, are one again."""
    found: list[Piece] = [Run(line.text)] if line.text else []
    for child in line:
        piece = _piece(child)
        before = found[-1] if found else None
        if isinstance(piece, Formula) and isinstance(before, Formula):
            before.content.extend(piece.content)
            found[-1] = Formula(before.content, f"{before.tex} {piece.tex}")
        else:
            found.append(piece)
        if child.tail:
            found.append(Run(child.tail))
    return found


def _piece(child: Element) -> Piece:
    content = child.find("semantics/mrow")
    if content is not None:
        return Formula(content, child.findtext("semantics/annotation") or "")
    return Run("\n" if child.tag == "br" else child.text or "", child.tag == "sup", child.tag == "code")
