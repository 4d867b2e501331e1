"""Rows 26, 31 and 35: no question twice, nothing that belongs to no lesson, mathematics that can be printed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pipeline.lessons.banned_text import stray_talk
from pipeline.lessons.findings import Case, Fault
from pipeline.lessons.lesson import Item
from pipeline.publish import mathml

#: Two stems that share more than this part of their runs of five words are near copies.
_ALIKE = 0.6
_RUN = 5
_WORD = re.compile(r"\w+")


def repeats(case: Case) -> Iterator[Fault]:
    """Check row 26 within a lesson: the same question is a fault, a near copy a warning."""
    yield from _repeated([(where, _words(_json(item))) for where, item in case.lesson.items()])


def repeats_between(lessons: Mapping[int, Mapping[str, Any]]) -> Iterator[tuple[int, Fault]]:
    """Check row 26 over a course: a question that an earlier lesson asked in the same words.

    Yields:
        The order of the later lesson, and the fault.
    """
    first: dict[tuple[str, ...], str] = {}
    for order, lesson in lessons.items():
        mine: dict[tuple[str, ...], str] = {}
        for number, card in enumerate(lesson["cards"], 1):
            for place, item in enumerate(card.get("items", ()), 1):
                words, where = tuple(_words(item)), f"c{number}.q{place}"
                if words in first:
                    yield order, Fault(where, f"asks what {first[words]} asked: {item['ask'][:60]}", "a new question")
                mine.setdefault(words, f"lesson {order} {where}")
        first = {**mine, **first}


def _json(item: Item) -> Mapping[str, Any]:
    return item.model_dump(exclude_none=True)


def _words(item: Mapping[str, Any]) -> list[str]:
    """Return the words and numbers of a question, those in its figures included."""
    lines = [line for figure in item.get("figures", ()) for line in figure["lines"]]
    parts = [part["ask"] for part in item.get("parts", ())]
    options = sorted(option["text"] for option in item.get("options", ()))
    return _WORD.findall(" ".join([item["ask"], *lines, *parts, *options]).lower())


def _repeated(stems: Sequence[tuple[str, list[str]]]) -> Iterator[Fault]:
    runs = [({tuple(words[i : i + _RUN]) for i in range(len(words) - _RUN + 1)}, words) for _, words in stems]
    for index, (name, words) in enumerate(stems):
        for earlier in range(index):
            if words == runs[earlier][1]:
                yield Fault(f"{name}.ask", f"the same question as {stems[earlier][0]}", "a new question")
                break
            together = len(runs[index][0] | runs[earlier][0])
            if together and len(runs[index][0] & runs[earlier][0]) > _ALIKE * together:
                yield Fault(f"{name}.ask", f"nearly the same as {stems[earlier][0]}", "a different question", "W")
                break


def stray(case: Case) -> Iterator[Fault]:
    """Check row 31: links, markup, sources that are not there, learning styles, praise, chat, words to a judge."""
    for where, text in case.texts:
        if found := stray_talk(text):
            yield Fault(where, found, "only what stands on the page")


def notation(case: Case) -> Iterator[Fault]:
    """Check row 35: every formula parses; no stray dollar sign or backslash."""
    for where, text in case.texts:
        if "\\" not in text and "$" not in text:
            continue
        for problem in mathml.check(text)[:1]:
            yield Fault(where, f"{problem}: {text}", "mathematics in the allowed notation")
