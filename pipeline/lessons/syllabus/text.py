"""Reads outcomes from a text: headings, lists of any marks, broken lines; as typed, as Markdown, or out of a PDF."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from pipeline.lessons.syllabus.markers import (
    LEAD_IN,
    Marker,
    Marks,
    apart,
    as_heading,
    is_alone,
    is_heading_word,
    marks_of,
)
from pipeline.lessons.syllabus.pages import TextLine, page_lines
from pipeline.lessons.syllabus.tree import ListItem, SourceTree, lines

#: A line is as full as this share of the longest before a viewer broke it.
_FULL = 0.8
#: Shorter lines (characters) were not broken by the width of a page.
_NARROW = 45
#: Words of a heading that has no mark of its own.
_HEADING_WORDS = 9
#: No text ends with these.
_GOES_ON = frozenset({
    "a", "an", "the", "of", "to", "in", "on", "by", "for", "with", "from", "and", "or", "as", "at",
    "their", "its", "that", "which", "between", "into", "including", "der", "die", "das", "und", "von", "mit", "de",
    "du", "des", "la", "le", "les", "et", "el", "los", "y",
})  # fmt: skip
#: Ends of a sentence that leads into a list.
_LEADS = (":", "…", "...", "–", "-", " to", " that", " how")
_HYPHEN = re.compile(r"(?P<word>[^\W\d_]+)[-\u00ad‐]$")
#: Words that keep their hyphen.
_KEEP = frozenset({
    "non", "self", "co", "pre", "post", "anti", "multi", "cross", "well", "long", "short", "high", "low", "two",
    "three", "one", "half", "re", "semi", "inter",
})  # fmt: skip
_END = re.compile(r"(?i)[;,:](\s+(and|or|und|et|y))?$")
_RULE = re.compile(r"[=_*-]{3,}|(\* ){2,}\*")
_UNDERLINE = re.compile(r"={3,}|-{3,}")
_EMPHASIS = re.compile(r"\*\*(.+?)\*\*|__(.+?)__|`([^`]+)`|\[([^\]]+)\]\([^)\s]+\)|(?<!\*)\*([^*\s][^*]*?)\*(?!\*)")


@dataclass
class _Piece:
    """A line, or several that are one text."""

    text: str
    line: int
    indent: int
    gap: bool
    #: Of its last line, as it stood.
    length: int
    marker: Marker | None = None
    #: Kind of a heading; "" for other text.
    heading: str = ""
    #: An item of its list although it has no marker.
    item: bool = False


@dataclass
class _Joins:
    """What was joined, for the notes."""

    broken: int = 0
    hyphens: list[str] = field(default_factory=list)


def read_outcomes(text: str, *, markdown: bool = False, cells: bool = False) -> SourceTree:
    """Return the headings and items of a text.

    Args:
        markdown: Emphasis and links are marks, not text.
        cells: Each line is a cell of a table: none goes on with the one before it.
    """
    rows, notes = page_lines(text)
    rows = [replace(row, gap=True) for row in rows] if cells else rows
    rows = [replace(row, text=_bare(row.text)) for row in rows] if markdown else rows
    rows = _with_marks(_without_rules(rows))
    marks = marks_of(row.text for row in rows)
    joins = _Joins()
    pieces = _pieces(rows, marks, None if cells else joins, text)
    _find_headings(pieces)
    _find_items(pieces)
    if joins.hyphens:
        shown = ", ".join(dict.fromkeys(joins.hyphens[:6]))
        notes.append(f"Words broken at the end of a line were joined: {shown}.")
    if joins.broken:
        notes.append(f"{joins.broken} broken {'line was' if joins.broken == 1 else 'lines were'} joined.")
    lead_ins = [piece.line for piece in pieces if _is_lead_in(piece)]
    if lead_ins:
        notes.append(f"Sentences that lead into a list were left out ({lines(lead_ins)}).")
    roots, title = _tree([piece for piece in pieces if not _is_lead_in(piece)], notes)
    return SourceTree(roots, title, notes)


def _bare(text: str) -> str:
    """Return a line of Markdown without emphasis and addresses, unless all of it is emphasised."""
    if as_heading(text)[0] == "bold":
        return text
    return _EMPHASIS.sub(lambda found: next(part for part in found.groups() if part is not None), text)


def _without_rules(rows: Sequence[TextLine]) -> Iterator[TextLine]:
    """Yield lines; an underlined one becomes a heading, other rules go."""
    held: TextLine | None = None
    for row in rows:
        if not _RULE.fullmatch(row.text):
            if held:
                yield held
            held = row
            continue
        if held and _UNDERLINE.fullmatch(row.text) and not row.gap and not as_heading(held.text)[0]:
            held = replace(held, text=f"{'#' if row.text[0] == '=' else '##'} {held.text}")
    if held:
        yield held


def _with_marks(rows: Iterator[TextLine]) -> list[TextLine]:
    """Return lines; a mark that stands alone is put before the line after it."""
    found: list[TextLine] = []
    alone: TextLine | None = None
    for row in rows:
        if alone:
            found.append(replace(alone, text=f"{alone.text} {row.text}"))
            alone = None
        elif len(parts := apart(row.text)) > 1:
            found += [replace(row, text=part, gap=row.gap and place == 0) for place, part in enumerate(parts)]
        elif is_alone(row.text):
            alone = row
        else:
            found.append(row)
    return found


# --- lines that belong together -----------------------------------------------------------------------


def _pieces(rows: Sequence[TextLine], marks: Marks, joins: _Joins | None, whole: str) -> list[_Piece]:
    """Return the texts of lines; `joins` is None where none goes on with the one before it."""
    width = max((len(row.text) + row.indent for row in rows), default=0)
    pieces: list[_Piece] = []
    found = _with_chapters([marks.of(row.text) for row in rows])
    for place, (row, marker) in enumerate(zip(rows, found, strict=True)):
        heading, text = as_heading(row.text) if marker is None else ("", marker.rest)
        last = pieces[-1] if pieces and not heading else None
        if joins and last and _continues(last, row, marker, width) and not _begins_list(last, rows, found, place):
            last.text = _joined(last.text, row.text, joins, whole)
            last.length = len(row.text) + row.indent
            continue
        pieces.append(_Piece(text, row.number, row.indent, row.gap, len(row.text) + row.indent, marker, heading))
    return pieces


def _with_chapters(found: Sequence[Marker | None]) -> list[Marker | None]:
    """Return the marks of lines; a plain number that the next one goes on from, 2 before 2.1, counts with it."""
    marks: list[Marker | None] = []
    following: Marker | None = None
    for marker in reversed(found):
        if marker and marker.kind == "number" and following and following.kind == "decimal":
            marker = replace(marker, kind="decimal") if following.code == f"{marker.code}.1" else marker
        marks.append(marker)
        following = marker or following
    return marks[::-1]


def _continues(last: _Piece, row: TextLine, marker: Marker | None, width: int) -> bool:
    """Say whether a line goes on with the text of the one before it."""
    if last.heading.startswith(("#", "bold")):
        return False
    first = row.text[0]
    if marker is not None:
        # "1.5 litres of water" on a line that goes on with a sentence.
        return marker.kind == "decimal" and marker.rest[0].islower() and not row.gap and _is_open(last.text)
    if _HYPHEN.search(last.text) and first.islower():
        return True
    if row.gap:
        return first.islower() and (_is_open(last.text) or last.marker is not None) and last.text[-1] not in ".;:!?"
    if last.heading:
        return last.heading == "capitals" and row.text.isupper() and last.length >= _FULL * width > _NARROW
    if first.islower() or first in ",;)" or row.text.rstrip(".").isdecimal() or _is_open(last.text):
        return True
    return last.length >= max(_FULL * width, _NARROW)


def _begins_list(last: _Piece, rows: Sequence[TextLine], markers: Sequence[Marker | None], place: int) -> bool:
    """Say whether a line with a capital is a heading, not a name at the end of a sentence: a new list begins after."""
    text, after = rows[place].text, place + 1
    if after == len(rows) or markers[place] or text[0].islower() or not _could_be_heading(text):
        return False
    following = markers[after]
    if following is None:
        return rows[after].text.endswith(_LEADS) and bool(LEAD_IN.fullmatch(rows[after].text))
    return last.text[-1] in ".;!?" or (last.marker is not None and not following.follows(last.marker))


def _could_be_heading(text: str) -> bool:
    return len(text.split()) <= _HEADING_WORDS and text[-1] not in ".;,?!"


def _is_open(text: str) -> bool:
    """Say whether a text cannot end so."""
    return text[-1] in ",(–/&" or text.rsplit(None, 1)[-1].casefold() in _GOES_ON


def _joined(text: str, more: str, joins: _Joins, whole: str) -> str:
    joins.broken += 1
    found = _HYPHEN.search(text)
    if not found or not more[0].islower():
        return f"{text} {more}"
    after = re.match(r"[^\W\d_]+", more)
    before, rest = found["word"], after[0] if after else ""
    soft = text.endswith("\u00ad")
    hyphened = f"{before}-{rest}".casefold()
    if not soft and (before.casefold() in _KEEP or hyphened in whole.casefold()):
        return text + more
    joins.hyphens.append(before + rest)
    return text[:-1] + more


# --- headings, and what stands below them -------------------------------------------------------------


def _find_headings(pieces: Sequence[_Piece]) -> None:
    """Mark texts as headings that are such by their place: short, and a list comes next."""
    listed = any(piece.marker for piece in pieces)
    for place, piece in reversed(list(enumerate(pieces))):
        if piece.marker or piece.heading or _is_lead_in(piece):
            continue
        after = pieces[place + 1 :]
        following = next((other for other in after if not _is_lead_in(other)), None)
        if piece.text.endswith(":"):
            piece.heading, piece.text = "plain", piece.text.rstrip(": ")
        elif following is None or not _could_be_heading(piece.text):
            continue
        elif listed:
            is_next = following.marker is not None or following.heading != "" or _is_lead_in(after[0])
            piece.heading = "plain" if is_next or _is_sentence_before_list(after) else ""
        elif piece.gap or place == 0:
            # Blocks of lines: the first of a block is its heading where an empty line stands on both sides of it.
            block = len(after) > 1 and following.gap and not after[1].gap
            piece.heading = "plain" if block else ""


def _find_items(pieces: Sequence[_Piece]) -> None:
    """Make items of lines that have one label in several units, "Grammar: the past": what comes next is not theirs."""
    labels: dict[str, list[int]] = {}
    for place, piece in enumerate(pieces):
        label, colon, _ = piece.text.partition(": ")
        if piece.heading == "plain" and colon and not is_heading_word(label):
            labels.setdefault(label.casefold(), []).append(place)
    again = {place for places in labels.values() if len(places) > 1 for place in places}
    for places in labels.values():
        if any(pieces[at].heading and at not in again for at in range(places[0], places[-1])):
            for at in places:
                pieces[at].heading, pieces[at].item = "", True


def _is_sentence_before_list(pieces: Sequence[_Piece]) -> bool:
    """Say whether a sentence comes first, and then an item: what a heading may have between it and its list."""
    return len(pieces) > 1 and pieces[0].text.endswith(".") and pieces[1].marker is not None


def _is_lead_in(piece: _Piece) -> bool:
    return not piece.marker and piece.text.endswith(_LEADS) and bool(LEAD_IN.fullmatch(piece.text))


def _tree(pieces: Sequence[_Piece], notes: list[str]) -> tuple[list[ListItem], str]:
    """Return the nodes that stand below nothing, and the title of the whole where it has one."""
    labels = Counter(piece.text for piece in pieces if piece.heading)
    top = ListItem("", heading=True)
    headings: list[tuple[str, ListItem]] = []
    items: list[tuple[Marker, int, ListItem]] = []
    for piece in pieces:
        marker = piece.marker
        node = ListItem(
            _trimmed(piece.text),
            piece.line,
            marker.code if marker else "",
            bool(piece.heading),
            not (marker or piece.item),
        )
        if piece.heading and (labels[piece.text] > 1 or _ASIDE.fullmatch(piece.text)):
            headings, items = _above(headings, _LABEL), []
            parent = headings[-1][1] if headings else top
            aside = bool(_ASIDE.fullmatch(piece.text))
            headings.append((_LABEL, node if aside else parent))
            if aside:
                notes.append(f'What stands below "{piece.text}" was left out (line {piece.line}).')
            continue
        if piece.heading:
            node.loose = False
            headings, items = [*_above(headings, piece.heading), (piece.heading, node)], []
            parent = headings[-2][1] if len(headings) > 1 else top
        elif marker:
            items = _open_items(items, marker, piece.indent)
            parent = items[-1][2] if items else headings[-1][1] if headings else top
            items.append((marker, piece.indent, node))
        else:
            parent = headings[-1][1] if headings else top
        parent.below.append(node)
    return _titled(top.below)


def _trimmed(text: str) -> str:
    """Return a text without what ends an item of a list in print: a semicolon, "; and", the stop of one sentence."""
    text = _END.sub("", text)
    return text.removesuffix(".") if text.find(". ") < 0 and not text.endswith("..") else text


#: Kinds of headings, the highest first; those in words stand among each other as they first appear.
_RANKS = ("#1", "#2", "#3", "#4", "#5", "#6", "word", "capitals", "bold", "plain", "label")
#: A heading that stands again and again, "Statutory requirements", is none of its own: it labels what is below another.
_LABEL = _RANKS[-1]
#: Labels of what is said to teachers, not to be learned.
_ASIDE = re.compile(
    r"(?i)(notes|guidance|notes and guidance|non-statutory( guidance)?|teach(er|ing) (notes|guidance)"
    r"|suggested (activities|resources)|resources|prior learning)( \(.*\))?"
)


def _above(headings: Sequence[tuple[str, ListItem]], kind: str) -> list[tuple[str, ListItem]]:
    """Return the open headings that a heading of a kind stands below."""
    kinds = [name for name, _ in headings]
    if kind in kinds:
        return list(headings[: kinds.index(kind)])
    rank = _RANKS.index(kind.split()[0])
    return [pair for pair in headings if _RANKS.index(pair[0].split()[0]) <= rank]


def _titled(roots: list[ListItem]) -> tuple[list[ListItem], str]:
    """Return the nodes without the title of the whole: a first heading of nothing, or the only one of its kind."""
    if len(roots) > 1 and roots[0].heading and not roots[0].below:
        return roots[1:], roots[0].text
    if len(roots) == 1 and roots[0].heading and any(node.heading for node in roots[0].below):
        return roots[0].below, roots[0].text
    return roots, ""


def _open_items(
    items: Sequence[tuple[Marker, int, ListItem]], marker: Marker, indent: int
) -> list[tuple[Marker, int, ListItem]]:
    """Return the open items that a new one stands below."""
    for place in reversed(range(len(items))):
        other, its_indent, _ = items[place]
        if _is_beside(other, its_indent, marker, indent):
            return list(items[:place])
    if marker.kind == "decimal":
        return [item for item in items if item[0].kind != "bullet" and marker.code.startswith(f"{item[0].code}.")]
    if marker.kind == "bullet":
        # Of bullets that nobody closed, those further to the right cannot be above it.
        return [item for item in items if item[0].kind != "bullet" or item[1] <= indent]
    return list(items)


def _is_beside(other: Marker, its_indent: int, marker: Marker, indent: int) -> bool:
    """Say whether two items are of one list."""
    if other.kind == "bullet" or marker.kind == "bullet":
        return other.kind == marker.kind and other.style == marker.style and abs(its_indent - indent) < 2
    if {other.kind, marker.kind} == {"letter", "roman"}:
        # i) after h) is a letter; so is v) after u).
        return other.style == marker.style and ord(marker.code[0].lower()) == ord(other.code[0].lower()) + 1
    if other.kind in ("code", "decimal"):
        return marker.kind == other.kind and other.depth == marker.depth
    return other.kind == marker.kind and other.style == marker.style
