"""Units: how they may be written, what quantity each measures, and how two of them compare.

A unit is read as powers of symbols: m s⁻², m/s² and "metres per second squared" are one unit. Its quantity follows from
the powers of the base units, so a length given for an area shows.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

#: Symbol -> (factor to the base unit, powers of base units). A base is any short name of its own.
_SYMBOLS: dict[str, tuple[str, str]] = {
    "m": ("1", "m"), "cm": ("1e-2", "m"), "mm": ("1e-3", "m"), "km": ("1e3", "m"), "nm": ("1e-9", "m"),
    "µm": ("1e-6", "m"), "pm": ("1e-12", "m"), "g": ("1e-3", "kg"), "kg": ("1", "kg"), "mg": ("1e-6", "kg"),
    "tonne": ("1e3", "kg"), "s": ("1", "s"), "ms": ("1e-3", "s"), "µs": ("1e-6", "s"), "ns": ("1e-9", "s"),
    "min": ("60", "s"), "h": ("3600", "s"), "day": ("86400", "s"), "week": ("604800", "s"),
    "month": ("2629800", "s"), "year": ("31557600", "s"), "l": ("1e-3", "m3"), "ml": ("1e-6", "m3"),
    "ha": ("1e4", "m2"), "N": ("1", "kg m s-2"), "kN": ("1e3", "kg m s-2"), "MN": ("1e6", "kg m s-2"),
    "mN": ("1e-3", "kg m s-2"), "J": ("1", "kg m2 s-2"), "kJ": ("1e3", "kg m2 s-2"), "MJ": ("1e6", "kg m2 s-2"),
    "GJ": ("1e9", "kg m2 s-2"), "mJ": ("1e-3", "kg m2 s-2"), "eV": ("1.6e-19", "kg m2 s-2"),
    "keV": ("1.6e-16", "kg m2 s-2"), "MeV": ("1.6e-13", "kg m2 s-2"), "GeV": ("1.6e-10", "kg m2 s-2"),
    "kWh": ("3.6e6", "kg m2 s-2"), "W": ("1", "kg m2 s-3"), "kW": ("1e3", "kg m2 s-3"), "MW": ("1e6", "kg m2 s-3"),
    "GW": ("1e9", "kg m2 s-3"), "mW": ("1e-3", "kg m2 s-3"), "Pa": ("1", "kg m-1 s-2"), "kPa": ("1e3", "kg m-1 s-2"),
    "A": ("1", "A"), "mA": ("1e-3", "A"), "µA": ("1e-6", "A"), "C": ("1", "A s"), "mC": ("1e-3", "A s"),
    "µC": ("1e-6", "A s"), "nC": ("1e-9", "A s"), "pC": ("1e-12", "A s"), "V": ("1", "kg m2 s-3 A-1"),
    "mV": ("1e-3", "kg m2 s-3 A-1"), "kV": ("1e3", "kg m2 s-3 A-1"), "MV": ("1e6", "kg m2 s-3 A-1"),
    "Ω": ("1", "kg m2 s-3 A-2"), "kΩ": ("1e3", "kg m2 s-3 A-2"), "MΩ": ("1e6", "kg m2 s-3 A-2"),
    "F": ("1", "A2 s4 kg-1 m-2"), "mF": ("1e-3", "A2 s4 kg-1 m-2"), "µF": ("1e-6", "A2 s4 kg-1 m-2"),
    "nF": ("1e-9", "A2 s4 kg-1 m-2"), "pF": ("1e-12", "A2 s4 kg-1 m-2"), "Hz": ("1", "s-1"), "kHz": ("1e3", "s-1"),
    "MHz": ("1e6", "s-1"), "GHz": ("1e9", "s-1"), "THz": ("1e12", "s-1"), "T": ("1", "kg s-2 A-1"),
    "mT": ("1e-3", "kg s-2 A-1"), "K": ("1", "K"), "°C": ("1", "K"), "°": ("1", "degree"), 
    "rad": ("57.29577951308232", "degree"),
    "%": ("1", "percent"), "£": ("1", "pound"), "p": ("1e-2", "pound"), "¢": ("1e-2", "pound"),
    "mol": ("1", "mol"), "dB": ("1", "decibel"),
    "bit": ("1", "bit"), "byte": ("8", "bit"), "KB": ("8e3", "bit"), "MB": ("8e6", "bit"), "GB": ("8e9", "bit"),
    "ly": ("9.4607e15", "m"), "mph": ("0.44704", "m s-1"),
    "inch": ("0.0254", "m"), "ft": ("0.3048", "m"), "yd": ("0.9144", "m"), "mile": ("1609.344", "m"),
    "oz": ("0.028349523125", "kg"), "lb": ("0.45359237", "kg"), "gallon": ("3.785411784e-3", "m3"),
    "°F": ("0.5555555555555556", "K"), "dm": ("1e-1", "m"), "µg": ("1e-9", "kg"), "hPa": ("100", "kg m-1 s-2"),
    "MPa": ("1e6", "kg m-1 s-2"), "atm": ("101325", "kg m-1 s-2"), "kcal": ("4184", "kg m2 s-2"),
    "TWh": ("3.6e15", "kg m2 s-2"), "Wb": ("1", "kg m2 s-2 A-1"), "Bq": ("1", "decay s-1"),
    "kBq": ("1e3", "decay s-1"), "MBq": ("1e6", "decay s-1"), "GBq": ("1e9", "decay s-1"), "Gy": ("1", "m2 s-2"),
    "mGy": ("1e-3", "m2 s-2"), "Sv": ("1", "m2 s-2"), "mSv": ("1e-3", "m2 s-2"), "µSv": ("1e-6", "m2 s-2"),
    "kbit": ("1e3", "bit"), "Mbit": ("1e6", "bit"), "Gbit": ("1e9", "bit"), "acre": ("4046.8564224", "m2"),
}  # fmt: skip
#: Words for symbols, in the singular and the plural.
_WORDS = {
    "metre": "m", "centimetre": "cm", "millimetre": "mm", "kilometre": "km", "gram": "g", "kilogram": "kg",
    "tonne": "tonne", "second": "s", "minute": "min", "hour": "h", "day": "day", "week": "week", "month": "month",
    "year": "year", "litre": "l", "millilitre": "ml", "hectare": "ha", "newton": "N", "joule": "J", "kilojoule": "kJ",
    "watt": "W", "kilowatt": "kW", "ampere": "A", "amp": "A", "volt": "V", "ohm": "Ω", "coulomb": "C", "farad": "F",
    "hertz": "Hz", "tesla": "T", "kelvin": "K", "degree": "°", "radian": "rad", "pound": "£", "mole": "mol",
    "bit": "bit", "byte": "byte", "light year": "ly", "pascal": "Pa",
    "meter": "m", "centimeter": "cm", "millimeter": "mm", "kilometer": "km", "liter": "l", "milliliter": "ml",
    "yard": "yd", "mile": "mile", "acre": "acre", "becquerel": "Bq", "gray": "Gy",
    "sievert": "Sv", "ounce": "oz", "gallon": "gallon", "lb": "lb",
}  # fmt: skip
_SAME = {
    **{word + ending: symbol for word, symbol in _WORDS.items() for ending in ("", "s")},
    "per cent": "%", "percent": "%", "pence": "p", "penny": "p", "hour": "h", "hr": "h", "hrs": "h", "mins": "min",
    "L": "l", "mL": "ml", "μm": "µm", "μs": "µs", "μA": "µA", "μC": "µC", "μF": "µF", "degrees Celsius": "°C",
    "kelvins": "K", "t": "tonne", "foot": "ft", "feet": "ft", "inches": "inch", "degrees Fahrenheit": "°F",
}  # fmt: skip
#: What the base units of a quantity are, and the words that ask for it.
QUANTITIES: dict[str, tuple[str, str]] = {
    "length": ("m", "length|distance|height|width|breadth|depth|perimeter|circumference|radius|diameter|displacement|"
               "wavelength|thickness|path difference|arc"),
    "area": ("m2", "area"),
    "volume": ("m3", "volume|capacity"),
    "mass": ("kg", "mass"),
    "time": ("s", "time|period|half-life|duration"),
    "speed": ("m s-1", "speed|velocity"),
    "acceleration": ("m s-2", "acceleration|deceleration"),
    "force": ("kg m s-2", "force|weight|tension|thrust|friction|upthrust"),
    "energy": ("kg m2 s-2", "energy|work done|heat"),
    "power": ("kg m2 s-3", "power"),
    "pressure": ("kg m-1 s-2", "pressure"),
    "momentum": ("kg m s-1", "momentum|impulse"),
    "current": ("A", "current"),
    "charge": ("A s", "charge"),
    "voltage": ("kg m2 s-3 A-1", "voltage|potential difference|p.d.|e.m.f.|lost volts"),
    "resistance": ("kg m2 s-3 A-2", "resistance"),
    "capacitance": ("A2 s4 kg-1 m-2", "capacitance"),
    "frequency": ("s-1", "frequency"),
    "irradiance": ("kg s-3", "irradiance"),
    "density": ("kg m-3", "density"),
    "temperature": ("K", "temperature"),
    "angle": ("degree", "angle|bearing"),
    "percentage": ("percent", "percentage"),
    "money": ("pound", "price|cost|pay|wage|salary|profit|bill"),
    "amount of substance": ("mol", "number of moles"),
}  # fmt: skip

#: Raised digits → those of the line; and back.
LEVEL = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit as it was written, and what it stands for."""

    text: str
    factor: Fraction
    #: Powers of base units, sorted.
    bases: tuple[tuple[str, int], ...]

    @property
    def quantity(self) -> str:
        """Return the name of what it measures, "" where it has none."""
        return next((name for name, (bases, _) in QUANTITIES.items() if _bases(bases) == self.bases), "")


