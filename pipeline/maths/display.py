r"""Prints values as people read them, in a form that is asked for: in TeX, or as plain text where that will do."""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

from pipeline.maths.evaluation import EvaluationError
from pipeline.maths.functions import call
from pipeline.maths.numbers import symbolic
from pipeline.maths.rounding import RoundingError, decimal_of, round_half_up

#: Forms a value may be printed in; a number stands for any.
FORMS = (
    "N dp", "N sf", "nearest N", "money", "money N dp", "scientific", "N sf scientific", "frac", "mixed",
    "decimal", "exact", "vector", "factorised", "expanded", "()", "signed", "coef", "code",
)  # fmt: skip
_ROUNDED = re.compile(r"(money )?(\d{1,2} (?:dp|sf)|nearest \d+(?:\.\d+)?)")
_SCIENTIFIC = re.compile(r"(?:(\d{1,2} (?:sf|dp)) )?scientific(?: (\d{1,2} (?:sf|dp)))?")
#: What makes a printed value mathematics, not a plain number.
_MATHS = re.compile(r"[\\^_{}A-Za-z]")
#: A gap between two factors; one behind a command stays.
_GAP = re.compile(r"(\\[A-Za-z]+)?(?<=[\w})]) (?=[A-Za-z(]|\\(?!times|cdot|to))")


def known_form(form: str) -> bool:
    """Say whether a form is one of FORMS."""
    core = form.removesuffix("()").removesuffix("signed").strip()
    return core in ("", *FORMS) or bool(_ROUNDED.fullmatch(core) or _SCIENTIFIC.fullmatch(core))


def inside(shown: str) -> str:
    r"""Return a printed value for use between \( and \)."""
    return re.sub(r"(?<=\d),(?=\d{3})", "{,}", shown).replace("£", r"\pounds ")


def prose(shown: str) -> str:
    r"""Return a printed value for use in a sentence: a plain number as it is, mathematics between \( and \)."""
    if _MATHS.search(shown):
        return rf"\({inside(shown)}\)"
    return shown.replace("-", "−")


def shown_value(value: Any, form: str = "", *, fractions: bool = False) -> str:
    r"""Return a value in TeX without delimiters, numbers with commas from 10,000 on.

    Args:
        fractions: Print a ratio as \frac, not as a decimal.

    Raises:
        EvaluationError: The value has no such form.
    """
    for wrapper in ("()", "signed"):
        if form.endswith(wrapper):
            inner = shown_value(value, form.removesuffix(wrapper).strip(), fractions=fractions)
            if wrapper == "signed":
                return inner if inner.startswith("-") else f"+{inner}"
            return f"({inner})" if inner.startswith("-") else inner
    if isinstance(value, list):
        return ", ".join(shown_value(part, form, fractions=fractions) for part in value)
    if isinstance(value, tuple):
        parts = [shown_value(part, "" if form == "vector" else form, fractions=fractions) for part in value]
        if form == "vector":
            return r"\begin{pmatrix} " + r" \\ ".join(parts) + r" \end{pmatrix}"
        return f"({', '.join(parts)})"
    try:
        return _number(value, form, fractions)
    except RoundingError as error:
        raise EvaluationError(str(error), code="no_such_form") from None


def _number(value: Any, form: str, fractions: bool) -> str:
    if form == "money":
        whole = isinstance(value, Fraction) and value.denominator == 1
        return pounds(commas(str(value) if whole else round_half_up(value, "money")))
    if match := _ROUNDED.fullmatch(form):
        digits = commas(round_half_up(value, match[2]))
        return pounds(digits) if match[1] else digits
    if match := _SCIENTIFIC.fullmatch(form):
        return _scientific(value, match[1] or match[2] or "")
    if form == "code":
        return code(value)
    if form == "coef" and value in (1, -1):
        return "" if value == 1 else "-"
    if form in ("factorised", "expanded"):
        value = call("factor" if form == "factorised" else "expand", [value])
    if isinstance(value, Fraction):
        return _fraction(value, form, fractions)
    if form in ("mixed", "decimal"):
        raise EvaluationError(f"{value} is no fraction", code="no_such_form")
    return latex(value)


