"""A canvas in units of 1/300 of a column: lines, arcs, arrows, and labels that keep clear of both."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pipeline.drawing.values import FigureFault
from pipeline.html import Html, el, join

#: The width of a drawing; letters of this size are 14 px high on a screen 320 px wide.
WIDTH = 300
SIZE = 15
_WIDEST, _TALLEST = 320, 420
_CELL = 4
#: What it costs to place a label so that the drawing gets too wide, for each unit.
_OUTSIDE = 50.0
_ADVANCES = {
    **dict.fromkeys("ijl.,:;'|!′ ", 0.28),
    **dict.fromkeys("()[]ft/r°-", 0.38),
    **dict.fromkeys("mwMW%", 0.88),
    **dict.fromkeys("−+=×≤≥<>", 0.8),
}
_VARIABLE = re.compile(r"(?<![A-Za-z])[a-zθαβφλ](?![A-Za-z])")

Point = tuple[float, float]
Box = tuple[float, float, float, float]


def width_of(text: str, size: float = SIZE) -> float:
    """Return how wide a text may become in the fonts of the site, estimated high."""
    return size * 1.05 * sum(map(_advance, text))


def _advance(char: str) -> float:
    if char in _ADVANCES:
        return _ADVANCES[char]
    if char in "⁰¹²³⁴⁵⁶⁷⁸⁹⁻₀₁₂₃₄₅₆₇₈₉":
        return 0.4
    if char.isupper():
        return 0.68
    return 0.58 if ord(char) < 0x2E80 else 1.02


def wrap(text: str, width: float) -> list[str]:
    """Return the text in lines that fit a width, where its blanks allow."""
    lines: list[str] = []
    for word in text.split(" "):
        if lines and width_of(f"{lines[-1]} {word}") <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def polar(at: Point, far: float, degrees: float) -> Point:
    """Return the point so far from another; the angle turns from right over up."""
    turn = math.radians(degrees)
    return at[0] + far * math.cos(turn), at[1] - far * math.sin(turn)


def direction(start: Point, end: Point) -> float:
    """Return the angle of the way from one point to another, from right over up, in degrees."""
    return math.degrees(math.atan2(start[1] - end[1], end[0] - start[0]))


def middle(a: Point, b: Point, share: float = 0.5) -> Point:
    """Return a point between two."""
    return a[0] + (b[0] - a[0]) * share, a[1] + (b[1] - a[1]) * share


def _moved(more: float, off: float) -> float:
    """Return what it costs to move a label farther, and aside."""
    return more / 12 + abs(off) / 60


def _places(farther: Iterable[float], aside: Iterable[float]) -> list[tuple[float, float]]:
    return sorted(((more, off) for more in farther for off in aside), key=lambda place: _moved(*place))


_AROUND = _places((0, 6, 13, 22, 33), [0, 25, -25, 50, -50, 80, -80, 120, -120, 180])
_INSIDE = _places((0, 5, 10, 16, 22, 30, 38, 46, 54), [0, 7, -7])


@dataclass(frozen=True)
class _Label:
    text: str
    at: Point
    turn: float
    gap: float
    style: str


class Canvas:
    """Collects shapes in their order; `element` returns them with the labels where they are free."""

    def __init__(self) -> None:
        self._parts: list[Html] = []
        self._labels: list[_Label] = []
        self._placed: list[tuple[Box, str]] = []
        self._ink: set[tuple[int, int]] = set()
        self._seen: list[Point] = []

    def line(self, *at: Point, style: str = "", closed: bool = False, ink: bool = True) -> None:
        """Draw a line through points. Styles: thin, dash, bold, fill, free."""
        d = "M" + "L".join(f"{_n(x)} {_n(y)}" for x, y in at) + ("Z" if closed else "")
        self._parts.append(el("path", d=d, **_style(style)))
        self._seen += at
        for start, end in zip(at, (*at[1:], at[0]) if closed else at[1:], strict=False):
            self._mark(start, end, ink)

    def lines(self, pairs: Iterable[tuple[Point, Point]], style: str = "thin") -> None:
        """Draw many separate lines that labels may cross, such as a grid."""
        listed = list(pairs)
        d = "".join(f"M{_n(a[0])} {_n(a[1])}L{_n(b[0])} {_n(b[1])}" for a, b in listed)
        if d:
            self._parts.append(el("path", d=d, **_style(style)))
        self._seen += [at for pair in listed for at in pair]

    def circle(self, at: Point, radius: float, style: str = "") -> None:
        self._parts.append(el("circle", cx=_n(at[0]), cy=_n(at[1]), r=_n(radius), **_style(style)))
        self._round(at, radius, radius, 0, 360)

    def ellipse(
        self, at: Point, across: float, up: float, start: float = 0, turn: float = 360, style: str = ""
    ) -> None:
        """Draw a piece of an ellipse whose axes are level and upright."""
        self.line(*self._round(at, across, up, start, turn, mark=False), style=style)

    def dot(self, at: Point, radius: float = 3) -> None:
        self._parts.append(el("circle", cx=_n(at[0]), cy=_n(at[1]), r=_n(radius), fill="currentColor", stroke="none"))
        self._round(at, radius, radius, 0, 360)

    def arc(self, at: Point, radius: float, start: float, turn: float, style: str = "") -> None:
        """Draw an arc from an angle, turning so many degrees over up."""
        a, b = polar(at, radius, start), polar(at, radius, start + turn)
        large, sweep = int(abs(turn) > 180), int(turn < 0)
        d = f"M{_n(a[0])} {_n(a[1])}A{_n(radius)} {_n(radius)} 0 {large} {sweep} {_n(b[0])} {_n(b[1])}"
        if "fill" in style:
            d += f"L{_n(at[0])} {_n(at[1])}Z"
        self._parts.append(el("path", d=d, **_style(style)))
        self._round(at, radius, radius, start, turn)

    def arrow(self, start: Point, end: Point, style: str = "") -> None:
        """Draw a line with a head at its end."""
        turn = direction(start, end)
        self.line(start, polar(end, min(6, math.dist(start, end) / 2), turn + 180), style=style)
        self.head(end, turn, style)

    def head(self, tip: Point, turn: float, style: str = "") -> None:
        back = polar(tip, 10, turn + 180)
        self.shape(tip, polar(back, 4.5, turn + 90), polar(back, 4.5, turn - 90), style=style)
        self._mark(tip, back, True)

    def corner(self, at: Point, one: Point, other: Point) -> None:
        """Mark a right angle between the ways to two points."""
        a, b = (polar(at, 9, direction(at, to)) for to in (one, other))
        self.line(a, (a[0] + b[0] - at[0], a[1] + b[1] - at[1]), b, style="free")

    def angle(self, at: Point, one: Point, other: Point, text: str, style: str = "", reflex: bool = False) -> None:
        """Mark the angle from one way to another with an arc and its size."""
        start = direction(at, one)
        turn = (direction(at, other) - start) % 360
        if turn > 180 and not reflex:
            start, turn = start + turn, 360 - turn
        if abs(turn - 90) < 0.3 and text == "90°":
            self.corner(at, one, other)
            return
        far = 20 if turn >= 40 else 28
        self.arc(at, far, start, turn)
        inside = " inside" if turn < 75 else ""
        self.label(text, polar(at, far, start + turn / 2), start + turn / 2, 3, style + inside)

    def shape(self, *at: Point, style: str = "") -> None:
        """Fill a small shape."""
        points = " ".join(f"{_n(x)},{_n(y)}" for x, y in at)
        cls = "hi" if "bold" in style else None
        self._parts.append(el("polygon", points=points, fill="currentColor", stroke="none", cls=cls))
        self._seen += at

    def rect(self, x: float, y: float, width: float, height: float, style: str = "") -> None:
        at = ((x, y), (x + width, y), (x + width, y + height), (x, y + height))
        self._parts.append(el("rect", x=_n(x), y=_n(y), width=_n(width), height=_n(height), **_style(style)))
        self._seen += at
        for start, end in zip(at, (*at[1:], at[0]), strict=True):
            self._mark(start, end, True)

    def label(self, text: str, at: Point, turn: float = 90, gap: float = 5, style: str = "") -> None:
        """Keep a label for a place; it stands in that direction from it, or near that where it is free.

        A line break in it is kept.

        Styles: strong, at (of a point, not a line), inside (strictly that way), free (letters are
        variables), clear (hides lines).
        """
        if text:
            self._labels.append(_Label(text, at, turn, gap, style))

    def text(self, text: str, x: float, y: float, anchor: str = "middle", style: str = "") -> None:
        """Write a text whose place is fixed; y is the middle of its height. Styles: strong, up."""
        wide, high = (SIZE, width_of(text)) if "up" in style else (width_of(text), SIZE)
        left = x - wide * {"start": 0, "middle": 0.5, "end": 1}[anchor]
        self._write(text, (left, y - high / 2, left + wide, y + high / 2), style)

    def element(self, title: str, prefix: str) -> Html:
        """Return the drawing.

        Raises:
            FigureFault: Labels overlap, or the drawing is larger than a page can show.
        """
        for label in self._labels:
            self._place(label)
        self._labels = []
        xs, ys = zip(*self._seen, strict=True)
        left, top, right, bottom = min(xs) - 4, min(ys) - 3, max(xs) + 4, max(ys) + 3
        if right - left > _WIDEST or bottom - top > _TALLEST:
            wide = right - left > _WIDEST
            edge = [
                text
                for box, text in self._placed
                if (min(box[0] - left, right - box[2]) < 5 if wide else len(text) > 1)
            ]
            longest = max(edge, key=len, default="")
            raise FigureFault(f"too large to read; shorter labels than '{longest}' or other values fit")
        # Drawings are kept for a while: what only placed the labels is not.
        self._ink.clear()
        self._parts, self._seen = [join(self._parts)], [(left + 4, top + 3), (right - 4, bottom - 3)]
        return el(
            "svg",
            el("title", title, id=f"{prefix}-t"),
            self._parts,
            viewBox=f"{_n(left)} {_n(top)} {_n(max(WIDTH, right - left))} {_n(bottom - top)}",
            width="100%",
            cls="drawing",
            role="img",
            aria_labelledby=f"{prefix}-t",
            fill="none",
            stroke="currentColor",
            stroke_width="1.5",
            stroke_linejoin="round",
            font_size=SIZE,
        )

    def _mark(self, start: Point, end: Point, ink: bool) -> None:
        steps = int(math.dist(start, end) / 3) + 1
        if ink:
            for step in range(steps + 1):
                x, y = middle(start, end, step / steps)
                self._ink.add((int(x // _CELL), int(y // _CELL)))

    def _round(self, at: Point, across: float, up: float, start: float, turn: float, mark: bool = True) -> list[Point]:
        """Return points of an arc; mark them as taken."""
        count = max(4, int(abs(turn) / 10))
        turns = [math.radians(start + turn * step / count) for step in range(count + 1)]
        made = [(at[0] + across * math.cos(one), at[1] - up * math.sin(one)) for one in turns]
        if mark:
            self._seen += made
            for a, b in itertools.pairwise(made):
                self._mark(a, b, True)
        return made

    def _place(self, label: _Label) -> None:
        """Write a label at the first free of its places, else at the one that hides least."""
        best: tuple[float, Box] | None = None
        wide, high = _size(label.text)
        for more, off in _INSIDE if "inside" in label.style else _AROUND:
            turn = math.radians(label.turn + off)
            across, up = abs(math.cos(turn)), abs(math.sin(turn))
            far = label.gap + across * wide / 2 + up * high / 2
            if "at" in label.style.split():
                far = min((wide / 2 + label.gap) / max(across, 1e-6), (high / 2 + label.gap) / max(up, 1e-6))
            x, y = polar(label.at, far + more, label.turn + off)
            box = (x - wide / 2, y - high / 2, x + wide / 2, y + high / 2)
            hidden = self._hidden(box) + _OUTSIDE * self._stretch(box)
            if best is None or hidden + _moved(more, off) < best[0]:
                best = (hidden + _moved(more, off), box)
            if not hidden:
                break
        assert best is not None
        self._write(label.text, best[1], label.style)

    def _stretch(self, box: Box) -> float:
        """Return by how much a label would make the drawing wider than a page can show."""
        across = [x for x, _ in self._seen] + [box[0], box[2]]
        return max(0.0, max(across) - min(across) + 8 - _WIDEST)

    def _hidden(self, box: Box) -> float:
        wider = (box[0] - 4, box[1], box[2] + 4, box[3])
        cost = sum(1000.0 * _overlap(box, other) + 20.0 * _overlap(wider, other) for other, _ in self._placed)
        columns = range(int((box[0] + 1) // _CELL), int((box[2] - 1) // _CELL) + 1)
        rows = range(int((box[1] + 2) // _CELL), int((box[3] - 2) // _CELL) + 1)
        return cost + 4 * sum((x, y) in self._ink for x in columns for y in rows)

    def _write(self, text: str, box: Box, style: str) -> None:
        for other, name in self._placed:
            if _overlap(box, other):
                raise FigureFault(f"the labels '{name}' and '{text}' overlap")
        self._placed.append((box, text))
        self._seen += [(box[0], box[1]), (box[2], box[3])]
        x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
        turned = f"rotate(-90 {_n(x)} {_n(y)})" if "up" in style else None
        look = {"cls": "clear" if "clear" in style else None, "font_weight": "bold" if "strong" in style else None}
        lines = text.split("\n")
        for n, line in enumerate(lines):
            shown = _variables(line) if "free" in style else line
            level = y + SIZE * 0.35 + (n - (len(lines) - 1) / 2) * SIZE * 1.1
            self._parts.append(el("text", shown, x=_n(x), y=_n(level), text_anchor="middle", transform=turned, **look))


def _size(text: str) -> tuple[float, float]:
    lines = text.split("\n")
    return max(map(width_of, lines)), SIZE * (1.1 * len(lines) - 0.1)


def _variables(text: str) -> list[object]:
    """Return a text whose single letters are set as variables; a letter at its end after a blank is a unit."""
    out: list[object] = []
    at = 0
    for found in _VARIABLE.finditer(text):
        if found.end() < len(text) or text[: found.start()][-1:] != " ":
            out += [text[at : found.start()], el("tspan", found[0], font_style="italic")]
            at = found.end()
    return [*out, text[at:]]


def _overlap(a: Box, b: Box) -> bool:
    return a[0] < b[2] + 1 and b[0] < a[2] + 1 and a[1] < b[3] - 1.5 and b[1] < a[3] - 1.5


def _n(value: float) -> str:
    """Return a coordinate as text: the same on every machine."""
    return f"{round(value, 1) + 0.0:g}"


def _style(style: str) -> dict[str, object]:
    out: dict[str, object] = {}
    if "fine" in style:
        out |= {"stroke_width": "0.75", "stroke_opacity": "0.16"}
    if "thin" in style:
        out |= {"stroke_width": "1", "stroke_opacity": "0.3"}
    if "dash" in style:
        out["stroke_dasharray"] = "5 4"
    if "bold" in style:
        out |= {"stroke_width": "2.25", "cls": "hi"}
    if "fill" in style:
        out |= {"fill": "currentColor", "fill_opacity": "0.4" if "thick" in style else "0.1"}
    if "bare" in style:
        out["stroke"] = "none"
    return out


def fit(points: Sequence[Point], width: float, height: float) -> list[Point]:
    """Return points whose y grows upwards as points of the canvas, as large as the room allows."""
    xs, ys = zip(*points, strict=True)
    across, up = max(xs) - min(xs), max(ys) - min(ys)
    scale = min(width / (across or 1e-9), height / (up or 1e-9))
    return [((x - min(xs)) * scale, (max(ys) - y) * scale) for x, y in points]
