r"""Reads what people read into trees and SymPy: TeX between \( \), numbers with units, plain notation.

A closed list of commands; nothing is run, no name is looked up, and what is not understood raises NotRead: no guess.
`read` takes a short text that is mathematics as a whole ("\(3\sqrt 5\)", "£12.50", "x = 2 or x = −3") and returns its
statements: sides joined by relations. In a formula a letter is a letter; outside one, a unit where a unit may stand.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Set
from dataclasses import dataclass

from pipeline.maths.grammar import Parser
from pipeline.maths.pieces import Lexeme, pieces
from pipeline.maths.trees import MathNode, NotReadError, Value, number

__all__ = ["MathNode", "NotReadError", "PrintedSide", "PrintedStatement", "formulas", "read", "statement", "tree"]

#: Pieces that one text may have.
MOST_TOKENS = 160


@dataclass(frozen=True)
class PrintedSide:
    """One side of a statement."""

    node: MathNode
    text: str
    #: Digits after the point where it is one number (times a power of ten), else None.
    places: int | None = None
    #: The power of ten of standard form.
    scale: int = 0
    #: As printed behind it, "£" before it; "" for none.
    unit: str = ""
    #: "downwards", "east": then a sign may be left out.
    direction: str = ""

    @property
    def value(self) -> Value:
        """Return its value in SymPy; of "20 %" it is 20, and the unit is "%"."""
        return (self.node.parts[0] if self.node.kind == "percent" else self.node).value


@dataclass(frozen=True)
class PrintedStatement:
    """Sides and the relations between them: = ≈ < > <= >= !=."""

    sides: tuple[PrintedSide, ...]
    relations: tuple[str, ...] = ()


_MATHS = re.compile(r"\\\((.*?)\\\)|\\\[(.*?)\\\]", re.DOTALL)


def formulas(text: str) -> list[str]:
    """Return the formulas inside a prose text, without their delimiters."""
    return [inline or block for inline, block in _MATHS.findall(text)]


def tree(text: str) -> MathNode:
    """Return one expression as it was written.

    Raises:
        NotReadError: It is none that is understood here.
    """
    found = statement(text)
    if len(found.sides) != 1:
        raise NotReadError("a relation")
    return found.sides[0].node


def statement(text: str) -> PrintedStatement:
    r"""Return what one formula says (the text between \( and \)), or one line of plain notation.

    Raises:
        NotReadError: It is none that is understood here.
    """
    found = _formula(text)
    if len(found) != 1:
        raise NotReadError("more than one statement")
    return found[0]


def read(text: str, nouns: Set[str] = frozenset()) -> list[PrintedStatement]:
    """Return the statements of a short text that is mathematics as a whole.

    Args:
        nouns: Words that may stand behind a number as its unit ("pupils").

    Raises:
        NotReadError: It holds words or something else that is not understood.
    """
    return list(_read(text, frozenset(nouns)))


@functools.lru_cache(4096)
def _formula(text: str) -> tuple[PrintedStatement, ...]:
    return tuple(_statements(pieces(text, inside=True)))


@functools.lru_cache(4096)
def _read(text: str, nouns: frozenset[str]) -> tuple[PrintedStatement, ...]:
    tokens: list[Lexeme] = []
    end = 0
    text = text.strip()
    text = text[:-1] if text.endswith(".") else text
    for match in _MATHS.finditer(text):
        tokens += pieces(text[end : match.start()], inside=False, after=bool(end), nouns=nouns)
        tokens += pieces(match[1] or match[2] or "", inside=True)
        end = match.end()
    tokens += pieces(text[end:], inside=False, after=bool(end), nouns=nouns)
    return tuple(_statements(tokens))


def _statements(tokens: list[Lexeme]) -> list[PrintedStatement]:
    if len(tokens) > MOST_TOKENS:
        raise NotReadError("too long")
    found: list[PrintedStatement] = []
    for part in _split(tokens):
        signs = [token for token in part if token.text == "±" and token.kind == "sign"]
        for sign in ("+", "-") if signs else ("",):
            chosen = [Lexeme("sign", sign) if sign and token.text == "±" else token for token in part]
            found.append(_statement(chosen))
    if not found:
        raise NotReadError("nothing")
    return found


def _split(tokens: list[Lexeme]) -> list[list[Lexeme]]:
    """Return the runs between "or", "and", ";" and, where each run has a relation of its own, commas."""
    depth, runs, commas = 0, [[Lexeme("end", "")][:0]], list[tuple[int, int]]()
    for token in tokens:
        depth += (token.text in ("(", "{", "[", r"\begin")) - (token.text in (")", "}", "]", r"\end"))
        if token.kind == "sign" and token.text == ";" and depth == 0:
            runs.append([])
            continue
        if token.kind == "sign" and token.text == "," and depth == 0:
            commas.append((len(runs) - 1, len(runs[-1])))
        runs[-1].append(token)
    for run, place in reversed(commas):
        left, right = runs[run][:place], runs[run][place + 1 :]
        if len({any(token.kind == "relation" for token in side) for side in (left, right)}) > 1:
            raise NotReadError("a list")
        runs[run : run + 1] = [left, right]
    return [run for run in runs if run]


def _statement(tokens: list[Lexeme]) -> PrintedStatement:
    sides: list[list[Lexeme]] = [[]]
    relations: list[str] = []
    for token in tokens:
        if token.kind == "relation":
            relations.append(token.text)
            sides.append([])
        else:
            sides[-1].append(token)
    return PrintedStatement(tuple(_side(side) for side in sides), tuple(relations))


def _side(tokens: list[Lexeme]) -> PrintedSide:
    direction = tokens.pop().text if tokens and tokens[-1].kind == "direction" else ""
    text = "".join(token.text for token in tokens)
    glued = len(tokens) == 2 and (tokens[0].kind, tokens[1].kind, tokens[1].tight) == ("number", "letter", True)
    if glued and tokens[1].text in tuple("mgshlpNJWVACK"):
        raise NotReadError("a letter that may be a unit")
    node = Parser(tokens).whole()
    unit, node = _own_unit(node)
    places, scale = _shown(node)
    return PrintedSide(node, text, places, scale, unit, direction)


def _own_unit(node: MathNode) -> tuple[str, MathNode]:
    """Return the unit of a whole side, and the side without units; none where units are multiplied."""
    found = [part.text for part in _outside_functions(node) if part.kind == "unit"]
    if node.kind == "percent" or (node.kind == "minus" and node.parts[0].kind == "percent"):
        return "%", node if node.kind == "percent" else MathNode("percent", (MathNode("minus", node.parts[0].parts),))
    one = len(set(found)) == 1 and (len(found) == 1 or node.kind == "sum")
    return found[0] if one else "", without_units(node)


def _outside_functions(node: MathNode) -> Iterator[MathNode]:
    yield node
    if node.kind not in ("function", "power"):
        for part in node.parts:
            yield from _outside_functions(part)


def without_units(node: MathNode) -> MathNode:
    """Return a tree without its units."""
    if node.kind == "unit":
        return without_units(node.parts[0])
    return MathNode(node.kind, tuple(without_units(part) for part in node.parts), node.text) if node.parts else node


def _shown(node: MathNode) -> tuple[int | None, int]:
    """Return the decimals and the power of ten of a single number."""
    while node.kind == "minus":
        node = node.parts[0]
    if node.kind == "percent":
        node = node.parts[0]
    if node.kind == "number":
        return len(node.text.partition(".")[2]), 0
    if node.kind == "product" and len(node.parts) == 2 and node.parts[1].kind == "power":
        front, (ten, power) = node.parts[0], node.parts[1].parts
        if front.kind == "number" and ten == number("10") and power.value.is_Integer:
            return len(front.text.partition(".")[2]), int(power.value)
    return None, 0


def prompt_lines() -> list[str]:
    """Return what the author is told about notation that code can read."""
    return [
        r"Formulas stand in \( \): \frac{a}{b}, \sqrt{2}, \sqrt[3]{8}, x^{10}, \times, \div, \leq, \geq, \neq, "
        r"\approx, \pi, \theta, 30^\circ, \sin 40^\circ, \sin^{-1}, 15\%, \begin{pmatrix}3\\-2\end{pmatrix}, |u|.",
        r"Every relation of a line is compared from side to side: \(3x+1=10\), \(v=u+at=3+2\times 6=15\); rounding is "
        r"written with \approx.",
        "Numbers outside formulas: 1,250 or 12 500, 0.038 cm, £12.50, 3/4, 2 1/3, −5; a point is (−2, 5); "
        "two solutions: x = 2 or x = −3.",
        r"Words are not put in formulas; a unit stands behind the formula: \(3\times 4=12\) cm.",
    ]