def _fraction(value: Fraction, form: str, fractions: bool) -> str:
    if value.denominator == 1:
        return commas(str(value))
    finite = (10**12 * value).denominator == 1
    if form == "decimal" or (finite and not fractions and form not in ("frac", "mixed", "exact")):
        if not finite:
            raise EvaluationError(f"{value} is no decimal; round it (2 dp)", code="no_such_form")
        return commas(format(Decimal(value.numerator) / Decimal(value.denominator), "f"))
    sign, size = "-" if value < 0 else "", abs(value)
    whole, rest = divmod(size.numerator, size.denominator)
    if form == "mixed" and whole:
        return rf"{sign}{whole}\frac{{{rest}}}{{{size.denominator}}}"
    return rf"{sign}\frac{{{size.numerator}}}{{{size.denominator}}}"


def _scientific(value: Any, rounding: str) -> str:
    exact = decimal_of(value)
    power = exact.adjusted() if exact else 0
    front = Fraction(exact) / Fraction(10) ** power
    digits = round_half_up(front, rounding) if rounding else format(exact.scaleb(-power).normalize(), "f")
    if abs(Fraction(digits)) >= 10:
        power += 1
        digits = round_half_up(Fraction(digits) / 10, rounding)
    if not rounding and len(digits) > 13:
        raise EvaluationError(
            "too many digits for scientific notation; round it (3 sf scientific)", code="no_such_form"
        )
    return rf"{digits} \times 10^{power if 0 <= power < 10 else '{' + str(power) + '}'}"


def endless(value: Any) -> bool:
    """Say whether a number has no end as a decimal."""
    if isinstance(value, Fraction):
        return (10**12 * value).denominator != 1
    return not isinstance(value, tuple | list) and bool(value.is_number)


def pounds(digits: str) -> str:
    """Return digits as money."""
    return f"-£{digits[1:]}" if digits.startswith("-") else f"£{digits}"


def commas(digits: str) -> str:
    """Return digits with commas where the whole part has five or more."""
    sign, size = ("-", digits[1:]) if digits.startswith("-") else ("", digits)
    whole, dot, rest = size.partition(".")
    return sign + (f"{int(whole):,}" if len(whole) > 4 else whole) + dot + rest


def code(value: Any) -> str:
    """Return a value in the language of expressions."""
    if isinstance(value, list | tuple):
        return f"({', '.join(code(part) for part in value)})"
    if isinstance(value, Fraction):
        finite = value.denominator > 1 and (10**12 * value).denominator == 1
        return format(Decimal(value.numerator) / Decimal(value.denominator), "f") if finite else str(value)
    return str(symbolic(value)).replace("**", "^")


@lru_cache(4_096)
def latex(value: Any) -> str:
    """Return an expression of SymPy as written by hand."""
    import sympy

    if value.is_number:
        if value.has(sympy.sin, sympy.cos, sympy.tan, sympy.asin, sympy.acos, sympy.atan):
            raise EvaluationError(
                "a value of sin, cos or tan needs a rounding, as in <sin(a); 2 dp>", code="no_such_form"
            )
        value = sympy.radsimp(sympy.together(value))
    text = sympy.latex(value, order="lex" if value.free_symbols else None, fold_short_frac=False)
    text = text.replace(r"\left", "").replace(r"\right", "")
    text = re.sub(r"\^\{(\w)\}", r"^\1", text)
    text = re.sub(r"^- ", "-", text)
    text = text.replace("(- ", "(-")
    text = _GAP.sub(lambda found: found[0] if found[1] else "", text)
    first = re.fullmatch(r"(-[^+-]+) \+ ([^+-]+)", text)
    return f"{first[2]} - {first[1][1:]}" if first else text


def plain(printed: str) -> str:
    r"""Return a printed text without \( \), gaps and signs that only look different, for comparing two of them."""
    for old, new in ((r"\(", ""), (r"\)", ""), ("{,}", ","), ("−", "-"), (r"\pounds ", "£"), (" ", ""), ("\n", "")):
        printed = printed.replace(old, new)
    return re.sub(r"\{(\w)\}", r"\1", printed)
