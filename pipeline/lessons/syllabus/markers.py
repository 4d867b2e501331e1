"""What stands before an item of a list: bullets, numbers, letters, printed codes; and lines that are headings."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

_BULLETS = "•●○◦▪■□▫‣⁃∙·➢➤►▶▸✓✔❖◆◇♦⬧★☆⦁⚫◾→»\uf0b7\uf0a7\uf0d8\uf0fc\uf076"
#: These stand in texts too, so that a space must follow.
_DASHES = "–—−‒―*+-"
#: The first of a list that a viewer put behind its heading, from the column beside it; the next one begins a line.
_FIRST_BEHIND = re.compile(r"(?P<head>\S.*?)\s+(?P<item>(?P<open>\(?)(?P<first>[ai])\)\s\S.*)")
#: These never stand in a text: what comes after one on the same line is another item.
_INNER_BULLET = re.compile(r"\s+(?=[•●▪■◆♦⬧⦁\uf0b7\uf0a7]\s*\S)")
_HEADING_WORDS = (
    "unit|module|topic|section|theme|chapter|part|area|key area|strand|component|paper|domain|block|term|learning aim|"
    "unité|thème|chapitre|unidad|bloque|tema|kapitel|thema|lernfeld"
)
#: B1.2, SCN 3-13a; 3.NF.A.1, CCSS.MATH.CONTENT.8.EE.A.1, MS-PS1-1; AC9M7N01. Not "GRADE 7", which is no code.
_CODE = (
    rf"(?!(?i:{_HEADING_WORDS}|year|grade|level|stage|week|lesson|page)\b)(?=\S*\d|[A-Z]+ \d)(?:"
    r"[A-Z]{1,8}[ -]?\d{1,4}[A-Za-z]?(?:[.-]\w{1,4})*|(?:\d{1,2}|[A-Z]{1,8})(?:[.-][A-Z]{1,10}\d{0,2})+(?:[.-]\w{1,3})+"
    r"|[A-Z]{2}\d[A-Z\d]{4,})"
)
#: A code behind a text: "Calculate volumes (ACMMG160)".
CODE_BEHIND = re.compile(
    r"(?P<text>.*\S)\s*[(\[](?P<code>(?=\S*[A-Z])(?=\S*\d)[A-Z\d][\w.-]{4,}|[A-Z]{2,} \d[\w.-]+)[)\]]\.?"
)
_ROMAN = r"[ivx]{1,5}|[IVX]{1,5}"
_OF_LISTS = r"(?P<style>\(?)(?P<code>{0})[{1}]\s+(?P<rest>\S.*)"
#: Kinds of mark, as `Marker` has them, in the order in which they are looked for. What has a `doubt` (a letter as a
#: bullet, the letters of a code, a number alone) is a mark only where others of the source have the same.
_KINDS = tuple(
    (kind, re.compile(pattern))
    for kind, pattern in (
        (
            "bullet",
            rf"(?P<style>[{_BULLETS}]|(?P<doubt>[o§])(?=\s)|[{_DASHES}](?=\s))\s*(?:\[[ xX]?\]\s+)?(?P<rest>.*)",
        ),
        ("code", rf"(?=(?P<doubt>[A-Z]*))(?P<code>{_CODE})[.:)]?\s+(?P<rest>\S.*)"),
        ("decimal", r"(?P<code>\d{1,3}(?:\.\d{1,3}){1,5})[.:)]?\s+(?P<rest>\S.*)"),
        ("number", _OF_LISTS.format(r"\d{1,3}", ".):")),
        ("bare", r"(?P<doubt>)(?P<code>\d{1,2})\s+(?P<rest>[^\W\d_].*)"),
        ("roman", _OF_LISTS.format(_ROMAN, ".)")),
        ("letter", _OF_LISTS.format("[A-Za-z]", ".)")),
    )
)
#: Kinds that count with a plain number.
NUMBERS = ("number", "bare")
_HEADING_WORD = re.compile(rf"(?i)({_HEADING_WORDS})\s+(\d{{1,2}}([.]\d{{1,2}})*|[A-Z]|[IVX]{{1,4}})(?![\w])")
_MARKDOWN_HEADING = re.compile(r"(?P<marks>#{1,6})\s+(?P<rest>.*?)\s*#*")
_BOLD = re.compile(r"(\*\*|__)(?P<rest>[^*_]+)\1:?")
#: "Students should be able to:", "By the end of this unit, learners will know:".
LEAD_IN = re.compile(
    r"(?i)(.*\b(students?|pupils?|learners?|candidates?|children|you)\b.*\b(should|will|must|can|need|learn)\b.*"
    r"|.*\b(élèves?|schüler\w*|lernenden?|alumn\w+|estudiantes|sgoilearan)\b.*"
    r"|(by the end of|on completion of|having completed)\b.*)"
)


@dataclass(frozen=True, slots=True)
class Marker:
    """What stands before an item."""

    #: bullet, code, decimal, number, bare (a number without a stop), roman or letter.
    kind: str
    #: The printed form without its brackets; "" for a bullet.
    code: str
    rest: str
    #: The bullet, or what stands round a number or letter, so that (a) and a. are two kinds.
    style: str = ""
    #: What must come again in its source for it to be one; "" for a sure one.
    doubt: str = ""

    def follows(self, other: Marker) -> bool:
        """Say whether it comes next after another in one list; of bullets nobody can say."""
        if "bullet" in (self.kind, other.kind):
            return True
        before, now = (re.split(r"[.-]", marker.code) for marker in (other, self))
        return before[:-1] == now[:-1] or now[: len(before)] == before

    def is_beside(self, other: Marker, moved: int) -> bool:
        """Say whether the item is of the same list as an earlier one, `moved` columns to the left of it."""
        kinds = {self.kind, other.kind}
        if kinds == {"letter", "roman"}:
            # i) after h) is a letter; so is v) after u).
            return other.style == self.style and ord(self.code[0].lower()) == ord(other.code[0].lower()) + 1
        if kinds in ({"code"}, {"decimal"}):
            return len(re.split("[.-]", self.code)) == len(re.split("[.-]", other.code))
        return len(kinds) == 1 and other.style == self.style and (self.kind != "bullet" or abs(moved) < 2)


def mark_of(text: str, used: frozenset[str]) -> Marker | None:
    """Return the mark of a line; None where it has none.

    Args:
        used: Doubtful marks that the lines of the source really use, as `used_marks` returns them.
    """
    return next((mark for mark in _possible(text) if not mark.doubt or mark.doubt in used), None)


def used_marks(texts: Iterable[str]) -> frozenset[str]:
    """Return which doubtful marks these lines use: those that several of them have; numbers alone where they rise."""
    every = [mark for text in texts for mark in _possible(text)]
    # The same code twice is a word: "CO2".
    times = Counter(doubt for doubt, _ in {(mark.doubt, mark.code or place) for place, mark in enumerate(every)})
    bare = [int(mark.code) for mark in every if mark.kind == "bare"]
    chapters = {int(mark.code.split(".")[0]) for mark in every if mark.kind == "decimal"}
    rising = sum(now == before + 1 for before, now in pairwise(bare)) >= 2 or chapters & set(bare)
    return frozenset(doubt for doubt in times if (rising if doubt == "bare " else times[doubt] > 1))


def _possible(text: str) -> Iterator[Marker]:
    for kind, pattern in _KINDS:
        if found := pattern.fullmatch(text):
            parts = found.groupdict()
            code, style, doubt = parts.get("code", ""), parts.get("style", ""), parts.get("doubt")
            style += "A" if code.isupper() else ""
            yield Marker(kind, code, parts["rest"], style, "" if doubt is None else f"{kind} {doubt}")


def apart(text: str, after: Sequence[str]) -> list[str]:
    """Return what stands on a line that holds several items, each with its mark.

    Args:
        after: The lines that come next.
    """
    if found := _FIRST_BEHIND.fullmatch(text):
        second = f"{found['open']}{'b' if found['first'] == 'a' else 'ii'}) "
        if any(line.startswith(second) for line in after):
            return [found["head"], found["item"]]
    return _INNER_BULLET.split(text)


def is_alone(text: str, used: frozenset[str]) -> bool:
    """Say whether a line is a mark whose text stands on the next line, as PDF viewers copy it."""
    mark = mark_of(f"{text} x", used)
    return mark is not None and mark.rest == "x"


def is_heading_word(text: str) -> bool:
    """Say whether a word names what headings stand over: "Topic"."""
    return bool(re.fullmatch(_HEADING_WORDS, text, re.IGNORECASE))


def as_heading(text: str) -> tuple[str, str]:
    """Return the kind of a line that is a heading by itself, and its text; ("", text) for any other."""
    if found := _MARKDOWN_HEADING.fullmatch(text):
        return f"#{len(found['marks'])}", found["rest"]
    if (found := _BOLD.fullmatch(text)) and len(text) < 120:
        return "bold", found["rest"].strip().rstrip(":")
    if (found := _HEADING_WORD.match(text)) and len(text) < 120 and text[-1] not in ".;,":
        return f"word {found[1].lower()}", text.rstrip(":")
    if len(text) < 100 and sum(char.isalpha() for char in text) > 3 and text.isupper():
        return "capitals", text.rstrip(":")
    return "", text
