"""Venn diagrams and trees."""

from __future__ import annotations

from pipeline.drawing.canvas import SIZE, Canvas, Point, middle, width_of, wrap
from pipeline.drawing.lines import FigureEntry, FigureLines
from pipeline.drawing.plane import free
from pipeline.drawing.values import FigureFault, quantity

_PARTS: dict[frozenset[int], Point] = {
    frozenset((0,)): (52, 72), frozenset((1,)): (198, 72), frozenset((2,)): (125, 200), frozenset((0, 1)): (125, 66),
    frozenset((0, 2)): (80, 138), frozenset((1, 2)): (170, 138), frozenset((0, 1, 2)): (125, 112),
}  # fmt: skip
#: The lines that say what is in a part.
_LINES = ("both", "all", "neither", "{name} only", "{name} and {name}")


def venn(figure: FigureLines, canvas: Canvas) -> None:
    """Check and draw two or three sets."""
    sets = figure.value("sets")
    if len(sets) not in (2, 3):
        raise FigureFault("a Venn diagram has two or three sets")
    two = len(sets) == 2
    if figure.get("all" if two else "both"):
        raise FigureFault("two sets have both, three sets have all")
    circles: list[Point] = [(92, 95), (172, 95)] if two else [(88, 88), (162, 88), (125, 150)]
    radius = 76 if two else 70
    for heart in circles:
        canvas.circle(heart, radius, "fill")
    bottom = 182 if two else 232
    canvas.rect(0, 0, 264 if two else 250, bottom)
    told = [(entry, _part(sets, entry)) for entry in figure.entries if entry.line.key in _LINES]
    seen: set[frozenset[int]] = set()
    at: Point
    for entry, part in told:
        if part in seen:
            raise FigureFault(f"{entry.said()}: this part has its number already")
        seen.add(part)
        at, room = _PARTS.get(part, (0.0, 0.0)), 40.0 if len(part) > 1 else 66.0
        if two:
            at = (132.0, 95.0) if len(part) == 2 else (52.0 if 0 in part else 212.0, 95.0)
        if not part:
            at, room = (232.0 if two else 26.0, bottom - 16.0), 50.0
        lines = wrap(entry.text, room)
        for n, line in enumerate(lines):
            canvas.text(line, at[0], at[1] + (n - (len(lines) - 1) / 2) * SIZE, style=free(entry.value))
    for name, x, anchor in zip(sets, (10, 254 if two else 240, 250), ("start", "end", "end"), strict=False):
        canvas.text(name, x, -12 if x < 250 or two else bottom + 13, anchor, "strong")


def _part(sets: tuple[str, ...], entry: FigureEntry) -> frozenset[int]:
    if entry.line.key == "neither":
        return frozenset()
    if not entry.places:
        return frozenset(range(len(sets)))
    unknown = [name for name in entry.places if name not in sets]
    if unknown:
        raise FigureFault(f"'{unknown[0]}' is none of the sets")
    return frozenset(sets.index(name) for name in entry.places)


def tree(figure: FigureLines, canvas: Canvas) -> None:
    """Check and draw a tree of two or three events."""
    branches: dict[str, list[FigureEntry]] = {"": figure.all("first {name}")}
    for entry in figure.all("{name} then {name}"):
        branches.setdefault(entry.places[0], []).append(entry)
    paths = {entry.places[0] for entry in branches[""]}
    for path in sorted(branches, key=lambda name: name.count(" then ")):
        if path and path not in paths:
            raise FigureFault(f"'{path}' is no branch of this tree")
        paths |= {_path(path, entry) for entry in branches[path]}
        _adds_up(path, branches[path])
    depth = max(path.count(" then ") for path in paths) + 1
    if depth > 3:
        raise FigureFault("a tree has at most three events")
    longest = max(width_of(entry.places[-1]) for entries in branches.values() for entry in entries)
    reach = min(72.0, 300 / depth - longest - 10)
    if reach < 40:
        raise FigureFault("shorter names at the branches can be read")
    levels: dict[str, float] = {}
    _level(branches, "", levels)
    for path, entries in branches.items():
        step = path.count(" then ") + 1 if path else 0
        left = step * (reach + longest + 10)
        start = (left - longest - 4 + width_of(path.rsplit(" then ", 1)[-1]) if path else 0.0, levels[path])
        for entry in entries:
            end = (left + reach, levels[_path(path, entry)])
            canvas.line(start, end)
            canvas.label(
                entry.text, middle(start, end), 90 if end[1] <= start[1] else -90, 3, free(quantity(entry.text))
            )
            canvas.text(entry.places[-1], end[0] + 4, end[1], "start")
    for n, name in enumerate(figure.value("events", ())[:depth]):
        canvas.text(name, (n + 1) * (reach + longest + 10) - longest - 10, -30, "middle" if n else "end", "strong")


def _adds_up(path: str, entries: list[FigureEntry]) -> None:
    known = [entry.value for entry in entries if entry.value is not None]
    total = sum(known)
    where = f"after {path}" if path else "of the first event"
    if len(known) == len(entries) and abs(total - 1) > 0.006:
        raise FigureFault(f"the probabilities {where} add up to {total:.3g}, not 1")
    if len(known) < len(entries) and total >= 1:
        raise FigureFault(f"the probabilities {where} leave nothing for the one not known")


def _path(path: str, entry: FigureEntry) -> str:
    return f"{path} then {entry.places[1]}" if path else entry.places[0]


def _level(branches: dict[str, list[FigureEntry]], path: str, levels: dict[str, float]) -> float:
    """Find how far down each branch ends: leaves below each other, other points in the middle of theirs."""
    below = [_level(branches, _path(path, entry), levels) for entry in branches.get(path, ())]
    ends = sum(one not in branches for one in levels)
    levels[path] = (below[0] + below[-1]) / 2 if below else 40.0 * ends
    return levels[path]
