"""The text of a file that somebody made with any program: its encoding, and what is no text at all."""

from __future__ import annotations

import codecs
from pathlib import Path

from pipeline.errors import CatalogueError
from pipeline.files import read_regular

#: A list of outcomes is some kilobytes; more than this (bytes) is another kind of file.
MAX_BYTES = 1_000_000
#: First bytes of files that are no text → what they are, and what helps.
_OTHERS = (
    (b"%PDF", "a PDF", "Copy the outcomes out of it and save them as a .txt file."),
    (b"PK\x03\x04", "a Word, Excel or OpenDocument file", "Save it as CSV or as plain text."),
    (b"\xd0\xcf\x11\xe0", "an old Word or Excel file", "Save it as CSV or as plain text."),
    (b"{\\rtf", "a rich text file", "Save it as plain text."),
)
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"),
)  # fmt: skip
#: What a file is in that has no mark and is not UTF-8: what Excel and Notepad write in western Europe and America.
_FALLBACK = "cp1252"


def source_text(path: Path, encoding: str = "") -> tuple[str, str]:
    """Return the text of a file and the encoding it was read in.

    Args:
        encoding: As Python names it; "": by its mark or the place of its zeros, else UTF-8, else Windows-1252.

    Raises:
        CatalogueError: It cannot be read, is too large, or is no text.
    """
    try:
        raw = read_regular(path, MAX_BYTES)
    except OSError as error:
        raise CatalogueError(f"{path}: cannot be read: {error.strerror}", code="unreadable_file") from None
    if len(raw) > MAX_BYTES:
        raise _no_text(path, f"is larger than {MAX_BYTES:,} bytes", "Keep the outcomes alone.")
    for begin, what, hint in _OTHERS:
        if raw.startswith(begin):
            raise _no_text(path, f"is {what}, not text", hint)
    for name in [encoding] if encoding else [_likely(raw), _FALLBACK, "latin-1"]:
        try:
            text = raw.decode(name)
        except LookupError:
            raise _no_text(path, f"cannot be read as {encoding}: there is no such encoding", _ENCODINGS) from None
        except UnicodeDecodeError:
            continue
        if "\0" in text:
            break
        return text, name
    raise _no_text(path, f"is not text{f' in {encoding}' if encoding else ''}", _ENCODINGS)


def _likely(raw: bytes) -> str:
    """Return the encoding that bytes have by their mark; without one, spaces of UTF-16 have a zero before or after."""
    if marked := next((name for mark, name in _MARKS if raw.startswith(mark)), ""):
        return marked
    before, after = raw[::2].count(0), raw[1::2].count(0)
    return "utf-8" if before == after else "utf-16-le" if after > before else "utf-16-be"


_ENCODINGS = "Save it as UTF-8, or name its encoding: --encoding utf-8, utf-16, cp1252, cp1250, cp1251, mac_roman …"


def _no_text(path: Path, what: str, hint: str) -> CatalogueError:
    return CatalogueError(f"{path}: {what}.", code="not_text", hint=hint)
