"""What a run has spent over its active time, as figures and as one drawing with them for its legend."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

from pipeline.app.run_trail import Money, Trail, figures
from pipeline.records.charge import dollars, in_full
from pipeline.records.run import RunState

#: The drawing inside is so wide and high; texts stand beside it at percents.
WIDTH, HEIGHT = 1000, 100
_ZERO = Decimal(0)
#: What the axis holds beyond the largest amount.
_AIR = Decimal("1.15")


def chart(money: Money, trail: Trail, state: RunState, active: float) -> dict[str, Any] | None:
    """Return the drawing; None where there is nothing to draw.

    Args:
        active: Seconds that its owners have worked up to now.
    """
    if not (money.most or money.expected) or not active:
        return None
    top, above = _scale(money)
    seconds = max(active, money.at_rate[1] if money.at_rate else 0.0)
    place = _Place(top, seconds)
    lines = {"spent": place.steps(trail.points, active), "possibly": _band(place, money, trail, state, active)}
    if money.expected:
        lines["expected"] = place.level(money.expected)
    if money.at_rate:
        lines["rate"] = f"M{place.x(active)} {place.y(money.spent)}L{place.x(seconds)} {place.y(money.at_rate[0])}"
    labels = [(money.expected, f"expected {dollars(money.expected)}")] if money.expected else []
    if money.ceiling:
        lines["ceiling"] = place.level(money.ceiling)
        labels.append((money.ceiling, f"ceiling {in_full(money.ceiling)}{', above this scale' if above else ''}"))
    return {
        "lines": {name: d for name, d in lines.items() if d},
        "labels": [{"at": place.y(usd), "text": text} for usd, text in labels],
        "amounts": [{"at": place.y(usd), "text": text} for usd, text in _amounts(top)],
        "minutes": [{"at": place.x(at), "text": text} for at, text in _minutes(seconds)],
        "pauses": [{"at": place.x(at), "text": f"resumed {when[11:16]}"} for at, when in trail.pauses[-8:]],
        "title": _title(money, active),
    }  # fmt: skip


def _scale(money: Money) -> tuple[Decimal, bool]:
    """Return the amount at the top, and whether the ceiling is above it: a linear axis to it would flatten the rest."""
    rate = money.at_rate[0] if money.at_rate else _ZERO
    top = max(money.expected or _ZERO, money.most, rate) * _AIR
    ceiling = money.ceiling
    if ceiling is None or ceiling <= top:
        return top, False
    return (ceiling * _AIR, False) if 2 * money.most >= ceiling else (top, True)


class _Place:
    """Where seconds and amounts stand in the drawing."""

    def __init__(self, top: Decimal, seconds: float) -> None:
        self._top, self._seconds = top, seconds

    def x(self, at: float) -> float:
        return round(min(at / self._seconds, 1) * WIDTH, 1)

    def y(self, usd: Decimal) -> float:
        return round(HEIGHT - float(min(usd / self._top, Decimal(1))) * HEIGHT, 2)

    def level(self, usd: Decimal) -> str:
        return f"M0 {self.y(usd)}H{WIDTH}"

    def steps(self, points: Sequence[tuple[float, Decimal]], end: float) -> str:
        """Return a line that rises where something was paid, up to now."""
        return "".join(self._steps(points)) + f"H{self.x(end)}"

    def _steps(self, points: Sequence[tuple[float, Decimal]]) -> Iterator[str]:
        yield f"M0 {HEIGHT}"
        x = y = -1.0
        # Beyond as many points as the drawing may have, every second one is left out.
        for at, usd in points[:: 1 + len(points) // 151]:
            if (self.x(at), self.y(usd)) != (x, y):
                x, y = self.x(at), self.y(usd)
                yield f"H{x}V{y}"


def _band(place: _Place, money: Money, trail: Trail, state: RunState, active: float) -> str:
    """Return the outline of what the calls that are open now may cost, from when each was sent; above what is spent."""
    if not money.possibly:
        return ""
    sent = sorted((trail.sent.get(seq, active), call.worst or _ZERO) for seq, call in state.open_calls.items())
    rest = money.possibly - sum((worst for _, worst in sent), _ZERO)
    more = rest if rest > 0 else _ZERO
    begin = sent[0][0] if sent else max(active - 1, 0.0)
    over = [f"M{place.x(begin)} {place.y(money.spent)}"]
    for at, worst in [(begin, _ZERO), *sent]:
        more += worst
        over.append(f"H{place.x(at)}V{place.y(money.spent + more)}")
    return "".join(over) + f"H{place.x(active)}V{place.y(money.spent)}Z"


def _amounts(top: Decimal) -> Iterator[tuple[Decimal, str]]:
    step = Decimal(str(_nice(float(top) / 4)))
    for number in range(math.floor(top / step) + 1):
        yield number * step, dollars(number * step)


def _minutes(seconds: float) -> Iterator[tuple[float, str]]:
    unit, word = (60, "min") if seconds < 3 * 3600 else (3600, "h")
    if seconds < 120:
        unit, word = 1, "s"
    step = max(_nice(seconds / unit / 5), 1)
    for number in range(1, math.floor(seconds / unit / step) + 1):
        yield number * step * unit, f"{number * step:g} {word}"


def _nice(least: float) -> float:
    """Return the next of 1, 2, 5, 10, … that is not below."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(float(f"{digit * power:.6g}") for digit in (1, 2, 5, 10) if digit * power >= least * 0.999)


def _title(money: Money, active: float) -> str:
    """Return what the drawing shows, in a sentence."""
    said = [f"{row['word']} {dollars(Decimal(str(row['usd'])))}" for row in figures(money) if row["usd"]]
    return f"After {round(active / 60):,} active minutes: {', '.join(said) or 'nothing spent'}."
