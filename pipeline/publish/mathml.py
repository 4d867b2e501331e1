r"""Presentation MathML for the mathematics in text fields: \( … \) inline, \[ … \] on a line of its own."""

from __future__ import annotations

import re

from pipeline.publish.html import Html, el, join, text
from pipeline.publish.tex import TexError
from pipeline.publish.tex_parser import row


def parse(tex: str, *, block: bool = False) -> Html:
    """The expression as a `math` element with its TeX as annotation.

    Args:
        tex: Without delimiters.
        block: On a line of its own.

    Raises:
        TexError: (a ValueError) Not in the subset; says what and at which character.
    """
    content = row(tex)
    source = el("annotation", tex.strip(), encoding="application/x-tex")
    tall = any(name in content for name in ("<mfrac", "<munderover", "<mtable"))
    return el(
        "math",
        el("semantics", el("mrow", content), source),
        display="block" if block else None,
        displaystyle="true" if tall and not block else None,
    )


_DELIMITED = re.compile(r"\\\((?P<inline>.*?)\\\)|\\\[(?P<block>.*?)\\\]", re.DOTALL)
_STRAY = re.compile(r"\\|\$")


def split(value: str) -> list[tuple[str, str, int]]:
    """The pieces of a text field: (kind, content, position); kind is text, inline or block."""
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
    r"""What is wrong with the mathematics of a text field; empty where all can be set.

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


def inline(value: str) -> Html:
    """A text field with its mathematics, escaped; for places that hold one line.

    Raises:
        TexError: Mathematics that cannot be set.
    """
    parts = [text(content) if kind == "text" else parse(content) for kind, content, _ in split(value)]
    return join(parts)
