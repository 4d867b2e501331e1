"""Points that satisfy lengths, angles and relations: damped least squares from a start."""

from __future__ import annotations

from collections.abc import Callable, Sequence

Residuals = Callable[[Sequence[float]], list[float]]
_STEP = 1e-6
_ROUNDS = 60


def solve(start: Sequence[float], residuals: Residuals) -> tuple[list[float], float]:
    """Return values near the start whose residuals are least, and the largest of these."""
    at, damping = list(start), 1e-3
    now = residuals(at)
    cost = sum(one * one for one in now)
    for _ in range(_ROUNDS):
        if cost < 1e-18 or damping > 1e9:
            break
        columns = [_change(at, place, now, residuals) for place in range(len(at))]
        matrix = [[sum(a * b for a, b in zip(left, right, strict=True)) for right in columns] for left in columns]
        for place, row in enumerate(matrix):
            row[place] += damping
        step = _linear(matrix, [-sum(a * b for a, b in zip(column, now, strict=True)) for column in columns])
        tried = [value + change for value, change in zip(at, step, strict=True)]
        then = residuals(tried)
        better = sum(one * one for one in then)
        if better < cost:
            at, now, cost, damping = tried, then, better, max(damping / 5, 1e-9)
        else:
            damping *= 6
    return at, max(map(abs, now), default=0.0)


def _change(at: list[float], place: int, now: list[float], residuals: Residuals) -> list[float]:
    moved = at.copy()
    moved[place] += _STEP
    return [(then - before) / _STEP for then, before in zip(residuals(moved), now, strict=True)]


def _linear(matrix: list[list[float]], right: list[float]) -> list[float]:
    """Return the solution of a regular system, by elimination with pivots."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    size = len(rows)
    for place in range(size):
        pivot = max(range(place, size), key=lambda row: abs(rows[row][place]))
        rows[place], rows[pivot] = rows[pivot], rows[place]
        for row in range(place + 1, size):
            share = rows[row][place] / rows[place][place]
            rows[row] = [a - share * b for a, b in zip(rows[row], rows[place], strict=True)]
    out = [0.0] * size
    for place in reversed(range(size)):
        known = sum(rows[place][other] * out[other] for other in range(place + 1, size))
        out[place] = (rows[place][size] - known) / rows[place][place]
    return out
