"""Cards for Anki: a deck for each lesson, with its questions and its words; ids that stay, so that a new file updates.

Anki sets the formulas itself (MathJax). It updates a card that it has only where its import is told "Update notes:
Always", as all cards bear one date.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pipeline.drawing import figure as draw
from pipeline.export.base import Selection, repacked
from pipeline.formulas.pictures import picture
from pipeline.html import Html, clean, el, join, slug
from pipeline.publish import mathml, prose, tex
from pipeline.publish.questions import ShownQuestion, divided
from pipeline.publish.view import CourseView, LessonView

#: Of the two kinds of notes; new ones would make the cards of an earlier file twice.
_QUESTION_ID, _WORD_ID = 1_786_400_101, 1_786_400_102
#: Seconds since 1970 at which all cards were made: 2026-01-01.
_DATE = 1_767_225_600
_STYLE = """.card { font: 20px/1.4 Arial, sans-serif; text-align: left; max-width: 40em; margin: 0 auto; }
img { background: #fff; max-width: 100%; }
.small { font-size: 16px; }
"""


def files(chosen: Selection) -> Iterator[tuple[str, bytes]]:
    """Yield one package with a deck below the course's for each lesson."""
    import genanki  # type: ignore[import-untyped]

    view = chosen.view
    name = view.bundle.name
    media: dict[str, bytes] = {}
    decks = []
    for lesson in chosen.lessons:
        deck = genanki.Deck(_number(name, lesson.order), f"{_deck(view)}::{lesson.order:02d} {_plain(lesson.title)}")
        for key, kind, fields in _notes(view, lesson, media):
            deck.add_note(genanki.Note(_model(genanki, kind), fields, guid=_key(name, lesson.order, key)))
        decks.append(deck)
    yield f"{slug(view.title)}{chosen.suffix}.apkg", _package(genanki, decks, media)


def _package(genanki: Any, decks: list[Any], media: Mapping[str, bytes]) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, name) for name in sorted(media)]
        for path in paths:
            path.write_bytes(media[path.name])
        whole = Path(folder, "whole.apkg")
        genanki.Package(decks, [str(path) for path in paths]).write_to_file(whole, timestamp=_DATE)
        return repacked(whole.read_bytes())


def _number(*parts: object) -> int:
    """Return a number of a deck that is the same in every file of the course."""
    return int(_key(*parts)[:8], 16) % (1 << 30) + (1 << 30)


def _key(*parts: object) -> str:
    return hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()[:20]


def _deck(view: CourseView) -> str:
    """Return the name of the course's deck; two colons would begin a deck below it."""
    return _plain(view.title + (" (draft)" if view.bundle.draft else ""))


def _plain(title: str) -> str:
    return clean(title).replace("::", ": ").replace('"', "'")


def _model(genanki: Any, kind: str) -> Any:
    """Return the kind of notes: the first field is the front, the others stand on the back."""
    number, fields = {
        "question": (_QUESTION_ID, ("Question", "Answer", "Working")), "word": (_WORD_ID, ("Word", "Meaning")),
    }[kind]  # fmt: skip
    small = '<div class="small">{{Working}}</div>' if kind == "question" else ""
    card = {"name": "Card 1", "qfmt": f"{{{{{fields[0]}}}}}",
            "afmt": f'{{{{FrontSide}}}}<hr id="answer">{{{{{fields[1]}}}}}{small}'}  # fmt: skip
    return genanki.Model(number, f"Course {kind}", [{"name": each} for each in fields], [card], css=_STYLE)


def _notes(view: CourseView, lesson: LessonView, media: dict[str, bytes]) -> Iterator[tuple[str, str, list[Html]]]:
    """Yield key, kind and fields of each note; pictures go to `media`."""
    for question in lesson.questions:
        prefix = f"{slug(view.bundle.name)}-{lesson.order:02d}-{question.anchor}"
        yield question.address, "question", [_front(question, prefix, media), _back(question), _working(question)]
    for word in lesson.lesson["keywords"]:
        term, _, meaning = word.partition(": ")
        yield f"word {term}", "word", [_text(term), _text(meaning)]


def _front(question: ShownQuestion, prefix: str, media: dict[str, bytes]) -> Html:
    options = [f"{option.letter}: {option.text}" for option in question.options]
    parts = [f"{part.label} {part.ask} ({part.marks})" for part in question.parts]
    figures = [
        _figure(figure, f"{prefix}-{place}", media)
        for place, figure in enumerate(question.item.get("figures") or (), 1)
    ]
    return join([el("div", _text(question.ask)), figures, _lines([*options, *parts])])


def _figure(figure: Mapping[str, Any], name: str, media: dict[str, bytes]) -> Html:
    """Return the picture of a figure, or its data where it is a table."""
    drawn = picture(figure)
    if drawn is None:
        columns, rows = draw.table(figure)
        body = [el("tr", [el("td", _text(cell)) for cell in row]) for row in rows]
        return el("table", el("tr", [el("th", _text(cell)) for cell in columns]), body, border="1")
    media[f"{name}.png"] = drawn.png
    return el("div", el("img", src=f"{name}.png", alt=drawn.alt))


def _back(question: ShownQuestion) -> Html:
    letter = f"{question.key.letter}: " if question.key else ""
    answers = [f"{part.label} {part.answer}" for part in question.parts] or [f"{letter}{question.answer}"]
    return join([_lines(answers), el("div", _text(question.item["feedback"]))])


def _working(question: ShownQuestion) -> Html:
    return _lines(" ".join(filter(None, divided(step))) for step in question.item["working"])


def _lines(texts: Iterable[str]) -> Html:
    return join([el("div", _text(each)) for each in texts])


def _text(value: str) -> Html:
    r"""Return a text as HTML in which formulas stand between \( and \), where Anki finds them."""
    return join(
        prose.words(content) if kind == "text" else _formula(content, kind)
        for kind, content, _ in mathml.split(clean(value))
    )


def _formula(content: str, kind: str) -> Html:
    try:
        mathml.parse(content)
    except ValueError:
        return el("code", content)
    start, end = (r"\(", r"\)") if kind == "inline" else (r"\[", r"\]")
    # Two closing braces in a row would end the field of a card's template.
    return join([start, tex.portable(content).replace("}}", "} }").replace("{{", "{ {"), end])
