"""The values on the lines of a figure: numbers as printed, quantities, points, axes, functions of x."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass

from pipeline.maths.notation import statement
from pipeline.maths.trees import MathNode, NotReadError, approximate
from pipeline.maths.units import LEVEL

#: A number as authors write it: 1,200 · −2.18 × 10⁻¹⁸ · 3/5.
NUMBER = r"(?:\d{1,3}(?:[,\u202f\u00a0]\d{3})+|\d+)(?:\.\d+)?(?:/\d+)?(?:\s?×\s?10(?:\^\(?[-−]?\d+\)?|[⁻⁰¹²³⁴-⁹]+))?"
_SIGNED = re.compile(rf"(?:(?<![\w)°])[-−])?{NUMBER}")
_ROOT = re.compile(r"(\d*)√(\d+)\Z")
_PRODUCT = re.compile(r"\s*×\s*10\^?\(?([-−\d]+)\)?\Z")
_RAISE = str.maketrans("0123456789-−", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁻")
LOWERED = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
#: Units that may follow their number without a blank; any word may follow after one.
_CLOSE = r"(?:mm|cm|km|m|kg|mg|g|kN|N|kJ|J|kW|W|kHz|Hz|mV|kV|V|mA|A|kΩ|Ω|[µμ]F|°C?|%|s|h)"
_QUANTITY = re.compile(
    rf"[£$€]?\s*(?P<number>[-−+]?(?:{NUMBER}|\d*√\d+))(?P<unit>{_CLOSE}(?![A-Za-z])|\s+[^\d\s+−=*/-].*|)\Z"
)
_GREEK = {"alpha": "α", "beta": "β", "theta": "θ", "lambda": "λ", "phi": "φ", "mu": "μ", "pi": "π", "Omega": "Ω",
          "le": "≤", "ge": "≥"}  # fmt: skip
_TEX: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"\\[()]|\\(?:left|right)|\\,"), ""),
    # A formula between dollars, not an amount of them.
    (re.compile(r"\$([^$\d\s][^$]*)\$"), r"\1"),
    (re.compile(r"\\d?frac\{([^{}]*)\}\{([^{}]*)\}"), r"\1/\2"),
    (re.compile(r"\\sqrt\{([^{}]*)\}"), r"√\1"),
    (re.compile(r"\bsqrt\((\w+)\)"), r"√\1"),
    (re.compile(r"\\(?:text|mathrm|mathbf)\{([^{}]*)\}"), r"\1"),
    (re.compile(r"\\times\b"), "×"),
    (re.compile(r"\\(?:circ|degree)\b"), "°"),
    (re.compile(r"\^\{?°\}?"), "°"),
    (re.compile(r"\\(alpha|beta|theta|lambda|phi|mu|pi|Omega|le|ge)q?\b"), lambda found: _GREEK[found[1]]),
    (re.compile(r"(?<=[\w)])\s*\*\s*(?=[A-Za-z(√])"), ""),
    (re.compile(r"\*"), "×"),
    (re.compile(r"\^[{(]?([-−]?\d+)[})]?"), lambda found: found[1].translate(_RAISE)),
    (re.compile(r"<="), "≤"),
    (re.compile(r">="), "≥"),
    (re.compile(r"(?<![\w.)°])-(?=[\d\w(.])|(?<=[\s(])-(?=\s)"), "−"),
    (re.compile(r"\(([^(),\s]+),([^(),\s]+)\)"), r"(\1, \2)"),
    (re.compile(r"\s+"), " "),
)  # fmt: skip


_METRES = {"mm": 1e-3, "cm": 1e-2, "m": 1.0, "km": 1e3}


class FigureFault(ValueError):
    """What is wrong with a figure, said to its author."""


def plain(value: str) -> str:
    """Return a text of a line as the figure prints it: real minus signs, raised powers, simple TeX as characters."""
    for pattern, shown in _TEX:
        value = pattern.sub(shown, value)
    return value.strip()


def printed_numbers(value: str) -> list[str]:
    """Return the numbers of a printed text, in its order."""
    return [found.strip() for found in _SIGNED.findall(value)]


def number(value: str) -> float:
    """Return the value of a number as it is printed.

    Raises:
        FigureFault: It is no number.
    """
    shown = re.sub(r"(?<=\d)[,\u202f\u00a0](?=\d{3}\b)", "", value.strip().replace("−", "-").lstrip("+£$€"))
    sign, root = (-1, shown[1:]) if shown.startswith("-") else (1, shown)
    try:
        if found := _ROOT.match(root):
            return sign * float(found[1] or 1) * math.sqrt(int(found[2]))
        power = 0
        if found := _PRODUCT.search(shown.translate(LEVEL)):
            power, shown = int(found[1].replace("−", "-")), re.split(r"\s*×", shown)[0]
        over, _, under = shown.partition("/")
        made = float(over) / float(under or 1) * 10.0 ** max(-99, min(99, power))
    except (ValueError, ZeroDivisionError):
        raise FigureFault(f"'{value.strip()}' is not a number") from None
    if not math.isfinite(made) or abs(made) > 1e30:
        raise FigureFault(f"'{value.strip()}' is too large")
    return made


@dataclass(frozen=True)
class Quantity:
    """A number with its unit, or an unknown such as x, 2x + 1, ?; `value` is None for an unknown."""

    text: str
    value: float | None
    unit: str = ""

    @property
    def size(self) -> float | None:
        """The value, lengths in metres."""
        return None if self.value is None else self.value * _METRES.get(self.unit, 1.0)


def quantity(value: str) -> Quantity:
    """Return the quantity a text gives; what is no number with a unit is an unknown, shown as it is."""
    found = _QUANTITY.match(value)
    if not found:
        return Quantity(value, None)
    unit = found["unit"].strip()
    text = f"{value.removesuffix(unit).rstrip()} {unit}" if unit and unit[0] not in "°%" else value
    return Quantity(text, number(found["number"]), unit or (value[0] if value[0] in "£$€" else ""))


def size(value: str) -> Quantity:
    """Return a quantity that is positive or unknown."""
    made = quantity(value)
    if made.value is not None and made.value <= 0:
        raise FigureFault(f"'{value}' must be greater than 0")
    return made


def degrees(value: str) -> Quantity:
    """Return an angle between 0° and 360°, or an unknown one; the sign of degrees may be missing."""
    made = quantity(value)
    if made.value is None:
        return made
    if made.unit not in ("°", "") or not 0 <= made.value <= 360:
        raise FigureFault(f"'{value}' is not an angle from 0° to 360°")
    return made if made.unit else Quantity(f"{value}°", made.value, "°")


def numbers(value: str) -> tuple[float, ...]:
    """Return a row of numbers."""
    return tuple(number(part) for part in re.split(r"[\s,;]+", value.strip()))


def words(value: str) -> tuple[str, ...]:
    """Return names: divided by bars, else by commas, else by blanks."""
    parts = value.split(next((mark for mark in "|," if mark in value), None))
    return tuple(part.strip() for part in parts if part.strip())


def cells(value: str) -> tuple[str, ...]:
    """Return the cells of a row, divided by bars."""
    return tuple(part.strip() for part in value.split("|"))


def corners(value: str) -> tuple[str, ...]:
    """Return names of points: capital letters, each perhaps with a dash or number, with or without blanks."""
    found = tuple(re.findall(r"[A-Z][′'₀-₉\d]?", value))
    if not found or re.sub(r"[\s,]|and", "", value) != "".join(found):
        raise FigureFault(f"'{value}' does not name points with capital letters")
    return found


_PAIR = re.compile(r"\(\s*([^(),]+),\s*([^(),]+?)\s*\)")


def points(value: str) -> tuple[tuple[float, float], ...]:
    """Return points (x, y) in their order."""
    found = _PAIR.findall(value)
    if not found or _PAIR.sub("", value).strip(" ,;"):
        raise FigureFault(f"'{value}' is not a row of points such as (1, 2) (3, 4)")
    return tuple((number(x), number(y)) for x, y in found)


def point(value: str) -> tuple[float, float]:
    """Return one point or the two components of a vector."""
    found = points(value)
    if len(found) != 1:
        raise FigureFault(f"'{value}' must be one pair such as (3, -2)")
    return found[0]


@dataclass(frozen=True)
class Axis:
    """What an axis shows, and from where to where; None where the data say it."""

    label: str
    low: float | None = None
    high: float | None = None
    step: float | None = None


_RANGE = re.compile(
    r"(?P<label>.*?)(?:^|,(?!(?<=\d,)\d{3}\b))\s*(?P<low>[-−\d.,/ ]+) to (?P<high>[-−\d.,/ ]+?)"
    r"(?:,? steps? (?:of )?(?P<step>[\d./]+))?\Z"
)


def axis(value: str) -> Axis:
    """Return an axis: "time / s, 0 to 10", with or without its range, perhaps "step 2" behind it."""
    found = _RANGE.match(value)
    if not found:
        return Axis(value)
    low, high = number(found["low"]), number(found["high"])
    step = number(found["step"]) if found["step"] else None
    if low >= high:
        raise FigureFault(f"'{value}': the range must rise")
    if step is not None and (step <= 0 or not 1 <= (high - low) / step <= 40):
        raise FigureFault(f"'{value}': the step does not fit the range")
    return Axis(found["label"].strip(" ,"), low, high, step)


@dataclass(frozen=True)
class Function:
    """A function of one letter by its expression; where it has no value, it returns None."""

    text: str
    node: MathNode

    def __call__(self, x: float) -> float | None:
        try:
            made = approximate(self.node, dict.fromkeys(self.node.letters, x))
        except NotReadError:
            return None
        return made if math.isfinite(made) and abs(made) < 1e12 else None


def function(value: str) -> Function:
    """Return the function of "y = x^2 - 4*x + 3"; angles are in degrees.

    Raises:
        FigureFault: It is no expression in one letter, or not read.
    """
    try:
        node = statement(value).sides[-1].node
    except NotReadError:
        raise FigureFault(f"'{value}' is not a function such as y = x^2 - 4*x + 3") from None
    if len(node.letters) > 1:
        raise FigureFault(f"'{value}': a function has one letter beside numbers, not {', '.join(sorted(node.letters))}")
    return Function(plain(value if "=" in value else f"y = {value}").replace("-", "−"), node)
