"""The TeX that text fields may hold: its symbols, and a lexer that says where something is wrong."""

from __future__ import annotations

import re
from dataclasses import dataclass

#: An expression longer than this (characters) is a mistake, not mathematics.
MAX_LENGTH = 2_000
#: Braces, fractions and brackets inside each other.
MAX_DEPTH = 24

#: Commands that are one letter or sign, drawn as an identifier.
LETTERS = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "varepsilon": "ε", "theta": "θ",
    "lambda": "λ", "mu": "μ", "nu": "ν", "pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ", "phi": "φ", "varphi": "φ",
    "omega": "ω", "eta": "η", "kappa": "κ", "psi": "ψ", "chi": "χ", "zeta": "ζ", "ell": "ℓ", "hbar": "ℏ",
}  # fmt: skip
#: The same, upright.
UPRIGHT = {
    "Gamma": "Γ", "Delta": "Δ", "Theta": "Θ", "Lambda": "Λ", "Pi": "Π", "Sigma": "Σ", "Phi": "Φ", "Psi": "Ψ",
    "Omega": "Ω", "infty": "∞", "degree": "°", "circ": "∘", "pounds": "£", "emptyset": "∅", "ldots": "…",
    "dots": "…", "cdots": "⋯",
}  # fmt: skip
OPERATORS = {
    "times": "×", "div": "÷", "cdot": "⋅", "pm": "±", "mp": "∓", "le": "≤", "leq": "≤", "ge": "≥", "geq": "≥",
    "lt": "<", "gt": ">", "ne": "≠", "neq": "≠", "approx": "≈", "equiv": "≡", "sim": "∼", "cong": "≅", "propto": "∝",
    "to": "→", "rightarrow": "→", "leftarrow": "←", "Rightarrow": "⇒", "implies": "⇒", "Leftrightarrow": "⇔",
    "iff": "⇔", "rightleftharpoons": "⇌", "therefore": "∴", "because": "∵", "in": "∈", "notin": "∉", "subset": "⊂",
    "cup": "∪", "cap": "∩", "angle": "∠", "triangle": "△", "parallel": "∥", "perp": "⊥", "colon": ":", "nabla": "∇",
    "partial": "∂", "mid": "∣", "ll": "≪", "gg": "≫",
}  # fmt: skip
FUNCTIONS = frozenset(
    {"sin", "cos", "tan", "log", "ln", "exp", "min", "max", "lim", "gcd", "det", "arcsin", "arccos", "arctan"}
)
#: Operators whose limits stand above and below them.
LARGE = {"sum": "∑", "int": "∫", "prod": "∏"}
ACCENTS = {
    "vec": "→", "overrightarrow": "→", "overleftarrow": "←", "bar": "‾", "overline": "‾", "hat": "^", "widehat": "^",
    "dot": "˙", "ddot": "¨", "tilde": "~",
}  # fmt: skip
#: Accents that grow with what is below them.
WIDE = frozenset({"overrightarrow", "overleftarrow", "overline", "widehat"})
FONTS = {"mathrm": "normal", "mathbf": "bold", "mathit": "italic", "boldsymbol": "bold", "operatorname": "normal"}
TEXTS = frozenset({"text", "textrm", "mbox", "textbf"})
SPACES = {
    ",": "0.167em",
    ":": "0.222em",
    ";": "0.278em",
    "!": "-0.167em",
    " ": "0.333em",
    "quad": "1em",
    "qquad": "2em",
}
DELIMITERS = {"langle": "⟨", "rangle": "⟩", "lvert": "|", "rvert": "|", "vert": "|", "lVert": "‖", "rVert": "‖"}
ENVIRONMENTS = {
    "pmatrix": ("(", ")"), "bmatrix": ("[", "]"), "vmatrix": ("|", "|"), "matrix": ("", ""), "cases": ("{", ""),
    "aligned": ("", ""), "array": ("", ""),
}  # fmt: skip
#: Signs that may stand as themselves, beside letters and digits.
SIGNS = frozenset("+-*/=<>()[]|!:;,.'×÷−±≤≥≠≈°π%£€?·′→")

_TOKEN = re.compile(
    r"(?P<space>[ \u00a0\u202f]+)|(?P<number>\d{1,3}(?:(?:,|\{,\})\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d*)?)"
    r"|\\(?P<command>[A-Za-z]+|.)|(?P<letter>[A-Za-zͰ-Ͽ])|(?P<sign>.)",
    re.DOTALL,
)


class TexError(ValueError):
    """An expression that cannot be set; `position` counts characters from 0."""

    def __init__(self, problem: str, position: int) -> None:
        super().__init__(f"{problem} (at character {position + 1})")
        self.problem = problem
        self.position = position


@dataclass(frozen=True, slots=True)
class TexToken:
    """One lexical piece: kind is number, command, letter, sign, text or end."""

    kind: str
    value: str
    position: int
    #: For text: the command that opened it.
    extra: str = ""


