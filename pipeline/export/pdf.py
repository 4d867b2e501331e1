"""Worksheets and exam papers to print, and their answers apart, as tagged PDF (PDF/UA-1) by typst."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from importlib.resources import files as package_files
from typing import TYPE_CHECKING

from pipeline.errors import PublishError
from pipeline.export.base import Selection
from pipeline.export.paper import documents
from pipeline.export.paper_data import Data
from pipeline.formulas import typst_maths

if TYPE_CHECKING:
    from typst import Fonts


def files(chosen: Selection) -> Iterator[tuple[str, bytes]]:
    """Yield each worksheet or paper of the lessons, and its answers."""
    return ((f"{name}.pdf", compiled(document)) for name, document in documents(chosen))


def compiled(document: Data) -> bytes:
    """Return a document for paper.typ as PDF/UA-1, the same bytes on every machine.

    Only where its texts have characters that the fonts of typst lack, fonts of this machine are used.

    Raises:
        PublishError: No font has a character of it.
    """
    from typst import TypstError

    inputs = {"doc": json.dumps(document)}
    try:
        return _set(inputs, own_fonts=True)
    except TypstError:
        try:
            return _set(inputs, own_fonts=False)
        except TypstError as error:
            raise PublishError(
                f"{document['title']} cannot be set as PDF: {error}.",
                code="pdf_not_set",
                hint="Install a font that has the character, take it out of the lesson, or export docx.",
            ) from None


def _set(inputs: dict[str, str], *, own_fonts: bool) -> bytes:
    import typst

    fonts = _fonts(own=own_fonts)
    made = typst.compile(_source(), format="pdf", pdf_standards=["ua-1"], sys_inputs=inputs, font_paths=fonts)
    assert isinstance(made, bytes)
    return made


@cache
def _fonts(*, own: bool) -> Fonts:
    """Return the fonts that typst brings along only, or those of this machine too; threads may share them."""
    import typst

    return typst.Fonts(include_system_fonts=not own)


@cache
def _source() -> bytes:
    paper = (package_files("pipeline.export") / "paper.typ").read_text(encoding="utf-8")
    return f"{typst_maths.source()}{paper}".encode()