def _alternatives(names: dict[str, object]) -> str:
    return "|".join(re.escape(name).replace(r"\ ", r"\s") for name in sorted(names, key=len, reverse=True))


_SYMBOL = _alternatives({**_SYMBOLS, **_SAME})
_POWER = r"(?:[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+|\^-?\d|\^\{-?\d\}|\ssquared|\scubed)"
_ONE = rf"(?:(?:square|cubic)\s)?(?:{_SYMBOL}){_POWER}?(?![A-Za-z])"
#: A unit as printed, at the place where it is matched.
PATTERN = re.compile(rf"{_ONE}(?:(?:\s?(?:/|·|per\s)\s?|\s){_ONE})*")
_PIECE = re.compile(rf"(/|·|per\s)?\s?((?:square|cubic)\s)?({_SYMBOL})({_POWER})?(?![A-Za-z])")


def _bases(text: str) -> tuple[tuple[str, int], ...]:
    found = (re.fullmatch(r"([A-Za-z]+)(-?\d*)", piece) for piece in text.split())
    return tuple(sorted((match[1], int(match[2] or 1)) for match in found if match))


@functools.lru_cache(512)
def unit(text: str) -> Unit | None:
    """Return the unit that a text names, None where it names none."""
    plain = " ".join(text.replace("\u00a0", " ").replace("\u202f", " ").split())
    if not plain or not PATTERN.fullmatch(plain):
        return None
    factor, powers = Fraction(1), dict[str, int]()
    for sign, shape, name, power in _PIECE.findall(plain):
        scale, bases = _SYMBOLS[_SAME.get(" ".join(name.split()), name)]
        exponent = _exponent(power) * {"square ": 2, "cubic ": 3}.get(shape, 1) * (-1 if sign in ("/", "per ") else 1)
        factor *= Fraction(scale) ** exponent
        for base, count in _bases(bases):
            powers[base] = powers.get(base, 0) + count * exponent
    return Unit(plain, factor, tuple(sorted((base, count) for base, count in powers.items() if count)))


