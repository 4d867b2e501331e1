"""The same course for tools and for editors: JSON and Markdown beside the pages."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pipeline.publish import mathml
from pipeline.publish.html import clean
from pipeline.publish.lesson_page import letter
from pipeline.publish.view import SENTENCES, CourseView, LessonView

#: Where a bracket would close the words of a link, a picture or the target of a link.
_LINK = re.compile(r"\](?=[(\[:])")
#: What many renderers turn into a link by itself: an address of the web or of mail.
_ADDRESS = re.compile(r"(?<=[a-z]):(?=//)|(?<=\bwww)\.|(?<=\bmailto):|(?<=\bxmpp):|(?<=[\w.+-])@(?=[\w-]+\.)", re.I)


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
    """Return the lesson with what a reviewer needs: how each answer was checked, warnings, scores."""
    return {
        "lesson": lesson.lesson,
        "checks": lesson.checks,
        "critic": lesson.critic,
        "review": {
            "items": [
                {"number": question.number, "verified": question.verified, "kind": question.item["answer"]["kind"]}
                | {name: question.item[name] for name in ("id", "marks")}
                for question in lesson.questions
            ],
            "points": lesson.lesson.get("points", []),
            "warnings": lesson.warnings,
            "fidelity": lesson.score("fidelity"),
            "quality": lesson.score("quality"),
            "labels": lesson.lesson.get("labels", []),
        },
    }


def _md(value: object) -> str:
    """Return text in Markdown without links or pictures: TeX that can be set stays, other markup is escaped."""
    out = "".join(_piece(kind, content) for kind, content, _ in mathml.split(clean(value))).replace("<", "&lt;")
    return "\n".join(("\\" + line if line[:1] in "#>" else line) for line in out.split("\n"))


def _piece(kind: str, content: str) -> str:
    if kind == "text":
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
        yield "**Offline draft: made without a model and read by nobody.**"
    place = f"{lesson.type.lower()} {lesson.order} of {view.total}"
    yield f"{_md(view.title)}, {place}, {lesson.lesson['minutes']} minutes."


def _lesson(view: CourseView, lesson: LessonView) -> Iterator[str]:
    data = lesson.lesson
    yield from _heading(view, lesson, _md(lesson.title))
    yield _md(data["outcome"])
    if data.get("keywords"):
        yield "## Words you need"
        yield from _lines(f"- **{_md(word['term'])}**: {_md(word['definition'])}" for word in data["keywords"])
    for card in lesson.cards:
        yield f"## {_md(card['title'])}"
        yield from _card(lesson, card)


def _card(lesson: LessonView, card: Mapping[str, Any]) -> Iterator[str]:
    if card["kind"] == "explainer":
        yield _md(card["text"])
        yield f"Not an example: {_md(card['non_example'])}"
        yield "### In plainer words"
        yield _md(card["plain"])
        beliefs = {belief["id"]: belief for belief in lesson.lesson.get("misconceptions") or ()}
        for name in card.get("misconceptions") or ():
            if belief := beliefs.get(name):
                yield f"- A common mistake: {_md(belief['belief'])}\n- What is true: {_md(belief['correction'])}"
    for example in card.get("examples") or ():
        yield f"Example: {_md(example['problem'])}"
        yield from _lines(_steps(example["steps"]))
        yield f"Answer: {_md(example['answer'])}"
    if card.get("items"):
        yield from _questions(lesson, card)


def _steps(steps: Any) -> Iterator[str]:
    for number, step in enumerate(steps, 1):
        line = f" – {_md(step['shows'])}" if step.get("shows") else ""
        yield f"{number}. {_md(step['does'])}{line}"


def _questions(lesson: LessonView, card: Mapping[str, Any]) -> Iterator[str]:
    if card.get("instructions"):
        yield _md(card["instructions"])
    for question in lesson.questions_of(card):
        answer = question.item["answer"]
        yield f"**{question.number}.** {_md(question.item['stem'])} ({question.item['marks']})"
        for figure in question.item.get("figures") or ():
            yield _md(figure["alt"])
            rows = [_row(figure["columns"]), "|" + " --- |" * len(figure["columns"]), *map(_row, figure["rows"])]
            yield "\n".join(rows)
        options, parts = answer.get("options") or (), answer.get("parts") or ()
        lines = [f"- {letter(place)}: {_md(option['text'])}" for place, option in enumerate(options)]
        lines += [f"- {part['label']} {_md(part['prompt'])} ({part['marks']})" for part in parts]
        yield from _lines(lines)


def _row(cells: Iterable[object]) -> str:
    return "| " + " | ".join(_md(cell).replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"


def _answers(view: CourseView, lesson: LessonView) -> Iterator[str]:
    yield from _heading(view, lesson, f"Answers: {_md(lesson.title)}")
    for question in lesson.questions:
        answer = question.item["answer"]
        parts = answer.get("parts") or ()
        yield f"## Question {question.number}"
        yield f"Answer: **{_md(answer['shown'])}**"
        yield from _lines(f"- {part['label']} {_md(part['answer']['shown'])}" for part in parts)
        yield from _lines(_steps(question.item["working"]))
        scheme = [*question.item.get("scheme", ()), *(bullet for part in parts for bullet in part["scheme"])]
        marks = [f"- 1 mark: {_md(bullet['generic'])} ({_md(bullet['illustration'])})" for bullet in scheme]
        yield "\n".join([*marks, "", SENTENCES[question.verified]])
