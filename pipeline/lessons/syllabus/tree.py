"""What was understood of a list of outcomes: a tree, brought to three floors (groups, outcomes, points), and notes."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from pipeline.lessons.course import MAX_LINE

#: Floors of a course: groups, outcomes, points.
_FLOORS = 3
#: Where a text that is too long is cut, if it can be.
_SENTENCES = re.compile(r"(?<=[.;!?])\s+")

#: How long a unit takes: "(6 lessons)". A title is more than that.
_TIME = re.compile(
    r"(?i)(?<=\w)\s*[(\[](?:about |ca\.? |~)?\d+(?:\s?[-–]\s?\d+)?\s?"
    r"(?:(?:lesson|period|hour|hr|week|day|heure|hora)s?|Std\.|h)[)\]]"
)


@dataclass
class ListItem:
    """A heading, an outcome or a point, with what stands below it."""

    text: str
    #: Line of the source, from 1.
    line: int = 0
    #: As printed before it: "B1.2", "a".
    code: str = ""
    #: It cannot be an outcome itself.
    heading: bool = False
    #: A heading over headings.
    over: bool = False
    #: Neither marked as an item nor a heading: an item only where its heading has no other.
    loose: bool = False
    below: list[ListItem] = field(default_factory=list)


@dataclass
class SourceTree:
    """What was understood of a source."""

    roots: list[ListItem]
    #: Of the source itself; "" where it says none.
    title: str = ""
    #: What was left out, joined or guessed, one sentence each.
    notes: list[str] = field(default_factory=list)


def groups_of(reading: SourceTree, title: str) -> tuple[list[ListItem], list[str]]:
    """Return groups of outcomes of points, and further notes.

    Args:
        title: Of the group of outcomes that have no heading.
    """
    notes: list[str] = []
    roots = _dropped(reading.roots, notes)
    if not roots and len(reading.roots) > 1:
        # Topics alone: they are what there is to teach.
        notes, roots = [], [replace(root, heading=False) for root in reading.roots]
    while len(roots) == 1 and roots[0].heading and _height(roots[0]) > _FLOORS:
        roots = roots[0].below
    headed, alone = _parted(roots)
    found = [ListItem(title, alone[0].line, below=alone)] if alone else []
    # Where one group holds lists of lists of lists, what is below each is a group.
    deep = any(_height(root) > _FLOORS for root in headed)
    for root in headed:
        found += _split(root, deep=deep)
    groups = [replace(group, below=[_outcome(out, notes) for out in group.below]) for group in found]
    notes += _repeats(groups)
    times = [(group.line, found[0].strip()) for group in groups for found in _TIME.finditer(group.text)]
    if times:
        said = ", ".join(dict.fromkeys(f'"{text}"' for _, text in times))
        notes.append(f"Times in titles were left out: {said} ({lines([line for line, _ in times])}).")
    for group in groups:
        group.text = _cut(_capital(_TIME.sub("", group.text)))[0]
    return groups, notes


def lines(numbers: Iterable[int]) -> str:
    """Return "line 7" or "lines 3, 9 and 12 more" for numbers of lines."""
    shown, more = sorted(set(numbers)), 0
    if len(shown) > 8:
        shown, more = shown[:6], len(shown) - 6
    word = "line" if len(shown) == 1 else "lines"
    return f"{word} {', '.join(map(str, shown))}" + (f" and {more} more" if more else "")


def _height(node: ListItem) -> int:
    return 1 + max(map(_height, node.below), default=0)


def _parted(roots: Sequence[ListItem]) -> tuple[list[ListItem], list[ListItem]]:
    """Return the groups and the outcomes among what stands at the left.

    Items of one list are all the same: groups where lists of lists stand below each, or numbers that go on from its
    own; else what stands below them are points.
    """
    items = [root for root in roots if not root.heading]
    whole = all(
        _height(root) >= _FLOORS or any(low.code.startswith(f"{root.code}.") for low in root.below) for root in items
    )
    parts: tuple[list[ListItem], list[ListItem]] = ([], [])
    for root in roots:
        parts[not (root.below and (root.heading or whole))].append(root)
    return parts


def _dropped(nodes: list[ListItem], notes: list[str]) -> list[ListItem]:
    """Return the nodes without headings of nothing, and without loose lines beside marked ones."""
    empty: list[int] = []
    loose: list[int] = []

    def kept(level: list[ListItem], *, marked: bool) -> Iterator[ListItem]:
        for node in level:
            below = list(kept(node.below, marked=any(not low.loose and not low.heading for low in node.below)))
            if node.loose and marked:
                loose.append(node.line)
            elif not any(map(str.isalnum, node.text)):
                yield from below
            elif node.heading and not below:
                empty.append(node.line)
            else:
                yield replace(node, below=below)

    roots = list(kept(nodes, marked=any(not node.loose and not node.heading for node in nodes)))
    if any(not node.loose for node in roots):
        loose += [node.line for node in roots if node.loose]
        roots = [node for node in roots if not node.loose]
    if empty:
        notes.append(f"Headings with nothing below them were left out ({lines(empty)}).")
    if loose:
        notes.append(f"Text that is neither a heading nor an item of a list was left out ({lines(loose)}).")
    return roots


def _split(group: ListItem, *, deep: bool) -> Iterator[ListItem]:
    """Yield a group, or, where headings stand within it, each of them as one that carries both titles."""

    def apart(low: ListItem) -> bool:
        # What stands below a bullet are its points.
        return bool(low.below) and (low.heading or bool(low.code)) and (deep or group.over or _height(low) >= _FLOORS)

    for inner, nodes in groupby(group.below, apart):
        if not inner:
            yield replace(group, below=list(nodes))
        for low in nodes if inner else ():
            yield from _split(replace(low, text=f"{group.text} – {low.text}"), deep=False)


def _outcome(node: ListItem, notes: list[str]) -> ListItem:
    """Return an outcome with its points, every text short enough; without points of its own, its text is its point."""
    texts = list(_flat(node.below)) or [ListItem(node.text, node.line)]
    if node.below and len(texts) == 1:
        # "Motion: graphs; equations; falling objects" is three points.
        texts = [replace(texts[0], text=part) for part in re.split(r";\s+", texts[0].text) if part]
    points = [replace(point, text=part, below=[]) for point in texts for part in _cut(point.text)]
    if not node.below:
        points = [replace(point, text=_capital(point.text)) for point in points]
    title, *more = _cut(_capital(node.text))
    if more or len(points) != len(texts):
        notes.append(f"Line {node.line} is longer than {MAX_LINE} characters and was cut into several points.")
    return replace(node, text=title, below=points)


def _capital(text: str) -> str:
    """Return a title with a capital first letter; "pH" and "x²" stay as they are."""
    return text[0].upper() + text[1:] if (text[:2].isalpha() and text[:2].islower()) or text[1:2] == " " else text


def _flat(nodes: Sequence[ListItem]) -> Iterator[ListItem]:
    """Yield the lowest nodes; those above them say first what they are about."""
    for node in nodes:
        if not node.below:
            yield node
        for low in _flat(node.below):
            yield replace(low, text=f"{node.text.rstrip(':.')}: {low.text}")


def _cut(text: str) -> list[str]:
    """Return a text in parts that a course file may hold: whole sentences, as far as these are short enough."""
    parts: list[str] = []
    for sentence in _SENTENCES.split(text):
        for part in textwrap.wrap(sentence, MAX_LINE, break_on_hyphens=False):
            if parts and len(f"{parts[-1]} {part}") <= MAX_LINE:
                parts[-1] += f" {part}"
            else:
                parts.append(part)
    return parts


def _repeats(groups: Sequence[ListItem]) -> Iterator[str]:
    seen: dict[str, int] = {}
    for group in groups:
        for out in group.below:
            first = seen.setdefault(out.text.casefold(), out.line)
            if first != out.line:
                yield f"Line {out.line} repeats line {first}; both were kept."
