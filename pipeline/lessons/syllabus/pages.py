"""Lines of a text as somebody wrote them: without what pages and PDF viewers put between and into them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pipeline.lessons.syllabus.markers import Marker
from pipeline.lessons.syllabus.tree import lines

#: Letters that were set as one: "ﬁ". Powers and fractions stay as they are.
_LIGATURES = {ord(char): unicodedata.normalize("NFKC", char) for char in "ﬀﬁﬂﬃﬄﬅﬆ"}
#: Controls, marks of direction and width; but for those that join letters of some scripts.
_UNSEEN, _KEPT = ("Cc", "Cf", "Cs"), "\n\t\u00ad\u200c\u200d"
_SOFT_HYPHEN = re.compile("\u00ad(?!\\s*$)")
_BREAKS = re.compile("\r\n|[\r\v\u0085\u2028\u2029]")
#: A page number on a line of its own, in words or between dashes.
_PAGE = re.compile(
    r"(?i)(page|seite|p\.|página)\s*\d{1,4}(\s*(of|/|von|de|sur)\s*\d{1,4})?|[-–—|]\s*\d{1,4}\s*[-–—|]"
    r"|\d{1,4}\s*\|\s*page|page\s*\|\s*\d{1,4}|\d{1,4}\s*(of|/)\s*\d{1,4}"
)
_DIGITS = re.compile(r"\d{1,4}")
_CONTENTS = re.compile(r"(?P<text>.*?)\s*(\.\s?){4,}\s*\d{1,4}")
_IMPRINT = re.compile(r"(?i)(©|\(c\)\s(copyright|crown|\d{4})|copyright\b|https?://\S+$|www\.\S+$).*")
#: Pages of a syllabus, at most; lines of a page, at least.
_MOST_PAGES, _PAGE_LINES = 500, 15
#: Columns that a tab moves to.
_TAB = 4


@dataclass(slots=True)
class TextLine:
    """A line of the source, or several that are one text."""

    number: int
    text: str
    indent: int = 0
    #: An empty line stands before it.
    gap: bool = False
    #: Where its last line ends.
    end: int = 0
    #: It begins with a small letter, and not all lines of the source do.
    lower: bool = False
    marker: Marker | None = None
    #: Kind of a heading; "" for other text.
    heading: str = ""
    #: An item of its list although it has no marker.
    item: bool = False
    #: The printed code behind its text.
    code: str = ""
    #: Its mark stood on a line of its own: all that comes before the next one is about it.
    alone: bool = False


def page_lines(text: str) -> tuple[list[TextLine], list[str]]:
    """Return the lines of a text, each trimmed, without pages' own lines, and notes of what was left out."""
    rows, breaks = _rows(text)
    numbers = _page_numbers(rows)
    noise = {
        "Lines of a table of contents": _contents(rows),
        "Page numbers": numbers,
        "Lines about copyright and web addresses": {row.number for row in rows if _IMPRINT.fullmatch(row.text)},
    }
    notes = [f"{kind} were left out ({lines(found)})." for kind, found in noise.items() if found]
    dropped = {number for found in noise.values() for number in found}
    if heads := _running_heads(rows, breaks | numbers) - dropped:
        said = ", ".join(dict.fromkeys(f'"{row.text}"' for row in rows if row.number in heads))
        notes.append(f"What stands at the head or foot of pages was left out: {said} ({lines(heads)}).")
    return list(_kept(rows, dropped | heads)), notes


def plain(text: str) -> str:
    """Return a text with single letters for ligatures, plain spaces, and nothing that is not seen.

    Hyphens that only show at the end of a line stay there.
    """
    kinds = ((char, unicodedata.category(char)) for char in text.translate(_LIGATURES))
    seen = (" " if kind == "Zs" else char for char, kind in kinds if char in _KEPT or kind not in _UNSEEN)
    return _SOFT_HYPHEN.sub("", "".join(seen))


def _rows(text: str) -> tuple[list[TextLine], set[int]]:
    """Return all lines that hold something, and the numbers of those that a new page begins with."""
    whole = _BREAKS.sub("\n", text).split("\n")
    rows, last = [], 0
    for number, raw in enumerate(whole, 1):
        line = plain(raw.replace("\f", "")).expandtabs(_TAB).rstrip()
        if kept := line.lstrip():
            rows.append(TextLine(number, " ".join(kept.split()), len(line) - len(kept), number > last + 1))
            last = number
    return rows, {number for number, raw in enumerate(whole, 1) if "\f" in raw}


def _contents(rows: Sequence[TextLine]) -> set[int]:
    """Return the lines of a table of contents; where none comes again they are the list, and lose their pages."""
    found = [(row, line["text"]) for row in rows if (line := _CONTENTS.fullmatch(row.text))]
    texts = {row.text.casefold() for row in rows}
    if any(text.casefold() in texts for _, text in found):
        return {row.number for row, _ in found}
    for row, text in found:
        row.text = text
    return set()


def _page_numbers(rows: Sequence[TextLine]) -> set[int]:
    """Return lines that hold a page number alone.

    Plain numbers are such unless they are higher than pages go, as years are; a text whose items are "1" on a line,
    then the words, has them one after the other from 1, with few lines between.
    """
    found = {row.number for row in rows if _PAGE.fullmatch(row.text)}
    alone = [row for row in rows if _DIGITS.fullmatch(row.text) and int(row.text) <= _MOST_PAGES]
    counts = len(alone) > 2 and [int(row.text) for row in alone] == list(range(1, len(alone) + 1))
    if counts and all(later.number - before.number <= 4 for before, later in pairwise(alone)):
        return found
    return found | {row.number for row in alone}


def _running_heads(rows: Sequence[TextLine], pages: set[int]) -> set[int]:
    """Return lines that stand beside page numbers or breaks again and again, or end with the number of each page."""
    places = {row.number: place for place, row in enumerate(rows)}
    near = {at + step for page in pages if (at := places.get(page)) is not None for step in (-2, -1, 0, 1, 2)}
    same: dict[str, list[TextLine]] = {}
    for row in rows:
        same.setdefault(_DIGITS.sub("#", row.text.casefold()), []).append(row)
    heads: set[int] = set()
    for key, found in same.items():
        beside = sum(places[row.number] in near and row.number not in pages for row in found)
        if len(found) > 1 and len(key) > 3 and (beside > len(found) / 2 or _counts_pages(found)):
            heads |= {row.number for row in found}
    return heads


def _counts_pages(rows: Sequence[TextLine]) -> bool:
    """Say whether lines that are the same but for their numbers end with page numbers: they rise, one by one.

    From 1 on, close together, they count headings: "Outcome 1", "Outcome 2".
    """
    ends = [row.text.rsplit(None, 1)[-1] for row in rows]
    if not rows[0].text[0].isalpha() or not all(map(str.isdecimal, ends)):
        return False
    rising = [int(end) for end in ends] == list(range(int(ends[0]), int(ends[0]) + len(ends)))
    far = all(later.number - before.number > _PAGE_LINES for before, later in pairwise(rows))
    return rising and int(ends[0]) <= _MOST_PAGES and (far or ends[0] != "1")


def _kept(rows: Sequence[TextLine], dropped: set[int]) -> Iterator[TextLine]:
    """Yield the other lines; one that goes on over the end of a page has no empty line before it."""
    over = False
    for row in rows:
        if row.number not in dropped:
            row.gap = not row.text[0].islower() if over else row.gap
            yield row
        over = row.number in dropped
