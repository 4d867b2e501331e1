"""DOT text as tokens: words, numbers, strings and marks; comments are left out, but never within a string."""

from __future__ import annotations

import re
from bisect import bisect_right

from pipeline.errors import GraphError

WORD, NUMBER, STRING, BAD, END = "word", "number", "string", "bad", "end"

#: What stands before a token (a `#` begins a comment where nothing is glued to its left), and the token.
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
_CURLY = "“”„‟«»"


class Tokens:
    """The tokens of one text, in parallel lists for speed, and where each stands."""

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
        self._read()

    def _read(self) -> None:
        kinds, texts, offsets = self.kinds.append, self.texts.append, self.offsets.append
        for match in _TOKEN.finditer(self.text):
            kind = match.lastgroup or END
            body = match[kind]
            kinds(body if kind == "mark" else kind)
            texts(body)
            offsets(match.start(kind))
        if self.kinds[-1:] != [END]:
            kinds(END)
            texts("")
            offsets(len(self.text))

    def offset(self, at: int) -> int:
        """Where the token of that index begins; from 0."""
        return self.offsets[at] - (self.kinds[at] == STRING)

    def line(self, at: int) -> int:
        """The line of the token of that index; from 1."""
        return bisect_right(self._breaks, self.offset(at) - 1) + 1

    def same_line(self, at: int) -> bool:
        """The token stands on the line on which the one before it ends."""
        before = self.offsets[at - 1] + len(self.texts[at - 1])
        return "\n" not in self.text[before : self.offset(at)]

    def shown(self, at: int) -> str:
        """The token as an error shows it."""
        kind, text = self.kinds[at], self.texts[at]
        if kind == END:
            return "the end of the text"
        flat = " ".join(text.split())
        flat = flat if len(flat) <= 40 else flat[:39] + "…"
        return f'"{flat}"' if kind == STRING else f"'{flat}'"

    def error(self, at: int, what: str, hint: str = "") -> GraphError:
        """An error that names where the token stands; a character that is no token says so itself."""
        if self.kinds[at] == BAD:
            what, hint = self._about_bad(at)
        line = self.line(at)
        column = self.offset(at) - (self._breaks[line - 2] if line > 1 else -1)
        return GraphError(f"{self.name}:{line}:{column}: {what}", hint=hint, file=self.name, line=line, column=column)

    def _about_bad(self, at: int) -> tuple[str, str]:
        mark = self.texts[at]
        if mark == '"':
            return (
                "the string that begins here does not end.",
                'Close it with ", or the one before it; a quote within it is written \\".',
            )
        if mark == "/" and self.text.startswith("/*", self.offset(at)):
            return "the comment that begins here does not end.", "Close it with */."
        if mark == "<":
            return "HTML labels ('<…>') are not understood.", 'Write the text in quotes: label="…".'
        if mark in _CURLY:
            return f"{mark!r} is no quote here.", 'Use the straight one: ".'
        if mark in "→⟶":
            return f"{mark!r} is no edge.", "Write '->'."
        if mark == "'":
            return "a single quote begins no string.", 'Use double quotes: "…".'
        return f"{mark!r} does not belong here.", 'Within a value, put the whole value in quotes: key="…".'


def unescaped(body: str) -> str:
    """A string's body with its escapes read in one pass: newline, tab, quote, backslash, and a line that goes on.

    Any other backslash stays as it is: commands and patterns are full of them.
    """
    if "\\" not in body:
        return body
    return _ESCAPE.sub(lambda found: _ESCAPED.get(found[1], found[0]), body)
