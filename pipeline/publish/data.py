"""The same course for tools and for editors: JSON and Markdown beside the pages."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pipeline.drawing import figure as draw
from pipeline.html import clean
from pipeline.publish import mathml
from pipeline.publish.questions import SENTENCES, ShownQuestion, divided
from pipeline.publish.view import CourseView, LessonView

#: Version of the lessons in data/: of their schema, and raised with it.
_VERSION = 2

#: Where a bracket would close the words of a link, a picture or the target of a link.
_LINK = re.compile(r"\](?=[(\[:])")
#: What many renderers turn into a link by itself: an address of the web or of mail.
_ADDRESS = re.compile(r"(?<=[a-z]):(?=//)|(?<=\bwww)\.|(?<=\bmailto):|(?<=\bxmpp):|(?<=[\w.+-])@(?=[\w-]+\.)", re.I)
#: A line break inside a paragraph; lists and paragraphs have theirs by themselves.
_BREAK = re.compile(r"(?<=\S)[ ]*\n(?!\s|[-•–] |\d{1,2}[.)] |\Z)")


def build(view: CourseView) -> dict[str, bytes]:
    """Return {path: bytes} of data/ and markdown/."""
    bundle = view.bundle
    files: dict[str, bytes] = {
        "data/course.json": _json(bundle.course),
        "data/scheme.json": _json(bundle.scheme),
        "data/about.json": _json(
            {
                "course": bundle.name,
                "draft": bundle.draft,
                "about": bundle.about,
                "failed": list(bundle.failed),
                "sign_off": bundle.about.get("sign_off"),
            }
        ),
    }
    for lesson in view.lessons:
        files[f"data/{lesson.file}.json"] = _json(_record(lesson))
        files[f"markdown/{lesson.file}.md"] = _text(_lesson(view, lesson))
        files[f"markdown/{lesson.file}-answers.md"] = _text(_answers(view, lesson))
    return files


def _json(value: object) -> bytes:
    return (json.dumps(_cleaned(value), indent=1, sort_keys=True, ensure_ascii=True) + "\n").encode("ascii")


def _cleaned(value: object) -> object:
    """Return the value with every text in it as pages show it."""
    if isinstance(value, Mapping):
        return {clean(key): _cleaned(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_cleaned(item) for item in value]
    return clean(value) if isinstance(value, str) else value


def _text(blocks: Iterator[str]) -> bytes:
    """Return a file of blocks, each of one or more lines, with a blank line between them."""
    return ("\n\n".join(blocks).rstrip("\n") + "\n").encode("utf-8")


def _record(lesson: LessonView) -> dict[str, Any]:
    """Return the lesson with its entry, what code and critic found, and its questions as pages show them."""
    shown = [
        {"number": question.number, "address": question.address, "marks": question.marks, "checked": question.checked}
        | ({"key": question.key.letter} if question.key else {})
        for question in lesson.questions
    ]
    stored = {"lesson": lesson.lesson, "checks": lesson.checks, "critic": lesson.critic}
    stored |= {"review": lesson.review} if lesson.review else {}
    return {"schema": _VERSION, "order": lesson.order, "entry": lesson.entry, **stored, "questions": shown}


def _md(value: object) -> str:
    """Return text in Markdown without links or pictures: TeX that can be set stays, other markup is escaped."""
    out = "".join(_piece(kind, content) for kind, content, _ in mathml.split(clean(value))).replace("<", "&lt;")
    return "\n".join(("\\" + line if line.startswith(("#", ">")) else line) for line in out.split("\n"))


def _piece(kind: str, content: str) -> str:
    if kind == "text":
        content = _BREAK.sub(r"\\\n", content)
        return _ADDRESS.sub(lambda found: f"&#{ord(found[0])};", _LINK.sub("&#93;", content))
    try:
        mathml.parse(content)
    except ValueError:
        # A renderer may know commands that pages do not, such as \\href. A backtick before may end the code early.
        content = _ADDRESS.sub(r"\g<0> ", _LINK.sub("] ", content))
        return "`" + content.replace("`", "'").replace("\n", " ") + "`"
    # A renderer that knows no TeX must see no link in it either; the empty group is not set.
    content = _LINK.sub("]{}", content)
    return f"\\({content}\\)" if kind == "inline" else f"\\[{content}\\]"


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
        if example.get("answer"):
            yield f"Answer: {_md(example['answer'])}"
    if card.get("instructions"):
        yield _md(card["instructions"])
    for question in lesson.questions_of(card):
        yield from _question(question)


def _steps(steps: Iterable[str]) -> Iterator[str]:
    for number, (words, line) in enumerate(map(divided, steps), 1):
        yield f"{number}. {_md(words)}" + (f" – {_md(line)}" if line else "")


def _figures(owner: Mapping[str, Any]) -> Iterator[str]:
    for figure in owner.get("figures") or ():
        yield _md(draw.alt(figure))
        columns, rows = draw.table(figure)
        yield from _lines([_row(columns), "|" + " --- |" * len(columns), *map(_row, rows)] if rows else [])


def _question(question: ShownQuestion) -> Iterator[str]:
    yield f"**{question.number}.** {_md(question.ask)} ({question.marks})"
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
            yield f"Answer: **{letter}{_md(question.answer)}**"
        yield from _lines(_steps(question.item["working"]))
        marks = [
            f"- 1 mark: {label + ' ' if label else ''}{_md(why)}" + (f" ({_md(earns)})" if earns else "")
            for label, earns, why in question.scheme
        ]
        yield "\n".join([*marks, "", SENTENCES[question.checked]])
