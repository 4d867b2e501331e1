r"""Text fields as markup: paragraphs, lists, mathematics, words with their meaning."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby

from pipeline.html import Html, clean, el, join, text
from pipeline.publish import mathml

#: A formula whose TeX is longer than this may be wider than a phone, so it scrolls and takes the focus.
LONG_FORMULA = 28

_BULLET = re.compile(r"\s*[-•–]\s+(?=\S)")
_NUMBER = re.compile(r"\s*\d{1,2}[.)]\s+(?=\S)")
#: A minus sign before a number by itself, not a hyphen inside a word or a range.
_MINUS = re.compile(r"(?<![\w.,)\]-])-(?=\d)")
#: A number and the unit after it stay on one line, and so do the parts of a unit: 8.0 W m⁻².
_A_UNIT = r"(?:%|°C|(?:[cmµnkMG]?(?:m|g|l|s|N|J|W|V|A|Hz|Pa|C|F|eV|Ω|mol)|h|min|K|T)(?:[²³]|\b)(?!['’]))"
_UNIT = re.compile(
    rf"(?<=\d) (?={_A_UNIT})"
    r"|(?:(?<=\b[A-ZΩmslg])|(?<=\b[kMGmµ][A-Zgms])|(?<=\bmol)) (?=(?:m|s|g|l|kg|mol|K|C|A|N)⁻)"
)
#: What a line must not begin with behind a formula: its unit, the end of a sentence or of a bracket.
_BEHIND_FORMULA = re.compile(rf"(?: {_A_UNIT})?[.,;:!?)]*")
#: A number over its unit, as tables of the sciences have it: 33 / °C.
_OVER_UNIT = re.compile(r"(?<=\d) / (?=[A-Za-z°Ωµμ])")
#: A line break, and how far the next line is indented.
_BREAK = re.compile(r"\s*\n( *)")
#: How lines of code begin: of a reference language, of queries, of Python.
_CODE = re.compile(
    r"\s*(?:SET \S+ (?:TO|=)|SEND .+ TO\b|RECEIVE .+ FROM\b|(?:ELSE )?IF (?:.*[<>=]|.*\bTHEN$)|ELSE$"
    r"|END (?:IF|FOR|WHILE|PROCEDURE|FUNCTION)$|WHILE .*(?:[<>=]|\bDO$)|FOR .+ (?:FROM|TO|EACH|DO)\b"
    r"|REPEAT(?: .+ TIMES)?$|UNTIL .*[<>=]|DECLARE \w|SELECT \S+|WHERE .*[<>=]|ORDER BY \w"
    r"|(?:PROCEDURE|FUNCTION) \w+ ?\(|RETURN \S+$"
    r"|(?:if|elif|else|while|for|def)\b.*:$|(?:[a-z_]\w* = )?(?:print|input|int|float|len)\()"
)
_SENTENCE = re.compile(r"[.?!:]\s*\Z")
#: The line breaks round a formula on a line of its own.
_ROUND_FORMULA = re.compile(r"\s*\n\s*(?=\\\[)|(?<=\\\])\s*\n\s*")
#: A hyphen between words, with blanks around it, is a dash.
_DASH = re.compile(r"(?<=[A-Za-z]{2}) - (?=[A-Za-z]{2})")
#: A power in plain words, as course files have it: x^2, (a^m)^n, a^(m/n). Its base is right before it.
_POWER = re.compile(r"(?<=[A-Za-z0-9)])\^(?:([-−]?\d{1,3}|[a-z](?![a-z]))|\(([^()^]{1,12})\))")

#: A formula in a sentence whose TeX is longer may be broken.
_BREAKABLE = 20
_TOKEN = re.compile(r"\\(?:[A-Za-z]+|.)|.", re.DOTALL)
_OPENING, _CLOSING = frozenset(["{", "(", "[", r"\begin", r"\left"]), frozenset(["}", ")", "]", r"\end", r"\right"])
_EQUALS = frozenset(["=", r"\approx", r"\Rightarrow"])

Plain = Callable[[str], Html]


def words(value: str) -> Html:
    """Return plain words, escaped: real minus signs and dashes, numbers kept with their units, powers raised.

    A line break is one on the page, and the next line stays as far indented: of a program, of equations.
    """
    pieces = _BREAK.split(clean(value))
    lines, indents = pieces[::2], ["", *pieces[1::2]]
    made = [
        join([el("code", "\u00a0" * len(indent), line) if code else ["\u00a0" * len(indent), _line(line)]])
        for indent, line, code in zip(indents, lines, are_code(lines), strict=True)
    ]
    return join(made, el("br"))


def are_code(lines: Sequence[str]) -> list[bool]:
    """Return which lines are code: those that begin as code does, and in their paragraph what is no sentence."""
    out: list[bool] = []
    for blank, group in groupby(lines, key=lambda line: not line.strip()):
        listed = list(group)
        sure = [bool(_CODE.match(line)) and not line.rstrip().endswith((".", "?", "!")) for line in listed]
        some = any(sure) and not blank
        out += [code or (some and not _SENTENCE.search(line)) for code, line in zip(sure, listed, strict=True)]
    return out


def _line(value: str) -> Html:
    typeset = _UNIT.sub("\u202f", _OVER_UNIT.sub("\u202f/\u202f", _MINUS.sub("−", value)))
    typeset = _DASH.sub(" – ", typeset)
    out, at = [], 0
    for power in _POWER.finditer(typeset):
        out += [text(typeset[at : power.start()]), el("sup", next(filter(None, power.groups())))]
        at = power.end()
    return join([*out, text(typeset[at:])])


def inline(value: object, plain: Plain = words) -> Html:
    """Return a text field that holds one line; mathematics that cannot be set is shown as it was typed."""
    return _sentence([(kind, content) for kind, content, _ in mathml.split(clean(value))], plain)


def _sentence(pieces: Sequence[tuple[str, str]], plain: Plain) -> Html:
    """Return words and formulas in their order; a formula keeps its unit and what ends it on its line."""
    out: list[Html] = []
    for place, (kind, content) in enumerate(pieces):
        if kind != "text":
            out += _formula(content)
            continue
        behind = _BEHIND_FORMULA.match(content) if place else None
        if behind and behind[0]:
            out[-1] = el("span", out[-1], behind[0].replace(" ", "\u202f"), cls="keep")
            content = content[behind.end() :]
        out.append(plain(content))
    return join(out)


def _formula(tex: str) -> list[Html]:
    try:
        # A narrow page breaks a long formula before its equals signs.
        parts = [mathml.parse(part) for part in _divided(tex)]
    except ValueError:
        return [el("code", tex)]
    return [*(join([part, el("wbr")]) for part in parts[:-1]), parts[-1]]


def _divided(tex: str) -> list[str]:
    """Return the pieces of a long formula that begin with an equals sign outside all brackets."""
    out, depth = [""], 0
    for token in _TOKEN.findall(tex) if len(tex) > _BREAKABLE else [tex]:
        depth += (token in _OPENING) - (token in _CLOSING)
        if not depth and token in _EQUALS and out[-1].strip():
            out.append("")
        out[-1] += token
    return out


def blocks(value: object, plain: Plain = words) -> Html:
    r"""Return a text field with its paragraphs, lists ("- " or "1. " at line starts) and \[ … \] formulas."""
    out: list[tuple[str, Html]] = []
    for paragraph in re.split(r"\n\s*\n|\n(?=\s*(?:[-•–]|\d{1,2}[.)])\s)", clean(value).strip()):
        lines = [line.rstrip() for line in paragraph.split("\n") if line.strip()]
        for pattern, tag in ((_BULLET, "ul"), (_NUMBER, "ol")):
            if lines and pattern.match(lines[0]):
                out.append((tag, inline(pattern.sub("", "\n".join(map(str.strip, lines)), count=1), plain)))
                break
        else:
            out.extend(("", block) for block in _paragraphs("\n".join(lines), plain))
    return _gather(out)


def _gather(parts: Iterable[tuple[str, Html]]) -> Html:
    """Return blocks in order; neighbouring items of one kind of list become that list."""
    groups = groupby(parts, key=lambda part: part[0])
    return join(
        [
            el(tag, [el("li", content) for _, content in group]) if tag else [content for _, content in group]
            for tag, group in groups
        ]
    )


def _paragraphs(value: str, plain: Plain) -> Iterable[Html]:
    pieces = mathml.split(_ROUND_FORMULA.sub("", value))
    for alone, group in groupby(pieces, key=lambda piece: piece[0] == "block"):
        if alone:
            yield from (formula(content) for _, content, _ in group)
            continue
        # A formula stays on one line of its source.
        line = [(kind, content if kind == "text" else content.replace("\n", " ")) for kind, content, _ in group]
        if (made := _sentence(line, plain)).strip():
            yield el("p", made)


def formula(tex: str) -> Html:
    """Return a formula on a line of its own; a long one scrolls in a labelled region that takes the focus."""
    try:
        made = mathml.parse(tex, block=True)
    except ValueError:
        return el("p", el("code", tex))
    return el("div", made, cls="maths", **focus(tex, "Formula"))


def focus(content: str, label: str) -> dict[str, object]:
    """Return attributes of something that scrolls sideways, where its content may be wide."""
    if len(content) <= LONG_FORMULA:
        return {}
    return {"role": "group", "tabindex": "0", "aria_label": label}


class Terms:
    """Links the first use of each keyword in a lesson's explanations to the list of words."""

    def __init__(self, terms: Iterable[tuple[str, str]]) -> None:
        """Keep terms as (term, id of its entry)."""
        self._left = [(term, anchor) for term, anchor in terms if term.strip()]

    def __call__(self, value: str) -> Html:
        """Return plain words, escaped, with the links."""
        for index, (term, anchor) in enumerate(self._left):
            found = re.search(rf"(?<!\w){re.escape(term)}(?:e?s)?(?!\w)", value, re.IGNORECASE)
            if found:
                del self._left[index]
                link = el("a", el("dfn", words(found[0])), href=f"#{anchor}", cls="term")
                return join([self(value[: found.start()]), link, self(value[found.end() :])])
        return words(value)
