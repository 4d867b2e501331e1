"""Reading along the tokens of a DOT text: names, values and attribute lists, and what an error says where it stands."""

from __future__ import annotations

import re

from pipeline.dot.lexer import BAD, NUMBER, STRING, WORD, Tokens, unescaped
from pipeline.dot.values import Value, bare_value
from pipeline.errors import GraphError

#: Characters of an id; it also names a folder.
MAX_ID = 200

#: Tokens that may be a name.
NAMES = frozenset({WORD, STRING, NUMBER})
#: What paths and edge ids are made of, and what no folder's name may hold.
_UNSAFE = re.compile(r"[#/\\\x00-\x1f\x7f]|->")


class Cursor:
    """A place in the tokens."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens
        self._kinds = tokens.kinds
        self._texts = tokens.texts
        #: Index of the token to be read next.
        self._at = 0

    def _attributes(self) -> dict[str, Value]:
        """The lists [key=value, …] that stand here; commas, semicolons or space between."""
        found: dict[str, Value] = {}
        kinds = self._kinds
        while kinds[self._at] == "[":
            opened = self._at
            self._at += 1
            while kinds[self._at] != "]":
                kind = kinds[self._at]
                if kind == "," or kind == ";":
                    self._at += 1
                    continue
                if kind not in NAMES:
                    raise self._in_list(opened)
                if kinds[self._at + 1] != "=":
                    raise self._no_equals(opened)
                key = self._texts[self._at]
                if kind == STRING:
                    key = unescaped(key)
                self._at += 2
                found[key] = self._value(key)
            self._at += 1
        return found

    def _value(self, key: str) -> Value:
        at = self._at
        kind = self._kinds[at]
        if kind == STRING:
            self._at += 1
            text = unescaped(self._texts[at])
            while self._kinds[self._at] == "+":
                if self._kinds[self._at + 1] != STRING:
                    self._at += 1
                    raise self._error(f"after '+' stands {self._shown()}.", "Only strings are joined.")
                text += unescaped(self._texts[self._at + 1])
                self._at += 2
            return text
        if kind not in NAMES:
            raise self._error(f"{key!r} has no value: here stands {self._shown()}.", f'Write {key}="…".')
        self._at += 1
        return bare_value(self._texts[at])

    def _name(self) -> str:
        """The name that stands here, as text."""
        at = self._at
        self._at += 1
        return unescaped(self._texts[at]) if self._kinds[at] == STRING else self._texts[at]

    def _word(self) -> str:
        """The word that stands here, in lower case; "": something else does."""
        return self._texts[self._at].lower() if self._kinds[self._at] == WORD else ""

    def _check_id(self, name: str, at: int) -> None:
        if not name.strip():
            raise self._tokens.error(at, "a node's id is empty.", "Give it a name.")
        if name in (".", ".."):
            raise self._tokens.error(at, f"{name!r} is no node's id.", "Give it a name.")
        if found := _UNSAFE.search(name):
            raise self._tokens.error(
                at, f"{self._tokens.shown(at)}: a node's id holds no {found[0]!r}.", "Use it in the label instead."
            )
        if len(name) > MAX_ID:
            raise self._tokens.error(at, f"a node's id has more than {MAX_ID} characters.", "Use a label instead.")

    def _shown(self) -> str:
        return self._tokens.shown(self._at)

    def _error(self, what: str, hint: str = "") -> GraphError:
        return self._tokens.error(self._at, what, hint)

    def _in_list(self, opened: int) -> GraphError:
        line = self._tokens.line(opened)
        return self._error(
            f"{self._shown()} stands in the attributes that begin on line {line}.", "Close them with ']'."
        )

    def _no_equals(self, opened: int) -> GraphError:
        if self._kinds[self._at + 1] == BAD:
            return self._tokens.error(self._at + 1, "")
        what = f"{self._shown()} in the attributes that begin on line {self._tokens.line(opened)} has no '='."
        if self._kinds[self._at + 1] in ("[", "->"):
            return self._error(what, "Close the attributes before it with ']'.")
        return self._error(what, 'Write key=value; a value of several words stands in quotes: key="two words".')
