"""The lines a kind of figure may have, and the reading of them: "name: value"."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pipeline.drawing.canvas import Canvas
from pipeline.drawing.values import FigureFault, Function, Quantity, plain
from pipeline.html import clean

_CORNER = r"[A-Z][′'₀-₉\d]?"
#: What stands for a place in the name of a line.
_PLACES = {
    "P": f"({_CORNER})",
    "PQ": f"({_CORNER}{_CORNER})",
    "PQR": f"({_CORNER}(?:{_CORNER}{_CORNER})?)",
    "u": r"([a-z](?:_\d)?)",
    "R": r"([A-Za-z][\w₀-₉]{0,9})",
    "n": r"([-−]?\d+(?:\.\d+)?)",
    "name": r"(\S(?:.{0,38}\S)?)",
}
#: Other names of lines, shapes and solids: those of American English, and everyday ones.
_ALSO = {"center": "centre", "width": "breadth", "trapezoid": "trapezium", "rectangular prism": "cuboid"}
#: A figure whose words are longer is a text.
LONGEST = 200
_LONGEST_LABEL = 60

Rows = tuple[list[str], list[list[str]]]


@dataclass(frozen=True)
class Line:
    """One kind of line.

    Args:
        key: Its name, places in braces.
        read: Makes the value from its text.
        example: As an author writes it; shown in the documentation and to the model.
        say: How the alt text says it: {0}, {1} for places, {v} for the value; "" leaves it out.
        given: Whether its numbers are data of the task.
        needed: Whether each figure of the kind has one.
        many: Whether the same name may stand on several lines.
        hidden: What `hide` calls it.
    """

    key: str
    read: Callable[[str], Any]
    example: str
    say: str | None = None
    given: bool = True
    needed: bool = False
    many: bool = False
    hidden: str = ""

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        parts = re.split(r"\{(\w+)\}", self.key)
        return re.compile(
            "".join(_PLACES[part] if at % 2 else re.escape(part) for at, part in enumerate(parts)) + r"\Z"
        )


@dataclass(frozen=True)
class FigureEntry:
    """A line that was read."""

    line: Line
    places: tuple[str, ...]
    text: str
    value: Any
    #: The author's word, where it is another than that of the line.
    own: str = ""

    def said(self) -> str:
        """Return how the alt text says it."""
        told = self._told()
        return told.replace(_ALSO[self.own], self.own) if self.own else told

    def _told(self) -> str:
        if self.line.say is not None:
            return self.line.say.format(*self.places, v=self.text)
        name = re.sub(r"\{\w+\}", "{}", self.line.key).format(*self.places)
        return f"{name} not known" if self.text.startswith("?") else f"{name} {self.text}".strip()


@dataclass
class FigureLines:
    """The lines of one figure, read; what is wrong with them is in `faults`."""

    entries: list[FigureEntry] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    canvas: Canvas = field(default_factory=Canvas)

    def all(self, key: str) -> list[FigureEntry]:
        """Return the lines of a name, in their order."""
        return [entry for entry in self.entries if entry.line.key == key]

    def get(self, key: str) -> FigureEntry | None:
        """Return the first line of a name."""
        return next(iter(self.all(key)), None)

    def value(self, key: str, default: Any = None) -> Any:
        """Return the value of the first line of a name."""
        found = self.get(key)
        return found.value if found else default

    def text(self, key: str, default: str = "") -> str:
        """Return the printed text of the first line of a name."""
        found = self.get(key)
        return found.text if found else default

    def hides(self, what: str) -> bool:
        """Return whether a line says that something is not told."""
        return bool(what) and any(entry.value == what for entry in self.all("hide"))


TITLE = Line("title", str, "title: A field by the river", say="", given=False)


def read(lines: Sequence[str], known: Sequence[Line]) -> FigureLines:
    """Return the lines, read; lines that no pattern fits or whose value is wrong are faults."""
    figure = FigureLines()
    for raw in lines:
        try:
            entry = _entry(plain(clean(raw)) if "function" not in raw else clean(raw).strip(), known)
        except FigureFault as fault:
            figure.faults.append(str(fault))
            continue
        same = [one for one in figure.all(entry.line.key) if one.places == entry.places]
        if same and not entry.line.many:
            figure.faults.append(f"'{raw}': this line stands twice")
        figure.entries.append(entry)
    missing = [line for line in known if line.needed and not figure.all(line.key)]
    figure.faults += [f"a line '{line.example}' is missing" for line in missing]
    return figure


def _entry(raw: str, known: Sequence[Line]) -> FigureEntry:
    if len(raw) > LONGEST:
        raise FigureFault(f"'{raw[:40]}…' is too long")
    name, _, value = (part.strip() for part in raw.partition(":"))
    own = ""
    if not any(line.pattern.match(name) for line in known):
        own = next((word for word in ("center", "width") if word in name.split()), "")
        name = name.replace(own, _ALSO[own]) if own else name
    for line in known:
        if found := line.pattern.match(name):
            longest = LONGEST if line.many or line is TITLE or "|" in value or "(" in value else _LONGEST_LABEL
            if len(value) > longest:
                raise FigureFault(f"'{name}': the value is longer than {longest} characters")
            try:
                read_value = line.read(value)
                text = read_value.text if isinstance(read_value, (Quantity, Function)) else plain(value)
                return FigureEntry(line, found.groups(), text, read_value, own)
            except FigureFault as fault:
                raise FigureFault(f"line '{name}': {fault}") from None
    raise FigureFault(f"no line '{name}' here; there are: {', '.join(dict.fromkeys(line.key for line in known))}")


def choice(*allowed: str) -> Callable[[str], str]:
    """Return the reader of a word that must be one of those allowed."""

    def read_choice(value: str) -> str:
        word = value.lower() if value.lower() in allowed else _ALSO.get(value.lower(), "")
        if word not in allowed:
            raise FigureFault(f"'{value}' is not one of {', '.join(allowed)}")
        return word

    return read_choice


@dataclass(frozen=True)
class FigureKind:
    """One kind of figure.

    Args:
        name: As authors write it.
        says: What it shows.
        lines: The lines it may have.
        draw: Checks the lines and draws them onto a canvas.
        head: How the alt text begins, if not with the name.
        rows: The data as column heads and rows, where a table says them better.
        also: Other names of it.
    """

    name: str
    says: str
    lines: tuple[Line, ...]
    draw: Callable[[FigureLines, Canvas], None] | None = None
    head: Callable[[FigureLines], str] | None = None
    rows: Callable[[FigureLines], Rows] | None = None
    also: tuple[str, ...] = ()
