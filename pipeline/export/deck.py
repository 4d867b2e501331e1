"""A deck of slides as it grows: titles, text that fits, formulas and figures as pictures, tables, notes."""

from __future__ import annotations

import copy
import io
import math
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any

from pipeline.drawing import figure as draw
from pipeline.export.base import repacked
from pipeline.formulas import spoken
from pipeline.formulas.passages import Formula, Piece, blocks, line
from pipeline.formulas.pictures import Picture, formula, picture
from pipeline.formulas.plain_text import formula as in_characters
from pipeline.html import clean

#: Lengths in points: a slide of 16 to 9, its margin, where text begins, how far it goes.
_WIDE, _HIGH, _MARGIN, _TOP, _BOTTOM = 960, 540, 44, 112, 496
#: What figures and tables take at the right, and the gap before them.
_BESIDE, _GAP = 380, 28
#: Sizes of letters, points: tried from the largest.
_SIZES = (32, 28, 24)
#: Of what must stay on one slide.
_LEAST = 20
_FORMULA_SIZE, _SMALL = 32, 18
_LINE, _AFTER = 1.2, 0.45
UNDER = "under"
#: Of lists, in letters' sizes.
_INDENT = 1.6
_POINTS_A_MM = 72 / 25.4
#: A figure's letters are 11 points high on paper, and so many times as high on a slide.
_ENLARGED = 2.5
_EMU = 12_700
_DATE = datetime(1980, 1, 1, tzinfo=UTC)
_COVER, _CONTENT = "Title Slide", "Title and Content"
_LOOK = Path(__file__).parent / "slides.xml"
#: A letter is about so wide, in its size: a little more than Arial has it, so that lines are never too few.
_LETTER = 0.53
#: How far powers and indices are from the line, in thousandths of a per cent.
_SHIFT = 30_000
#: Where a formula in a sentence becomes a picture on a line of its own; one that stands alone does so sooner.
_HIGH_TAGS = frozenset({"mtable", "munder", "munderover"})
_ALONE_TAGS = _HIGH_TAGS | {"mfrac", "msqrt", "mroot", "mover"}

#: Marks in the text of a paragraph; both are of the area that Unicode leaves to programs.
_RAISE, _LOWER = "\ue000", "\ue001"
_PARTS = re.compile(f"([{_RAISE}{_LOWER}\n])")
#: A power or an index that has no small characters, as `plain_text` writes it.
_SCRIPT = re.compile(r"(?P<sign>[\^_])(?:\((?P<more>[^()]*)\)|(?P<one>\w))")
#: What stands alone behind a formula, and is left out on a line of its own.
_STOPS = " .,;:"

#: A slide, a shape or a paragraph of python-pptx, which is not imported before it is needed.
Node = Any


@dataclass(frozen=True, slots=True)
class SlideItem:
    """A paragraph, or a formula on a line of its own."""

    #: Its words; what is between RAISE and LOWER, or between LOWER and RAISE, stands higher, or lower, than the line.
    text: str = ""
    #: What stands before it: "bullet", "letter", "number", "part", "" or UNDER: it belongs to the one before.
    mark: str = ""
    #: The number of its letter or number, from 1.
    number: int = 1
    lead: str = ""
    muted: bool = False
    picture: Picture | None = None

    def height(self, width: float, size: float) -> float:
        size = _SMALL if self.muted else size
        width -= _INDENT * size if self.mark else 0
        if self.picture:
            return self.picture.height_mm * _POINTS_A_MM * self.scale(width, size) + _AFTER * size
        rows = f"{self.lead} {self.text}".strip().split("\n")
        lines = sum(max(1, len(textwrap.wrap(row, int(width / size / _LETTER)))) for row in rows)
        return (lines * _LINE + _AFTER) * size

    def scale(self, width: float, size: float) -> float:
        """Return how many times as large as on paper its picture is."""
        assert self.picture
        return min(size / _FORMULA_SIZE, width / (self.picture.width_mm * _POINTS_A_MM))


def items(value: str, *, mark: str = "", number: int = 1, lead: str = "") -> list[SlideItem]:
    """Return a text field as what stands on a slide.

    Args:
        value: With TeX in it.
        mark: Of its first paragraph, as `SlideItem` has it.
        number: Of the mark.
        lead: Bold words before it.
    """
    made: list[SlideItem] = []
    place = 0
    for passage in blocks(value):
        place = place + 1 if passage.kind == "ol" else 0
        own = {"ul": "bullet", "ol": "number"}.get(passage.kind, "" if made else mark)
        made += _divided(passage.pieces, own, place or number)
    if lead and (not made or made[0].picture):
        made.insert(0, SlideItem())
    return [replace(made[0], lead=lead), *made[1:]] if lead else made


