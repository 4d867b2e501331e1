"""Worksheets for Word and Google Docs, and their answers apart: what the PDF has, for people who change it."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pipeline.export.base import Selection, repacked
from pipeline.export.paper import documents
from pipeline.export.paper_data import Data
from pipeline.formulas.omml import OfficeMaths
from pipeline.formulas.passages import Formula, line
from pipeline.formulas.pictures import Picture
from pipeline.html import clean
from pipeline.publish.figures import squared_paper

_HERE = Path(__file__).parent
#: Pages with these margins; a text is at least as wide as the tabulator of the styles says (millimetres).
_PAGES, _MARGIN, _TEXT = {"a4": (210, 297), "us-letter": (216, 279)}, 20, 170
#: How far the text of a question stands in, and that of a part and of options again; lines to write on (millimetres).
_STEP, _RULE = 10, 9
#: A letter of a table's text is about so wide (millimetres).
_LETTER = 2.2
#: Width of a column that has no share of the table, in shares.
_NARROW = 0.7
#: A table of more rows may be divided between pages.
_WHOLE = 10
#: All dates in a file: the earliest that its archive can hold.
_DATE = datetime(1980, 1, 1, tzinfo=UTC)
#: Numberings of word_numbering.xml.
_QUESTIONS, _BULLETS, _STEPS = 1, 2, 3
_ALL_SIDES = ("top", "left", "bottom", "right")
_GRID = Picture(
    str(squared_paper()).replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" color="#7f7f7f" ', 1),
    100.0, 100.0, "Squared paper for your drawing",
)  # fmt: skip
#: Blocks that are one paragraph: their styles. Blocks at whose end the marks of a question may stand.
_STYLES = {"title": "Title", "lead": "Subtitle", "h1": "Heading1", "h2": "Heading2"}
_TEXTS = frozenset({"p", "ul", "ol", "formula"})
#: Parts of the library's own template that no file of ours needs.
_RELICS = ("/thumbnail", "/stylesWithEffects", "/customXml")
#: An element of lxml, which is not imported before it is needed.
Node = Any


def files(chosen: Selection) -> Iterator[tuple[str, bytes]]:
    """Yield each worksheet or paper, and its answers for the teacher."""
    return ((f"{name}.docx", _WordFile(document).made()) for name, document in documents(chosen))


class _WordFile:
    """One document with a header and page numbers, as it grows."""

    def __init__(self, document: Data) -> None:
        import docx

        self._document = docx.Document()
        self._maths = OfficeMaths()
        self._numbering = self._questions = _STEPS
        self._fresh = False
        language = f"{document['lang']}-{document['region'] or 'GB'}"
        self._take_styles(language)
        self._set_page(document["paper"], document["foot"], document["rights"])
        properties = self._document.core_properties
        properties.title, properties.comments = clean(document["title"]), document["about"]
        properties.language, properties.author, properties.last_modified_by = language, "", ""
        properties.created = properties.modified = _DATE
        for block in document["blocks"]:
            self._block(block)

    def made(self) -> bytes:
        """Return the file; the same content gives the same bytes."""
        file = io.BytesIO()
        self._document.save(file)
        return repacked(file.getvalue())

    def _take_styles(self, language: str) -> None:
        """Put styles and numberings of our own in the place of the library's, and leave out what else it brings."""
        part = self._document.part
        for owner, name in ((self._document.styles.element, "styles"), (part.numbering_part.element, "numbering")):
            owner[:] = list(_parsed((_HERE / f"word_{name}.xml").read_bytes()))
        for wanted in self._document.styles.element.iter("{*}lang"):
            wanted.set(_named("val"), language)
        for relations in (part.package.rels, part.rels):
            for key in [key for key, each in relations.items() if each.reltype.endswith(_RELICS)]:
                relations.pop(key)

    def _set_page(self, paper: str, head: str, foot: str) -> None:
        from docx.shared import Mm

        section = self._document.sections[0]
        section.page_width, section.page_height = map(Mm, _PAGES[paper])
        section.left_margin = section.right_margin = section.top_margin = section.bottom_margin = Mm(_MARGIN)
        section.header_distance = section.footer_distance = Mm(_MARGIN // 2)
        section.header.paragraphs[0]._p.append(_run(head))
        last = section.footer.paragraphs[0]._p
        last.append(_run(f"{foot}\tPage "))
        for field, after in (("PAGE", " of "), ("NUMPAGES", "")):
            last.extend([_w("fldSimple", _run("1"), instr=field), _run(after)])

    # --- blocks of a document ---------------------------------------------------------------------

    def _block(self, block: Data, left: int = 0) -> None:
        """Add a block; `left` is how far it stands in, as part of a question."""
        kind = block["k"]
        if kind == "page":
            self._fresh = True
        elif kind == "box":
            for each in block["body"]:
                self._block(each)
        elif kind in _STYLES:
            self._paragraph(_STYLES[kind], block["line"])
        else:
            getattr(self, f"_{kind}")(block, left)

    def _p(self, block: Data, left: int, end: str = "") -> None:
        self._paragraph(_text(left), block["line"], end=end)

    def _formula(self, block: Data, left: int, end: str = "") -> None:
        self._paragraph("Formula", block["line"], left=max(left, _STEP), kept=bool(left), end=end)

    def _note(self, block: Data, left: int) -> None:
        hint = any(isinstance(piece, dict) and piece.get("text") == "Hint:" for piece in block["line"])
        self._paragraph("Hint" if hint else "Note", block["line"], left=left + 2 * hint, kept=bool(left))

    def _ul(self, block: Data, left: int, end: str = "") -> None:
        self._list(block["items"], _BULLETS, left, end)

    def _ol(self, block: Data, left: int, end: str = "") -> None:
        self._number_anew(_STEPS)
        self._list(block["items"], self._numbering, left, end)

    def _list(self, rows: Sequence[Any], number: int, left: int, end: str) -> None:
        for place, row in enumerate(rows, 1):
            last = end if place == len(rows) else ""
            self._paragraph("ListParagraph", row, number=number, left=left + _STEP, hang=8, kept=bool(left), end=last)

    def _steps(self, block: Data, left: int) -> None:
        self._number_anew(_STEPS)
        for does, shows in block["rows"]:
            self._paragraph("ListParagraph", does, number=self._numbering, left=left + _STEP, hang=8, kept=bool(shows))
            if shows:
                self._paragraph("Working", shows)

    def _question(self, block: Data, left: int) -> None:
        """Add a question or a part; its marks stand at the end of its text, what follows stays with it."""
        first, *rest = block["body"]
        if block["n"] == "1":
            self._number_anew(_QUESTIONS)
            self._questions = self._numbering
        texts = 1 + next((place for place, each in enumerate(rest) if each["k"] not in _TEXTS), len(rest))
        left = _STEP * (block["level"] + 1)
        style, lines = ("QuestionPart" if block["level"] else "Question"), first.get("line", [])
        self._paragraph(style, lines, number=self._questions, level=block["level"], end=block["marks"] * (texts == 1))
        for place, each in enumerate(rest, 2):
            if place == texts and block["marks"]:
                getattr(self, f"_{each['k']}")(each, left, block["marks"])
            else:
                self._block(each, left)

    def _options(self, block: Data, left: int) -> None:
        if not left:
            self._number_anew(_QUESTIONS, level=2)
        for place, (_, words, marked) in enumerate(block["rows"], 1):
            number = self._questions if left else self._numbering
            right = [*words, {"k": "strong", "text": " (right)"}] if marked else words
            self._paragraph("Option", right, number=number, level=2, kept=place < len(block["rows"]))

    def _name(self, block: Data, left: int) -> None:
        self._blanks({"Name": "", "Date": "", block["worth"]: f"/ {block['marks']}"})

    def _blanks(self, labels: Mapping[str, str]) -> None:
        """Add a line of names with room behind each, less and less; the room may end in words."""
        named = [len(label) * _LETTER + 7 for label in labels]
        room = (_TEXT - sum(named)) / sum(range(len(labels) + 1))
        widths = [width for place, name in enumerate(named) for width in (name, room * (len(named) - place))]
        texts = [text for pair in labels.items() for text in pair]
        cells = [_paragraph("TableText", _run(text)) for text in texts]
        self._table_of([cells], widths, high=_RULE, sides=lambda place: ("bottom",) * (place % 2))

    def _cover(self, block: Data, left: int) -> None:
        self._paragraph("Subtitle", block["course"])
        self._paragraph("Title" if block["first"] else "Heading1", block["title"])
        self._list(block["facts"], _BULLETS, 0, "")
        self._blanks(dict.fromkeys(block["names"], ""))

    def _space(self, block: Data, left: int) -> None:
        """Add room for an answer: squared paper, lines to write on, or an empty frame."""
        if block["style"] == "squares":
            self._picture(_GRID, left)
            return
        lines = block["style"] == "lines"
        number, high = (-(-block["mm"] // _RULE), _RULE) if lines else (1, block["mm"])
        rows = [[_paragraph("AnswerLine")] for _ in range(number)]
        sides = ("bottom",) if lines else _ALL_SIDES
        self._table_of(rows, [_TEXT - left], left=left, high=high, sides=lambda _: sides)

    def _figure(self, block: Data, left: int) -> None:
        self._picture(Picture(block["svg"], block["mm"], block["high"], block["alt"]), left)
        if block["caption"]:
            self._paragraph("Caption", block["caption"], left=left)

    def _table(self, block: Data, left: int) -> None:
        if block["caption"]:
            self._paragraph("Caption", block["caption"], left=left)
        shares = [_NARROW if share == "auto" else share for share in block["columns"]]
        room = min(_TEXT - left, 50 * len(shares)) if "auto" in block["columns"][:1] else _TEXT
        rows = [
            [_paragraph("TableText", *self._line(cell, bold=not place)) for cell in row]
            for place, row in enumerate([block["head"], *block["rows"]])
        ]
        widths = [room * share / sum(shares) for share in shares]
        self._table_of(rows, widths, left=left, sides=lambda _: _ALL_SIDES, head=True)

    # --- elements ---------------------------------------------------------------------------------

    def _add(self, element: Node) -> None:
        self._document.element.body.insert_element_before(element, "w:sectPr")

    def _number_anew(self, kind: int, level: int = 0) -> None:
        """Begin a list, or the questions of a paper, at 1."""
        self._numbering += 1
        start = _w("lvlOverride", _w("startOverride", val=1), ilvl=level)
        made = _w("num", _w("abstractNumId", val=kind), start, numId=self._numbering)
        self._document.part.numbering_part.element.append(made)

    def _paragraph(
        self, style: str, pieces: Sequence[Any], *, end: str = "", number: int = 0, level: int = 0, left: float = 0,
        hang: float = 0, kept: bool = False,
    ) -> None:  # fmt: skip
        """Add a paragraph.

        Args:
            style: Id in word_styles.xml.
            pieces: A line of the document.
            end: At the right margin.
            number: Its numbering, at `level`.
            left: Millimetres; `hang` the same for what stands before it. 0: as the style has it.
            kept: It stays on the page of what follows.
        """
        made = _paragraph(style, *self._line(pieces), *([_run("\t" + end.replace(" ", "\u00a0"))] if end else []))
        made[0].extend([_w("keepNext")] * kept + [_w("pageBreakBefore")] * self._fresh)
        if number:
            made[0].append(_w("numPr", _w("ilvl", val=level), _w("numId", val=number)))
        if left:
            made[0].append(_w("ind", left=_twips(left), hanging=_twips(hang)))
        self._fresh = False
        self._add(made)

    def _line(self, pieces: Sequence[Any], *, bold: bool = False) -> Iterator[Node]:
        for piece in pieces:
            if isinstance(piece, str):
                yield _run(piece, bold=bold)
            elif piece["k"] == "maths":
                (formula,) = line(rf"\({piece['tex']}\)")
                assert isinstance(formula, Formula)
                yield self._maths.formula(formula.content, alone=piece["block"])
            elif piece["k"] == "break":
                yield _w("r", _w("br"))
            else:
                yield _run(piece["text"], bold=bold or piece["k"] == "strong", kind=piece["k"])

    def _picture(self, shown: Picture, left: int) -> None:
        from docx.shared import Mm

        width = min(shown.width_mm, _TEXT - left)
        made = self._document.part.new_pic_inline(io.BytesIO(shown.png), width=Mm(width))
        made.docPr.set("descr", clean(shown.alt))
        self._add(_paragraph("Figure", _w("r", _w("drawing", made))))

    def _table_of(
        self, rows: Sequence[Sequence[Node]], widths: Sequence[float], *, left: float = 0, high: float = 0,
        sides: Any = None, head: bool = False,
    ) -> None:  # fmt: skip
        """Add a table of paragraphs.

        Args:
            rows: Of cells.
            widths: Of the columns, millimetres, as `left` and `high`.
            left: How far it stands in.
            high: Of each row; 0: as its text needs.
            sides: Gives the sides of a column's cells that have a line.
            head: The first row is its heading and is repeated on each page.
        """
        for row in rows[: -1 if len(rows) <= _WHOLE else 1]:
            for cell in row:
                cell[0].append(_w("keepNext"))
        twips = list(map(_twips, widths))
        indent = _w("tblInd", w=_twips(left + 2), type="dxa")
        made = _w("tbl", _w("tblPr", _w("tblW", w=sum(twips), type="dxa"), indent, _w("tblLayout", type="fixed")))
        made.append(_w("tblGrid", *(_w("gridCol", w=each) for each in twips)))
        for place, cells in enumerate(rows):
            of_row = [_w("cantSplit")] + ([_w("trHeight", val=_twips(high), hRule="exact")] if high else [])
            made.append(_w("tr", _w("trPr", *of_row, *([_w("tblHeader")] if head and not place else []))))
            for column, (cell, width) in enumerate(zip(cells, twips, strict=True)):
                lines = [_w(side, val="single", sz=4, space=0, color="A6A6A6") for side in sides(column)]
                height = _w("vAlign", val="center" if head else "bottom")
                of_cell = _w("tcPr", _w("tcW", w=width, type="dxa"), _w("tcBorders", *lines), height)
                made[-1].append(_w("tc", of_cell, cell))
        self._add(made)
        self._add(_paragraph("AnswerLine"))


def _text(left: int) -> str:
    """Return the style of a paragraph that stands so far in."""
    return {0: "Normal", _STEP: "QuestionText"}.get(left, "PartText")


def _w(tag: str, *children: Node, **values: object) -> Node:
    """Return an element of a Word file; values are its attributes."""
    from docx.oxml import OxmlElement

    made = OxmlElement(f"w:{tag}", {_named(name): str(value) for name, value in values.items()})
    made.extend(children)
    return made


def _paragraph(style: str, *content: Node) -> Node:
    return _w("p", _w("pPr", _w("pStyle", val=style)), *content)


def _run(text: str, *, bold: bool = False, kind: str = "") -> Node:
    """Return words of one look; kind is that of a piece of a document. A tabulator goes to the right margin."""
    look = [_w("rFonts", ascii="Courier New", hAnsi="Courier New")] if kind == "code" else []
    look += [_w("b")] * bold + ([_w("vertAlign", val="superscript")] if kind == "raised" else [])
    made = _w("r", *([_w("rPr", *look)] if look else []))
    for place, words in enumerate(clean(text).split("\t")):
        made.extend([_w("tab")] * bool(place) + [_w("t")] * bool(words))
        if words:
            made[-1].text = words
            made[-1].set("{http://www.w3.org/XML/1998/namespace}space", "preserve")
    return made


def _named(name: str) -> str:
    return f"{{http://schemas.openxmlformats.org/wordprocessingml/2006/main}}{name}"


def _twips(mm: float) -> int:
    return round(mm * 1440 / 25.4)


def _parsed(markup: bytes) -> Node:
    from docx.oxml import parse_xml

    return parse_xml(markup)
