"""Cuts formulas, and the text round them, into pieces: numbers, letters, units, signs; a closed list."""

from __future__ import annotations

import re
from collections.abc import Set
from typing import NamedTuple

from pipeline.maths import units
from pipeline.maths.trees import NotReadError

#: Longest text.
MOST_CHARACTERS = 1200

_RELATIONS = {"=": "=", "≈": "≈", "<": "<", ">": ">", "≤": "<=", "≥": ">=", "<=": "<=", ">=": ">=", "≠": "!="}
_COMMANDS = {
    "times": "*", "cdot": "*", "ast": "*", "div": "/", "approx": "≈", "simeq": "≈", "leq": "≤", "le": "≤", "geq": "≥",
    "ge": "≥", "lt": "<", "gt": ">", "neq": "≠", "ne": "≠", "pounds": "£", "circ": "°", "degree": "°", "pm": "±",
    "lvert": "|", "rvert": "|", "lbrace": "(", "rbrace": ")", "{": "(", "}": ")", "%": "%", "dfrac": r"\frac",
    "tfrac": r"\frac", "Rightarrow": ";", "implies": ";", "Longrightarrow": ";", "mu": "letter:µ",
}  # fmt: skip
_SPACES = {"left", "right", "quad", "qquad", "therefore", "displaystyle", "big", "Big", ",", ";", ":", "!", " "}
_GREEK = {
    "theta", "alpha", "beta", "gamma", "delta", "Delta", "lambda", "rho", "sigma", "phi", "varphi", "omega", "Omega",
    "epsilon", "tau", "eta", "Phi",
}  # fmt: skip
_FUNCTIONS = ("sin", "cos", "tan", "asin", "acos", "atan")
_SIGNS = {
    "−": "-", "×": "*", "÷": "/", "·": "*", "⋅": "*", "∙": "*", "⇒": ";", "→": ";", "Abs": "abs",
}  # fmt: skip
_POWERS = re.compile("[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+")
_HALVES = {"½": r"\frac{1}{2}", "¼": r"\frac{1}{4}", "¾": r"\frac{3}{4}"}
_THIN = re.compile(r"(?<![\d.])\d{1,3}(?:(?:[ \u00a0\u202f\u2009]|\\,)\d{3})+(?![\d])")
_TOKEN = re.compile(
    r"(?P<space>\s+)|(?P<number>\d+\.(?=\\dot|\\overline)|\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\{,\}\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)"
    r"|\\(?P<text>text|mathrm|textrm)\s*\{(?P<words>[^{}]*)\}(?P<power>(?:\^\{?-?\d\}?)?)"
    r"|\\(?P<named>vec|overrightarrow|mathbf|boldsymbol|underline|bar)\s*\{?(?P<name>[A-Za-z]{1,2})\}?"
    r"|\\(?P<table>begin|end)\{[pb]matrix\}|\\dot\{?(?P<dot>\d)\}?|\\overline\{(?P<over>\d+)\}"
    r"|(?P<row>\\\\)|\\(?P<command>[A-Za-z]+|[,;:!%{}$ ])|(?P<letters>[A-Za-zµΩθπλα]+)"
    r"|(?P<relation><=|>=|[=<>≤≥≈≠])|(?P<sign>\*\*|[-+*/^_()\[\]{}|,;&°%£:−×÷·⋅∙√±⇒→])"
)
_WORD = {"or": ";", "and": ";", "million": "million", "thousand": "thousand", "billion": "billion"}
_DIRECTION = re.compile(r"(?:to the )?(?:downwards|upwards|downward|upward|east|west|north|south|left|right)\b")


class Lexeme(NamedTuple):
    """kind: number, letter, unit, direction, function, command, relation, sign, end."""

    kind: str
    text: str
    #: No space stands before it.
    tight: bool = False


def pieces(text: str, *, inside: bool, after: bool = False, nouns: Set[str] = frozenset()) -> list[Lexeme]:
    """Return the pieces of a formula (inside) or of the text round formulas.

    Args:
        after: A formula stands just before it, so that a unit may follow.
    """
    if len(text) > MOST_CHARACTERS:
        raise NotReadError("too long")
    plain = _THIN.sub(lambda match: re.sub(r"\D", "", match[0]), text)
    for sign, tex in _HALVES.items():
        plain = plain.replace(sign, tex)
    out: list[Lexeme] = []
    at, tight = 0, True
    while at < len(plain):
        behind = (out[-1].kind in ("number", "unit") or out[-1].text in ("}", ")")) if out else after
        if not inside and behind and (found := _unit(plain, at, nouns, glued=tight and bool(out))):
            out.append(Lexeme(found[0], found[1]))
            at, tight = found[2], True
            continue
        if powers := _POWERS.match(plain, at):
            exponent = powers[0].translate(units.LEVEL)
            out += [Lexeme("sign", "^"), Lexeme("sign", "{"), *_signed(exponent), Lexeme("sign", "}")]
            at, tight = powers.end(), True
            continue
        match = _TOKEN.match(plain, at)
        if not match:
            raise NotReadError(f"sign {plain[at]!r}")
        at = match.end()
        if match["space"]:
            tight = False
            continue
        out += _piece(match, inside=inside, tight=tight, plain=plain)
        tight = True
    return out


