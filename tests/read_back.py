"""What a text says, whoever read it back: its letters and digits, and its formulas as TeX."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import NamedTuple
from xml.etree import ElementTree as ET

from pipeline.publish import mathml, tex

#: Signs that typesetting changes or adds: dashes, blanks, quotation marks.
_LOOKS = re.compile(r"[^\w£€%°=<>]|_")
_PREFIX = re.compile(r"(</?)ns\d+:")


class Said(NamedTuple):
    """Words and formulas, each in their order."""

    words: str
    formulas: str

    def holds(self, text: str) -> bool:
        """Say whether a text field of the course is in it."""
        part = of_text(text)
        return part.words in self.words and part.formulas in self.formulas


class _Reader(HTMLParser):
    """Collects text and, of MathML, its TeX."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[str] = []
        self._inside: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("math", "annotation"):
            self._inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in ("math", "annotation"):
            self._inside.remove(tag)

    def handle_data(self, data: str) -> None:
        if "annotation" in self._inside:
            self.pieces.append(f"\\({data}\\)")
        elif not self._inside:
            self.pieces.append(data)


def of_markup(markup: str) -> Said:
    """Read HTML whose formulas are MathML with their TeX, or TeX."""
    reader = _Reader()
    reader.feed(markup)
    reader.close()
    return of_text("".join(reader.pieces))


def of_text(text: str) -> Said:
    """Read a text field."""
    pieces = mathml.split(text)
    words = "".join(content for kind, content, _ in pieces if kind == "text")
    formulas = "".join(tex.portable(content) for kind, content, _ in pieces if kind != "text")
    return Said(_LOOKS.sub("", words), formulas.replace(" ", ""))


def bare(element: ET.Element) -> str:
    """Return an element of XML as HTML is written: names without their namespaces."""
    return _PREFIX.sub(r"\1", ET.tostring(element, encoding="unicode"))
