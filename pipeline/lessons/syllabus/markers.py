"""What stands before an item of a list: bullets, numbers, letters, printed codes; and lines that are headings."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

_BULLETS = "•●○◦▪■□▫‣⁃∙·➢➤►▶▸✓✔❖◆◇♦⬧★☆⦁⚫◾→»\uf0b7\uf0a7\uf0d8\uf0fc\uf076"
#: These stand in texts too, so that a space must follow.
_DASHES = "–—*+-"
_BULLET = re.compile(rf"(?:(?P<sure>[{_BULLETS}])\s*|(?P<dash>[{_DASHES}])\s+|(?P<letter>[o§])\s+)(?P<rest>.*)")
#: These never stand in a text: what comes after one on the same line is another item.
_INNER_BULLET = re.compile(r"\s+(?=[•●▪■◆♦⬧⦁\uf0b7\uf0a7]\s*\S)")
_TICK_BOX = re.compile(r"\[[ xX]?\]\s+")
_DECIMAL = re.compile(r"(?P<code>\d{1,3}(?:\.\d{1,3}){1,5})[.:)]?\s+(?P<rest>\S.*)")
_NUMBER = re.compile(r"(?:(?P<code>\d{1,3})[.):]|\((?P<inner>\d{1,3})\))\s+(?P<rest>\S.*)")
_BARE = re.compile(r"(?P<code>\d{1,2})\s+(?P<rest>[^\W\d_].*)")
_LETTER = re.compile(r"(?:(?P<code>[A-Za-z])[.)]|\((?P<inner>[A-Za-z])\))\s+(?P<rest>\S.*)")
_ROMAN = re.compile(r"(?:(?P<code>[ivx]{1,5}|[IVX]{1,5})[.)]|\((?P<inner>[ivx]{1,5}|[IVX]{1,5})\))\s+(?P<rest>\S.*)")
#: B1.2, AS1.1, 3.NF.A.1, SCN 3-13a, KS3-04.
_CODE = re.compile(
    r"(?P<code>[A-Z]{1,8}[ -]?\d{1,4}[A-Za-z]?(?:[.-]\w{1,4})*|\d{1,2}(?:\.[A-Z]{1,4})+(?:\.\w{1,3})+)[.:)]?\s+"
    r"(?P<rest>\S.*)"
)
_ALONE = re.compile(
    rf"[{_BULLETS}{_DASHES}]|\d{{1,3}}(?:\.\d{{1,3}})+\.?|\d{{1,3}}[.)]?|\(?[a-z]\)|\([ivx]+\)"
    r"|[A-Z]{1,5}\d+(?:\.\d+)+|\d{1,2}(?:\.[A-Z]{1,4})+(?:\.\w{1,3})+"
)
_HEADING_WORDS = (
    "unit|module|topic|section|theme|chapter|part|area|key area|strand|component|paper|domain|block|term|unité|thème|"
    "chapitre|unidad|tema|kapitel|thema|lernfeld"
)
_HEADING_WORD = re.compile(rf"(?i)({_HEADING_WORDS})\s+(\d{{1,2}}([.]\d{{1,2}})*|[A-Z]|[IVX]{{1,4}})(?![\w])")
_MARKDOWN_HEADING = re.compile(r"(?P<marks>#{1,6})\s+(?P<rest>.*?)\s*#*")
_BOLD = re.compile(r"(\*\*|__)(?P<rest>[^*_]+)\1:?")
#: "Students should be able to:", "By the end of this unit, learners will know:".
LEAD_IN = re.compile(
    r"(?i)(.*\b(students?|pupils?|learners?|candidates?|children|you)\b.*\b(should|will|must|can|need|learn)\b.*"
    r"|(by the end of|on completion of|having completed)\b.*)"
)


@dataclass(frozen=True, slots=True)
class Marker:
    """What stands before an item."""

    #: bullet, decimal, number, letter, roman or code.
    kind: str
    #: The printed form without its brackets; "" for a bullet.
    code: str
    rest: str
    #: The bullet, or what stands round a number or letter, so that (a) and a. are two kinds.
    style: str = ""

    def follows(self, other: Marker) -> bool:
        """Say whether it comes next after another in one list; of bullets nobody can say."""
        if "bullet" in (self.kind, other.kind):
            return True
        before, now = (re.split(r"[.-]", marker.code) for marker in (other, self))
        return before[:-1] == now[:-1] or now[: len(before)] == before

    @property
    def depth(self) -> int:
        """Return how many parts its number has: 3 for 1.2.3."""
        return len(re.split(r"[.-]", self.code))


@dataclass(frozen=True, slots=True)
class Marks:
    """Which of the doubtful marks the lines of a source really use."""

    bare: bool
    letter_bullets: frozenset[str]
    codes: frozenset[str]

    def of(self, text: str) -> Marker | None:
        """Return the mark of a line; None where it has none."""
        return self._bullet(text) or self._numbered(text)

    def _bullet(self, text: str) -> Marker | None:
        if not (found := _BULLET.fullmatch(text)):
            return None
        if (letter := found["letter"]) and letter not in self.letter_bullets:
            return None
        style = found["sure"] or found["dash"] or letter
        return Marker("bullet", "", _TICK_BOX.sub("", found["rest"], 1), style)

    def _numbered(self, text: str) -> Marker | None:
        if (found := _CODE.fullmatch(text)) and _shape(found["code"]) in self.codes:
            return Marker("code", found["code"], found["rest"])
        if found := _DECIMAL.fullmatch(text):
            return Marker("decimal", found["code"], found["rest"])
        if found := _NUMBER.fullmatch(text):
            return Marker("number", found["code"] or found["inner"], found["rest"], "(" if found["inner"] else "")
        if self.bare and (found := _BARE.fullmatch(text)):
            return Marker("number", found["code"], found["rest"], "bare")
        for kind, pattern in (("roman", _ROMAN), ("letter", _LETTER)):
            if found := pattern.fullmatch(text):
                code = found["code"] or found["inner"]
                style = ("(" if found["inner"] else "") + ("A" if code.isupper() else "a")
                return Marker(kind, code, found["rest"], style)
        return None


def marks_of(texts: Iterable[str]) -> Marks:
    """Return which doubtful marks these lines use: those that several of them have."""
    every = list(texts)
    bare = [int(found["code"]) for text in every if (found := _BARE.fullmatch(text))]
    decimals = {found["code"].split(".")[0] for text in every if (found := _DECIMAL.fullmatch(text))}
    rising = sum(now == before + 1 for before, now in pairwise(bare))
    letters = Counter(found["letter"] for text in every if (found := _BULLET.fullmatch(text)) and found["letter"])
    codes = Counter(_shape(found["code"]) for text in every if (found := _CODE.fullmatch(text)))
    return Marks(
        bare=rising >= 2 or bool(decimals & set(map(str, bare))),
        letter_bullets=frozenset(letter for letter, times in letters.items() if times > 1),
        codes=frozenset(code for code, times in codes.items() if times > 1),
    )


def _shape(code: str) -> str:
    """Return what codes of one series have in common: AS for AS1.1 and AS2; 9.A.9 for 3.NF.A.1."""
    letters = re.match(r"[A-Z]+", code)
    return letters[0] if letters else "standard"


def apart(text: str) -> list[str]:
    """Return the items of a line that holds several, each with its bullet."""
    return _INNER_BULLET.split(text)


def is_alone(text: str) -> bool:
    """Say whether a line is a mark whose text stands on the next line, as PDF viewers copy it."""
    return bool(_ALONE.fullmatch(text))


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
