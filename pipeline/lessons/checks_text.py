"""Rows 26, 31 and 35: no question twice, nothing that belongs to no lesson, mathematics that can be printed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pipeline.lessons.banned_text import stray_talk
from pipeline.lessons.findings import Case, Fault
from pipeline.lessons.schemas import Item
from pipeline.publish import mathml

#: Two stems that share more than this part of their runs of five words are near copies.
_ALIKE = 0.6
_RUN = 5
_WORD = re.compile(r"\w+")


def repeats(case: Case) -> Iterator[Fault]:
    """Check row 26 within a lesson: the same stem is a fault, a near copy a warning."""
    yield from _repeated([(item.id, _words(item.model_dump())) for item in case.lesson.items()])


def repeats_between(lessons: Sequence[Mapping[str, Any]]) -> Iterator[Fault]:
    """Check row 26 over a course: a question that an earlier lesson asked in the same words."""
    first: dict[tuple[str, ...], str] = {}
    for lesson in lessons:
        mine: dict[tuple[str, ...], str] = {}
        for item in (item for card in lesson["cards"] for item in card.get("items", ())):
            words = tuple(_words(item))
            name = f"lesson {lesson['order']} {item['id']}"
            if words in first:
                yield Fault(name, f"asks what {first[words]} asked: {item['stem'][:60]}", "a new question")
            mine.setdefault(words, name)
        first = {**mine, **first}


def _words(item: Mapping[str, Any] | Item) -> list[str]:
    """Return the words and numbers of a question, those in its figures included."""
    data = item if isinstance(item, Mapping) else item.model_dump()
    cells = [cell for figure in data["figures"] for row in figure["rows"] for cell in row]
    parts = [part["prompt"] for part in data["answer"].get("parts", ())]
    options = [option["text"] for option in data["answer"].get("options", ())]
    return _WORD.findall(" ".join([data["stem"], *cells, *parts, *options]).lower())


def _repeated(stems: Sequence[tuple[str, list[str]]]) -> Iterator[Fault]:
    runs = [({tuple(words[i : i + _RUN]) for i in range(len(words) - _RUN + 1)}, words) for _, words in stems]
    for index, (name, words) in enumerate(stems):
        for earlier in range(index):
            if words == runs[earlier][1]:
                yield Fault(f"{name}.stem", f"the same question as {stems[earlier][0]}", "a new question")
                break
            together = len(runs[index][0] | runs[earlier][0])
            if together and len(runs[index][0] & runs[earlier][0]) > _ALIKE * together:
                yield Fault(f"{name}.stem", f"nearly the same as {stems[earlier][0]}", "a different question", "W")
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
