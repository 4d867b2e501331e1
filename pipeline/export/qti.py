"""A QTI 2.1 package: an item for each question, a test for each lesson, figures as SVG beside their items.

A question with parts is one item with an interaction for each part; its marks are the sum of theirs. Choices, numbers
and short answers are marked by the platform, words by a person. What explains an answer is shown after it only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pipeline.export import markup
from pipeline.export.base import Selection, packed
from pipeline.export.responses import CHOICE, ESSAY, MONEY, NUMBER, SHORT, Response, responses
from pipeline.html import slug
from pipeline.publish.questions import ShownQuestion
from pipeline.publish.view import CourseView, LessonView

_QTI = "http://www.imsglobal.org/xsd/imsqti_v2p1"
_LOM = "http://ltsc.ieee.org/xsd/LOM"
_SCHEMA = "http://www.imsglobal.org/xsd/qti/qtiv2p1"
_ROOT = markup.of_schema(_QTI, f"{_SCHEMA}/imsqti_v2p1.xsd")
_TEMPLATE = "http://www.imsglobal.org/question/qti_v2p1/rptemplates/map_response"
_SHOWN = "SHOWN"
_SET = '<setOutcomeValue identifier="{}">{}</setOutcomeValue>'
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
    yield f"{slug(markup.title(view.title))}{chosen.suffix}-qti21.zip", packed(made)


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
    title, *titles = (markup.quoted(markup.title(each["title"])) for each in (lesson.lesson, *lesson.cards))
    sections = [
        f'<assessmentSection identifier="section-{place}" title="{titles[place - 1]}" visible="true">'
        f"{''.join(item.reference for item in items if item.asked.card is card)}</assessmentSection>"
        for place, card in enumerate(lesson.cards, 1)
        if card.get("items")
    ]
    total = _SET.format("SCORE", '<sum><testVariables variableIdentifier="SCORE"/></sum>')
    return (
        f'<assessmentTest {_ROOT} identifier="{_name(view, lesson)}-test" title="{title}">'
        '<outcomeDeclaration identifier="SCORE" cardinality="single" baseType="float"/>'
        '<testPart identifier="part" navigationMode="nonlinear" submissionMode="individual">'
        f"{''.join(sections)}</testPart><outcomeProcessing>"
        f"{total}</outcomeProcessing></assessmentTest>"
    )


# --- items ------------------------------------------------------------------------------------------


class _Item:
    """A question as an assessment item."""

    def __init__(self, view: CourseView, lesson: LessonView, asked: ShownQuestion) -> None:
        self.lesson, self.asked, self._language = lesson, asked, markup.language(view)
        self.name = f"{_name(view, lesson)}-{asked.address.replace('.', '-')}"
        self.path = f"items/{lesson.file}/{asked.anchor}.xml"
        self.reference = f'<assessmentItemRef identifier="{self.name}" href="../{self.path}"/>'
        drawn = [each for each in markup.drawings(asked.item, asked.anchor) if each.drawn]
        self._pictures = {f"items/{lesson.file}/{each.file}": each.svg for each in drawn}
        self._responses = responses(asked)

    def files(self) -> dict[str, bytes]:
        return {self.path: markup.document(self._element()), **self._pictures}

    def resource(self) -> str:
        return _resource(self.name, "imsqti_item_xmlv2p1", [self.path, *self._pictures])

    def _element(self) -> str:
        title = markup.quoted(f"{self.lesson.order:02d}.{self.asked.number:02d} {markup.short(self.asked.ask)}")
        return (
            f'<assessmentItem {_ROOT} identifier="{self.name}" title="{title}" adaptive="false" timeDependent="false" '
            f'xml:lang="{self._language}">{"".join(map(_declared, self._responses))}{self._outcomes()}'
            f"<itemBody>{self._body()}</itemBody>{self._processing()}{self._feedback()}</assessmentItem>"
        )

    def _outcomes(self) -> str:
        parts = [_outcome(f"SCORE{each.suffix}", 0, each.marks) for each in self._responses if each.suffix]
        names = '<outcomeDeclaration identifier="{}" cardinality="single" baseType="identifier">{}</outcomeDeclaration>'
        chosen = names.format("FEEDBACK", "") if self.asked.options else ""
        shown = names.format("SOLUTION", f"<defaultValue><value>{_SHOWN}</value></defaultValue>")
        marks = self.asked.marks
        return "".join([_outcome("SCORE", 0, marks), _outcome("MAXSCORE", marks), *parts, chosen, shown])

    def _body(self) -> str:
        """Return what is asked and how it is answered; Canvas reads the texts of divisions and paragraphs only."""
        asks = markup.asks(self.asked) or [""]
        given = [ask + _interaction(each, self.asked) for ask, each in zip(asks, self._responses, strict=True)]
        return f"<div>{markup.stem(self.lesson, self.asked, lambda drawing: drawing.file)}</div>{''.join(given)}"

    def _processing(self) -> str:
        if [each.kind for each in self._responses] == [SHORT]:
            return f'<responseProcessing template="{_TEMPLATE}"/>'
        rules = "".join(map(_rule, self._responses))
        if self.asked.parts:
            terms = "".join(f'<variable identifier="SCORE{each.suffix}"/>' for each in self._responses)
            rules += _SET.format("SCORE", f"<sum>{terms}</sum>")
        if self.asked.options:
            rules += _SET.format("FEEDBACK", '<variable identifier="RESPONSE"/>')
        return f"<responseProcessing>{rules}</responseProcessing>" if rules else ""

    def _feedback(self) -> str:
        form = '<modalFeedback outcomeIdentifier="{}" identifier="{}" showHide="show">{}</modalFeedback>'
        whys = [form.format("FEEDBACK", each.letter, markup.blocks(each.why)) for each in self.asked.options]
        by_hand = any(each.kind == ESSAY for each in self._responses)
        return "".join([*whys, form.format("SOLUTION", _SHOWN, markup.solution(self.asked, scheme=by_hand))])


def _outcome(name: str, value: int, most: int = 0) -> str:
    bounds = f' normalMaximum="{most}"' if most else ""
    return (
        f'<outcomeDeclaration identifier="{name}" cardinality="single" baseType="float"{bounds}>'
        f"<defaultValue><value>{value}</value></defaultValue></outcomeDeclaration>"
    )


def _declared(response: Response) -> str:
    base = {CHOICE: "identifier", NUMBER: "float"}.get(response.kind, "string")
    rights = [response.number] if response.kind == NUMBER else [*map(markup.quoted, response.accepted)]
    more = ""
    if response.kind in (CHOICE, SHORT):
        case = ' caseSensitive="false"' if response.kind == SHORT else ""
        entries = "".join(f'<mapEntry mapKey="{each}" mappedValue="{response.marks}"{case}/>' for each in rights)
        more = f'<mapping lowerBound="0" upperBound="{response.marks}" defaultValue="0">{entries}</mapping>'
    correct = f"<correctResponse><value>{rights[0]}</value></correctResponse>" if rights else ""
    return (
        f'<responseDeclaration identifier="RESPONSE{response.suffix}" cardinality="single" baseType="{base}">'
        f"{correct}{more}</responseDeclaration>"
    )


def _interaction(response: Response, asked: ShownQuestion) -> str:
    name = f'responseIdentifier="RESPONSE{response.suffix}"'
    if response.kind == CHOICE:
        texts = ((option.letter, markup.line(option.text)) for option in asked.options)
        choices = "".join(f'<simpleChoice identifier="{letter}">{text}</simpleChoice>' for letter, text in texts)
        return f'<choiceInteraction {name} shuffle="false" maxChoices="1">{choices}</choiceInteraction>'
    if response.kind == ESSAY:
        return f'<extendedTextInteraction {name} expectedLines="{_LINES * response.marks}"/>'
    if response.kind == SHORT:
        note = f"<p>{response.note}</p>" if response.note else ""
        return f'<p><textEntryInteraction {name} expectedLength="{_LINE}"/></p>{note}'
    field, unit = f'<textEntryInteraction {name} expectedLength="{_NUMBER}"/>', markup.line(response.unit)
    return f"<p>{unit} {field}</p>" if response.unit in MONEY else f"<p>{' '.join(filter(None, (field, unit)))}</p>"


def _rule(response: Response) -> str:
    """Return what gives the marks of a response; nothing where a person does."""
    name, score = f'identifier="RESPONSE{response.suffix}"', f"SCORE{response.suffix}"
    if response.kind in (CHOICE, SHORT):
        return _SET.format(score, f"<mapResponse {name}/>")
    if response.kind == ESSAY:
        return ""
    off = response.tolerance
    mode = f'toleranceMode="absolute" tolerance="{off} {off}"' if off != "0" else 'toleranceMode="exact"'
    given = f"<equal {mode}><variable {name}/><correct {name}/></equal>"
    earned = _SET.format(score, f'<baseValue baseType="float">{response.marks}</baseValue>')
    return f"<responseCondition><responseIf>{given}{earned}</responseIf></responseCondition>"
