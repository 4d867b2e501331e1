"""Reads a YAML file in which every text stays as typed and knows its line; refuses what YAML would change silently."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from pipeline.errors import BankError
from pipeline.files import read_regular

#: Largest file in bytes, and deepest nesting.
MAX_BYTES, MAX_DEPTH = 400_000, 10
#: A plain text as short as this may have a comment behind it.
_SHORT = 20
_LOADER: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_COMMAS = "a text in [ ] or { } may not hold commas or braces; one with ': ' needs quotes"


class Fault(Exception):
    """What is wrong in a file, and where."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line, self.reason = line, reason


class Text(str):
    """A scalar as typed."""

    line = 0


class Mapping(dict[Text, Any]):
    """Keys and values in the order of the file."""

    line = 0


class Sequence(list[Any]):
    """A list of the file."""

    line = 0


def read_text(path: Path) -> str:
    """Return the text of a bank file.

    Raises:
        BankError: It cannot be read, is too large or not UTF-8.
    """
    try:
        raw = read_regular(path, MAX_BYTES)
        if len(raw) > MAX_BYTES:
            raise BankError(f"{path}:1: is larger than {MAX_BYTES:,} bytes", code="invalid_bank")
        return raw.decode("utf-8")
    except OSError as error:
        raise BankError(f"{path}: cannot be read: {error.strerror}", code="unreadable_file") from None
    except UnicodeDecodeError as error:
        raise BankError(f"{path}:1: is not UTF-8 text (byte {error.start})", code="invalid_bank") from None


def parse(text: str) -> Mapping:
    """Return what a bank file holds.

    Raises:
        Fault: It is no YAML, or uses what changes texts or hides: anchors, tags, double quotes round TeX.
    """
    try:
        builder = _Builder(text)
        root = builder.document()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise Fault(mark.line + 1 if mark else 1, f"not YAML: {error.problem}; {_COMMAS}") from None
    except yaml.YAMLError as error:
        raise Fault(1, f"not YAML: {str(error).splitlines()[0]}") from None
    if not isinstance(root, Mapping):
        raise Fault(1, "is not a mapping of keys to values")
    return root


class _Builder:
    """Makes texts, mappings and lists from the events of YAML."""

    def __init__(self, text: str) -> None:
        self.rows = text.splitlines()
        self.events: Iterator[Any] = yaml.parse(text, Loader=_LOADER)

    def document(self) -> Any:
        root: Any = None
        for event in self.events:
            if isinstance(event, yaml.DocumentStartEvent):
                if root is not None:
                    raise Fault(event.start_mark.line + 1, "a second document begins; a file holds one topic")
                root = self._node(next(self.events), 0, flow=False)
        return root

    def _node(self, event: Any, depth: int, *, flow: bool) -> Any:
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent) or event.anchor:
            raise Fault(line, "anchors and aliases (& and *) are not used; a text that begins so needs quotes")
        if event.tag:
            raise Fault(line, f"tags ({event.tag}) are not used; a text that begins with ! needs quotes")
        if depth > MAX_DEPTH:
            raise Fault(line, f"nested more than {MAX_DEPTH} deep")
        if isinstance(event, yaml.ScalarEvent):
            return self._text(event, line)
        flow = flow or bool(event.flow_style)
        made: Mapping | Sequence
        if isinstance(event, yaml.SequenceStartEvent):
            made = Sequence()
            while not isinstance(event := next(self.events), yaml.SequenceEndEvent):
                made.append(self._node(event, depth + 1, flow=flow))
        else:
            made = self._mapping(depth, flow)
        made.line = line
        return made

    def _mapping(self, depth: int, flow: bool) -> Mapping:
        made = Mapping()
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            key = self._node(event, depth + 1, flow=flow)
            if not isinstance(key, Text):
                raise Fault(event.start_mark.line + 1, "a key is a text")
            if key in made:
                raise Fault(key.line, f"'{key}' is given twice")
            value = made[key] = self._node(next(self.events), depth + 1, flow=flow)
            if value == "" and flow:
                raise Fault(key.line, f"a comma in {{ }} ends the entry ('{key}' stands alone): write one entry a line")
            if value == "":
                raise Fault(key.line, f"'{key}' is empty; leave the key out")
        return made

    def _text(self, event: Any, line: int) -> Text:
        made = Text(event.value.strip())
        made.line = line
        start, end = event.start_mark, event.end_mark
        if event.style == '"' and "\\" in "\n".join(self.rows[start.line : end.line + 1]):
            raise Fault(line, 'double quotes change TeX ("\\t" becomes a tab): use single quotes, | or none')
        after = self.rows[end.line][end.column :] if end.line < len(self.rows) else ""
        if event.style in (None, "") and len(made) > _SHORT and re.match(r"\s+#", after):
            raise Fault(line, "text after ' #' is a comment and would be lost: put the text in single quotes")
        return made
