"""A Common Cartridge 1.1: for each lesson a page without answers to its questions, and a quiz (QTI 1.2) of them.

A question with parts is one essay question with the marks of all of them: the profile has one answer a question.
Numbers and short answers are compared as texts, so all usual ways to write one are accepted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any

from pipeline.export.base import Selection, packed
from pipeline.export.markup import (
    Drawing,
    blocks,
    drawings,
    labelled,
    line,
    named,
    paragraph,
    short,
    solution,
    stem,
    step,
)
from pipeline.export.plain_text import plain
from pipeline.export.responses import CHOICE, ESSAY, Response, responses
from pipeline.html import clean, count, slug
from pipeline.publish.questions import ShownQuestion, divided
from pipeline.publish.view import CourseView, LessonView

_CC = "http://www.imsglobal.org/xsd/imsccv1p1"
_LOM = "http://ltsc.ieee.org/xsd/imsccv1p1/LOM/manifest"
_QTI = "http://www.imsglobal.org/xsd/ims_qtiasiv1p2"
_PROFILE = "http://www.imsglobal.org/profile/cc/ccv1p1"
_HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'
#: The folder of a quiz, as texts in it name it.
_BASE = "$IMS-CC-FILEBASE$"
_QUIZ = "imsqti_xmlv1p2/imscc_xmlv1p1/assessment"
_ASSESSMENT = {
    "cc_profile": "cc.exam.v0p1", "qmd_assessmenttype": "Examination", "qmd_scoretype": "Percentage",
    "qmd_feedbackpermitted": "Yes", "qmd_hintspermitted": "No", "qmd_solutionspermitted": "No",
    "cc_maxattempts": "unlimited",
}  # fmt: skip
#: The greatest weight that a question can have.
_MOST = 99


def files(chosen: Selection) -> Iterator[tuple[str, bytes]]:
    """Yield the one cartridge."""
    view = chosen.view
    made: dict[str, bytes] = {}
    resources, items = [], []
    for lesson in chosen.lessons:
        part = _Lesson(view, lesson)
        made |= part.files()
        resources += part.resources()
        items.append(part.item())
    made["imsmanifest.xml"] = _xml(_manifest(view, items, resources))
    yield f"{slug(plain(view.title))}{chosen.suffix}.imscc", packed(made)


def _xml(element: str) -> bytes:
    return f"{_HEAD}{element}\n".encode()


def _text(value: object) -> str:
    return escape(clean(value), quote=True)


def _of(namespace: str, *schemas: str) -> str:
    return (
        f'xmlns="{namespace}" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" '
        f'xsi:schemaLocation="{" ".join(schemas)}"'
    )


# --- manifest ---------------------------------------------------------------------------------------


def _manifest(view: CourseView, items: Sequence[str], resources: Sequence[str]) -> str:
    namespace = f"{_CC}/imscp_v1p1"
    schemas = [namespace, f"{_PROFILE}/ccv1p1_imscp_v1p2_v1p0.xsd", _LOM, f"{_PROFILE}/LOM/ccv1p1_lommanifest_v1p0.xsd"]
    said, rights = (
        f'<lom:string language="en">{_text(words)}</lom:string>' for words in (named(view), view.rights_line)
    )
    return (
        f'<manifest identifier="{view.bundle.course["course_id"]}" xmlns:lom="{_LOM}" {_of(namespace, *schemas)}>'
        "<metadata><schema>IMS Common Cartridge</schema><schemaversion>1.1.0</schemaversion>"
        f"<lom:lom><lom:general><lom:title>{said}</lom:title></lom:general>"
        f"<lom:rights><lom:description>{rights}</lom:description></lom:rights></lom:lom></metadata>"
        '<organizations><organization identifier="course" structure="rooted-hierarchy">'
        f'<item identifier="root">{"".join(items)}</item></organization></organizations>'
        f"<resources>{''.join(resources)}</resources></manifest>"
    )


def _resource(name: str, kind: str, path: str, needed: Iterable[str] = ()) -> str:
    href = "" if kind == _QUIZ else f' href="{path}"'
    refs = "".join(f'<dependency identifierref="{each}"/>' for each in needed)
    return f'<resource identifier="{name}" type="{kind}"{href}><file href="{path}"/>{refs}</resource>'


# --- a lesson: its page, its quiz and their figures -------------------------------------------------


class _Lesson:
    """What a cartridge holds of a lesson."""

    def __init__(self, view: CourseView, lesson: LessonView) -> None:
        self._view, self._lesson = view, lesson
        self._name = f"l{lesson.order:02d}"
        self._page, self._quiz = f"pages/{lesson.file}.html", f"quizzes/{lesson.file}.xml"
        self._of_page: list[Drawing] = []
        self._of_quiz = [
            each for asked in lesson.questions for each in drawings(asked.item, self._named(asked.anchor)) if each.drawn
        ]

    def _named(self, owner: str) -> str:
        return f"{self._name}-{owner}"

    def files(self) -> dict[str, bytes]:
        """Return the page, the quiz and the figures of both."""
        made = {self._page: self._html().encode()}
        if self._lesson.questions:
            made[self._quiz] = _xml(self._assessment())
        return made | {_path(each): each.svg for each in (*self._of_page, *self._of_quiz)}

    def resources(self) -> list[str]:
        """Return the entries of the manifest; the page is made before."""
        made = [_resource(each.name, "webcontent", _path(each)) for each in (*self._of_page, *self._of_quiz)]
        made.append(_resource(f"{self._name}-page", "webcontent", self._page, [each.name for each in self._of_page]))
        if self._lesson.questions:
            needed = [each.name for each in self._of_quiz]
            made.append(_resource(f"{self._name}-quiz", _QUIZ, self._quiz, needed))
        return made

    def item(self) -> str:
        """Return its place in the contents."""
        lesson, name = self._lesson, self._name
        title = _text(f"{lesson.order:02d} {plain(lesson.title)}")
        rows = [(f"{name}-page", "Lesson")]
        rows += [(f"{name}-quiz", "Questions")] if lesson.questions else []
        held = "".join(
            f'<item identifier="{ref}-item" identifierref="{ref}"><title>{kind}: {title}</title></item>'
            for ref, kind in rows
        )
        return f'<item identifier="{name}"><title>{title}</title>{held}</item>'

    def _html(self) -> str:
        lesson = self._lesson
        title = _text(plain(lesson.title))
        body = [f"<h1>{line(lesson.title)}</h1>", blocks(lesson.lesson["outcome"])]
        body += self._sheets() if lesson.mock_exam else self._words()
        for place, card in enumerate(lesson.cards, 1):
            body += [f"<h2>{line(card['title'])}</h2>", *self._card(card, place)]
        return (
            f'<!DOCTYPE html>\n<html lang="en-GB"><head><meta charset="utf-8"/><title>{title}</title></head>'
            f"<body>{''.join(body)}</body></html>\n"
        )

    def _words(self) -> list[str]:
        words = [word.partition(": ") for word in self._lesson.lesson["keywords"]]
        rows = "".join(f"<dt>{line(term)}</dt><dd>{line(meaning)}</dd>" for term, _, meaning in words)
        return ["<h2>Words you need</h2>", f"<dl>{rows}</dl>"] if rows else []

    def _sheets(self) -> Iterator[str]:
        for sheet in self._view.assessment.get("sheets") or ():
            rows = "".join(f"<li>{line(each)}</li>" for each in sheet["lines"])
            yield f"<h2>{line(sheet['title'])}</h2><ul>{rows}</ul>"

    def _card(self, card: Mapping[str, Any], place: int) -> Iterator[str]:
        if card["kind"] == "explainer":
            yield blocks(card["text"])
            yield from self._figures(card, f"s{place}")
            yield f"<h3>Not an example</h3>{blocks(card['non_example'])}"
            yield f"<h3>In plainer words</h3>{blocks(card['plain'])}"
        for number, example in enumerate(card.get("examples") or (), 1):
            yield f"<h3>Example</h3>{blocks(example['ask'])}"
            yield from self._figures(example, f"s{place}-e{number}")
            steps = "".join(f"<li>{step(words, shown)}</li>" for words, shown in map(divided, example["working"]))
            yield f"<ol>{steps}</ol>"
            if example.get("answer"):
                yield f"<p>Answer: {line(example['answer'])}</p>"
        if card.get("items"):
            asked = self._lesson.questions_of(card)
            numbers = f"{asked[0].number} to {asked[-1].number}" if len(asked) > 1 else str(asked[0].number)
            yield blocks(card["instructions"]) if card.get("instructions") else ""
            yield f"<p>{count(len(asked), 'question')} in the quiz of this lesson: {numbers}.</p>"

    def _figures(self, owner: Mapping[str, Any], name: str) -> Iterator[str]:
        for each in drawings(owner, self._named(name)):
            if each.drawn and each not in self._of_page:
                self._of_page.append(each)
            yield each.markup(f"../{_path(each)}")

    # --- the quiz -----------------------------------------------------------------------------------

    def _assessment(self) -> str:
        lesson = self._lesson
        fields = "".join(_field(*each) for each in _ASSESSMENT.items())
        items = "".join(map(self._question, lesson.questions))
        return (
            f"<questestinterop {_of(_QTI, _QTI, f'{_PROFILE}/ccv1p1_qtiasiv1p2p1_v1p0.xsd')}>"
            f'<assessment ident="{self._name}-quiz" title="{_text(f"{lesson.order:02d} {plain(lesson.title)}")}">'
            f'<qtimetadata>{fields}</qtimetadata><section ident="root_section">{items}</section></assessment>'
            "</questestinterop>"
        )

    def _question(self, asked: ShownQuestion) -> str:
        found = responses(asked)
        response = found[0] if len(found) == 1 else Response(ESSAY)
        parts = "".join(labelled(part.label, part.ask, part.marks) for part in asked.parts)
        source = f"{_BASE}../{{}}".format
        text = stem(self._lesson, asked, self._named(asked.anchor), lambda each: source(_path(each)))
        text += parts + paragraph(response.note)
        profile = {CHOICE: "multiple_choice", ESSAY: "essay"}.get(response.kind, "fib")
        fields = {"cc_profile": f"cc.{profile}.v0p1", "cc_weighting": str(min(asked.marks, _MOST))}
        fields |= {"qmd_computerscored": "No"} if response.kind == ESSAY else {}
        feedback = [("general_fb", solution(asked, scheme=response.kind == ESSAY))]
        feedback += [(f"{option.letter}_fb", blocks(option.why)) for option in asked.options]
        title = _text(f"{asked.number}. {short(asked.ask)}")
        return (
            f'<item ident="{self._name}-{asked.anchor}" title="{title}"><itemmetadata><qtimetadata>'
            f"{''.join(_field(*each) for each in fields.items())}</qtimetadata></itemmetadata>"
            f"<presentation>{_material(text)}{_given(asked, response)}</presentation>"
            f"<resprocessing>{_processing(asked, response)}</resprocessing>"
            f"{''.join(_feedback(*each) for each in feedback)}</item>"
        )


def _path(drawing: Drawing) -> str:
    return f"figures/{drawing.file}"


def _field(label: str, entry: str) -> str:
    return f"<qtimetadatafield><fieldlabel>{label}</fieldlabel><fieldentry>{entry}</fieldentry></qtimetadatafield>"


def _material(markup: str) -> str:
    return f'<material><mattext texttype="text/html">{escape(markup, quote=False)}</mattext></material>'


def _given(asked: ShownQuestion, response: Response) -> str:
    if response.kind != CHOICE:
        return '<response_str ident="response" rcardinality="Single"><render_fib/></response_str>'
    labels = "".join(
        f'<response_label ident="{option.letter}">{_material(line(option.text))}</response_label>'
        for option in asked.options
    )
    return (
        f'<response_lid ident="response" rcardinality="Single"><render_choice>{labels}</render_choice></response_lid>'
    )


def _processing(asked: ShownQuestion, response: Response) -> str:
    rules = [_condition("<other/>", _display("general_fb"))]
    rules += [_condition(_equal(option.letter), _display(f"{option.letter}_fb")) for option in asked.options]
    rights = [asked.key.letter] if asked.key else response.accepted
    if rights:
        ways = "".join(_equal(_text(right), "" if asked.key else ' case="No"') for right in rights)
        rules.append(_condition(ways, '<setvar varname="SCORE" action="Set">100</setvar>', "No"))
    declared = '<decvar varname="SCORE" vartype="Decimal" minvalue="0" maxvalue="100"/>'
    return f"<outcomes>{declared}</outcomes>{''.join(rules)}"


def _condition(tested: str, done: str, more: str = "Yes") -> str:
    return f'<respcondition continue="{more}"><conditionvar>{tested}</conditionvar>{done}</respcondition>'


def _equal(value: str, how: str = "") -> str:
    return f'<varequal respident="response"{how}>{value}</varequal>'


def _display(name: str) -> str:
    return f'<displayfeedback feedbacktype="Response" linkrefid="{name}"/>'


def _feedback(name: str, markup: str) -> str:
    return f'<itemfeedback ident="{name}"><flow_mat>{_material(markup)}</flow_mat></itemfeedback>'