def _exponent(text: str) -> int:
    plain = text.strip()
    if plain in ("squared", "cubed"):
        return 2 if plain == "squared" else 3
    return int(re.sub(r"[\^{}]", "", plain).translate(LEVEL)) if plain else 1


def printed(text: str) -> str:
    """Return a unit as pages print it: m s^-2 becomes m s⁻²."""
    return re.sub(r"\^\{?(-?\d+)\}?", lambda match: match[1].translate(RAISED), text)


def same_quantity(one: str, two: str) -> bool:
    """Say whether two units measure the same; true where one of them is not known."""
    left, right = unit(one), unit(two)
    return left is None or right is None or left.bases == right.bases


def same_unit(one: str, two: str) -> bool:
    """Say whether two texts name one unit."""
    left, right = unit(one), unit(two)
    return one == two if left is None or right is None else (left.bases, left.factor) == (right.bases, right.factor)


_ASKED = re.compile(
    r"\b(?:calculate|find|determine|work out|what is|state|give|estimate|how large is)\s+(?:the|its|his|her|their)\s+"
    r"(?:(?:size|magnitude|value) of (?:the|its)\s+)?"
    r"(?P<what>[a-z. -]{1,60})",
    re.IGNORECASE,
)
#: Names that end like those of quantities: people on a square kilometre, workers, how often something was counted.
_OTHERS = re.compile(
    r"\b(?:(?:population|housing|traffic|building|number|optical|current|charge|energy|flux|frequency) density"
    r"|(?:labour|labor|work|police|sales) ?force|(?:cumulative|relative|expected|class) frequency"
    r"|(?:purchasing|buying|market|bargaining|magnifying|resolving) power|opportunity cost)$"
)
_STOP = re.compile(
    r"\b(?:of|in|on|over|that|which|when|after|from|at|for|to|with|and|between|by|if|needed|used|per|during|under|through|"
    r"across|into|due|acting|exerted|he|she|it|they|as|required|is|are|was)\b|[.?,;]\s*$|[,;?]"
)