def tokens(source: str) -> list[TexToken]:
    """Return the pieces of an expression, without spaces; the last one is kind "end".

    Raises:
        TexError: Too long, or a character or command outside the subset.
    """
    if len(source) > MAX_LENGTH:
        raise TexError(f"the expression is longer than {MAX_LENGTH} characters", MAX_LENGTH)
    found: list[TexToken] = []
    position = 0
    while position < len(source):
        match = _TOKEN.match(source, position)
        if match is None or match["sign"] == "\\":
            raise TexError("a lone backslash", position)
        kind = match.lastgroup or ""
        value = match.group(kind)
        if kind == "command" and value in TEXTS:
            content, position = _text_argument(source, match.end(), position)
            found.append(TexToken("text", content, match.start(), value))
            continue
        if value in "\n\t\r\f\v\b":
            raise TexError("a line break or control character inside an expression; was a backslash lost?", position)
        if kind == "sign" and value not in SIGNS and value not in "{}^_&":
            raise TexError(f"the character {value!r} is not mathematics", position)
        if kind != "space":
            found.append(TexToken(kind, value.replace("{,}", ",") if kind == "number" else value, position))
        position = match.end()
    found.append(TexToken("end", "", len(source)))
    return found


_TEXT_ESCAPE = re.compile(r"\\([%&_#${} ,])")


def _text_argument(source: str, start: int, command: int) -> tuple[str, int]:
    r"""Return the words of \text{…} from `start`, and where they end."""
    opening = len(source) - len(source[start:].lstrip())
    if source[opening : opening + 1] != "{":
        raise TexError(r"\text needs its words in braces", command)
    position = opening + 1
    while position < len(source) and source[position] != "}":
        if source[position] in "{$":
            raise TexError(rf"{source[position]!r} inside \text", position)
        if source[position] == "\\":
            if not _TEXT_ESCAPE.match(source, position):
                raise TexError(r"a command inside \text", position)
            position += 1
        position += 1
    if position >= len(source):
        raise TexError("a brace is never closed", opening)
    words = _TEXT_ESCAPE.sub(lambda match: " " if match[1] in " ," else match[1], source[opening + 1 : position])
    return words, position + 1


#: What this subset allows and other programs do not set: a comment sign, signs without a font, a second name.
_PORTABLE = {
    "%": r"\%", "′": "'", "€": r"\text{€}", "µ": r"\mu ", r"\degree": "°", r"\mbox": r"\text",
}  # fmt: skip
_FOREIGN = re.compile(r"\\(?:text|textrm|mbox|textbf)\s*\{(?:\\.|[^}\\])*\}|\\[A-Za-z]+|\\.|[%′€µ]|\s+", re.DOTALL)


def portable(source: str) -> str:
    """Return an expression of the subset as KaTeX and MathJax set it, on one line."""
    return _FOREIGN.sub(_foreign, source.strip())


def _foreign(found: re.Match[str]) -> str:
    piece = found[0]
    if "{" in piece:
        # The words of \text: a bare sign of percent would begin a comment.
        return re.sub(r"(?<!\\)%", r"\%", piece.replace(r"\mbox", r"\text"))
    return " " if piece.isspace() else _PORTABLE.get(piece, piece)


#: Pieces that open, divide and close what plain brackets match within: braces, cells, sized brackets, tables.
_OPENS = frozenset({("sign", "{"), ("command", "left"), ("command", "begin")})
_DIVIDES = frozenset({("sign", "&"), ("command", "&"), ("command", "\\")})
_CLOSES = frozenset({("sign", "}"), ("command", "right"), ("command", "end")})
_SIZES = frozenset({("command", "left"), ("command", "right")})


def partners(pieces: list[TexToken]) -> dict[int, int]:
    r"""Return which plain closing bracket belongs to which opening one, by index.

    Brackets match only inside one pair of braces, one cell and one \left…\right.
    Unmatched ones (as in a half-open interval typed alone) are left out.
    """
    kinds = [(piece.kind, piece.value) for piece in pieces]
    pairs: dict[int, int] = {}
    stack: list[int] = []
    for index, kind in enumerate(kinds):
        # One after \left or \right is sized and matched by these.
        plain = kind[0] == "sign" and (not index or kinds[index - 1] not in _SIZES)
        if kind in _OPENS or (plain and kind[1] in "(["):
            stack.append(index)
        elif plain and kind[1] in ")]":
            if stack and kinds[stack[-1]] not in _OPENS:
                pairs[stack.pop()] = index
        elif kind in _CLOSES or kind in _DIVIDES:
            while stack and kinds[stack[-1]] not in _OPENS:
                stack.pop()
            if stack and kind in _CLOSES:
                stack.pop()
    return pairs
