"""What a text says, whoever read it back: its letters and digits, and its formulas as elements of MathML."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import NamedTuple
from xml.etree import ElementTree as ET

from pipeline.publish import mathml

#: Signs that typesetting changes or adds: dashes, blanks, quotation marks.
_LOOKS = re.compile(r"[^\w£€%°=<>]|_")
#: Elements round a formula or a part of it that change nothing.
_WRAPPERS = frozenset({"math", "mrow", "mstyle", "mspace"})
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
    """Collects text outside formulas, and MathML as names of elements and signs."""

    def __init__(self) -> None:
        super().__init__()
        self.text: list[str] = []
        self.formulas: list[str] = []
        self._inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._inside = self._inside or tag == "math"
        assert tag not in ("semantics", "annotation")
        if self._inside and tag not in _WRAPPERS:
            self.formulas.append(tag)

    def handle_endtag(self, tag: str) -> None:
        self._inside = self._inside and tag != "math"

    def handle_data(self, data: str) -> None:
        (self.formulas if self._inside else self.text).append(data)


def of_markup(markup: str) -> Said:
    """Read HTML whose formulas are MathML, or TeX."""
    reader = _Reader()
    reader.feed(markup)
    reader.close()
    words, tex = of_text("".join(reader.text))
    return Said(words, _blank("".join(reader.formulas)) or tex)


def of_text(text: str) -> Said:
    """Read a text field."""
    pieces = mathml.split(text)
    words = "".join(content for kind, content, _ in pieces if kind == "text")
    formulas = _Reader()
    for kind, content, _ in pieces:
        if kind != "text":
            formulas.feed(bare_formula(content))
    return Said(_LOOKS.sub("", words), _blank("".join(formulas.formulas)))


def bare_formula(content: str) -> str:
    """Return a formula as MathML without its TeX."""
    return re.sub(r"<annotation.*?</annotation>|</?semantics>", "", mathml.parse(content), flags=re.DOTALL)


def _blank(formulas: str) -> str:
    return re.sub(r"\s", "", formulas)


def bare(element: ET.Element) -> str:
    """Return an element of XML as HTML is written: names without their namespaces."""
    return _PREFIX.sub(r"\1", ET.tostring(element, encoding="unicode"))
