"""A lesson as Markdown: formulas stand between dollar signs, as renderers read them; other markup is escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pipeline.drawing import figure as draw
from pipeline.html import clean
from pipeline.publish import mathml, tex
from pipeline.publish.prose import are_code
from pipeline.publish.questions import SENTENCES, ShownQuestion, divided
from pipeline.publish.view import CourseView, LessonView

#: Where a bracket would close the words of a link, a picture or the target of a link.
_LINK = re.compile(r"\](?=[(\[:])")
#: What many renderers turn into a link by itself: an address of the web or of mail.
_ADDRESS = re.compile(r"(?<=[a-z]):(?=//)|(?<=\bwww)\.|(?<=\bmailto):|(?<=\bxmpp):", re.I)
#: What would be markup in text: emphasis, code, formulas, tags, entities, links, raised and struck letters.
_MARKUP = re.compile(r"[\\`*_$~^<@]|&(?=#?\w+;)|\](?=[(\[:])")
#: What makes a heading, a quotation or a rule of a line.
_HEAD = re.compile(r"^(?:[#>]|[=-]{2,}\s*$|[+](?=\s))", re.MULTILINE)
#: A line break inside a paragraph; lists and paragraphs have theirs by themselves.
_BREAK = re.compile(r"(?<=\S)[ ]*\n(?!\s|[-•–] |\d{1,2}[.)] |\Z)")
#: A stroke in a formula, which would end the cell of a table; those of an array's columns stay.
_STROKE = re.compile(r"\\begin\{array\}\s*\{[^}]*\}|\\\||\|")
_STROKES = {"|": r"\vert ", r"\|": r"\Vert "}
#: Parts two words or numbers that a dollar sign may not touch.
_APART = "<!-- -->"


def files(view: CourseView, lesson: LessonView) -> Iterator[tuple[str, bytes]]:
    """Yield the lesson as pupils see it, and its answers."""
    yield f"{lesson.file}.md", _text(_lesson(view, lesson))
    yield f"{lesson.file}-answers.md", _text(_answers(view, lesson))


def _text(blocks: Iterator[str]) -> bytes:
    """Return a file of blocks, each of one or more lines, with a blank line between them."""
    return ("\n\n".join(blocks).rstrip("\n") + "\n").encode("utf-8")


def _md(value: object) -> str:
    """Return text in Markdown without links or pictures: formulas stand between dollar signs, markup is escaped."""
    pieces = mathml.split(clean(value))
    out = ""
    for place, (kind, content, _) in enumerate(pieces):
        if kind == "text":
            out += _words(content, place == 0)
            continue
        formula = _formula(content, "$" if kind == "inline" else "$$")
        after = pieces[place + 1][1] if place + 1 < len(pieces) and pieces[place + 1][0] == "text" else ""
        before = _APART if out[-1:].isalnum() or out.endswith("$") else ""
        out += before + formula + (_APART if after[:1].isalnum() else "")
    return out


def _words(content: str, first: bool) -> str:
    """Return plain words, lines of code as such; the head of a line is one only where the words begin it."""
    lines = content.split("\n")
    if not any(code := are_code(lines)):
        return _plain_words(content, first)
    made = [
        _code_line(line) if coded else _plain_words(line, first or place > 0)
        for place, (line, coded) in enumerate(zip(lines, code, strict=True))
    ]
    return _BREAK.sub(r"\\\n", "\n".join(made))


def _code_line(line: str) -> str:
    """Return a line of a program, as far indented as it was."""
    words = line.strip()
    return _code("\u00a0" * (len(line) - len(line.lstrip())) + words)


def _plain_words(content: str, first: bool) -> str:
    content = _ADDRESS.sub(lambda found: f"&#{ord(found[0])};", _MARKUP.sub(_escaped, content))
    escaped = _HEAD.sub(lambda found: found[0] if found.start() == 0 and not first else "\\" + found[0], content)
    return _BREAK.sub(r"\\\n", escaped)


def _escaped(found: re.Match[str]) -> str:
    return {"<": "&lt;", "&": "&amp;", "]": "&#93;", "@": "&#64;"}.get(found[0], "\\" + found[0])


def _code(content: str) -> str:
    # A backtick before may end the code early.
    content = _ADDRESS.sub(r"\g<0> ", _LINK.sub("] ", content))
    return "`" + content.replace("`", "'").replace("\n", " ").replace("@", "@ ") + "`"


def _formula(content: str, sign: str) -> str:
    """Return a formula; one that cannot be set stands as code, as it was typed."""
    try:
        mathml.parse(content)
    except ValueError:
        return _code(content)
    # A renderer that knows no mathematics must see no link in it either; the empty group is not set.
    source = _LINK.sub("]{}", tex.portable(content))
    return sign + _STROKE.sub(lambda found: _STROKES.get(found[0], found[0]), source) + sign


def _lines(lines: Iterable[str]) -> Iterator[str]:
    """Yield the block of these lines, if there are any."""
    if block := "\n".join(lines):
        yield block


def _heading(view: CourseView, lesson: LessonView, title: str) -> Iterator[str]:
    yield f"# {title}"
    if view.bundle.draft:
        yield f"**Offline draft: made without a model and {_md(view.readers)}.**"
    place = f"{lesson.type.lower()} {lesson.order} of {view.total}"
    yield f"{_md(view.title)}, {place}, {lesson.minutes} minutes."


def _lesson(view: CourseView, lesson: LessonView) -> Iterator[str]:
    data = lesson.lesson
    yield from _heading(view, lesson, _md(lesson.title))
    yield _md(data["outcome"])
    if data["keywords"] and not lesson.mock_exam:
        yield "## Words you need"
        words = [word.partition(": ") for word in data["keywords"]]
        yield from _lines(f"- **{_md(term)}**: {_md(meaning)}" for term, _, meaning in words)
    for card in lesson.cards:
        yield f"## {_md(card['title'])}"
        yield from _card(lesson, card)


def _card(lesson: LessonView, card: Mapping[str, Any]) -> Iterator[str]:
    if card["kind"] == "explainer":
        yield _md(card["text"])
        yield from _figures(card)
        yield f"Not an example: {_md(card['non_example'])}"
        yield "### In plainer words"
        yield _md(card["plain"])
        beliefs = dict(enumerate(lesson.lesson["misconceptions"], 1))
        for belief in (beliefs[number] for number in card["mistakes"] if number in beliefs):
            yield f"- A common mistake: {_md(belief['belief'])}\n- What is true: {_md(belief['correction'])}"
    for example in card.get("examples") or ():
        yield f"Example: {_md(example['ask'])}"
        yield from _figures(example)
        yield from _lines(_steps(example["working"]))
        if answer := example.get("answer"):
            yield f"Answer:{_apart(answer)}{_md(answer)}"
    if card.get("instructions"):
        yield _md(card["instructions"])
    for question in lesson.questions_of(card):
        yield from _question(question)


def _steps(steps: Iterable[str]) -> Iterator[str]:
    for number, (words, line) in enumerate(map(divided, steps), 1):
        dash = "\\\n" if any(are_code(line.split("\n"))) else " – "
        yield f"{number}. {_md(words)}" + (f"{dash}{_md(line)}" if line else "")


def _apart(value: str) -> str:
    """Return what stands between a value and what comes before or after it: a line break where it has several lines."""
    return "\\\n" if "\n" in value else " "


def _figures(owner: Mapping[str, Any]) -> Iterator[str]:
    for figure in owner.get("figures") or ():
        yield _md(draw.alt(figure))
        columns, rows = draw.table(figure)
        yield from _lines([_row(columns), "|" + " --- |" * len(columns), *map(_row, rows)] if rows else [])


def _question(question: ShownQuestion) -> Iterator[str]:
    yield f"**{question.number}.** {_md(question.ask)}{_apart(question.ask)}({question.marks})"
    yield from _figures(question.item)
    lines = [f"- {option.letter}: {_md(option.text)}" for option in question.options]
    yield from _lines([*lines, *(f"- {part.label} {_md(part.ask)} ({part.marks})" for part in question.parts)])


def _row(cells: Iterable[object]) -> str:
    return "| " + " | ".join(_md(str(cell).replace("\n", " ")).replace("|", "\\|") for cell in cells) + " |"


def _answers(view: CourseView, lesson: LessonView) -> Iterator[str]:
    yield from _heading(view, lesson, f"Answers: {_md(lesson.title)}")
    for question in lesson.questions:
        letter = f"{question.key.letter}, " if question.key else ""
        yield f"## Question {question.number}"
        if question.parts:
            yield from _lines(f"- {part.label} {_md(part.answer)}" for part in question.parts)
        else:
            yield f"Answer:{_apart(question.answer)}**{letter}{_md(question.answer)}**"
        yield from _lines(_steps(question.item["working"]))
        marks = [
            f"- {question.worth_of(1)}: {label + ' ' if label else ''}{_md(why)}"
            + (f" ({_md(earns)})" if earns else "")
            for label, earns, why in question.scheme
        ]
        yield "\n".join([*marks, "", SENTENCES[question.checked]])
