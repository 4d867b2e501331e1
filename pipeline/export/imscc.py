"""A Common Cartridge 1.1: for each lesson a page without answers to its questions, and a quiz (QTI 1.2) of them.

A question with parts is one essay question with the marks of all of them: the profile has one answer a question.
Numbers and short answers are compared as texts, so all usual ways to write one are accepted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any

from pipeline.export import markup
from pipeline.export.base import Selection, packed
from pipeline.export.responses import CHOICE, ESSAY, Response, whole
from pipeline.html import Html, el, join, slug
from pipeline.publish import prose
from pipeline.publish.lesson_page import LessonText
from pipeline.publish.prose import inline
from pipeline.publish.questions import ShownQuestion
from pipeline.publish.view import CourseView, LessonView

_CC = "http://www.imsglobal.org/xsd/imsccv1p1"
_LOM = "http://ltsc.ieee.org/xsd/imsccv1p1/LOM/manifest"
_QTI = "http://www.imsglobal.org/xsd/ims_qtiasiv1p2"
_PROFILE = "http://www.imsglobal.org/profile/cc/ccv1p1"
#: The folder of a quiz, as texts in it name it.
_BASE = "$IMS-CC-FILEBASE$"
_QUIZ = "imsqti_xmlv1p2/imscc_xmlv1p1/assessment"
_ASSESSMENT = {
    "cc_profile": "cc.exam.v0p1", "qmd_assessmenttype": "Examination", "qmd_scoretype": "Percentage",
    "qmd_feedbackpermitted": "Yes", "qmd_hintspermitted": "No", "qmd_solutionspermitted": "No",
    "cc_maxattempts": "unlimited",
}  # fmt: skip
_EQUAL = '<varequal respident="response"{}>{}</varequal>'
_EARNED = '<setvar varname="SCORE" action="Set">100</setvar>'
#: A drawing of a page; what names it begins with the name of its figure. And the kind and minutes of a card.
_DRAWING = re.compile(r'<svg [^>]*aria-labelledby="([a-z0-9-]+)-t".*?</svg>', re.DOTALL)
_KIND = re.compile(r'<p class="kind">.*?</p>')
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
    made["imsmanifest.xml"] = markup.document(_manifest(view, items, resources))
    yield f"{slug(markup.title(view.title))}{chosen.suffix}.imscc", packed(made)


# --- manifest ---------------------------------------------------------------------------------------


def _manifest(view: CourseView, items: Sequence[str], resources: Sequence[str]) -> str:
    namespace = f"{_CC}/imscp_v1p1"
    schemas = [f"{_PROFILE}/ccv1p1_imscp_v1p2_v1p0.xsd", _LOM, f"{_PROFILE}/LOM/ccv1p1_lommanifest_v1p0.xsd"]
    texts = (markup.named(view), view.rights_line)
    said, rights = (f'<lom:string language="en">{markup.quoted(text)}</lom:string>' for text in texts)
    name, root = view.bundle.course["course_id"], markup.of_schema(namespace, *schemas)
    return (
        f'<manifest identifier="{name}" xmlns:lom="{_LOM}" {root}>'
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
    """Hold the parts of a lesson in a cartridge."""

    def __init__(self, view: CourseView, lesson: LessonView) -> None:
        self._view, self._lesson = view, lesson
        self._name = f"l{lesson.order:02d}"
        self._title = markup.quoted(f"{lesson.order:02d} {markup.title(lesson.title)}")
        self._page, self._quiz = f"pages/{lesson.file}.html", f"quizzes/{lesson.file}.xml"
        owners = [(f"s{place}", card) for place, card in enumerate(lesson.cards, 1)]
        owners += [
            (f"{anchor}-e{place}", example)
            for anchor, card in owners
            for place, example in enumerate(card.get("examples") or (), 1)
        ]
        self._asked = [each for one in lesson.questions for each in markup.drawings(one.item, one.anchor) if each.drawn]
        others = [each for anchor, owner in owners for each in markup.drawings(owner, anchor) if each.drawn]
        self._drawn = {each.name: each for each in others}

    def _path(self, drawing: markup.Drawing) -> str:
        return f"figures/{self._name}-{drawing.file}"

    def files(self) -> dict[str, bytes]:
        """Return the page, the quiz and the figures of both."""
        made = {self._page: self._html().encode()}
        if self._lesson.questions:
            made[self._quiz] = markup.document(self._assessment())
        return made | {self._path(each): each.svg for each in (*self._drawn.values(), *self._asked)}

    def resources(self) -> list[str]:
        """Return the entries of the manifest."""
        name, kind = self._name, "webcontent"
        drawn = (*self._drawn.values(), *self._asked)
        made = [_resource(f"{name}-{each.name}", kind, self._path(each)) for each in drawn]
        made.append(_resource(f"{name}-page", kind, self._page, [f"{name}-{each}" for each in self._drawn]))
        if self._lesson.questions:
            made.append(_resource(f"{name}-quiz", _QUIZ, self._quiz, [f"{name}-{each.name}" for each in self._asked]))
        return made

    def item(self) -> str:
        """Return its place in the contents."""
        lesson, name, title = self._lesson, self._name, self._title
        rows = [(f"{name}-page", "Lesson")]
        rows += [(f"{name}-quiz", "Questions")] if lesson.questions else []
        held = "".join(
            f'<item identifier="{ref}-item" identifierref="{ref}"><title>{kind}: {title}</title></item>'
            for ref, kind in rows
        )
        return f'<item identifier="{name}"><title>{title}</title>{held}</item>'

    def _html(self) -> str:
        """Return the page: what the site has but for its questions, with drawings as files, as platforms drop SVG."""
        lesson, text = self._lesson, LessonText(self._view, self._lesson)
        sections = [self._asked_of(card) or text.section(card, place) for place, card in enumerate(lesson.cards, 1)]
        head = el("head", el("meta", charset="utf-8"), el("title", markup.title(lesson.title)))
        first = [el("h1", inline(lesson.title)), el("p", inline(lesson.lesson["outcome"]))]
        body = el("body", first, text.sheets() if lesson.mock_exam else text.words(), sections)
        page = _KIND.sub("", markup.bare(el("html", head, body, lang=markup.language(self._view))))
        return f"<!DOCTYPE html>\n{_DRAWING.sub(lambda found: self._image(found[1]), page)}\n"

    def _asked_of(self, card: Mapping[str, Any]) -> Html | None:
        """Return what the page says of a card of questions."""
        asked = self._lesson.questions_of(card)
        if not asked:
            return None
        first, last = asked[0].number, asked[-1].number
        numbers = f"Questions {first} to {last}" if len(asked) > 1 else f"Question {first}"
        told = prose.blocks(card["instructions"]) if card.get("instructions") else None
        return join([el("h2", inline(card["title"])), told, el("p", f"{numbers} of the quiz.")])

    def _image(self, name: str) -> str:
        return self._drawn[name].image(f"../{self._path(self._drawn[name])}")

    # --- the quiz -----------------------------------------------------------------------------------

    def _assessment(self) -> str:
        lesson = self._lesson
        items = "".join(map(self._question, lesson.questions))
        return (
            f"<questestinterop {markup.of_schema(_QTI, f'{_PROFILE}/ccv1p1_qtiasiv1p2p1_v1p0.xsd')}>"
            f'<assessment ident="{self._name}-quiz" title="{self._title}">'
            f'<qtimetadata>{_fields(_ASSESSMENT)}</qtimetadata><section ident="root_section">{items}</section>'
            "</assessment></questestinterop>"
        )

    def _question(self, asked: ShownQuestion) -> str:
        response = whole(asked)
        texts = [markup.stem(self._lesson, asked, lambda each: f"{_BASE}../{self._path(each)}"), *markup.asks(asked)]
        texts += [f"<p>{response.note}</p>"] if response.note else []
        profile = {CHOICE: "multiple_choice", ESSAY: "essay"}.get(response.kind, "fib")
        fields = {"cc_profile": f"cc.{profile}.v0p1", "cc_weighting": str(min(asked.marks, _MOST))}
        fields |= {"qmd_computerscored": "No"} if response.kind == ESSAY else {}
        feedback = {"general_fb": markup.solution(asked, scheme=response.kind == ESSAY)}
        feedback |= {f"{option.letter}_fb": markup.blocks(option.why) for option in asked.options}
        shown = (
            f'<itemfeedback ident="{name}"><flow_mat>{_material(text)}</flow_mat></itemfeedback>'
            for name, text in feedback.items()
        )
        title = markup.quoted(f"{asked.number}. {markup.short(asked.ask)}")
        return (
            f'<item ident="{self._name}-{asked.anchor}" title="{title}"><itemmetadata><qtimetadata>{_fields(fields)}'
            f"</qtimetadata></itemmetadata><presentation>{_material(''.join(texts))}{_given(asked)}</presentation>"
            f"<resprocessing>{_processing(asked, response)}</resprocessing>{''.join(shown)}</item>"
        )


def _fields(fields: Mapping[str, str]) -> str:
    form = "<qtimetadatafield><fieldlabel>{}</fieldlabel><fieldentry>{}</fieldentry></qtimetadatafield>"
    return "".join(form.format(*each) for each in fields.items())


def _material(text: str) -> str:
    return f'<material><mattext texttype="text/html">{escape(markup.bare(text), quote=False)}</mattext></material>'


def _given(asked: ShownQuestion) -> str:
    if not asked.options:
        return '<response_str ident="response" rcardinality="Single"><render_fib/></response_str>'
    texts = ((option.letter, _material(markup.line(option.text))) for option in asked.options)
    labels = "".join(f'<response_label ident="{letter}">{text}</response_label>' for letter, text in texts)
    return (
        f'<response_lid ident="response" rcardinality="Single"><render_choice>{labels}</render_choice></response_lid>'
    )


def _processing(asked: ShownQuestion, response: Response) -> str:
    """Return what gives marks and feedback; Moodle takes the feedback of all conditions that go on as the general one.

    Texts that are right stand in one condition, where Canvas and Moodle look for them.
    """
    rules = [_condition("Yes", "<other/>", _display("general_fb"))]
    for option in asked.options:
        earned = _EARNED if option.right else ""
        rules.append(_condition("No", _EQUAL.format("", option.letter), earned + _display(f"{option.letter}_fb")))
    if response.accepted and not asked.options:
        ways = (_EQUAL.format(' case="No"', markup.quoted(way)) for way in response.accepted)
        rules.append(_condition("No", "".join(ways), _EARNED))
    declared = '<decvar varname="SCORE" vartype="Decimal" minvalue="0" maxvalue="100"/>'
    return f"<outcomes>{declared}</outcomes>{''.join(rules)}"


def _condition(goes_on: str, tested: str, done: str) -> str:
    return f'<respcondition continue="{goes_on}"><conditionvar>{tested}</conditionvar>{done}</respcondition>'


def _display(name: str) -> str:
    return f'<displayfeedback feedbacktype="Response" linkrefid="{name}"/>'
