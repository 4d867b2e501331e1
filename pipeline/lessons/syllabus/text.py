"""Reads outcomes from a text: headings, lists of any marks, broken lines; as typed, as Markdown, or out of a PDF."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, pairwise, zip_longest

from pipeline.lessons.syllabus.markers import (
    CODE_BEHIND,
    LEAD_IN,
    NUMBERS,
    Marker,
    apart,
    as_heading,
    is_alone,
    is_heading_word,
    mark_of,
    used_marks,
)  # fmt: skip
from pipeline.lessons.syllabus.pages import TextLine, page_lines
from pipeline.lessons.syllabus.tree import ListItem, SourceTree, lines

#: A line is as full as this share of the longest before a viewer broke it.
_FULL = 0.8
#: Shorter lines (characters) were not broken by the width of a page.
_NARROW = 45
#: Lines among which the second item of a list is looked for.
_COLUMN = 6
#: Words of a heading that has no mark of its own.
_HEADING_WORDS = 9
#: Words of a label: "Key vocabulary: …".
_LABEL_WORDS = 3
#: No text ends with these.
_GOES_ON = frozenset({
    "a", "an", "the", "of", "to", "in", "on", "by", "for", "with", "from", "and", "or", "as", "at",
    "their", "its", "that", "which", "between", "into", "including", "der", "die", "das", "und", "von", "mit", "de",
    "du", "des", "la", "le", "les", "et", "el", "los", "y",
})  # fmt: skip
#: Ends of a sentence that leads into a list.
_LEADS = (":", "…", "...", "–", "-", " to", " that", " how", " können")
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


def read_outcomes(text: str, *, markdown: bool = False, cells: bool = False) -> SourceTree:
    """Return the headings and items of a text.

    Args:
        markdown: Emphasis and links are marks, not text.
        cells: Each line is a cell of a table: none goes on with the one before it.
    """
    rows, notes = page_lines(text)
    for row in rows:
        row.text, row.gap = bare(row.text) if markdown else row.text, row.gap or cells
    rows = _marked(_without_rules(rows))
    _find_labels(rows)
    rows, joined = _whole(rows, text, cells=cells)
    _find_headings(rows)
    if hyphens := [word for word in dict.fromkeys(joined) if word]:
        notes.append(f"Words broken at the end of a line were joined: {', '.join(hyphens[:6])}.")
    if joined:
        notes.append(f"{len(joined)} broken {'line was' if len(joined) == 1 else 'lines were'} joined.")
    if lead_ins := [row.number for row in rows if _is_lead_in(row)]:
        notes.append(f"Sentences that lead into a list were left out ({lines(lead_ins)}).")
    return _tree([row for row in rows if not _is_lead_in(row)], notes)


def bare(text: str) -> str:
    """Return a line of Markdown without emphasis and addresses, unless all of it is emphasised."""
    if as_heading(text)[0] == "bold":
        return text
    return _EMPHASIS.sub(lambda found: next(part for part in found.groups() if part is not None), text)


def trimmed(text: str) -> str:
    """Return a text without what ends an item of a list in print: a semicolon, "; and", the stop of one sentence."""
    text = _END.sub("", text)
    return text.removesuffix(".") if text.find(". ") < 0 and not text.endswith("..") else text


# --- lines and their marks ----------------------------------------------------------------------------


def _without_rules(rows: Sequence[TextLine]) -> list[TextLine]:
    """Return lines; an underlined one becomes a heading, other rules go."""
    kept: list[TextLine] = []
    for row in rows:
        if not _RULE.fullmatch(row.text):
            kept.append(row)
        elif kept and _UNDERLINE.fullmatch(row.text) and not row.gap and not as_heading(kept[-1].text)[0]:
            kept[-1].text = f"{'#' if row.text[0] == '=' else '##'} {kept[-1].text}"
    return kept


def _marked(rows: Sequence[TextLine]) -> list[TextLine]:
    """Return lines with their marks; one that stands alone is put before the line after it."""
    used = used_marks(f"{row.text} x" for row in rows)
    texts = [row.text for row in rows]
    found: list[TextLine] = []
    for place, row in enumerate(rows):
        if found and is_alone(found[-1].text, used):
            found[-1].text += f" {row.text}"
            found[-1].alone = True
        else:
            parts = apart(row.text, texts[place + 1 : place + _COLUMN])
            found += [replace(row, text=part, gap=row.gap and part is parts[0]) for part in parts]
    found = [row for row in found if not is_alone(row.text, used)]
    after: Marker | None = None
    for row in reversed(found):
        mark, row.end = mark_of(row.text, used), len(row.text) + row.indent
        if mark and after and (mark.kind in NUMBERS, after.kind, after.code) == (True, "decimal", f"{mark.code}.1"):
            # A plain number that the next one goes on from, 2 before 2.1, counts with it.
            mark = replace(mark, kind="decimal")
        row.marker, after = mark, mark or after
    return found


def _find_labels(rows: Sequence[TextLine]) -> None:
    """Make items of lines with a label that several units have, "Grammar: the past"; one over each list names it."""
    plain = [place for place, row in enumerate(rows) if row.marker is None and row.text[0].isupper()]
    labels: dict[str, list[int]] = {}
    for place in plain:
        label, colon, rest = rows[place].text.partition(": ")
        if colon and len(label.split()) <= _LABEL_WORDS and not rest[0].isdigit() and not is_heading_word(label):
            labels.setdefault(label.casefold(), []).append(place)
    again = [places for places in labels.values() if len(places) > 1]
    if len(again) > 1 or any(set(range(places[0], places[-1])) & set(plain) - set(places) for places in again):
        for place in chain(*again):
            rows[place].item = True


# --- lines that belong together -----------------------------------------------------------------------


def _whole(rows: Sequence[TextLine], source: str, *, cells: bool) -> tuple[list[TextLine], list[str]]:
    """Return texts without their marks, and for each line that was joined the word it had broken, or ""."""
    plain = [row.text[0].islower() for row in rows if row.marker is None]
    # Outcomes of no mark may all begin with small letters; else such a line shows that lines were broken.
    small = len(plain) == len(rows) and sum(plain) > len(plain) / 2
    width = max(row.end for row in rows) if any(plain) and not small else 0
    whole: list[TextLine] = []
    joined: list[str] = []
    for row, after in zip_longest(rows, rows[1:]):
        row.lower = row.text[0].islower() and not small
        heading, text = as_heading(row.text) if row.marker is None else ("", row.marker.rest)
        last = whole[-1] if whole and not heading and not cells else None
        if last and _continues(last, row, width) and not _begins_list(last, row, after):
            last.text, word = _joined(last.text, row.text, source)
            last.end = row.end
            joined.append(word)
        else:
            row.heading, row.text = heading, text
            whole.append(row)
    behind = [(row, found) for row in whole if (found := CODE_BEHIND.fullmatch(row.text))]
    if len({found["code"] for _, found in behind}) > 1:
        for row, found in behind:
            row.text, row.code = found["text"], found["code"]
    return whole, joined


def _continues(last: TextLine, row: TextLine, width: int) -> bool:
    """Say whether a line goes on with the text of the one before it.

    Args:
        width: Of the page (characters), where lines were broken at it; else 0.
    """
    if last.heading.startswith(("#", "bold", "capitals")) or row.item or CODE_BEHIND.fullmatch(last.text):
        return False
    is_open = last.text[-1] in ",(–/&" or last.text.rsplit(None, 1)[-1].casefold() in _GOES_ON
    if row.marker:
        # "1.5 litres of water" on a line that goes on with a sentence.
        return row.marker.kind == "decimal" and row.marker.rest[0].islower() and not row.gap and is_open
    if _HYPHEN.search(last.text) and row.text[0].islower():
        return True
    if last.heading:
        return row.lower and not row.gap and last.end > _NARROW
    if row.gap:
        return row.lower and (is_open or last.marker is not None) and last.text[-1] not in ".;:!?"
    if row.lower or row.text[0] in ",;)" or row.text.rstrip(".").isdecimal() or is_open:
        return True
    return width > 0 and last.end >= max(_FULL * width, _NARROW) and last.text[-1] != ":"


def _begins_list(last: TextLine, row: TextLine, after: TextLine | None) -> bool:
    """Say whether a line with a capital is a heading, not a name at the end of a sentence: a new list begins after."""
    if after is None or row.marker or row.text[0].islower() or not _could_be_heading(row.text):
        return False
    if last.text[-1] in ".;!?" and not after.text[0].islower():
        return True
    if after.marker is None:
        return _is_lead_in(after)
    return last.marker is not None and not after.marker.follows(last.marker)


def _could_be_heading(text: str) -> bool:
    return len(text.split()) <= _HEADING_WORDS and text[-1] not in ".;,?!"


def _joined(text: str, more: str, source: str) -> tuple[str, str]:
    """Return a text with the line that goes on with it, and the word that was broken between them, else ""."""
    found, after = _HYPHEN.search(text), re.match(r"[^\W\d_]+", more)
    if not found or not after or not more[0].islower():
        return f"{text} {more}", ""
    before, rest = found["word"], after[0]
    if before.casefold() in _KEEP or f"{before}-{rest}".casefold() in source.casefold():
        return f"{text[:-1]}-{more}", ""
    return text[:-1] + more, before + rest


# --- headings, and what stands below them -------------------------------------------------------------


def _find_headings(rows: Sequence[TextLine]) -> None:
    """Mark texts as headings that are such by their place: short, and a list comes next."""
    _find_numbered(rows)
    listed = any(row.marker or row.code for row in rows if not row.heading)
    for place, row in reversed(list(enumerate(rows))):
        if row.marker or row.heading or row.item or row.code or _is_lead_in(row):
            continue
        after = rows[place + 1 :]
        following = next((other for other in after if not _is_lead_in(other)), None)
        if row.text.endswith(":"):
            row.heading, row.text = "plain", row.text.rstrip(": ")
        elif after and following is after[0] and _begins_cluster(rows[:place], following):
            row.heading = "plain"
        elif following is None or not _could_be_heading(row.text):
            continue
        elif listed:
            is_next = following.marker or following.heading or following.item or following.code or _is_lead_in(after[0])
            # A sentence may stand between a heading and its list.
            over = len(after) > 1 and after[0].text.endswith(".") and after[1].marker is not None
            row.heading = "plain" if is_next or over else ""
        elif row.gap or place == 0:
            # Blocks of lines: the first of a block is its heading where an empty line stands on both sides of it.
            block = (len(after) > 1 and following.gap and not after[1].gap) or (place == 0 and following.heading)
            row.heading = "plain" if block else ""


def _find_numbered(rows: Sequence[TextLine]) -> None:
    """Make headings of numbered lines that each have unmarked ones below them: units of a course."""
    units = [place for place, row in enumerate(rows) if row.marker and row.marker.kind in NUMBERS]
    below = [rows[place + 1] for place in units if place + 1 < len(rows)]
    of_words = all(not (row.marker or row.heading or row.text.endswith(".")) for row in below)
    if len(below) == len(units) > 1 and of_words and all(_could_be_heading(rows[place].text) for place in units):
        for place in units:
            rows[place].heading = "plain"


def _begins_cluster(before: Sequence[TextLine], following: TextLine) -> bool:
    """Say whether a line with a code is the first of a part: 8.EE.B.5 after 8.EE.A.2."""
    mark = following.marker
    if mark is None or mark.kind != "code":
        return False
    last = next((row.marker for row in reversed(before) if row.marker and row.marker.kind == "code"), None)
    return last is None or not mark.follows(last)


def _is_lead_in(row: TextLine) -> bool:
    return not row.marker and row.text.endswith(_LEADS) and bool(LEAD_IN.fullmatch(row.text))


#: Kinds of headings, the highest first; those in words stand among each other as they first appear. A "label" stands
#: again and again, "Statutory requirements", or names a column: what is below it belongs to the heading above.
_RANKS = ("#1", "#2", "#3", "#4", "#5", "#6", "word", "capitals", "bold", "over", "plain", "label", "aside")
#: What stands over the columns or lists of a syllabus names none of its parts.
_COLUMN_NAMES = re.compile(
    r"(?i)((topics?|(subject )?content|(learning )?(outcomes?|objectives?|aims)|guidance|clarification|syllabus links"
    r"|and)\b[\s,/]*)+"
)
#: Labels of what is said to teachers, not to be learned.
_ASIDE = re.compile(
    r"(?i)(notes|guidance|notes and guidance|non-statutory( guidance)?|teach(er|ing) (notes|guidance)"
    r"|suggested (activities|resources)|resources|prior learning|assessment|homework)( \(.*\))?"
)


def _rank_headings(rows: Sequence[TextLine]) -> None:
    """Tell asides and labels from other headings, and of two the first that stands over several."""
    times = Counter(row.text for row in rows if not row.marker)
    for row in rows:
        if row.heading and _ASIDE.fullmatch(row.text):
            row.heading = "aside"
        elif row.heading and (times[row.text] > 1 or _COLUMN_NAMES.fullmatch(row.text)):
            row.heading = "label"
    for row, after in pairwise(rows):
        if row.heading == after.heading == "plain":
            row.heading = "over"


def _tree(rows: Sequence[TextLine], notes: list[str]) -> SourceTree:
    """Return the rows below one another, and the title of the whole where it has one."""
    _rank_headings(rows)
    listed = any(row.marker or row.code for row in rows if not row.heading)
    top = (TextLine(0, "", heading=_RANKS[0]), ListItem("", heading=True))
    opened = [top]
    for row in rows:
        code = (row.marker.code if row.marker else "") or row.code
        last, above = opened[-1]
        # What comes after a code on a line of its own is all about it.
        belongs = last.alone and bool(above.code) and not (row.marker or row.item or row.heading)
        loose = listed and not (belongs or row.marker or row.item or row.heading or row.code)
        node = ListItem(trimmed(row.text), row.number, code, bool(row.heading), row.heading == "over", loose)
        if row.heading or row.marker:
            opened = [top, *_above(opened[1:], row)]
        if row.heading == "label":
            continue
        if row.heading == "aside":
            notes.append(f'What stands below "{row.text}" was left out (line {row.number}).')
        else:
            parents = opened if row.heading or row.marker or belongs else [pair for pair in opened if pair[0].heading]
            parents[-1][1].below.append(node)
        if row.heading or row.marker:
            opened.append((row, node))
    roots, title = _titled(top[1].below)
    return SourceTree(roots, title, notes)


def _above(opened: Sequence[tuple[TextLine, ListItem]], row: TextLine) -> list[tuple[TextLine, ListItem]]:
    """Return the open headings and items that a heading or an item stands below."""
    headings = [pair for pair in opened if pair[0].heading]
    if row.heading:
        kinds = [other.heading for other, _ in headings]
        if row.heading in kinds:
            return headings[: kinds.index(row.heading)]
        ranks = [_RANKS.index(kind.split()[0]) for kind in (row.heading, *kinds)]
        above = [pair for pair, rank in zip(headings, ranks[1:], strict=True) if rank <= ranks[0]]
        # A label within a list, "Supplement", does not end it.
        return list(opened) if row.heading == "label" and above == headings else above
    marker = row.marker
    assert marker is not None
    for place, (other, _) in reversed(list(enumerate(opened))):
        if other.marker and not other.heading and marker.is_beside(other.marker, row.indent - other.indent):
            return list(opened[:place])

    def holds(other: TextLine, node: ListItem) -> bool:
        if other.heading:
            return True
        if marker.kind == "decimal":
            return bool(node.code) and marker.code.startswith(f"{node.code}.")
        # Of bullets that nobody closed, those further to the right cannot be above it.
        return marker.kind != "bullet" or bool(other.marker and other.marker.code) or other.indent <= row.indent

    return [pair for pair in opened if holds(*pair)]


def _titled(roots: list[ListItem]) -> tuple[list[ListItem], str]:
    """Return the nodes without the title of the whole: a first heading of nothing, or the only one of its kind."""
    titles: list[str] = []
    listed = any(root.below or not root.heading for root in roots)
    while listed and len(roots) > 1 and roots[0].heading and not roots[0].below and (roots[0].over or not titles):
        titles, roots = [*titles, roots[0].text], roots[1:]
    while len(roots) == 1 and roots[0].heading and any(node.heading for node in roots[0].below):
        titles, roots = [*titles, roots[0].text], roots[0].below
    return roots, " – ".join(titles)
