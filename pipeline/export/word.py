"""A Word file as it grows: paragraphs in named styles, lists, formulas, tables, pictures, room for answers."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pipeline.drawing import figure as draw
from pipeline.export.base import repacked
from pipeline.export.omml import OfficeMaths
from pipeline.export.passages import Formula, Passage, Piece, blocks, line
from pipeline.export.pictures import Picture, picture
from pipeline.publish.figures import squared_paper
from pipeline.publish.questions import MARK_MM, divided

_HERE = Path(__file__).parent
#: A4 with these margins; its text is as wide as the tabulator of the styles says.
_PAGE_MM, _MARGIN_MM, _TEXT_MM = (210, 297), 20, 170
#: Text of a question stands so far in; that of a part and of options as far again.
STEP_MM = 10
_LINE_MM = 9
#: All dates in a file: the earliest that its archive can hold.
_DATE = datetime(1980, 1, 1, tzinfo=UTC)
_GREY = "A6A6A6"
#: Numberings of word_numbering.xml.
_BULLETS, _STEPS = 2, 3
_LISTS = {"ul": "List Bullet", "ol": "List Number"}

#: A paragraph or a table of python-docx, or an element of lxml: none is imported before it is needed.
Node = Any


class WordFile:
    """One document on A4, with a header and page numbers."""

    def __init__(self, title: str, *, language: str, head: tuple[str, str], foot: str, comments: str) -> None:
        """Begin a document.

        Args:
            title: In its properties.
            language: As "en-GB".
            head: Left and right half of each page's header.
            foot: Before the page number.
            comments: In its properties.
        """
        import docx

        self._document = docx.Document()
        self._maths = OfficeMaths()
        self._numberings = _STEPS
        self._take_styles(language)
        self._drop_relics()
        self._set_page(head, foot)
        properties = self._document.core_properties
        properties.title, properties.language, properties.comments = title, language, comments
        properties.author = properties.last_modified_by = properties.keywords = ""
        properties.created = properties.modified = _DATE

    def save(self) -> bytes:
        """Return the file; the same content gives the same bytes."""
        made = io.BytesIO()
        self._document.save(made)
        return repacked(made.getvalue())

    # --- what every document has ------------------------------------------------------------------

    def _take_styles(self, language: str) -> None:
        """Put styles and numberings of our own in the place of the library's."""
        for part, name in ((self._document.styles, "styles"), (self._document.part.numbering_part, "numbering")):
            made = _parsed((_HERE / f"word_{name}.xml").read_bytes())
            element = part.element
            for child in list(element):
                element.remove(child)
            element.extend(list(made))
        for wanted in self._document.styles.element.iter(_w("lang")):
            wanted.set(_w("val"), language)

    def _drop_relics(self) -> None:
        """Leave out what the library's own template has: a thumbnail, a second set of styles, a bibliography."""
        for owner in (self._document.part.package.rels, self._document.part.rels):
            for key, relation in list(owner.items()):
                if relation.reltype.rsplit("/", 1)[-1] in ("thumbnail", "stylesWithEffects", "customXml"):
                    owner.pop(key)

    def _set_page(self, head: tuple[str, str], foot: str) -> None:
        from docx.shared import Mm

        section = self._document.sections[0]
        section.page_width, section.page_height = map(Mm, _PAGE_MM)
        section.left_margin = section.right_margin = section.top_margin = section.bottom_margin = Mm(_MARGIN_MM)
        section.header_distance = section.footer_distance = Mm(_MARGIN_MM // 2)
        self._fill(section.header.paragraphs[0], [*line(head[0])], end=head[1])
        last = section.footer.paragraphs[0]
        self._fill(last, [*line(foot)], end="Page ")
        for field, words in (("PAGE", " of "), ("NUMPAGES", "")):
            last._p.append(
                _parsed(f'<w:fldSimple {_NAMESPACE} w:instr="{field}"><w:r><w:t>1</w:t></w:r></w:fldSimple>')
            )
            last.add_run(words)

    # --- text -------------------------------------------------------------------------------------

    def paragraph(self, style: str, text: str, *, lead: str = "", end: str = "", fresh: bool = False) -> Node:
        """Add a text that holds one line, and return its paragraph.

        Args:
            style: Of word_styles.xml.
            text: With TeX in it.
            lead: Bold words before it.
            end: At the right margin.
            fresh: It begins on a new page.
        """
        made = self._document.add_paragraph(style=style)
        made.paragraph_format.page_break_before = fresh or None
        if lead:
            made.add_run(f"{lead} ").bold = True
        self._fill(made, line(text), end=end)
        return made

    def _fill(self, paragraph: Node, pieces: Sequence[Piece], *, end: str = "") -> None:
        for piece in pieces:
            if isinstance(piece, Formula):
                paragraph._p.append(self._maths.formula(piece.content))
                continue
            for place, words in enumerate(piece.text.split("\n")):
                run = paragraph.add_run(words)
                run.font.superscript = piece.raised or None
                run.font.name = "Courier New" if piece.code else None
                if place:
                    run._r.insert(0, _parsed(f"<w:br {_NAMESPACE}/>"))
        if end:
            paragraph.add_run(f"\t{end}")

    def text(self, value: str, first: str, rest: str, *, end: str = "", kept: bool = False) -> None:
        """Add a text with its paragraphs, lists and formulas.

        Args:
            value: With TeX in it.
            first: Style of its first paragraph.
            rest: Style of the others.
            end: At the right margin of its last line.
            kept: Its lists and formulas stay on the page of what follows.
        """
        made = blocks(value)
        if made and made[0].kind != "p":
            self.paragraph(first, "")
        before = ""
        for place, passage in enumerate(made):
            style = first if not place else rest
            last = end if place == len(made) - 1 else ""
            paragraph = self._passage(passage, style, before, last)
            if kept:
                paragraph.paragraph_format.keep_with_next = True
            before = passage.kind

    def _passage(self, passage: Passage, style: str, before: str, end: str) -> Node:
        made = self._document.add_paragraph(style=_LISTS.get(passage.kind, style))
        if passage.kind == "formula":
            made.style = self._document.styles["Formula"]
            (formula,) = passage.pieces
            assert isinstance(formula, Formula)
            made._p.append(self._maths.formula(formula.content, alone=not end))
            if end:
                made.add_run(f"\t{end}")
            return made
        if passage.kind == "ol":
            self.number(made, restart=before != "ol")
        if passage.kind in _LISTS and style != "Normal":
            self._indent(made, 2 * STEP_MM)
        self._fill(made, passage.pieces, end=end)
        return made

    def number(self, paragraph: Node, *, restart: bool) -> None:
        """Number a step of a list; the first one starts at 1."""
        if restart:
            self._numberings += 1
            self._document.part.numbering_part.element.append(
                _parsed(
                    f'<w:num {_NAMESPACE} w:numId="{self._numberings}"><w:abstractNumId w:val="{_STEPS}"/>'
                    '<w:lvlOverride w:ilvl="0"><w:startOverride w:val="1"/></w:lvlOverride></w:num>'
                )
            )
        properties = paragraph._p.get_or_add_pPr().get_or_add_numPr()
        properties.get_or_add_ilvl().val, properties.get_or_add_numId().val = 0, self._numberings

    def steps(self, working: Sequence[str]) -> None:
        """Add numbered steps: what we do, and below it the line of mathematics."""
        for place, step in enumerate(working):
            words, shows = divided(step)
            self.number(self.paragraph("List Number", words), restart=not place)
            if shows:
                self.paragraph("Working", shows)

    def options(self, texts: Sequence[str]) -> None:
        """Add choices A, B, C, … that stay on one page."""
        for place, text in enumerate(texts, 1):
            made = self.paragraph("Option", text)
            made.paragraph_format.keep_with_next = place < len(texts) or None

    def _indent(self, paragraph: Node, left_mm: float) -> None:
        from docx.shared import Mm

        paragraph.paragraph_format.left_indent = Mm(left_mm)

    # --- tables, pictures, room -------------------------------------------------------------------

    def table(
        self, head: Sequence[str], rows: Sequence[Sequence[str]], *, widths: Sequence[int], left: int = 0
    ) -> None:
        """Add a table whose first row is its heading and is repeated on each page.

        Args:
            head: With TeX, as the cells.
            rows: Of as many cells.
            widths: Of the columns, millimetres.
            left: Space before it, millimetres.
        """
        made = self._grid(len(rows) + bool(head), widths, left, "Table Grid")
        for place, cells in enumerate([head, *rows] if head else rows):
            row = made.rows[place]._tr.get_or_add_trPr()
            row.append(_parsed(f"<w:cantSplit {_NAMESPACE}/>"))
            if head and not place:
                row.append(_parsed(f"<w:tblHeader {_NAMESPACE}/>"))
            for cell, words in zip(made.rows[place].cells, cells, strict=True):
                cell.paragraphs[0].style = "Table Text"
                self._fill(cell.paragraphs[0], line(words))
                for run in cell.paragraphs[0].runs if head and not place else ():
                    run.bold = True
        self._document.add_paragraph(style="Answer Line")

    def _grid(self, rows: int, widths: Sequence[int], left: int, style: str) -> Node:
        from docx.shared import Mm

        made = self._document.add_table(rows, len(widths), style=style)
        made.autofit = False
        properties = made._tbl.tblPr
        properties.append(_parsed(f'<w:tblInd {_NAMESPACE} w:w="{_twips(left)}" w:type="dxa"/>'))
        for place, width in enumerate(widths):
            made.columns[place].width = Mm(width)
            for cell in made.columns[place].cells:
                cell.width = Mm(width)
        return made

    def name_line(self, marks: int) -> None:
        """Add the line for name, date and marks."""
        made = self._grid(1, (16, 76, 14, 34, 18, 12), 0, "Normal Table")
        for place, words in enumerate(("Name", "", "Date", "", "Marks", f"/{marks}")):
            cell = made.rows[0].cells[place]
            cell.paragraphs[0].add_run(words)
            cell.paragraphs[0].paragraph_format.space_after = 0
            if place % 2:
                _border(cell, "bottom")
            if place == 5:
                cell.paragraphs[0].alignment = 2
        self._height(made, 0, 8, exact=False)
        self._document.add_paragraph(style="Answer Line")

    def room(self, marks: int, *, left: int, lines: bool) -> None:
        """Add room for an answer: lines to write on, or a free field.

        Args:
            marks: Its height, in marks.
            left: Space before it, millimetres.
            lines: Lines instead of a field.
        """
        height = marks * MARK_MM
        number = -(-height // _LINE_MM) if lines else 1
        made = self._grid(number, (_TEXT_MM - left,), left + 2, "Normal Table")
        for place in range(number):
            cell = made.rows[place].cells[0]
            cell.paragraphs[0].style = "Answer Line"
            for side in ("bottom",) if lines else ("top", "left", "bottom", "right"):
                _border(cell, side)
            self._height(made, place, _LINE_MM if lines else height)
        self._document.add_paragraph(style="Answer Line")

    def _height(self, table: Node, row: int, height_mm: int, *, exact: bool = True) -> None:
        from docx.enum.table import WD_CELL_VERTICAL_ALIGNMENT, WD_ROW_HEIGHT_RULE
        from docx.shared import Mm

        made = table.rows[row]
        made.height = Mm(height_mm)
        made.height_rule = WD_ROW_HEIGHT_RULE.EXACTLY if exact else WD_ROW_HEIGHT_RULE.AT_LEAST
        made._tr.get_or_add_trPr().insert(0, _parsed(f"<w:cantSplit {_NAMESPACE}/>"))
        for cell in made.cells:
            cell.vertical_alignment = WD_CELL_VERTICAL_ALIGNMENT.BOTTOM

    def squared_paper(self) -> None:
        """Add squared paper to draw on."""
        self._picture(_GRID)

    def figure(self, data: Mapping[str, Any]) -> None:
        """Add a figure with its caption: a picture, a table, or its description."""
        shown, (head, rows), words = picture(data), draw.table(data), draw.alt(data)
        caption = draw.title(data) or ("" if shown else words.partition(":")[0])
        if shown:
            self._picture(shown)
        elif rows:
            self.paragraph("caption", caption)
            width = (_TEXT_MM - STEP_MM) // len(head)
            self.table(head, rows, widths=[min(width, 50)] * len(head), left=STEP_MM + 2)
            return
        self.paragraph("caption" if shown else "Question Text", caption if shown else words) if caption else None

    def _picture(self, shown: Picture) -> None:
        from docx.shared import Mm

        paragraph = self._document.add_paragraph(style="Figure")
        made = paragraph.add_run().add_picture(io.BytesIO(shown.png), width=Mm(min(shown.width_mm, _TEXT_MM - STEP_MM)))
        made._inline.docPr.set("descr", shown.alt)
        made._inline.docPr.set("name", f"Figure {made._inline.docPr.id}")


_NAMESPACE = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_GRID = Picture(
    str(squared_paper()).replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" color="#7f7f7f" ', 1),
    80.0, 80.0, "Squared paper for your drawing",
)  # fmt: skip


def _w(tag: str) -> str:
    return f"{{{_NAMESPACE.split(chr(34))[1]}}}{tag}"


def _twips(mm: float) -> int:
    return round(mm * 1440 / 25.4)


def _parsed(markup: str | bytes) -> Node:
    from docx.oxml import parse_xml

    return parse_xml(markup)


def _border(cell: Node, side: str) -> None:
    properties = cell._tc.get_or_add_tcPr()
    borders = properties.find(_w("tcBorders"))
    if borders is None:
        borders = _parsed(f"<w:tcBorders {_NAMESPACE}/>")
        properties.append(borders)
    borders.append(_parsed(f'<w:{side} {_NAMESPACE} w:val="single" w:sz="4" w:space="0" w:color="{_GREY}"/>'))