#: What follows the name of a quantity where a rate of it is asked: the cost per hour, the area in square yards per bag.
_RATE = re.compile(r"\s*(?:in (?P<unit>[a-z ]+ per [a-z]+)|per\b)", re.IGNORECASE)


def asked(question: str) -> Iterator[str]:
    """Yield the quantities that a question asks for by their names; none for a rate, such as a cost per hour."""
    for match in _ASKED.finditer(question):
        what = _STOP.split(match["what"], maxsplit=1)[0].rstrip()
        if (rate := _RATE.match(match["what"], len(what))) and not (rate["unit"] and unit(rate["unit"])):
            continue
        what = what.strip().lower()
        for name, (_, words) in QUANTITIES.items() if not _OTHERS.search(what) else ():
            if re.search(rf"(?:^|\s)(?:{words.replace('.', '[.]')})$", what):
                yield name


def prompt_lines(currency: str, coin: str, customary: bool = False) -> list[str]:
    """Return what the author is told about units.

    Args:
        currency: Sign of the course's money, or "".
        coin: That of its coins, or "".
        customary: Units of the United States are named, too.
    """
    own = "inches feet yards miles mph ounces lb gallons °F " if customary else ""
    symbols = (
        "m cm km m² cm³ dm³ litres ml g kg tonnes s min h days years m/s km/h m/s² N J W Pa A C V Ω F Hz Bq T K °C ° % "
        f"{own}{currency} {coin}"
    )
    before, behind = f"{currency} before, " if currency else "", f"{coin}, " if coin else ""
    return [
        "A unit stands after a number and a space: 12 cm, 9.8 m/s² or 9.8 m s⁻², 3 litres; "
        f"{before}{behind}%, ° behind.",
        f"Known are {', '.join(symbols.split())}, their multiples (mA, µF, kΩ, MeV), products and quotients, and words "
        "(square metres, metres per second).",
        "The unit fits the quantity: an area in cm², a volume in cm³ or litres, a velocity in m/s. Where the question "
        "names a unit, the answer has it.",
    ]