def _signed(text: str) -> list[Lexeme]:
    minus = [Lexeme("sign", "-")] if text.startswith("-") else []
    digits = text.strip("-")
    if not digits.isdigit():
        raise NotReadError("a power without digits")
    return [*minus, Lexeme("number", digits)]


def _unit(plain: str, at: int, nouns: Set[str], *, glued: bool) -> tuple[str, str, int] | None:
    start = at + len(plain[at:]) - len(plain[at:].lstrip())
    if match := _DIRECTION.match(plain, start):
        return "direction", match[0], match.end()
    if match := units.PATTERN.match(plain, start):
        letter = re.fullmatch(r"[A-Za-z]", match[0]) and match[0] != "p"
        # "3t" may be three tonnes or three times t.
        return None if letter and glued and start == at else ("unit", match[0], match.end())
    word = re.compile(r"[A-Za-z]+").match(plain, start)
    return ("unit", word[0], word.end()) if word and start > at and word[0].lower() in nouns - _WORD.keys() else None


def _piece(match: re.Match[str], *, inside: bool, tight: bool, plain: str) -> list[Lexeme]:
    kind = match.lastgroup or ""
    text = match[0]
    if kind == "number":
        return [Lexeme("number", re.sub(r"[,{}]", "", text), tight)]
    if kind == "relation":
        return [Lexeme("relation", _RELATIONS[text])]
    if kind in ("sign", "row"):
        text = "^" if text == "**" else _SIGNS.get(text, text)
        return [Lexeme("sign", text, tight)]
    if match["text"]:
        return _words(match["words"], match["power"] or "")
    if match["named"]:
        return [Lexeme("letter", match["name"] + ("bar" if match["named"] == "bar" else ""))]
    if match["dot"] or match["over"]:
        return [Lexeme("recurring", match["dot"] or match["over"], tight)]
    if match["table"]:
        return [Lexeme("command", rf"\{match['table']}")]
    if match["command"]:
        return _command(match["command"])
    return _letters(match["letters"], inside=inside, tight=tight, plain=plain, at=match.start())


def _words(words: str, power: str) -> list[Lexeme]:
    r"""Return what stands in \text: a unit, "or", or nothing that is read."""
    plain = words.strip()
    if plain in _WORD:
        return [Lexeme("sign", _WORD[plain])]
    if _DIRECTION.fullmatch(plain):
        return [Lexeme("direction", plain)]
    if units.unit(plain + power):
        return [Lexeme("unit", plain + power)]
    raise NotReadError("words in a formula")


def _command(name: str) -> list[Lexeme]:
    if name in _SPACES:
        return []
    if name in _GREEK:
        return [Lexeme("letter", name)]
    if name in _FUNCTIONS or name in ("arcsin", "arccos", "arctan"):
        return [Lexeme("function", name.replace("arc", "a"))]
    if name == "pi":
        return [Lexeme("pi", name)]
    sign = _COMMANDS.get(name, rf"\{name}")
    if sign in _RELATIONS:
        return [Lexeme("relation", _RELATIONS[sign])]
    if sign.startswith("letter:"):
        return [Lexeme("letter", sign[7:])]
    if sign not in (r"\frac", r"\sqrt", r"\binom") and sign.startswith("\\"):
        raise NotReadError(f"the command {sign}")
    return [Lexeme("command" if sign.startswith("\\") else "sign", sign)]


#: Two capitals are the ends of a line (AB² is the square of its length), but for these products of physics.
_PRODUCTS = {"IR", "IV", "VI", "QV", "CV", "RI", "PT", "IT", "FT", "QT"}
_LETTERS = {"θ": "theta", "λ": "lambda", "α": "alpha", "Ω": "Omega"}
_NAMES = re.compile(r"sqrt|asin|acos|atan|sin|cos|tan|pi|Abs|abs")


def _letters(run: str, *, inside: bool, tight: bool, plain: str, at: int) -> list[Lexeme]:
    """Return letters one by one; words are not read."""
    if run in _WORD:
        return [Lexeme("sign", _WORD[run])]
    if re.fullmatch("[A-Z]{2}", run) and run not in _PRODUCTS:
        return [Lexeme("letter", run)]
    out: list[Lexeme] = []
    rest = run
    while rest:
        found = _NAMES.match(rest)
        name = found[0] if found else rest[0]
        rest = rest[len(name) :]
        if name in _FUNCTIONS:
            out.append(Lexeme("function", name))
        elif name in ("pi", "π"):
            out.append(Lexeme("pi", "pi"))
        elif name in ("sqrt", "Abs", "abs"):
            out.append(Lexeme("command", rf"\{name.lower()}"))
        else:
            out.append(Lexeme("letter", _LETTERS.get(name, name), tight))
    if len(out) > 3 or (not inside and len(out) > 1 and not _between_signs(plain, at, at + len(run))):
        raise NotReadError("words")
    return out


def _between_signs(plain: str, start: int, end: int) -> bool:
    before, behind = plain[:start].rstrip()[-1:], plain[end:].lstrip()[:1]
    return (
        bool(before + behind)
        and (not before or before in "=+-−*×/÷^(<>≤≥" or before.isdigit())
        and (not behind or behind in "=+-−*×/÷^)<>≤≥({")
    )