def _divided(pieces: Sequence[Piece], mark: str, number: int) -> Iterator[SlideItem]:
    """Yield the words of a paragraph, and formulas that are no words as pictures between them."""
    alone = all(isinstance(piece, Formula) or not piece.text.strip(_STOPS) for piece in pieces)
    for high, group in groupby(pieces, key=lambda piece: isinstance(piece, Formula) and _is_high(piece, alone)):
        if high:
            for piece in group:
                assert isinstance(piece, Formula)
                shown = formula(piece.content, spoken.words(piece.tex), _FORMULA_SIZE)
                yield SlideItem(mark=mark, number=number, picture=shown)
                mark = ""
        elif (text := "".join(map(_characters, group)).strip()).strip(_STOPS):
            yield SlideItem(text.lstrip(_STOPS), mark, number)
            mark = ""


def _characters(piece: Piece) -> str:
    if isinstance(piece, Formula):
        return _SCRIPT.sub(_script, in_characters(piece.tex))
    return f"{_RAISE}{piece.text}{_LOWER}" if piece.raised else piece.text


def flat(value: str) -> str:
    """Return a text field as one line of characters, for titles, tables and notes."""
    pieces = line(value)
    said = "".join(in_characters(piece.tex) if isinstance(piece, Formula) else piece.text for piece in pieces)
    return said.replace("\n", " ")


def _script(found: re.Match[str]) -> str:
    inside = found["more"] or found["one"]
    return f"{_RAISE}{inside}{_LOWER}" if found["sign"] == "^" else f"{_LOWER}{inside}{_RAISE}"


def _is_high(piece: Formula, alone: bool) -> bool:
    """Return whether a formula reads badly as a line of characters."""
    if {node.tag for node in piece.content.iter()} & (_ALONE_TAGS if alone else _HIGH_TAGS):
        return True
    text = _characters(piece)
    return any(sign in text for sign in (")/", "/(", "^", "_", f")/{_RAISE}"))


