"""A formula in words, as a screen reader should say it: "x squared plus 3"."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from xml.etree import ElementTree

from pipeline.publish import mathml
from pipeline.publish.tex import TexError

_SIGNS = {
    "+": "plus", "−": "minus", "×": "times", "÷": "divided by", "⋅": "times", "·": "times", "/": "over",
    "±": "plus or minus", "∓": "minus or plus", "=": "equals", "≠": "is not equal to", "<": "is less than",
    ">": "is greater than", "≤": "is less than or equal to", "≥": "is greater than or equal to",
    "≈": "is approximately", "≡": "is identical to", "∼": "is similar to", "≅": "is congruent to",
    "∝": "is proportional to", "→": "goes to", "←": "comes from", "⇒": "implies", "⇔": "if and only if",
    "⇌": "in equilibrium with", "∴": "therefore", "∵": "because", "∈": "in", "∉": "not in", "⊂": "is a subset of",
    "∪": "union", "∩": "intersection", "∠": "angle", "△": "triangle", "∥": "is parallel to",
    "⊥": "is perpendicular to", ":": "to", "∇": "del", "∂": "partial", "∣": "such that", "≪": "is much less than",
    "≫": "is much greater than", "∑": "the sum", "∫": "the integral", "∏": "the product", "%": "per cent",
    "°": "degrees", "∘": "composed with", "!": "factorial", "′": "prime", "″": "double prime", "‴": "triple prime",
    "′′": "double prime", "′′′": "triple prime", "(": "open bracket", ")": "close bracket",
    "[": "open square bracket", "]": "close square bracket", "{": "open brace", "}": "close brace",
    "|": "vertical bar", "‖": "double bar", "⟨": "open angle bracket", "⟩": "close angle bracket", "?": "unknown",
}  # fmt: skip
_LETTERS = {
    "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ε": "epsilon", "θ": "theta", "λ": "lambda", "μ": "mu",
    "ν": "nu", "π": "pi", "ρ": "rho", "σ": "sigma", "τ": "tau", "φ": "phi", "ω": "omega", "η": "eta", "κ": "kappa",
    "ψ": "psi", "χ": "chi", "ζ": "zeta", "ℓ": "l", "ℏ": "h bar", "Γ": "capital gamma", "Δ": "delta",
    "Θ": "capital theta", "Λ": "capital lambda", "Π": "capital pi", "Σ": "capital sigma", "Φ": "capital phi",
    "Ψ": "capital psi", "Ω": "ohms", "∞": "infinity", "∅": "the empty set", "…": "and so on", "⋯": "and so on",
    "£": "pounds", "€": "euros", "sin": "sine", "cos": "cosine", "tan": "tangent", "arcsin": "inverse sine",
    "arccos": "inverse cosine", "arctan": "inverse tangent", "ln": "natural log", "exp": "exponential of",
    "lim": "the limit", "min": "the minimum", "max": "the maximum", "det": "the determinant of",
}  # fmt: skip
_ACCENTS = {"→": "vector {}", "←": "vector {}", "‾": "{} bar", "^": "{} hat", "˙": "{} dot", "¨": "{} double dot"}
_POWERS = {"2": "squared", "3": "cubed"}
_PARTS = dict(enumerate(["half", "third", "quarter", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"], 2))
_MONEY = frozenset("£€$")
#: Brackets of the same size on both sides that have a name of their own.
_PAIRS = {("|", "|"): "the absolute value of {}, end", ("‖", "‖"): "the length of {}, end"}


@lru_cache(4_096)
def words(tex: str) -> str:
    """Return a formula in words; what cannot be read as mathematics is returned as it was typed.

    Args:
        tex: Without delimiters.
    """
    try:
        return _said(mathml.content(tex))
    except TexError:
        return tex


def _said(node: ElementTree.Element) -> str:
    if (say := _TAGS.get(node.tag)) is not None:
        return say(list(node))
    sign = (node.text or "").replace("\u00a0", " ").strip()
    if node.tag == "mi":
        return _LETTERS.get(sign, sign)
    return _SIGNS.get(sign, sign) if node.tag == "mo" else sign


def _row(parts: Sequence[ElementTree.Element]) -> str:
    if len(parts) > 1 and parts[1].tag == "mtable":
        return _fenced_table(_fence(parts[0]), parts[1])
    if len(parts) > 1 and (pattern := _PAIRS.get((_fence(parts[0]), _fence(parts[-1])))) is not None:
        return pattern.format(_row(parts[1:-1]))
    said = " ".join(filter(None, _joined(_pounds_last(parts))))
    return said.replace(" ,", ",").replace(" ;", ";").replace(" .", ".")


def _joined(parts: Sequence[ElementTree.Element]) -> Iterator[str]:
    """Yield the parts in words, with the word that stands between a number and what follows it."""
    for place, part in enumerate(parts):
        if place and parts[place - 1].tag == "mn":
            if part.tag == "mfrac" and _number(part[0]) and _number(part[1]):
                yield "and"
            elif part.tag in ("msqrt", "mroot"):
                yield "times"
        yield _said(part)


def _pounds_last(parts: Sequence[ElementTree.Element]) -> list[ElementTree.Element]:
    """Return the parts in the order in which they are said: an amount before its currency."""
    out = list(parts)
    for place in range(len(out) - 1):
        if out[place].text in _MONEY and out[place + 1].tag == "mn":
            out[place : place + 2] = out[place + 1], out[place]
    return out


def _fence(node: ElementTree.Element) -> str:
    return (node.text or "") if node.tag == "mo" and node.get("fence") else ""


def _simple(node: ElementTree.Element) -> bool:
    """Return true for one number, letter or word, and for a number below zero."""
    inner = [child for child in node.iter() if not len(child)]
    if len(inner) == 2 and (inner[0].text, inner[1].tag) == ("−", "mn"):
        return True
    return len(inner) == 1 and node.tag in ("mrow", "mn", "mi", "mtext")


def _number(node: ElementTree.Element) -> int | None:
    said = _said(node)
    return int(said) if said.isdecimal() else None


def _fraction(parts: Sequence[ElementTree.Element]) -> str:
    top, bottom = map(_said, parts)
    count, name = _number(parts[0]), _PARTS.get(_number(parts[1]) or 0)
    if count is not None and name:
        return f"{top} {name}" if count == 1 else f"{top} {'halve' if name == 'half' else name}s"
    if all(map(_simple, parts)):
        return f"{top} over {bottom}"
    return f"the fraction {top}, over {bottom}, end fraction"


def _power(parts: Sequence[ElementTree.Element]) -> str:
    base, power = map(_said, parts)
    return f"{base} {_raised(parts[1], power)}"


def _raised(node: ElementTree.Element, said: str) -> str:
    if said in _POWERS:
        return _POWERS[said]
    if "prime" in said or said == "degrees":
        return said
    return f"to the power {said}" if _simple(node) else f"to the power {said}, end power"


def _index(parts: Sequence[ElementTree.Element]) -> str:
    base, below = map(_said, parts)
    return f"{base} to the base {below} of" if base == "log" else f"{base} sub {below}"


def _both(parts: Sequence[ElementTree.Element]) -> str:
    base, below, above = map(_said, parts)
    if base in ("the integral", "the sum", "the product"):
        return f"{base} from {below} to {above} of"
    if not base:
        return f"mass number {above}, atomic number {below},"
    return f"{base} sub {below} {_raised(parts[2], above)}"


def _under(parts: Sequence[ElementTree.Element]) -> str:
    base, below = map(_said, parts)
    return f"{base} as {below} of"


def _over(parts: Sequence[ElementTree.Element]) -> str:
    base, sign = _said(parts[0]), parts[1].text or ""
    return _ACCENTS.get(sign, "{} tilde").format(base)


def _root(parts: Sequence[ElementTree.Element]) -> str:
    said = f"the square root of {_row(parts)}"
    return said if len(parts) == 1 and _simple(parts[0]) else f"{said}, end root"


def _nth_root(parts: Sequence[ElementTree.Element]) -> str:
    content, index = map(_said, parts)
    name = {"3": "cube", "4": "fourth"}.get(index, f"{index}-th")
    return f"the {name} root of {content}" + ("" if _simple(parts[0]) else ", end root")


def _table(parts: Sequence[ElementTree.Element]) -> str:
    """Return the lines of equations that stand below each other; their cells are pieces of a line."""
    return "; ".join(" ".join(filter(None, map(_said, row))) for row in parts)


def _fenced_table(fence: str, table: ElementTree.Element) -> str:
    if fence == "{":
        rows = [", ".join(filter(None, map(_said, row))) for row in table]
        return f"open brace {'; '.join(rows)}; end"
    name = "determinant" if fence == "|" else "matrix"
    rows = [f"row {place}: {', '.join(map(_said, row))}" for place, row in enumerate(table, 1)]
    return f"the {len(table)} by {len(table[0])} {name}, {'; '.join(rows)}; end {name}"


_TAGS: dict[str, Callable[[Sequence[ElementTree.Element]], str]] = {
    "mrow": _row, "mfrac": _fraction, "msup": _power, "msub": _index, "msubsup": _both, "munder": _under,
    "munderover": _both, "mover": _over, "msqrt": _root, "mroot": _nth_root, "mtable": _table, "mtd": _row,
    "mspace": lambda _: "",
}  # fmt: skip
