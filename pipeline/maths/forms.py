"""Rounding and form that a question asks for in words: one table serves the author's instructions and the checks.

Without a phrase an answer is exact, in any form. Equality cannot see a form, so a form is looked up on the tree of what
is printed: each predicate returns why it is not in the form, or None.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from sympy import PolynomialError, factor_list, gcd
from sympy.polys.polyerrors import BasePolynomialError

from pipeline.maths.notation import PrintedStatement
from pipeline.maths.trees import MathNode, Value

Predicate = Callable[[MathNode], str | None]
_COUNTS = {
    word: number
    for number, words in enumerate(
        ("one a", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"), start=1
    )
    for word in words.split()
}
_STEPS = {"tenth": "0.1", "hundredth": "0.01", "ten": "10", "hundred": "100", "thousand": "1000", "million": "1000000",
          "ten thousand": "10000", "hundred thousand": "100000"}  # fmt: skip
_COUNT = rf"(?P<count>\d{{1,2}}|{'|'.join(_COUNTS)})"


@dataclass(frozen=True)
class Phrase:
    """Words of a question that ask for a rounding or a form."""

    pattern: str
    #: As the author should write it, and an answer to it.
    words: str
    example: str
    rounding: Callable[[re.Match[str]], str] | None = None
    form: Predicate | None = None

    def found(self, question: str) -> Iterator[re.Match[str]]:
        """Yield where a question says it of its answer (not of something measured)."""
        for match in re.finditer(self.pattern, question, re.IGNORECASE):
            if not _OF_DATA.search(question[: match.start()]):
                yield match


_OF_DATA = re.compile(
    r"\b(?:measured|recorded|given|(?:is|are|was|were|been|it) rounded|known|stated|accurate)\s(?:\w+\s){0,2}$",
    re.IGNORECASE,
)


def _count(match: re.Match[str]) -> str:
    text = match["count"].lower()
    return str(_COUNTS.get(text, text))


def _step(match: re.Match[str]) -> str:
    return f"nearest {_STEPS.get(match['step'].lower(), match['step'])}"


# ---- what a tree looks like


def _plain(node: MathNode) -> MathNode:
    while node.kind in ("minus", "unit"):
        node = node.parts[0]
    return node


def _whole(node: MathNode) -> int | None:
    node = _plain(node)
    return int(node.text) if node.kind == "number" and "." not in node.text else None


def _fraction(node: MathNode) -> tuple[int, int] | None:
    """Return top and bottom of one fraction of whole numbers."""
    node = _plain(node)
    if node.kind == "mixed":
        node = MathNode("quotient", node.parts[1:])
    if node.kind != "quotient":
        return None
    top, low = _whole(node.parts[0]), _whole(node.parts[1])
    return None if top is None or not low else (top, low)


def lowest_terms(node: MathNode) -> str | None:
    """Refuse a fraction of whole numbers with a common factor."""
    for part in node.walk():
        if (found := _fraction(part)) and (shared := math.gcd(*found)) > 1:
            return f"{shared} divides {found[0]} and {found[1]}"
        if found and found[1] == 1:
            return "a fraction over 1"
    return None


def rational_denominator(node: MathNode) -> str | None:
    """Refuse a root below a line."""
    below = (inner for part in node.walk() if part.kind == "quotient" for inner in part.parts[1].walk())
    return "a root stands below the line" if any(inner.kind == "root" for inner in below) else None


def simplest(node: MathNode) -> str | None:
    """Refuse a reducible fraction, a square factor under a root, like roots or terms, letters that cancel."""
    roots = []
    for part in node.walk():
        if part.kind == "root" and (inside := _whole(part.parts[0])) is not None and _whole(part.parts[1]) == 2:
            square = next((n for n in range(math.isqrt(max(inside, 1)), 1, -1) if inside % (n * n) == 0), 1)
            if inside < 2 or square > 1:
                return f"the root of {inside} can be simplified"
            roots.append(inside)
    if len(roots) != len(set(roots)):
        return "like roots can be collected"
    return lowest_terms(node) or rational_denominator(node) or _uncollected(node) or _cancels(node)


def _terms(node: MathNode) -> list[MathNode]:
    node = _plain(node)
    return [inner for part in node.parts for inner in _terms(part)] if node.kind == "sum" else [node]


def _uncollected(node: MathNode) -> str | None:
    """Refuse terms that are multiples of one another."""
    terms = _terms(node)
    for place, one in enumerate(terms):
        for other in terms[place + 1 :]:
            if other.value != 0 and (one.value / other.value).is_Rational:
                return "like terms can be collected"
    return None


def _cancels(node: MathNode) -> str | None:
    node = _plain(node)
    if node.kind != "quotient" or not node.letters:
        return None
    shared = gcd(node.parts[0].value, node.parts[1].value)
    return None if shared == 1 else f"{shared} cancels".replace("**", "^")


def mixed_number(node: MathNode) -> str | None:
    """Return a whole number, or one and a proper fraction in lowest terms."""
    plain = _plain(node)
    if plain.kind == "mixed":
        top, low = _fraction(plain) or (0, 1)
        return "the fraction is not less than 1" if top >= low else lowest_terms(plain)
    return None if _whole(node) is not None else "not a mixed number"


def one_fraction(node: MathNode) -> str | None:
    """Return one fraction, or a whole number."""
    plain = _plain(node)
    if plain.kind == "quotient" or _whole(node) is not None or plain.kind == "mixed":
        return None
    fraction_times = plain.kind == "product" and not any(part.kind == "quotient" for part in plain.walk())
    return None if fraction_times and plain.letters else "not one fraction"


def scientific(node: MathNode) -> str | None:
    """Return a number from 1 to less than 10 times a power of ten."""
    plain = _plain(node)
    if plain.kind != "product" or len(plain.parts) != 2 or plain.parts[1].kind != "power":
        return "not a number times a power of ten"
    front, power = plain.parts
    if front.kind != "number" or power.parts[0].text != "10" or not power.parts[1].value.is_Integer:
        return "not a number times a power of ten"
    return None if 1 <= abs(front.value) < 10 else f"{front.text} is not from 1 to less than 10"


def expanded(node: MathNode) -> str | None:
    """Return a sum of terms: no bracket left, like terms collected."""
    if any(
        part.kind in ("product", "power") and any(inner.kind == "sum" for inner in part.parts) for part in node.walk()
    ):
        return "a bracket is left"
    return _uncollected(node)


def factorised(node: MathNode) -> str | None:
    """Return a product whose factors cannot be factorised again over the whole numbers."""
    plain = _plain(node)
    factors = _factors(plain)
    if plain.kind not in ("product", "power") or len(factors) < 2:
        return "not a product"
    for factor in factors:
        if factor.kind != "sum":
            continue
        try:
            if not _irreducible(factor.value):
                return "a factor can be factorised again"
        except (PolynomialError, BasePolynomialError):
            return None
    return None


@lru_cache(1_024)
def _irreducible(factor: Value) -> bool:
    content, parts = factor_list(factor)
    return bool(abs(content) == 1) and sum(power for _, power in parts) <= 1


def _factors(node: MathNode) -> list[MathNode]:
    node = _plain(node)
    if node.kind == "product":
        return [inner for part in node.parts for inner in _factors(part)]
    exponent = _whole(node.parts[1]) if node.kind == "power" else None
    return _factors(node.parts[0]) * exponent if exponent and 1 < exponent < 9 else [node]


def completed_square(node: MathNode) -> str | None:
    """Return (x + p)^2 + q, or with a factor before the bracket."""
    letters = [term for term in _terms(node) if term.letters]
    factors = _plain(letters[0]).parts if len(letters) == 1 and _plain(letters[0]).kind == "product" else letters
    squares = [_plain(part) for part in factors if part.letters]
    is_square = len(squares) == 1 and squares[0].kind == "power" and _whole(squares[0].parts[1]) == 2
    return None if is_square and squares[0].parts[0].kind in ("sum", "letter") else "not one square and a number"


def one_power(node: MathNode) -> str | None:
    """Return one power, perhaps with a number before it."""
    plain = _plain(node)
    parts = plain.parts if plain.kind in ("product", "quotient") else (plain,)
    powers = [part for part in parts if part.letters or part.kind == "power"]
    return "not one power" if plain.kind == "sum" or len(powers) > 1 else None


def positive_powers(node: MathNode) -> str | None:
    """Refuse negative powers."""
    negative = any(part.kind == "power" and part.parts[1].value.is_negative for part in node.walk())
    return "a power is negative" if negative else None


def _exact(node: MathNode) -> str | None:
    """Refuse a decimal where roots or π are to stay."""
    decimal = any("." in part.text for part in node.walk() if part.kind == "number")
    return "a decimal, not an exact value" if decimal else None


def _decimal(node: MathNode) -> str | None:
    return None if _plain(node).kind == "number" else "not a decimal"


def _vector(node: MathNode) -> str | None:
    return None if any(part.kind == "vector" for part in node.walk()) else "not components in a bracket"


TABLE = (
    Phrase(rf"to {_COUNT} significant figures?", "to two significant figures", "0.038", lambda m: f"{_count(m)} sf"),
    Phrase(rf"to {_COUNT} (?:s\.f\.|sig\.? ?figs?)", "to 2 s.f.", "0.038", lambda m: f"{_count(m)} sf"),
    Phrase(rf"to {_COUNT} (?:decimal places?|d\.p\.)", "to 1 decimal place", "12.6", lambda m: f"{_count(m)} dp"),
    Phrase(r"to the nearest (?:penny|cent)\b", "to the nearest penny", "£441.00", lambda m: "money"),
    Phrase(
        rf"to the nearest (?P<step>{'|'.join(sorted(_STEPS, key=len, reverse=True))}|\d{{1,7}}(?:\.\d{{1,3}})?)\b",
        "to the nearest ten, to the nearest 0.5", "90 500", _step,
    ),
    Phrase(
        r"to the nearest (?:(?:square |cubic )?(?:centi|milli|kilo)?met(?:re|er)|whole|integer|degree|pound|dollar|"
        r"euro|(?:kilo)?gram|lit(?:re|er)|second|minute|hour|day|year|newton|joule|volt|per ?cent|[kcm]?m\b|[km]?g\b|"
        r"m?l\b|°|£|%)",
        "to the nearest whole number, to the nearest degree", "38°", lambda m: "nearest 1",
    ),
    Phrase(r"scientific notation|standard form", "in scientific notation", r"\(2.1\times 10^{10}\)", form=scientific),
    Phrase(
        r"simplest form|simplify|as simply as possible|lowest terms|fully simplified|simplest surd",
        "in its simplest form, in its lowest terms", r"\(3\sqrt{5}\), \(\frac{3}{4}\)", form=simplest,
    ),
    Phrase(r"rational denominator|rationalise", "with a rational denominator",
           r"\(\frac{\sqrt{2}}{2}\)", form=rational_denominator),
    Phrase(r"as a mixed number", "as a mixed number", r"\(1\frac{5}{6}\)", form=mixed_number),
    Phrase(r"as (?:a single|one) fraction", "as a single fraction", r"\(\frac{5x+1}{x(x+1)}\)", form=one_fraction),
    Phrase(r"\bfactori[sz]e|\bFactor\b|\bfactor (?:completely|fully)", "factorise",
           r"\(3(x+2)(x-2)\)", form=factorised),
    Phrase(r"\bexpand|multiply out|without brackets", "expand, multiply out", r"\(x^2+5x+6\)", form=expanded),
    Phrase(r"complet(?:e|ing) the square|in the form \\\((?:[a-z]\s*)?\(\s*x\s*[+-]\s*\w\s*\)\^2",
           r"in the form \((x+p)^2+q\)", r"\((x-2)^2-1\)", form=completed_square),
    Phrase(r"(?:with one index|as (?:a single|one) power)", "as a single power", r"\(n^5\)", form=one_power),
    Phrase(r"positive (?:indices|powers)", "with positive indices", r"\(\frac{3}{x^2}\)", form=positive_powers),
    Phrase(r"exact value|in terms of (?:π|\\\(\\pi\\\))|as a surd", "exact value, as a surd", r"\(4\pi\)", form=_exact),
    Phrase(r"as a decimal", "as a decimal", "0.375", form=_decimal),
    Phrase(r"column vector|component form|in components", "as a column vector",
           r"\(\begin{pmatrix}3\\-2\end{pmatrix}\)", form=_vector),
)  # fmt: skip
#: The subject of a formula is seen from the whole statement, not from one side.
_SUBJECT = re.compile(r"(?i:make|the subject[^.]*? to|with)\s+\\\((?P<name>[^)]{1,20}?)\\\)")


@lru_cache(1_024)
def rounding(question: str) -> str:
    """Return the rounding that a question asks of its answer ("2 sf", "money", "nearest 10"), "" for none."""
    found = [
        (match.start(), phrase.rounding(match))
        for phrase in TABLE
        if phrase.rounding
        for match in phrase.found(question)
    ]
    return max(found)[1] if found else ""


def subject(question: str) -> str:
    """Return the letter that a question wants as the subject of a formula, "" for none."""
    match = _SUBJECT.search(question) if "subject" in question else None
    return match["name"].replace("\\", "").replace("{", "").replace("}", "").replace("_", "") if match else ""


def form_fault(question: str, statement: PrintedStatement) -> str | None:
    """Return which form the answer lacks that the question asks for, with the reason; None where it has all."""
    name = subject(question)
    if name and (len(statement.sides) > 1 or statement.sides[0].node.letters):
        left = statement.sides[0].node
        right = statement.sides[-1].node
        is_subject = (
            len(statement.sides) > 1 and left.kind == "letter" and left.text == name and name not in right.letters
        )
        return None if is_subject else f"{name} is not alone on the left"
    node = statement.sides[-1].node
    for phrase in _forms(question):
        # 'By completing the square find the least height' asks for a number.
        if phrase.form in (factorised, expanded, completed_square, one_fraction) and not node.letters:
            continue
        # 3 : 1 is a ratio in its simplest form, 3/1 no fraction in it.
        if phrase.form is simplest and ":" in statement.sides[-1].text and _whole(node.parts[-1]) == 1:
            continue
        if phrase.form and (reason := phrase.form(node)):
            return f"{reason} ({phrase.words})"
    return None


@lru_cache(1_024)
def _forms(question: str) -> list[Phrase]:
    return [phrase for phrase in TABLE if phrase.form and any(phrase.found(question))]


def prompt_lines(coin: str) -> list[str]:
    """Return what the author is told about rounding and form: the phrases that are understood.

    Args:
        coin: The smallest coin of the course's money; "" where it has none.
    """
    said = [
        f"- {phrase.words.replace('penny', coin)}: {phrase.example}"
        for phrase in TABLE
        if "s.f." not in phrase.words and (coin or "penny" not in phrase.words)
    ]
    return [
        "A question says in these words how its answer is rounded or written; without them the answer is exact, in any "
        "form, and money has two places or none:",
        *said,
        r"- make \(x\) the subject: \(x=\frac{y-1}{2}\)",
    ]
