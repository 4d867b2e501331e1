"""Reads the lines of finished tasks, of which a journal may hold 100,000, without parsing them.

What the pattern does not cover (an escape, another order, a field of a newer version) is left to the codec, which
comes to the same wherever both can read a line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from pipeline.records.kinds import TaskCompleted
from pipeline.records.lines import TAIL
from pipeline.records.shapes import is_path
from pipeline.records.values import decode_value

_TEXT = r'"[ !#-\[\]-~]*"'
_NUMBER = r"([1-9][0-9]{0,17})"
_WORD = r'"([ !#-\[\]-~]*)"'
_TABLE = rf"(\{{{_TEXT}:{_TEXT}(?:,{_TEXT}:{_TEXT})*\}})"
_MARK = b',"value":'
#: A line up to its value, as the codec writes it.
_match = re.compile(
    rf'\{{"seq":{_NUMBER},"at":{_WORD},"owner":{_NUMBER},"kind":"task_completed","path":{_WORD},"task":{_WORD}'
    rf'(?:,"item":{_WORD})?(?:,"hash":{_WORD})?(?:,"attempt":{_NUMBER})?(?:,"version":{_NUMBER})?(?:,"reads":{_TABLE})?'
).fullmatch
_NOTHING: Mapping[str, str] = {}


@lru_cache
def _table(text: str) -> Mapping[str, str]:
    """Equal tables are one object: thousands of tasks read the same."""
    table: Mapping[str, str] = decode_value(text.encode())
    return table


def finished_task(line: bytes) -> tuple[int, str, int, TaskCompleted] | None:
    """Seq, time, owner and fact of a whole line; None: it is no task's, or not plain."""
    head, mark, rest = line.partition(_MARK)
    found = _match(head.decode("ascii", "replace")) if mark else None
    if found is None:
        return None
    seq, at, owner, path, task, item, value_hash, attempt, version, reads = found.groups()
    if not is_path(path) or len(rest) <= TAIL:
        return None
    fact = TaskCompleted(
        path, task, rest[:-TAIL], item or "", value_hash or "", int(attempt or 1), int(version or 1),
        _table(reads) if reads else _NOTHING,
    )  # fmt: skip
    return int(seq), at, int(owner), fact
