"""Reads and writes by hand the kinds of which a journal has thousands, where the codec would look at every field.

What is read here, the codec reads as the same; what is written here, it writes byte for byte. Lines that are not
plain (an escape, another order, a field of a newer version) are left to it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from pipeline.records.kinds import Fact, StepCompleted, StepStarted, TaskCompleted
from pipeline.records.lines import TAIL
from pipeline.records.shapes import is_path
from pipeline.records.values import decode_value, encode_plain, quote

_TEXT = r'"[ !#-\[\]-~]*"'
_NUMBER = r"([1-9][0-9]{0,17})"
_WORD = r'"([ !#-\[\]-~]*)"'
_TABLE = rf"(\{{{_TEXT}:{_TEXT}(?:,{_TEXT}:{_TEXT})*\}})"
_MARK = b',"value":'
#: The line of a finished task up to its value, as it is written.
_match = re.compile(
    rf'\{{"seq":{_NUMBER},"at":{_WORD},"owner":{_NUMBER},"kind":"task_completed","path":{_WORD},"task":{_WORD}'
    rf'(?:,"item":{_WORD})?(?:,"hash":{_WORD})?(?:,"attempt":{_NUMBER})?(?:,"version":{_NUMBER})?(?:,"reads":{_TABLE})?'
    rf'(?:,"code":{_WORD})?'
).fullmatch
_NOTHING: Mapping[str, str] = {}


@lru_cache
def _table(text: str) -> Mapping[str, str]:
    """Equal tables are one object: thousands of tasks read the same."""
    table: Mapping[str, str] = decode_value(text.encode())
    return table


def finished_task(line: bytes) -> tuple[int, str, int, TaskCompleted] | None:
    """Seq, time, owner and fact of a whole line; None: it is no finished task's, or not plain."""
    head, mark, rest = line.partition(_MARK)
    found = _match(head.decode("ascii", "replace")) if mark else None
    if found is None:
        return None
    seq, at, owner, path, task, item, value_hash, attempt, version, reads, code = found.groups()
    if not is_path(path) or len(rest) <= TAIL:
        return None
    fact = TaskCompleted(
        path, task, rest[:-TAIL], item or "", value_hash or "", int(attempt) if attempt else 1,
        int(version) if version else 1, _table(reads) if reads else _NOTHING, code or "",
    )  # fmt: skip
    return int(seq), at, int(owner), fact


def _step_started(fact: StepStarted, _: bytes | None) -> bytes:
    text = f'{{"kind":"step_started","path":{quote(fact.path)}'
    if fact.consumed != ():
        text += f',"consumed":[{",".join([f"[{quote(edge)},{quote(source)}]" for edge, source in fact.consumed])}]'
    if fact.attempt != 1:
        text += f',"attempt":{fact.attempt}'
    if fact.version != 1:
        text += f',"version":{fact.version}'
    return text.encode() + b"}"


def _step_completed(fact: StepCompleted, outputs: bytes | None) -> bytes:
    text = f'{{"kind":"step_completed","path":{quote(fact.path)}'
    if outputs is None:
        text += f',"outputs":{encode_plain(fact.outputs)}'
    text += f',"checkpoint":{quote(fact.checkpoint)}'
    if fact.edges != ():
        text += f',"edges":[{",".join(map(quote, fact.edges))}]'
    if fact.outcome != "success":
        text += f',"outcome":{quote(fact.outcome)}'
    if fact.context or fact.artifacts or fact.reads:
        tables = {"context": fact.context, "artifacts": fact.artifacts, "reads": fact.reads}
        text += "".join(f',"{name}":{encode_plain(table)}' for name, table in tables.items() if table)
    if fact.attempt != 1:
        text += f',"attempt":{fact.attempt}'
    if fact.seconds:
        text += f',"seconds":{encode_plain(fact.seconds)}'
    if fact.reason:
        text += f',"reason":{quote(fact.reason)}'
    if fact.writes != ():
        text += f',"writes":{encode_plain(fact.writes)}'
    if fact.code:
        text += f',"code":{quote(fact.code)}'
    return text.encode() + (b"}" if outputs is None else b',"outputs":%b}' % outputs)


def _task_completed(fact: TaskCompleted, _: bytes | None) -> bytes:
    text = f'{{"kind":"task_completed","path":{quote(fact.path)},"task":{quote(fact.task)}'
    if fact.item:
        text += f',"item":{quote(fact.item)}'
    if fact.hash:
        text += f',"hash":{quote(fact.hash)}'
    if fact.attempt != 1:
        text += f',"attempt":{fact.attempt}'
    if fact.version != 1:
        text += f',"version":{fact.version}'
    if fact.reads:
        text += f',"reads":{encode_plain(fact.reads)}'
    if fact.code:
        text += f',"code":{quote(fact.code)}'
    return b"%b%b%b}" % (text.encode(), _MARK, fact.value)


#: How facts of these kinds are written; given the JSON text of their outputs, if that is known.
WRITERS: Mapping[type[Fact], Callable[[Any, bytes | None], bytes]] = {
    StepStarted: _step_started,
    StepCompleted: _step_completed,
    TaskCompleted: _task_completed,
}
