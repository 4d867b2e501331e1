"""The same course for tools and for editors: JSON and Markdown beside the pages."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pipeline.publish import mathml
from pipeline.publish.html import clean
from pipeline.publish.review_part import score, warnings
from pipeline.publish.verified import SENTENCES, verified
from pipeline.publish.view import CourseView, LessonView

#: Where a bracket would close the words of a link, a picture or what a link stands for.
_LINK = re.compile(r"\](?=[(\[:])")
#: What many renderers make a link of where it stands bare: an address of the web or of mail.
_ADDRESS = re.compile(r"(?<=[a-z]):(?=//)|(?<=\bwww)\.|(?<=\bmailto):|(?<=\bxmpp):|(?<=[\w.+-])@(?=[\w-]+\.)", re.I)


def build(view: CourseView) -> dict[str, bytes]:
    """{path: bytes} of data/ and markdown/."""
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
    """The value with every text in it as pages show it."""
    if isinstance(value, Mapping):
        return {clean(key): _cleaned(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_cleaned(item) for item in value]
    return clean(value) if isinstance(value, str) else value


def _text(lines: Iterator[str]) -> bytes:
    return ("\n".join(lines).rstrip("\n") + "\n").encode("utf-8")


def _record(lesson: LessonView) -> dict[str, Any]:
    """The lesson with what a reviewer needs: how each answer stands, warnings, scores."""
    return {
        "lesson": lesson.lesson,
        "checks": lesson.checks,
        "critic": lesson.critic,
        "review": {
            "items": [
                {
                    "number": question.number,
                    "id": question.item["id"],
                    "kind": question.item["answer"]["kind"],
                    "marks": question.item["marks"],
                    "verified": verified(question.item["answer"]),
                }
                for question in lesson.questions
            ],
            "points": lesson.lesson.get("points", []),
            "warnings": warnings(lesson.checks),
            "fidelity": score(lesson, "fidelity"),
            "quality": score(lesson, "quality"),
            "labels": lesson.lesson.get("labels", []),
        },
    }


def _md(value: object) -> str:
    """Text in Markdown: TeX that can be set stays, what would be markup is escaped; there are no links or pictures."""
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


def _heading(view: CourseView, lesson: LessonView, title: str) -> Iterator[str]:
    yield f"# {title}"
    yield ""
    if view.bundle.draft:
        yield "**Offline draft: made without a model and read by nobody.**"
        yield ""
    place = f"{lesson.type.lower()} {lesson.order} of {view.total}"
    yield f"{_md(view.title)}, {place}, {lesson.lesson['minutes']} minutes."
    yield ""


def _lesson(view: CourseView, lesson: LessonView) -> Iterator[str]:
    data = lesson.lesson
    yield from _heading(view, lesson, _md(lesson.title))
    yield _md(data["outcome"])
    yield ""
    if data.get("keywords"):
        yield "## Words you need"
        yield ""
        for word in data["keywords"]:
            yield f"- **{_md(word['term'])}**: {_md(word['definition'])}"
        yield ""
    for card in lesson.cards:
        yield f"## {_md(card['title'])}"
        yield ""
        yield from _card(lesson, card)


def _card(lesson: LessonView, card: Mapping[str, Any]) -> Iterator[str]:
    if card["kind"] == "explainer":
        yield _md(card["text"])
        yield ""
        yield f"Not an example: {_md(card['non_example'])}"
        yield ""
        yield "### In plainer words"
        yield ""
        yield _md(card["plain"])
        yield ""
        beliefs = {belief["id"]: belief for belief in lesson.lesson.get("misconceptions") or ()}
        for name in card.get("misconceptions") or ():
            if name in beliefs:
                yield f"- A common mistake: {_md(beliefs[name]['belief'])}"
                yield f"- What is true: {_md(beliefs[name]['correction'])}"
                yield ""
    for example in card.get("examples") or ():
        yield f"Example: {_md(example['problem'])}"
        yield ""
        yield from _steps(example["steps"])
        yield f"Answer: {_md(example['answer'])}"
        yield ""
    if card.get("items"):
        yield from _questions(lesson, card)


def _steps(steps: Any) -> Iterator[str]:
    for number, step in enumerate(steps, 1):
        line = f" – {_md(step['shows'])}" if step.get("shows") else ""
        yield f"{number}. {_md(step['does'])}{line}"
    yield ""


def _questions(lesson: LessonView, card: Mapping[str, Any]) -> Iterator[str]:
    if card.get("instructions"):
        yield _md(card["instructions"])
        yield ""
    for question in lesson.questions_of(card):
        answer = question.item["answer"]
        yield f"**{question.number}.** {_md(question.item['stem'])} ({question.item['marks']})"
        yield ""
        yield from _figures(question.item.get("figures") or ())
        for place, option in enumerate(answer.get("options") or ()):
            yield f"- {chr(ord('A') + place)}: {_md(option['text'])}"
        for part in answer.get("parts") or ():
            yield f"- {part['label']} {_md(part['prompt'])} ({part['marks']})"
        if answer.get("options") or answer.get("parts"):
            yield ""


def _figures(figures: Any) -> Iterator[str]:
    for figure in figures:
        yield _md(figure["alt"])
        yield ""
        yield "| " + " | ".join(_cell(name) for name in figure["columns"]) + " |"
        yield "|" + " --- |" * len(figure["columns"])
        for row in figure["rows"]:
            yield "| " + " | ".join(_cell(cell) for cell in row) + " |"
        yield ""


def _cell(value: object) -> str:
    return _md(value).replace("|", "\\|").replace("\n", " ")


def _answers(view: CourseView, lesson: LessonView) -> Iterator[str]:
    yield from _heading(view, lesson, f"Answers: {_md(lesson.title)}")
    for question in lesson.questions:
        answer = question.item["answer"]
        yield f"## Question {question.number}"
        yield ""
        yield f"Answer: **{_md(answer['shown'])}**"
        yield ""
        for part in answer.get("parts") or ():
            yield f"- {part['label']} {_md(part['answer']['shown'])}"
        if answer.get("parts"):
            yield ""
        yield from _steps(question.item["working"])
        for bullet in [*question.item.get("scheme", ()), *(b for p in answer.get("parts") or () for b in p["scheme"])]:
            yield f"- 1 mark: {_md(bullet['generic'])} ({_md(bullet['illustration'])})"
        yield ""
        yield SENTENCES[verified(answer)]
        yield ""
