"""Reads a YAML file in which every text stays as typed and knows its line; refuses what YAML would change silently."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml

#: Deepest nesting, and how long a plain text may be that has a comment behind it.
MAX_DEPTH, _SHORT = 10, 20
_LOADER: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_COMMAS = "a text in [ ] or { } may not hold commas or braces; one with ': ' needs quotes"


class YamlFault(Exception):
    """Report what is wrong in a file, and where."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line, self.reason = line, reason


class YamlText(str):
    """A scalar as typed."""

    line = 0


class YamlMap(dict[Any, Any]):
    """Keys and values in the order of the file."""

    line = 0


class YamlList(list[Any]):
    """A list of the file."""

    line = 0


def parse(text: str) -> YamlMap:
    """Return what a file holds.

    Raises:
        YamlFault: It is no YAML, or uses what changes texts or hides: anchors, tags, double quotes round TeX.
    """
    events: Iterator[Any] = yaml.parse(text, Loader=_LOADER)
    rows = text.splitlines()
    try:
        starts = (event for event in events if isinstance(event, yaml.DocumentStartEvent))
        roots = [_node(next(events), events, rows, 0) for _ in starts]
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise YamlFault(mark.line + 1 if mark else 1, f"not YAML: {problem}; {_COMMAS}") from None
    if len(roots) != 1 or not isinstance(roots[0], YamlMap):
        raise YamlFault(1, "is not one mapping of keys to values")
    return roots[0]


def _node(event: Any, events: Iterator[Any], rows: list[str], depth: int) -> Any:
    line = event.start_mark.line + 1
    if isinstance(event, yaml.AliasEvent) or event.anchor:
        raise YamlFault(line, "anchors and aliases (& and *) are not used; a text that begins so needs quotes")
    if event.tag:
        raise YamlFault(line, f"tags ({event.tag}) are not used; a text that begins with ! needs quotes")
    if depth > MAX_DEPTH:
        raise YamlFault(line, f"nested more than {MAX_DEPTH} deep")
    if isinstance(event, yaml.ScalarEvent):
        return _text(event, rows)
    # What stands inside [ ] or { } is written with [ ] or { } too.
    flow = bool(event.flow_style)
    made: YamlMap | YamlList = YamlMap() if isinstance(event, yaml.MappingStartEvent) else YamlList()
    made.line = line
    while not isinstance(event := next(events), yaml.CollectionEndEvent):
        node = _node(event, events, rows, depth + 1)
        if isinstance(made, YamlList):
            made.append(node)
        elif not isinstance(node, YamlText) or node in made:
            raise YamlFault(event.start_mark.line + 1, f"'{node}' is given twice, or is no key")
        else:
            made[node] = _node(next(events), events, rows, depth + 1)
            if made[node] == "" and flow:
                raise YamlFault(line, f"a comma in {{ }} ends the entry ('{node}' is alone): write one entry a line")
            if made[node] == "":
                raise YamlFault(node.line, f"'{node}' is empty; leave the key out")
    return made


def _text(event: Any, rows: list[str]) -> YamlText:
    start, end, made = event.start_mark, event.end_mark, YamlText(event.value.strip())
    made.line = start.line + 1
    if event.style == '"' and "\\" in "\n".join(rows[start.line : end.line + 1]):
        raise YamlFault(made.line, 'double quotes change TeX ("\\t" becomes a tab): use single quotes, | or none')
    after = rows[end.line][end.column :] if end.line < len(rows) else ""
    if not event.style and len(made) > _SHORT and re.match(r"\s+#", after):
        raise YamlFault(made.line, "text after ' #' is a comment and would be lost: put the text in single quotes")
    return made
