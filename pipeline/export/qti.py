"""A QTI 2.1 package: an item for each question, a test for each lesson, figures as SVG beside their items.

A question with parts is one item with an interaction for each part; its marks are the sum of theirs. Choices, numbers
and short answers are marked by the platform, words by a person. What explains an answer is shown after it only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from functools import partial

from pipeline.export import markup
from pipeline.export.base import Selection, packed
from pipeline.export.plain_text import plain
from pipeline.export.responses import CHOICE, ESSAY, NUMBER, SHORT, Response, part_label, responses
from pipeline.html import slug
from pipeline.publish.questions import ShownQuestion
from pipeline.publish.view import CourseView, LessonView

_QTI = "http://www.imsglobal.org/xsd/imsqti_v2p1"
_LOM = "http://ltsc.ieee.org/xsd/LOM"
_SCHEMA = "http://www.imsglobal.org/xsd/qti/qtiv2p1"
_ROOT = markup.of_schema(_QTI, f"{_SCHEMA}/imsqti_v2p1.xsd")
_TEMPLATE = "http://www.imsglobal.org/question/qti_v2p1/rptemplates/map_response"
_SHOWN = "SHOWN"
#: Lines to write in for a mark, and characters of a field for a number and for a line.
_LINES, _NUMBER, _LINE = 3, 10, 30


def files(chosen: Selection) -> Iterator[tuple[str, bytes]]:
    """Yield the one package."""
    view = chosen.view
    made: dict[str, bytes] = {}
    resources: list[str] = []
    for lesson in chosen.lessons:
        items = [_Item(view, lesson, asked) for asked in lesson.questions]
        for item in items:
            made |= item.files()
            resources.append(item.resource())
        if items:
            path = f"tests/{lesson.file}.xml"
            made[path] = markup.document(_test(view, lesson, items))
            needed = "".join(f'<dependency identifierref="{item.name}"/>' for item in items)
            resources.append(_resource(f"{_name(view, lesson)}-test", "imsqti_test_xmlv2p1", [path], needed))
    made["imsmanifest.xml"] = markup.document(_manifest(view, resources))
    yield f"{slug(plain(view.title))}{chosen.suffix}-qti21.zip", packed(made)


def _name(view: CourseView, lesson: LessonView) -> str:
    return f"{view.bundle.course['course_id']}-l{lesson.order:02d}"


# --- package and tests ------------------------------------------------------------------------------


def _manifest(view: CourseView, resources: Sequence[str]) -> str:
    namespace, schema = "http://www.imsglobal.org/xsd/imscp_v1p1", f"{_SCHEMA}/qtiv2p1_imscpv1p2_v1p0.xsd"
    texts = (markup.named(view), view.rights_line)
    title, rights = (f'<string language="en">{markup.quoted(text)}</string>' for text in texts)
    about = (
        f'<lom xmlns="{_LOM}"><general><title>{title}</title></general>'
        f"<rights><description>{rights}</description></rights></lom>"
    )
    return (
        f'<manifest identifier="{view.bundle.course["course_id"]}" {markup.of_schema(namespace, schema)}>'
        f"<metadata><schema>QTIv2.1 Package</schema><schemaversion>1.0.0</schemaversion>{about}</metadata>"
        f"<organizations/><resources>{''.join(resources)}</resources></manifest>"
    )


def _resource(name: str, kind: str, paths: Sequence[str], needed: str = "") -> str:
    held = "".join(f'<file href="{path}"/>' for path in paths)
    return f'<resource identifier="{name}" type="{kind}" href="{paths[0]}">{held}{needed}</resource>'


def _test(view: CourseView, lesson: LessonView, items: Sequence[_Item]) -> str:
    sections = []
    for place, card in enumerate(lesson.cards, 1):
        refs = "".join(
            f'<assessmentItemRef identifier="{item.name}" href="../{item.path}"/>'
            for item in items
            if item.asked.card is card
        )
        if refs:
            title = markup.quoted(plain(card["title"]))
            sections.append(
                f'<assessmentSection identifier="section-{place}" title="{title}" visible="true">{refs}'
                "</assessmentSection>"
            )
    return (
        f'<assessmentTest {_ROOT} identifier="{_name(view, lesson)}-test" '
        f'title="{markup.quoted(plain(lesson.title))}">'
        '<outcomeDeclaration identifier="SCORE" cardinality="single" baseType="float"/>'
        '<testPart identifier="part" navigationMode="nonlinear" submissionMode="individual">'
        f"{''.join(sections)}</testPart>"
        '<outcomeProcessing><setOutcomeValue identifier="SCORE"><sum><testVariables variableIdentifier="SCORE"/></sum>'
        "</setOutcomeValue></outcomeProcessing></assessmentTest>"
    )


# --- items ------------------------------------------------------------------------------------------


class _Item:
    """A question as an assessment item."""

    def __init__(self, view: CourseView, lesson: LessonView, asked: ShownQuestion) -> None:
        self.lesson, self.asked, self._language = lesson, asked, markup.language(view)
        self.name = f"{_name(view, lesson)}-{asked.address.replace('.', '-')}"
        self.folder = f"items/{lesson.file}"
        self.path = f"{self.folder}/{asked.anchor}.xml"
        self._drawings = [each for each in markup.drawings(asked.item, asked.anchor) if each.drawn]
        found = responses(asked)
        labels = [f"RESPONSE_{part_label(part)}" for part in asked.parts] or ["RESPONSE"]
        marks = [part.marks for part in asked.parts] or [asked.marks]
        #: Identifier, response and marks of each thing that is asked.
        self._rows = list(zip(labels, found, marks, strict=True))

    def files(self) -> dict[str, bytes]:
        pictures = {f"{self.folder}/{drawing.file}": drawing.svg for drawing in self._drawings}
        return {self.path: markup.document(self._element()), **pictures}

    def resource(self) -> str:
        pictures = [f"{self.folder}/{drawing.file}" for drawing in self._drawings]
        return _resource(self.name, "imsqti_item_xmlv2p1", [self.path, *pictures])

    def _element(self) -> str:
        asked = self.asked
        title = markup.quoted(f"{self.lesson.order:02d}.{asked.number:02d} {markup.short(asked.ask)}")
        declared = "".join(_declared(name, response, marks, asked) for name, response, marks in self._rows)
        return (
            f'<assessmentItem {_ROOT} identifier="{self.name}" title="{title}" '
            f'adaptive="false" timeDependent="false" xml:lang="{self._language}">{declared}{self._outcomes()}'
            f"<itemBody>{self._body()}</itemBody>{self._processing()}{self._feedback()}</assessmentItem>"
        )

    def _outcomes(self) -> str:
        whole = _outcome("SCORE", 0, self.asked.marks)
        parts = [_outcome(_score(name), 0, marks) for name, _, marks in self._rows if self.asked.parts]
        chosen = '<outcomeDeclaration identifier="FEEDBACK" cardinality="single" baseType="identifier"/>'
        shown = (
            '<outcomeDeclaration identifier="SOLUTION" cardinality="single" baseType="identifier">'
            f"<defaultValue><value>{_SHOWN}</value></defaultValue></outcomeDeclaration>"
        )
        return "".join(
            [whole, _outcome("MAXSCORE", self.asked.marks), *parts, chosen if self.asked.options else "", shown]
        )

    def _body(self) -> str:
        """Return what is asked and how it is answered; Canvas reads the texts of divisions and paragraphs only."""
        text = f"<div>{markup.stem(self.lesson, self.asked, lambda drawing: drawing.file)}</div>"
        asks = [markup.labelled(part.label, part.ask, part.marks) for part in self.asked.parts] or [""]
        return text + "".join(
            ask + _interaction(name, response, marks, self.asked)
            for ask, (name, response, marks) in zip(asks, self._rows, strict=True)
        )

    def _processing(self) -> str:
        if self.asked.options:
            chosen = _set("FEEDBACK", '<variable identifier="RESPONSE"/>')
            return f"<responseProcessing>{_set('SCORE', _mapped('RESPONSE'))}{chosen}</responseProcessing>"
        if not self.asked.parts:
            name, response, marks = self._rows[0]
            if response.kind == SHORT:
                return f'<responseProcessing template="{_TEMPLATE}"/>'
            rules = _rule("SCORE", name, response, marks)
            return f"<responseProcessing>{rules}</responseProcessing>" if rules else ""
        rules = "".join(_rule(_score(name), name, response, marks) for name, response, marks in self._rows)
        terms = "".join(f'<variable identifier="{_score(name)}"/>' for name, _, _ in self._rows)
        return f"<responseProcessing>{rules}{_set('SCORE', f'<sum>{terms}</sum>')}</responseProcessing>"

    def _feedback(self) -> str:
        show = partial(
            '<modalFeedback outcomeIdentifier="{}" identifier="{}" showHide="show">{}</modalFeedback>'.format
        )
        by_hand = any(response.kind == ESSAY for _, response, _ in self._rows)
        whys = [show("FEEDBACK", option.letter, markup.blocks(option.why)) for option in self.asked.options]
        return "".join([*whys, show("SOLUTION", _SHOWN, markup.solution(self.asked, scheme=by_hand))])


def _score(response: str) -> str:
    return response.replace("RESPONSE", "SCORE")


def _outcome(name: str, value: int, most: int = 0) -> str:
    bounds = f' normalMaximum="{most}"' if most else ""
    return (
        f'<outcomeDeclaration identifier="{name}" cardinality="single" baseType="float"{bounds}>'
        f"<defaultValue><value>{value}</value></defaultValue></outcomeDeclaration>"
    )


def _declared(name: str, response: Response, marks: int, asked: ShownQuestion) -> str:
    base = {CHOICE: "identifier", NUMBER: "float"}.get(response.kind, "string")
    rights, more = [], ""
    if response.kind == CHOICE and asked.key:
        rights = [asked.key.letter]
    elif response.kind == NUMBER:
        rights = [response.number]
    elif response.kind == SHORT:
        rights = list(map(markup.quoted, response.accepted))
        more = ' caseSensitive="false"'
    if response.kind in (CHOICE, SHORT):
        entries = "".join(f'<mapEntry mapKey="{right}" mappedValue="{marks}"{more}/>' for right in rights)
        more = f'<mapping lowerBound="0" upperBound="{marks}" defaultValue="0">{entries}</mapping>'
    correct = f"<correctResponse><value>{rights[0]}</value></correctResponse>" if rights else ""
    return (
        f'<responseDeclaration identifier="{name}" cardinality="single" baseType="{base}">{correct}{more}'
        "</responseDeclaration>"
    )


def _interaction(name: str, response: Response, marks: int, asked: ShownQuestion) -> str:
    if response.kind == CHOICE:
        texts = ((option.letter, markup.line(option.text)) for option in asked.options)
        choices = "".join(f'<simpleChoice identifier="{letter}">{text}</simpleChoice>' for letter, text in texts)
        given = f'responseIdentifier="{name}" shuffle="false" maxChoices="1"'
        return f"<choiceInteraction {given}>{choices}</choiceInteraction>"
    if response.kind == ESSAY:
        lines = _LINES * marks
        return f'<extendedTextInteraction responseIdentifier="{name}" expectedLines="{lines}"/>'
    length = _NUMBER if response.kind == NUMBER else _LINE
    field = f'<textEntryInteraction responseIdentifier="{name}" expectedLength="{length}"/>'
    unit = markup.line(response.unit)
    before, after = (f"{unit} ", "") if response.unit in ("£", "$", "€") else ("", f" {unit}" if unit else "")
    return f"<p>{before}{field}{after}</p>{markup.paragraph(response.note if response.kind == SHORT else '')}"


def _set(outcome: str, value: str) -> str:
    return f'<setOutcomeValue identifier="{outcome}">{value}</setOutcomeValue>'


def _mapped(name: str) -> str:
    return f'<mapResponse identifier="{name}"/>'


def _rule(outcome: str, name: str, response: Response, marks: int) -> str:
    """Return what gives the marks of a response; nothing where a person does."""
    if response.kind == SHORT:
        return _set(outcome, _mapped(name))
    if response.kind != NUMBER:
        return ""
    off = response.tolerance
    mode = f'toleranceMode="absolute" tolerance="{off} {off}"' if Decimal(off) else 'toleranceMode="exact"'
    given = f'<equal {mode}><variable identifier="{name}"/><correct identifier="{name}"/></equal>'
    earned = _set(outcome, f'<baseValue baseType="float">{marks}</baseValue>')
    return f"<responseCondition><responseIf>{given}{earned}</responseIf></responseCondition>"