class Deck:
    """Slides of 16 to 9, each with a title, a footer and its number."""

    def __init__(self, title: str, *, language: str, foot: str, comments: str) -> None:
        """Begin a deck: title and comments are in its properties, the language is as "en-GB"."""
        import pptx

        self._deck: Node = pptx.Presentation()
        self._language, self._foot = language, foot
        self._set_look()
        properties = self._deck.core_properties
        properties.title, properties.language, properties.comments = title, language, comments
        properties.author = properties.last_modified_by = properties.keywords = ""
        properties.created = properties.modified = _DATE
        properties.revision = 1

    def save(self) -> bytes:
        """Return the file; the same content gives the same bytes."""
        made = io.BytesIO()
        self._deck.save(made)
        return repacked(made.getvalue())

    def _set_look(self) -> None:
        """Make the library's template ours: 16 to 9, Arial, two layouts, what slides.xml has."""
        deck = self._deck
        deck.slide_width, deck.slide_height = _WIDE * _EMU, _HIGH * _EMU
        for layout in list(deck.slide_layouts):
            if layout.name not in (_COVER, _CONTENT):
                deck.slide_layouts.remove(layout)
        _drop(deck.part.package._rels, "thumbnail")
        _drop(deck.part.rels, "printerSettings")
        theme = next(part for part in deck.part.package.iter_parts() if part.partname.endswith("theme1.xml"))
        theme._blob = theme.blob.replace(b'latin typeface="Calibri"', b'latin typeface="Arial"')
        owners = (deck.slide_master, deck.slide_master, *deck.slide_layouts)
        for owner, made in zip(owners, _parsed(_LOOK.read_bytes()).iterchildren("{*}*"), strict=True):
            owner._element.replace(owner._element.find(made.tag), made)

    # --- slides -----------------------------------------------------------------------------------

    def cover(self, title: str, rows: Sequence[str]) -> None:
        """Add the first slide: a title and lines below it."""
        slide = self._new(_COVER, title)
        frame = slide.placeholders[1].text_frame
        for place, words in enumerate(rows):
            paragraph = frame.paragraphs[0] if not place else frame.add_paragraph()
            paragraph.alignment = 1
            self._run(paragraph, flat(words), size=24 if not place else 18)

    def slides(
        self, title: str, content: Sequence[SlideItem], *, figures: Sequence[Mapping[str, Any]] = (), notes: str = "",
        whole: bool = False,
    ) -> None:  # fmt: skip
        """Add a slide, or as many as its content needs; figures and tables stand at the right of the first.

        Args:
            title: Of each.
            content: What stands on them.
            figures: As lessons have them.
            notes: For the speaker, on the first.
            whole: Smaller letters rather than a second slide.
        """
        width = _WIDE - 2 * _MARGIN - (_BESIDE + _GAP if figures else 0)
        captions = (
            draw.title(data) or ("" if draw.table(data)[1] or picture(data) else draw.alt(data)) for data in figures
        )
        content = [*content, *(SlideItem(flat(words), muted=True) for words in captions if words)]
        sizes = (*_SIZES, _LEAST) if whole else _SIZES
        fitting = [size for size in sizes if sum(item.height(width, size) for item in content) <= _BOTTOM - _TOP]
        size = fitting[0] if fitting else sizes[-1]
        pages = list(_pages(content, width, size)) or [[]]
        for place, page in enumerate(pages, 1):
            many = f" ({place} of {len(pages)})" if len(pages) > 1 else ""
            slide = self._new(_CONTENT, f"{flat(title)}{many}")
            self._fill(slide, page, width, size)
            if place == 1:
                self._beside(slide, figures)
                if notes:
                    slide.notes_slide.notes_text_frame.text = flat(notes)

    def _new(self, layout: str, title: str) -> Node:
        wanted = next(each for each in self._deck.slide_layouts if each.name == layout)
        slide = self._deck.slides.add_slide(wanted)
        self._run(slide.shapes.title.text_frame.paragraphs[0], flat(title))
        for shape in wanted.placeholders:
            kind = int(shape.placeholder_format.type)
            if kind in (13, 15):
                slide.shapes._spTree.append(copy.deepcopy(shape._element))
            if kind == 15:
                self._run(slide.shapes[-1].text_frame.paragraphs[0], self._foot, size=12)
        return slide

    def _fill(self, slide: Node, page: Sequence[SlideItem], width: float, size: float) -> None:
        top: float = _TOP
        body = slide.placeholders[1]
        for shown, group in groupby(page, key=lambda item: item.picture and id(item)):
            rows = list(group)
            high = sum(item.height(width, size) for item in rows)
            if shown:
                self._formula(slide, rows[0], top, width, size)
            else:
                self._paragraphs(body or slide.shapes.add_textbox(0, 0, 0, 0), rows, size, (_MARGIN, top, width, high))
                body = None
            top += high
        if body is not None:
            body._element.getparent().remove(body._element)

    def _paragraphs(self, shape: Node, rows: Sequence[SlideItem], size: float, place: Sequence[float]) -> None:
        """Put paragraphs into a shape, and it into its place: left, top, width and height in points."""
        from pptx.enum.text import MSO_AUTO_SIZE
        from pptx.util import Pt

        _put(shape, *place)
        frame = shape.text_frame
        frame.word_wrap, frame.auto_size = True, MSO_AUTO_SIZE.NONE
        frame.margin_left = frame.margin_right = frame.margin_top = frame.margin_bottom = 0
        for number, item in enumerate(rows):
            paragraph = frame.add_paragraph() if number else frame.paragraphs[0]
            own = _SMALL if item.muted else size
            paragraph.line_spacing, paragraph.space_before, paragraph.space_after = _LINE - 0.2, 0, Pt(_AFTER * own)
            _mark(paragraph, item.mark, item.number, _INDENT * own)
            if item.lead:
                self._run(paragraph, f"{item.lead} ", size=own).font.bold = True
            level = 0
            for words in _PARTS.split(item.text):
                if words == "\n":
                    paragraph.add_line_break()
                elif words in (_RAISE, _LOWER):
                    level += 1 if words == _RAISE else -1
                elif words:
                    self._run(paragraph, words, size=own, level=level)

    def _run(self, paragraph: Node, text: str, *, size: float = 0, level: int = 0) -> Node:
        from pptx.util import Pt

        run = paragraph.add_run()
        run.text = clean(text)
        properties = run._r.get_or_add_rPr()
        properties.set("lang", self._language)
        if level:
            properties.set("baseline", str(level * _SHIFT))
        if size:
            run.font.size = Pt(size)
        return run

    def _formula(self, slide: Node, item: SlideItem, top: float, width: float, size: float) -> None:
        assert item.picture
        indent = _INDENT * size if item.mark else 0
        if item.mark not in ("", UNDER):
            label, place = SlideItem("\u00a0", item.mark, item.number), (_MARGIN, top, indent, _LINE * size)
            self._paragraphs(slide.shapes.add_textbox(0, 0, 0, 0), [label], size, place)
        self._picture(slide, item.picture, _MARGIN + indent, top, item.scale(width - indent, size))

    def _picture(self, slide: Node, shown: Picture, left: float, top: float, scale: float) -> float:
        wide, high = (mm * _POINTS_A_MM * scale for mm in (shown.width_mm, shown.height_mm))
        made = slide.shapes.add_picture(io.BytesIO(shown.png), 0, 0)
        _put(made, left, top, wide, high)
        properties = made._element.nvPicPr.cNvPr
        properties.set("descr", shown.alt)
        properties.set("name", f"Picture {properties.get('id')}")
        return high

    def _beside(self, slide: Node, figures: Sequence[Mapping[str, Any]]) -> None:
        left, top, room = _WIDE - _MARGIN - _BESIDE, float(_TOP), (_BOTTOM - _TOP) / max(1, len(figures)) - _GAP
        for data in figures:
            shown, (head, rows) = picture(data), draw.table(data)
            if shown:
                fit = min(_BESIDE / shown.width_mm, room / shown.height_mm) / _POINTS_A_MM
                top += self._picture(slide, shown, left, top, min(_ENLARGED, fit)) + _GAP
            elif rows:
                top += self._table(slide, [head, *rows], left, top, room) + _GAP

    def _table(self, slide: Node, rows: Sequence[Sequence[str]], left: float, top: float, room: float) -> float:
        size = max(10.0, min(22.0, room / len(rows) / 1.6))
        high = size * 1.6 * len(rows)
        shape = slide.shapes.add_table(len(rows), len(rows[0]), 0, 0, 0, 0)
        _put(shape, left, top, _BESIDE, high)
        for row, cells in enumerate(rows):
            shape.table.rows[row].height = math.ceil(size * 1.6) * _EMU
            for column, words in enumerate(cells):
                cell = shape.table.cell(row, column)
                cell.margin_top = cell.margin_bottom = 0
                self._run(cell.text_frame.paragraphs[0], flat(words), size=size)
        for column in shape.table.columns:
            column.width = _BESIDE * _EMU // len(rows[0])
        return high


