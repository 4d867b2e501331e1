"""The statistics of a list of numbers, exactly: by halves for quartiles, with n - 1 for the sample deviation."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

from pipeline.lessons.expressions import EvaluationError, Number, square_root


def summarise(quantity: str, values: Sequence[Fraction]) -> Number:
    """Return one quantity, a key of QUANTITIES, of two values or more.

    Raises:
        EvaluationError: The data have no single mode.
    """
    return QUANTITIES[quantity](sorted(values))


def _lower(values: Sequence[Fraction]) -> Fraction:
    # The middle value of an odd list belongs to neither half.
    return statistics.median(values[: len(values) // 2])


def _upper(values: Sequence[Fraction]) -> Fraction:
    return statistics.median(values[-(len(values) // 2) :])


def _mode(values: Sequence[Fraction]) -> Fraction:
    most = statistics.multimode(values)
    if len(most) != 1:
        raise EvaluationError("the data have no single mode")
    return most[0]


#: Quantity names as answers carry them; each takes the sorted values.
QUANTITIES: Mapping[str, Callable[[Sequence[Fraction]], Number]] = {
    "mean": statistics.mean,
    "median": statistics.median,
    "range": lambda values: values[-1] - values[0],
    "lower_quartile": _lower,
    "upper_quartile": _upper,
    "interquartile_range": lambda values: _upper(values) - _lower(values),
    "standard_deviation": lambda values: square_root(statistics.variance(values)),
    "mode": _mode,
}
