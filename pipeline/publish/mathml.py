r"""Presentation MathML for the mathematics in text fields: \( … \) inline, \[ … \] on a line of its own.

Recursive descent over the pieces of a TeX expression: strict, no recovery. latex2mathml is no substitute: it lets
\href and unknown commands through, splits 1,250 and gives the power of a bracket to its closing sign.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple
from xml.etree import ElementTree

from pipeline.html import Html, el, join
from pipeline.publish import tex as symbols
from pipeline.publish.tex import TexError, TexToken


@lru_cache(8_192)
def parse(tex: str, *, block: bool = False) -> Html:
    """Return the expression as a `math` element with its TeX as annotation.

    Args:
        tex: Without delimiters.
        block: On a line of its own.

    Raises:
        TexError: (a ValueError) Not in the subset; says what and at which character.
    """
    content = _TexParser(tex).whole()
    source = el("annotation", tex.strip(), encoding="application/x-tex")
    tall = any(name in content for name in ("<mfrac", "<munderover", "<mtable"))
    return el(
        "math",
        el("semantics", el("mrow", content), source),
        display="block" if block else None,
        displaystyle="true" if tall and not block else None,
    )


def content(tex: str) -> ElementTree.Element:
    """Return what stands in the `math` element of an expression, without the annotation.

    Raises:
        TexError: As `parse`.
    """
    found = ElementTree.fromstring(parse(tex)).find("semantics/mrow")
    assert found is not None
    return found


_DELIMITED = re.compile(r"\\\((?P<inline>.*?)\\\)|\\\[(?P<block>.*?)\\\]", re.DOTALL)
_STRAY = re.compile(r"\\|\$")


def split(value: str) -> list[tuple[str, str, int]]:
    """Return the pieces of a text field: (kind, content, position); kind is text, inline or block."""
    pieces: list[tuple[str, str, int]] = []
    end = 0
    for match in _DELIMITED.finditer(value):
        if match.start() > end:
            pieces.append(("text", value[end : match.start()], end))
        kind = "inline" if match["inline"] is not None else "block"
        pieces.append((kind, match[kind], match.start(kind)))
        end = match.end()
    if end < len(value):
        pieces.append(("text", value[end:], end))
    return pieces


def check(value: str) -> list[str]:
    r"""Return what is wrong with the mathematics of a text field; empty where all can be set.

    Each problem names its character. A backslash or a dollar sign outside \( … \)
    is a problem: it is mathematics that would be printed raw.
    """
    problems = []
    for kind, content, start in split(value):
        if kind == "text":
            if found := _STRAY.search(content):
                what = "a $ sign" if found[0] == "$" else r"a backslash outside \( … \)"
                problems.append(f"{what} (at character {start + found.start() + 1})")
            continue
        try:
            parse(content)
        except TexError as error:
            problems.append(f"{error.problem} (at character {start + error.position + 1})")
    return problems


_SPELLED = {"-": "−", "*": "×", "'": "′"}
_SIGN_LETTERS = {"π": "i", "%": "o", "°": "o", "£": "i", "€": "i"}


@lru_cache(4_096)
def _leaf(tag: str, sign: str, **attributes: object) -> Html:
    """Return the element of a letter, a number or a sign: pages have few that differ."""
    return el(tag, sign, **attributes)


def _operator(sign: str, **attributes: object) -> Html:
    return _leaf("mo", sign, **attributes)


#: A minus before a number: after a bracket or another sign browsers would set it as between two numbers.
_SIGN = _operator("−", form="prefix")


class _Atom(NamedTuple):
    """One thing in a row."""

    markup: Html
    #: "function": a thin space comes before an argument without brackets; "fence": none does.
    role: str = ""
    #: Its scripts are placed above and below it.
    limits: bool = False


class _TexParser:
    """Recursive descent over the tokens of one expression."""

    def __init__(self, source: str) -> None:
        self._tokens = symbols.tokens(source)
        self._partners = symbols.partners(self._tokens)
        self._at = 0
        self._depth = 0

    def whole(self) -> Html:
        if self._peek().kind == "end":
            raise TexError("the expression is empty", 0)
        return self._row(lambda token: token.kind == "end")

    def _peek(self) -> TexToken:
        return self._tokens[self._at]

    def _next(self) -> TexToken:
        token = self._tokens[self._at]
        if token.kind != "end":
            self._at += 1
        return token

    def _row(self, ends: Callable[[TexToken], bool]) -> Html:
        """Return atoms up to the token that ends the row (which stays)."""
        self._depth += 1
        if self._depth > symbols.MAX_DEPTH:
            raise TexError(f"nested more than {symbols.MAX_DEPTH} deep", self._peek().position)
        atoms: list[_Atom] = []
        while not ends(self._peek()):
            atoms.append(self._scripted())
        self._depth -= 1
        return _spaced(atoms)

    def _scripted(self) -> _Atom:
        """Return an atom with its primes, power and index."""
        base = self._atom()
        below: Html | None = None
        above: Html | None = None
        while True:
            token = self._peek()
            if token.kind == "sign" and token.value == "'":
                if above is not None:
                    raise TexError("a prime after a power", token.position)
                above = self._primes()
            elif token.kind == "sign" and token.value in "^_":
                self._next()
                if (above if token.value == "^" else below) is not None:
                    raise TexError(f"a second {token.value!r} on one thing; use braces", token.position)
                script = self._argument(token)
                above, below = (script, below) if token.value == "^" else (above, script)
            else:
                return _with_scripts(base, below, above)

    def _primes(self) -> Html:
        count = 0
        while self._peek().kind == "sign" and self._peek().value == "'":
            self._next()
            count += 1
        return _operator("′" * count)

    def _argument(self, owner: TexToken) -> Html:
        """Return what follows a command or a ^: a group in braces or one token."""
        token = self._peek()
        if token.kind == "sign" and token.value == "{":
            return self._group()
        if token.kind == "end" or (token.kind == "sign" and token.value in "}&^_'"):
            raise TexError(f"nothing after {_shown(owner)}", owner.position)
        if token.kind == "number" and len(token.value) > 1:
            # TeX would take its first digit only, which is never meant.
            raise TexError(f"{token.value} needs braces after {_shown(owner)}", token.position)
        return self._atom(alone=True).markup

    def _group(self) -> Html:
        opening = self._next()
        row = self._row(lambda token: token.kind == "end" or _is(token, "}"))
        if self._next().kind == "end":
            raise TexError("a brace is never closed", opening.position)
        return el("mrow", row)

    def _atom(self, alone: bool = False) -> _Atom:
        index = self._at
        token = self._peek()
        if token.kind == "sign":
            return self._sign(token, index, alone)
        self._next()
        if token.kind == "number":
            return _Atom(_leaf("mn", token.value))
        if token.kind == "letter":
            return _Atom(_leaf("mi", token.value))
        if token.kind == "text":
            return _Atom(el("mtext", token.value.replace(" ", "\u00a0")))
        if token.kind == "end":
            raise TexError("something is missing at the end", token.position)
        return self._command(token)

    def _sign(self, token: TexToken, index: int, alone: bool) -> _Atom:
        if token.value == "{":
            return _Atom(self._group())
        if token.value in "}&":
            what = "a brace closes that was never opened" if token.value == "}" else "a & outside a table"
            raise TexError(what, token.position)
        if token.value in "^_":
            raise TexError(f"nothing before {token.value!r}", token.position)
        self._next()
        if token.value in "([" and index in self._partners and not alone:
            return self._bracketed(token, self._partners[index])
        if token.value in "()[]|":
            return _Atom(_operator(token.value, stretchy="false", lspace="0", rspace="0"), "fence")
        if token.value in _SIGN_LETTERS:
            return _Atom(_sign_letter(token.value))
        if token.value in ",;":
            return _Atom(_operator(token.value, separator="true"))
        return _Atom(_operator(_SPELLED.get(token.value, token.value)))

    def _bracketed(self, opening: TexToken, closing: int) -> _Atom:
        """Return a bracket pair as one thing, so that it grows with its content and carries its power."""
        row = self._row(lambda token: token is self._tokens[closing] or token.kind == "end")
        sign = self._next().value
        return _Atom(el("mrow", _operator(opening.value), row, _operator(sign)), "fence")

    def _command(self, token: TexToken) -> _Atom:
        name = token.value
        if (simple := _simple(name)) is not None:
            return simple
        if (handler := _HANDLERS.get(name)) is not None:
            return handler(self, token)
        if name in symbols.ACCENTS:
            accent = _operator(
                symbols.ACCENTS[name], stretchy="true" if name in symbols.WIDE else "false", accent="true"
            )
            return _Atom(el("mover", self._argument(token), accent, accent="true"))
        if name in symbols.FONTS:
            return _Atom(self._font(token))
        raise TexError(rf"the command \{name} is not allowed", token.position)

    def _fraction(self, token: TexToken) -> _Atom:
        return _Atom(el("mfrac", self._argument(token), self._argument(token)))

    def _root(self, token: TexToken) -> _Atom:
        if not _is(self._peek(), "["):
            return _Atom(el("msqrt", self._argument(token)))
        self._next()
        index = self._row(lambda piece: piece.kind == "end" or _is(piece, "]"))
        if self._next().kind == "end":
            raise TexError("the index of the root is never closed", token.position)
        return _Atom(el("mroot", self._argument(token), el("mrow", index)))

    def _sized(self, token: TexToken) -> _Atom:
        r"""Return \left( … \right): the delimiters grow; a dot is an invisible one."""
        opening = self._delimiter(token)
        row = self._row(lambda piece: piece.kind == "end" or _is(piece, "right", "command"))
        closing = self._next()
        if closing.kind == "end":
            raise TexError(r"\left without \right", token.position)
        return _Atom(el("mrow", _fence(opening), row, _fence(self._delimiter(closing))), "fence")

    def _delimiter(self, owner: TexToken) -> str:
        token = self._next()
        if token.kind == "sign" and token.value in "()[]|.<>/":
            return {"<": "⟨", ">": "⟩", ".": ""}.get(token.value, token.value)
        if token.kind == "command" and token.value in "{}|":
            return "‖" if token.value == "|" else token.value
        if token.kind == "command" and token.value in symbols.DELIMITERS:
            return symbols.DELIMITERS[token.value]
        raise TexError(f"no bracket after {_shown(owner)}", owner.position)

    def _stray_right(self, token: TexToken) -> _Atom:
        raise TexError(rf"\{token.value} without its opening", token.position)

    def _font(self, token: TexToken) -> Html:
        variant = symbols.FONTS[token.value]
        opening = self._peek()
        if not _is(opening, "{"):
            raise TexError(rf"\{token.value} needs braces", token.position)
        self._next()
        letters = ""
        while not _is(self._peek(), "}"):
            piece = self._next()
            if piece.kind not in ("letter", "number") and piece.value not in ("-", "/", "·", "°", "%", "."):
                raise TexError(rf"only letters inside \{token.value}", piece.position)
            letters += piece.value
        self._next()
        if not letters:
            raise TexError(f"nothing after {_shown(token)}", token.position)
        plain = variant == "italic" or (variant == "normal" and len(letters) > 1)
        return el("mi", letters, mathvariant=None if plain else variant)

    def _table(self, token: TexToken) -> _Atom:
        name = self._name(token)
        if name not in symbols.ENVIRONMENTS:
            raise TexError(f"the table {name!r} is not allowed", token.position)
        if name == "array":
            self._column_letters(token)
        rows = [[self._cell()]]
        while True:
            piece = self._next()
            if _is(piece, "&"):
                rows[-1].append(self._cell())
            elif _is(piece, "\\", "command"):
                if _is(self._peek(), "end", "command"):
                    continue
                rows.append([self._cell()])
            elif _is(piece, "end", "command"):
                break
            else:
                raise TexError(rf"\begin{{{name}}} is never ended", token.position)
        if self._name(token) != name:
            raise TexError(rf"\begin{{{name}}} is ended by another name", token.position)
        return _Atom(_matrix(name, rows), "fence")

    def _cell(self) -> Html:
        return self._row(
            lambda piece: (
                piece.kind == "end" or _is(piece, "&") or _is(piece, "\\", "command") or _is(piece, "end", "command")
            )
        )

    def _name(self, owner: TexToken) -> str:
        if not _is(self._next(), "{"):
            raise TexError(f"no name in braces after {_shown(owner)}", owner.position)
        letters = ""
        while self._peek().kind == "letter":
            letters += self._next().value
        if not _is(self._next(), "}"):
            raise TexError(f"no name in braces after {_shown(owner)}", owner.position)
        return letters

    def _column_letters(self, owner: TexToken) -> None:
        if set(self._name(owner)) - set("lcr"):
            raise TexError("columns are l, c or r", owner.position)


_HANDLERS: dict[str, Callable[[_TexParser, TexToken], _Atom]] = {
    "frac": _TexParser._fraction,
    "dfrac": _TexParser._fraction,
    "tfrac": _TexParser._fraction,
    "sqrt": _TexParser._root,
    "left": _TexParser._sized,
    "right": _TexParser._stray_right,
    "end": _TexParser._stray_right,
    "begin": _TexParser._table,
}


def _is(token: TexToken, value: str, kind: str = "sign") -> bool:
    return token.kind == kind and token.value == value


def _shown(token: TexToken) -> str:
    return f"\\{token.value}" if token.kind == "command" else repr(token.value)


def _fence(sign: str) -> Html | None:
    return _operator(sign, stretchy="true", fence="true") if sign else None


def _sign_letter(sign: str) -> Html:
    if _SIGN_LETTERS[sign] == "i":
        return el("mi", sign, mathvariant="normal" if sign != "π" else None)
    return _operator(sign, lspace="0", rspace="0")


def _simple(name: str) -> _Atom | None:
    """Return the atom of a command without arguments, if it is one."""
    if name in symbols.LETTERS:
        return _Atom(el("mi", symbols.LETTERS[name]))
    if name in ("degree", "circ"):
        return _Atom(_sign_letter("°") if name == "degree" else _operator(symbols.UPRIGHT[name]))
    if name in symbols.UPRIGHT:
        return _Atom(el("mi", symbols.UPRIGHT[name], mathvariant="normal"))
    if name in symbols.OPERATORS:
        return _Atom(_operator(symbols.OPERATORS[name]))
    if name in symbols.FUNCTIONS:
        return _Atom(el("mi", name), "function", limits=name in ("lim", "min", "max"))
    if name in symbols.LARGE:
        return _Atom(_operator(symbols.LARGE[name]), "function", limits=name != "int")
    if name in symbols.SPACES:
        return _Atom(el("mspace", width=symbols.SPACES[name]), "fence")
    if name in ("%", "$", "{", "}", "&", "#", "_"):
        sign = name in "{}"
        return _Atom(_operator(name, stretchy="false" if sign else None, lspace="0", rspace="0"), "fence")
    return _Atom(_operator(symbols.DELIMITERS[name], stretchy="false"), "fence") if name in symbols.DELIMITERS else None


def _with_scripts(base: _Atom, below: Html | None, above: Html | None) -> _Atom:
    if below is None and above is None:
        return base
    if above is not None and "∘" in above and below is None and _DEGREES.fullmatch(above):
        return _Atom(el("mrow", base.markup, _sign_letter("°")), base.role)
    names = ("munder", "mover", "munderover") if base.limits else ("msub", "msup", "msubsup")
    tag = names[2] if below is not None and above is not None else names[0 if below is not None else 1]
    return _Atom(el(tag, base.markup, below, above), base.role)


#: A sign that something follows: not a degree, a per cent or a factorial, nor the arrow over a vector (mover).
_AWAITS = re.compile(r"<mo[ >](?!.*[°%!′]</mo>$)")
_DEGREES = re.compile(r"(?:<mrow>)?<mo>∘</mo>(?:</mrow>)?")


def _spaced(atoms: list[_Atom]) -> Html:
    """Return the row, with a thin space round the names of functions; a minus that is a sign stands close."""
    out: list[object] = []
    for index, atom in enumerate(atoms):
        before = atoms[index - 1] if index else None
        if before is not None and _thin(before, atom):
            out.append(el("mspace", width=symbols.SPACES[","]))
        sign = before is None or (_AWAITS.match(before.markup) is not None and before.role != "fence")
        out.append(_SIGN if sign and atom.markup == "<mo>−</mo>" else atom.markup)
    return join(out)


def _thin(before: _Atom, atom: _Atom) -> bool:
    if before.role == "function":
        return atom.role != "fence"
    return atom.role == "function" and not before.markup.startswith("<mo") and before.role != "fence"


def _matrix(name: str, rows: list[list[Html]]) -> Html:
    opening, closing = symbols.ENVIRONMENTS[name]
    align = {"cases": "left", "aligned": "right left"}.get(name)
    body = [el("mtr", *(el("mtd", cell) for cell in row)) for row in rows]
    return el("mrow", _fence(opening), el("mtable", *body, columnalign=align), _fence(closing))
