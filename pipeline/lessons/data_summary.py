"""Decides the statistics of a list of numbers: by halves for quartiles, with n - 1 for the sample deviation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from pipeline.lessons.expressions import EvaluationError, Number, square_root

#: Longest list that is read.
MAX_VALUES = 200


def summarise(quantity: str, values: Sequence[Fraction]) -> Number:
    """Return one quantity of the values.

    Args:
        quantity: A key of QUANTITIES.

    Raises:
        EvaluationError: Unknown quantity, or too few or too many values.
    """
    if quantity not in QUANTITIES:
        raise EvaluationError(f"unknown quantity {quantity!r}; known: {', '.join(QUANTITIES)}")
    if not 2 <= len(values) <= MAX_VALUES:
        raise EvaluationError(f"statistics need 2 to {MAX_VALUES} values")
    return QUANTITIES[quantity](sorted(values))


def _mean(values: Sequence[Fraction]) -> Fraction:
    return sum(values, Fraction(0)) / len(values)


def _median(values: Sequence[Fraction]) -> Fraction:
    half = len(values) // 2
    return values[half] if len(values) % 2 else (values[half - 1] + values[half]) / 2


def _lower(values: Sequence[Fraction]) -> Fraction:
    return _median(values[: len(values) // 2])


def _upper(values: Sequence[Fraction]) -> Fraction:
    # The middle value of an odd list belongs to neither half.
    return _median(values[(len(values) + 1) // 2 :])


def _variance(values: Sequence[Fraction]) -> Fraction:
    centre = _mean(values)
    return sum(((value - centre) ** 2 for value in values), Fraction(0)) / (len(values) - 1)


def _mode(values: Sequence[Fraction]) -> Fraction:
    counts = {value: values.count(value) for value in values}
    most = [value for value, count in counts.items() if count == max(counts.values())]
    if len(most) != 1:
        raise EvaluationError("the data have no single mode")
    return most[0]


#: Quantity names as answers carry them; each takes the sorted values.
QUANTITIES: Mapping[str, Callable[[Sequence[Fraction]], Number]] = {
    "mean": _mean,
    "median": _median,
    "range": lambda values: values[-1] - values[0],
    "lower_quartile": _lower,
    "upper_quartile": _upper,
    "interquartile_range": lambda values: _upper(values) - _lower(values),
    "standard_deviation": lambda values: square_root(_variance(values)),
    "mode": _mode,
}