_NAMES = (
    'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" '
    'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"'
)
_MARKS = {
    "bullet": '<a:buFont {0} typeface="Arial"/>|<a:buChar {0} char="•"/>',
    "letter": '<a:buFont {0} typeface="+mj-lt"/>|<a:buAutoNum {0} type="alphaUcPeriod" startAt="{1}"/>',
    "number": '<a:buFont {0} typeface="+mj-lt"/>|<a:buAutoNum {0} type="arabicPeriod" startAt="{1}"/>',
    "part": '<a:buFont {0} typeface="+mj-lt"/>|<a:buAutoNum {0} type="alphaLcParenBoth" startAt="{1}"/>',
    UNDER: "<a:buNone {0}/>",
    "": "<a:buNone {0}/>",
}


def _mark(paragraph: Node, mark: str, number: int, indent: float) -> None:
    """Put a bullet, letter or number before a paragraph."""
    properties = paragraph._p.get_or_add_pPr()
    wide = round(indent * _EMU) if mark else 0
    properties.set("marL", str(wide))
    properties.set("indent", str(0 if mark == UNDER else -wide))
    for markup in _MARKS[mark].format(_NAMES, number).split("|"):
        properties.append(_parsed(markup))


def _pages(content: Sequence[SlideItem], width: float, size: float) -> Iterator[list[SlideItem]]:
    """Yield what fits on each slide; what follows a number or letter stays with it."""
    page: list[SlideItem] = []
    left: float = _BOTTOM - _TOP
    for group in _groups(content):
        high = sum(item.height(width, size) for item in group)
        if page and high > left:
            yield page
            page, left = [], _BOTTOM - _TOP
        page += group
        left -= high
    if page:
        yield page


def _groups(content: Sequence[SlideItem]) -> list[list[SlideItem]]:
    groups: list[list[SlideItem]] = []
    for item in content:
        if item.mark not in ("", UNDER) or not groups or not groups[-1][0].mark:
            groups.append([])
        groups[-1].append(item)
    return groups


def _put(shape: Node, left: float, top: float, width: float, height: float) -> None:
    """Place a shape; lengths are in points."""
    shape.left, shape.top, shape.width, shape.height = (round(each * _EMU) for each in (left, top, width, height))


def _drop(relations: Node, kind: str) -> None:
    for key in [key for key, each in relations.items() if each.reltype.endswith(f"/{kind}")]:
        relations.pop(key)


def _parsed(markup: str | bytes) -> Node:
    from pptx.oxml import parse_xml

    return parse_xml(markup)
