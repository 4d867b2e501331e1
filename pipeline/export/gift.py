r"""A question bank for Moodle in the GIFT format: a category for each lesson, formulas as TeX for its MathJax.

A question with parts is one essay question: GIFT has no question with several answers, and its marks are given as a
whole. GIFT has no marks either: each question says its own, and Moodle's default of one mark is changed in the quiz.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator

from pipeline.export.base import Selection
from pipeline.export.markup import Drawing, asks, blocks, line, named, short, solution, stem, title, with_tex
from pipeline.export.responses import CHOICE, ESSAY, NUMBER, Response, number_of, whole
from pipeline.html import slug
from pipeline.publish.questions import ShownQuestion
from pipeline.publish.view import LessonView

#: What has a meaning in the format, and a line break, which would part questions.
_ESCAPES = str.maketrans({**{sign: f"\\{sign}" for sign in "\\~=#{}:"}, "\n": "\\n", "\r": None})


def files(chosen: Selection) -> Iterator[tuple[str, bytes]]:
    """Yield the one file of the bank."""
    course = named(chosen.view)
    parts = [
        f"// {course}: question bank for Moodle (UTF-8, GIFT). For teachers: it holds the answers.\n"
        f"// {title(chosen.view.rights_line)}"
    ]
    for lesson in chosen.lessons:
        parts.append(f"$CATEGORY: $course$/top/{_name(course)}/{lesson.order:02d} {_name(lesson.title)}")
        parts += [_question(lesson, asked) for asked in lesson.questions]
    yield f"{slug(title(chosen.view.title))}-questions{chosen.suffix}.gift.txt", ("\n\n".join(parts) + "\n").encode()


def _name(text: str) -> str:
    """Return a part of the name of a category: a slash in it is doubled."""
    return title(text).replace("/", "//")


def _escaped(text: str) -> str:
    return text.translate(_ESCAPES)


def _html(markup: str) -> str:
    return f"[html]{_escaped(with_tex(markup))}"


def _question(lesson: LessonView, asked: ShownQuestion) -> str:
    response = whole(asked)
    name = f"{lesson.order:02d}.{asked.number:02d} {short(asked.ask)}"
    told = " ".join(filter(None, [response.note, f"({asked.worth})"]))
    text = "".join([stem(lesson, asked, _embedded), *asks(asked), f"<p>{told}</p>"])
    last = f"####{_html(solution(asked, scheme=response.kind == ESSAY))}"
    rows = "".join(f"\t{row}\n" for row in [*_answers(asked, response), last])
    return f"::{_escaped(name)}::{_html(text)}{{{'#' if response.kind == NUMBER else ''}\n{rows}}}"


def _embedded(drawing: Drawing) -> str:
    return f"data:image/svg+xml;base64,{base64.b64encode(drawing.svg).decode('ascii')}"


def _answers(asked: ShownQuestion, response: Response) -> Iterator[str]:
    if response.kind == CHOICE:
        for option in asked.options:
            yield f"{'=' if option.right else '~'}{_html(line(option.text))}#{_html(blocks(option.why))}"
    elif response.kind == NUMBER:
        yield f"={response.number}:{response.tolerance}"
        for number, error in _slips(asked, response):
            yield f"=%0%{number}:0#{_html(blocks(error))}"
    else:
        # A star would stand for any words.
        yield from (f"={_escaped(way.replace('*', chr(92) + '*'))}" for way in response.accepted)


def _slips(asked: ShownQuestion, response: Response) -> Iterator[tuple[str, str]]:
    """Yield each wrong number that an error leads to, and what the pupil did."""
    seen = {response.number}
    for value, _, error in asked.wrong():
        number = number_of(value)
        if number and number not in seen and abs(float(number) - float(response.number)) > float(response.tolerance):
            seen.add(number)
            yield number, error
