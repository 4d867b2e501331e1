"""DOT text as tokens: words, numbers, strings and marks; comments are left out, but never within a string."""

from __future__ import annotations

import re
from bisect import bisect_right

from pipeline.errors import GraphError

WORD, NUMBER, STRING, BAD, END = "word", "number", "string", "bad", "end"

#: What precedes a token (a `#` begins a comment where nothing is glued to its left), and the token.
#: What follows a bad character cannot be told apart; the parser complains when it gets there.
_TOKEN = re.compile(
    r"""
    (?: [\s\ufeff]++ | //[^\n]*+ | /\*.*?\*/ | (?<![^\s;,\[\]{}])\#[^\n]*+ )*+
    (?: "(?P<string>[^"\\]*+(?:\\.[^"\\]*+)*+)"
      | (?P<word>[^\W\d]\w*+(?:[.:-]\w++)*+)
      | (?P<mark>->|--|[{}\[\]=;,:+])
      | (?P<number>-?\.?[0-9]\w*+(?:[.:-]\w++)*+\.?)
      | (?P<end>\Z)
      | (?P<bad>.).*+ )
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(\r?\n|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", '"': '"', "\\": "\\", "\n": "", "\r\n": ""}
#: Bad character → what is wrong with it, and the remedy.
_BAD = {
    '"': ("this string is not closed.", 'Close it with ", or the one before it; a quote within it is written \\".'),
    "<": ("HTML labels ('<…>') are not supported.", 'Write the text in quotes: label="…".'),
    "'": ("a single quote does not begin a string.", 'Use double quotes: "…".'),
    **{mark: (f"{mark!r} is not a quote here.", 'Use the straight one: ".') for mark in "“”„‟«»"},
    **{mark: (f"{mark!r} is not an edge.", "Write '->'.") for mark in "→⟶"},
}


class Tokens:
    """The tokens of one text, in parallel lists for speed, and the position of each."""

    def __init__(self, text: str, name: str) -> None:
        self.text = text
        self.name = name
        #: word, number, string, bad, end; of a mark the mark itself.
        self.kinds: list[str] = []
        #: A string's body is still escaped.
        self.texts: list[str] = []
        #: Where each begins; of a string its body.
        self.offsets: list[int] = []
        self._breaks = [at.start() for at in re.finditer("\n", text)]
        kinds, texts, offsets = self.kinds.append, self.texts.append, self.offsets.append
        for match in _TOKEN.finditer(text):
            kind = match.lastgroup or END
            body = match[kind]
            kinds(body if kind == "mark" else kind)
            texts(body)
            offsets(match.start(kind))

    def offset(self, at: int) -> int:
        """Return where the token of that index begins; from 0."""
        return self.offsets[at] - (self.kinds[at] == STRING)

    def line(self, at: int) -> int:
        """Return the line of the token of that index; from 1."""
        return bisect_right(self._breaks, self.offset(at) - 1) + 1

    def same_line(self, at: int) -> bool:
        """Return whether the token begins on the line on which the one before it ends."""
        before = self.offsets[at - 1] + len(self.texts[at - 1])
        return "\n" not in self.text[before : self.offset(at)]

    def shown(self, at: int) -> str:
        kind, text = self.kinds[at], self.texts[at]
        if kind == END:
            return "the end of the text"
        flat = " ".join(text.split())
        flat = flat if len(flat) <= 40 else flat[:39] + "…"
        return f'"{flat}"' if kind == STRING else f"'{flat}'"

    def error(self, at: int, what: str, hint: str = "") -> GraphError:
        """Return an error that names the token's position; a character that is no token says so itself."""
        if self.kinds[at] == BAD:
            mark = self.texts[at]
            fix = 'Within a value, put the whole value in quotes: key="…".'
            what, hint = _BAD.get(mark, (f"{mark!r} does not belong here.", fix))
            if self.text.startswith("/*", self.offset(at)):
                what, hint = "this comment is not closed.", "Close it with */."
        line = self.line(at)
        column = self.offset(at) - (self._breaks[line - 2] if line > 1 else -1)
        return GraphError(
            f"{self.name}:{line}:{column}: {what}",
            code="dot_syntax", hint=hint, file=self.name, line=line, column=column,
        )  # fmt: skip


def unescaped(body: str) -> str:
    """Return a string's body with its escapes read in one pass: newline, tab, quote, backslash, a continued line.

    Any other backslash stays as it is: commands and patterns are full of them.
    """
    if "\\" not in body:
        return body
    return _ESCAPE.sub(lambda found: _ESCAPED.get(found[1], found[0]), body)
