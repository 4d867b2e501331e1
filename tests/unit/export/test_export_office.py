"""Office files: what they hold, for whom, in which styles; formulas that Office edits; the same bytes each time."""

from __future__ import annotations

import copy
import io
import re
import zipfile
from collections.abc import Mapping
from typing import Any
from xml.etree import ElementTree

import pytest

from pipeline.export.base import TEACHER, Selection, audience, export
from pipeline.formulas.omml import MATHS, OfficeMaths
from pipeline.formulas.passages import Formula, line
from pipeline.publish.base import Bundle
from pipeline.publish.view import CourseView
from tests import publishing
from tests.sites import BUNDLES

pytest.importorskip("docx")
pptx = pytest.importorskip("pptx")
#: Fields that steer code, and options, which the order of their hashes needs as they are.
_STRUCTURE = frozenset({"kind", "tests", "method", "expression", "lines", "options", "more", "component"})
#: What no pupil may read.
SECRET = "SECRETWORD"


def made(bundle: Bundle, name: str, difficulty: str = "") -> dict[str, bytes]:
    view = CourseView(bundle)
    return export(Selection(view, view.lessons[:1], difficulty), [name])


def parts(data: bytes) -> dict[str, str]:
    """The XML parts of an Office file."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name).decode() for name in archive.namelist() if name.endswith((".xml", ".rels"))}


def secretive() -> Bundle:
    """The small course with a word that is in every text for teachers only."""
    bundle = publishing.bundle(lessons=1)
    lesson = bundle.lessons[0]["lesson"]
    for card in lesson["cards"]:
        for item in card.get("items") or ():
            _mark(item)
            for option in item.get("options") or ():
                option["why"] += f" {SECRET}"
            for part in item.get("parts") or ():
                part["answer"] += f" {SECRET}"
    for note in lesson["notes"]:
        note["text"] += f" {SECRET}"
    lesson["key_points"] = [f"{point} {SECRET}" for point in lesson["key_points"]]
    return bundle


def _mark(item: dict[str, Any]) -> None:
    item["feedback"] += f" {SECRET}"
    item["working"] = [f"{step} {SECRET}" for step in item["working"]]
    item["marks"] = [f"{mark} {SECRET}" for mark in item["marks"]]
    if item.get("answer"):
        item["answer"] += f" {SECRET}"


@pytest.mark.parametrize("name", ["docx", "pptx"])
def test_pupils_files_hold_no_answers(name: str) -> None:
    found = made(secretive(), name)
    for path, data in found.items():
        holds = any(SECRET in part for part in parts(data).values())
        assert holds == (audience(path) == TEACHER), path


@pytest.mark.parametrize("name", ["docx", "pptx"])
def test_the_same_course_is_the_same_bytes(name: str) -> None:
    assert made(copy.deepcopy(BUNDLES["model"]), name) == made(BUNDLES["model"], name)


def test_docx_has_three_worksheets_and_their_answers() -> None:
    stem = "docx/01-simplifying-surds-with-square-factors"
    kinds = ("support", "core", "challenge")
    expected = {f"{stem}-{kind}-{what}.docx" for kind in kinds for what in ("worksheet", "answers")}
    assert set(made(BUNDLES["model"], "docx")) == expected
    assert set(made(BUNDLES["model"], "docx", "core")) == {f"{stem}-core-worksheet.docx", f"{stem}-core-answers.docx"}


def worksheet(kind: str = "support") -> Mapping[str, str]:
    found = made(BUNDLES["model"], "docx")
    return parts(found[f"docx/01-simplifying-surds-with-square-factors-{kind}-worksheet.docx"])


def test_worksheet_is_a_document_that_office_knows() -> None:
    whole = worksheet()
    body, core = whole["word/document.xml"], whole["docProps/core.xml"]
    assert 'w:w="11906" w:h="16838"' in body or 'w:h="16838" w:w="11906"' in body
    assert '<dcterms:created xsi:type="dcterms:W3CDTF">1980-01-01T00:00:00Z' in core
    assert 'w:val="en-GB"' in whole["word/styles.xml"]
    assert {"Title", "Heading1", "Question", "Option", "ListParagraph", "TableText"} <= set(
        re.findall(r'w:pStyle w:val="(\w+)"', body)
    )
    footer = next(text for name, text in whole.items() if "footer" in name)
    header = next(text for name, text in whole.items() if "header" in name)
    assert 'w:instr="PAGE"' in footer
    assert "National 5 Mathematics · Lesson 1" in header
    for words in ("Name", "Date", "Words you need", "Worked example", "2\u00a0marks"):
        assert words in body
    assert "<m:oMath" in body


def test_room_goes_by_marks_and_by_the_answer() -> None:
    body = ElementTree.fromstring(worksheet("core")["word/document.xml"])
    word = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
    heights = [int(height.get(f"{word}val") or 0) for height in body.iter(f"{word}trHeight")]
    # 24 mm for two marks, 36 mm for three.
    assert {round(24 * 1440 / 25.4), round(36 * 1440 / 25.4)} <= set(heights)


def test_drawing_has_squared_paper_and_pictures_have_words() -> None:
    body = worksheet("core")["word/document.xml"]
    described = re.findall(r'<wp:docPr [^>]*descr="([^"]+)"', body)
    assert "Squared paper for your drawing" in described
    assert len(described) == body.count("<wp:docPr ")


def test_mock_exam_is_one_paper() -> None:
    view = CourseView(BUNDLES["mock"])
    exam = tuple(lesson for lesson in view.lessons if lesson.mock_exam)
    found = export(Selection(view, exam), ["docx"])
    assert [path.removeprefix(f"docx/{exam[0].file}-") for path in found] == ["paper.docx", "paper-answers.docx"]
    body = parts(next(iter(found.values())))["word/document.xml"]
    for words in ("Formulae list", "End of the paper.", "Time: 60 minutes", "Total: 9 marks", "Class"):
        assert words in body


@pytest.mark.parametrize("name", ["docx", "pptx"])
def test_text_that_no_file_can_hold_does_no_harm(name: str) -> None:
    bundle = publishing.bundle(lessons=1)
    bundle.lessons[0]["lesson"].update(publishing.poisoned(bundle.lessons[0]["lesson"], _STRUCTURE))
    for data in made(bundle, name).values():
        for part in parts(data).values():
            ElementTree.fromstring(part)
            assert "<script" not in part


# --- slides ---------------------------------------------------------------------------------------


def deck(bundle: Bundle = BUNDLES["model"]) -> Any:
    ((path, data),) = made(bundle, "pptx").items()
    assert path == "pptx/01-simplifying-surds-with-square-factors-slides.pptx"
    return pptx.Presentation(io.BytesIO(data))


def test_each_slide_has_a_title_of_its_own_and_all_questions_are_there() -> None:
    titles = [slide.shapes.title.text for slide in deck().slides]
    assert len(set(titles)) == len(titles)
    asked = [title for title in titles if "question" in title]
    assert len(asked) == len(CourseView(BUNDLES["model"]).lessons[0].questions)
    assert {"Words you need", "What a surd is: not an example", "Watch out: mistake 1"} <= set(titles)


def test_mistakes_are_counted_as_the_slides_come() -> None:
    bundle = publishing.bundle(lessons=1)
    next(card for card in bundle.lessons[0]["lesson"]["cards"] if card["kind"] == "explainer")["mistakes"] = [2, 1]
    slides = [slide for slide in deck(bundle).slides if slide.shapes.title.text.startswith("Watch out")]
    assert [slide.shapes.title.text for slide in slides] == ["Watch out: mistake 1", "Watch out: mistake 2"]
    assert "Only products can be split" in slides[0].placeholders[1].text_frame.text


def test_figures_are_as_large_as_their_room_on_a_slide() -> None:
    slide = next(slide for slide in deck().slides if slide.shapes.title.text.endswith("look at this"))
    (width,) = [shape.width / 12_700 for shape in slide.shapes if shape.shape_type == 13]
    assert width > 379


def test_everything_is_inside_its_slide_and_large_enough() -> None:
    made_deck = deck()
    assert (made_deck.slide_width, made_deck.slide_height) == (12_192_000, 6_858_000)
    for slide in made_deck.slides:
        for shape in slide.shapes:
            assert shape.left >= 0
            assert shape.top >= 0
            assert shape.left + shape.width <= made_deck.slide_width, slide.shapes.title.text
            assert shape.top + shape.height <= made_deck.slide_height, slide.shapes.title.text
            if shape.has_text_frame and not (shape.is_placeholder and shape.placeholder_format.type in (13, 15)):
                sizes = [run.font.size.pt for row in shape.text_frame.paragraphs for run in row.runs if run.font.size]
                assert min(sizes, default=18) >= 18


def test_what_is_too_long_for_a_slide_goes_on_to_the_next() -> None:
    bundle = publishing.bundle(lessons=1)
    bundle.lessons[0]["lesson"]["cards"][0]["items"][0]["ask"] = "\n\n".join(
        ["Long words of a long question. " * 9] * 8
    )
    titles = [slide.shapes.title.text for slide in deck(bundle).slides]
    assert {f"Starter: question 1 (1 mark) ({place} of 3)" for place in (1, 2, 3)} <= set(titles)


def test_pictures_of_slides_say_what_they_show() -> None:
    described = [
        shape._element.nvPicPr.cNvPr.get("descr") or ""
        for slide in deck().slides
        for shape in slide.shapes
        if shape.shape_type == 13
    ]
    assert any("the square root of" in words for words in described)
    assert all(described)


@pytest.mark.parametrize(
    ("text", "runs"),
    [
        (r"Find \(x^{\frac{1}{2}}\).", [("Find x", 0), ("1/2", 30), (".", 0)]),
        (r"Find \(x^{2}\).", [("Find x²", 0), (".", 0)]),
        ("Find x^2.", [("Find x", 0), ("2", 30), (".", 0)]),
        (r"The value \(v_{qz}\) is", [("The value v", 0), ("qz", -30), (" is", 0)]),
    ],
)
def test_powers_and_indices_in_sentences_are_raised_and_lowered(text: str, runs: list[tuple[str, int]]) -> None:
    bundle = publishing.bundle(lessons=1)
    bundle.lessons[0]["lesson"]["cards"][0]["items"][0]["ask"] = text
    slide = next(slide for slide in deck(bundle).slides if slide.shapes.title.text.startswith("Starter: question 1"))
    paragraph = slide.placeholders[1].text_frame.paragraphs[0]
    found = [(run.text, int(run._r.rPr.get("baseline", "0")) // 1000) for run in paragraph.runs]
    merged = [(t, b) for t, b in found if t]
    assert "".join(text for text, _ in merged) == "".join(text for text, _ in runs)
    assert [level for _, level in merged if level] == [level for _, level in runs if level]


def test_line_breaks_of_a_source_stay_lines() -> None:
    bundle = publishing.bundle(lessons=1)
    bundle.lessons[0]["lesson"]["cards"][0]["items"][0]["ask"] = "We slept beside the boats.\nA tenant, 1883"
    slide = next(slide for slide in deck(bundle).slides if slide.shapes.title.text.startswith("Starter: question 1"))
    assert slide.placeholders[1].text_frame.text.startswith("We slept beside the boats.\vA tenant, 1883")


def test_an_option_that_is_a_picture_has_its_letter() -> None:
    slide = next(slide for slide in deck().slides if slide.shapes.title.text.startswith("Check: question 3"))
    numbered = [
        (int(mark.get("startAt")), shape.text_frame.text)
        for shape in slide.shapes
        if shape.has_text_frame
        for mark in shape._element.iter("{*}buAutoNum")
    ]
    assert numbered == [(1, "\u00a0"), (2, "\u00a0"), (3, "\u00a0")]
    assert sum(shape.shape_type == 13 for shape in slide.shapes) == 3


def test_an_essay_has_room_to_be_written() -> None:
    bundle = publishing.bundle(lessons=1)
    essay = publishing.item("Both sides had reasons, and the judgement weighs them.", 1)
    bundle.lessons[0]["lesson"]["cards"][4]["items"][3] = essay | {"marks": ["one more point"] * 20}
    path = "docx/01-simplifying-surds-with-square-factors-core-worksheet.docx"
    body = ElementTree.fromstring(parts(made(bundle, "docx", "core")[path])["word/document.xml"])
    word = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
    lines = [
        height for height in body.iter(f"{word}trHeight") if height.get(f"{word}val") == str(round(9 * 1440 / 25.4))
    ]
    # 216 mm of lines, and the line for the name.
    assert len(lines) == 216 // 9 + 1


def test_marks_for_words_have_no_column_of_what_is_expected() -> None:
    bundle = publishing.bundle(lessons=1)
    words = publishing.item("Both sides had reasons.", 1)
    bundle.lessons[0]["lesson"]["cards"][4]["items"][3] = words | {"marks": ["names the reasons", "weighs them"]}
    path = "docx/01-simplifying-surds-with-square-factors-core-answers.docx"
    body = parts(made(bundle, "docx", "core")[path])["word/document.xml"]
    table = next(found for found in re.findall(r"<w:tbl>.*?</w:tbl>", body, re.DOTALL) if "weighs them" in found)
    assert re.findall(r"<w:t[^>]*>([^<]+)</w:t>", table) == [
        "Give the mark for", "Mark", "names the reasons", "1", "weighs them", "1", "Total", "2",
    ]  # fmt: skip


def test_large_formula_of_a_sentence_stands_below_it_as_a_picture() -> None:
    bundle = publishing.bundle(lessons=1)
    bundle.lessons[0]["lesson"]["cards"][0]["items"][0]["ask"] = r"Simplify \(\frac{x+1}{x-2}\). Show your steps."
    slide = next(slide for slide in deck(bundle).slides if slide.shapes.title.text.startswith("Starter: question 1"))
    texts = [shape.text_frame.text for shape in slide.shapes if shape.has_text_frame]
    assert "Simplify" in texts
    assert any(text.startswith("Show your steps.") for text in texts)


# --- formulas --------------------------------------------------------------------------------------


def office(tex: str) -> str:
    """Office's mathematics of a formula, as letters: its tags, and texts in quotation marks."""
    from lxml import etree

    (formula,) = line(rf"\({tex}\)")
    assert isinstance(formula, Formula)
    shown = etree.tostring(OfficeMaths().formula(formula.content)).decode()
    return _said(ElementTree.fromstring(shown))


def _said(node: ElementTree.Element) -> str:
    tag = node.tag.removeprefix(f"{{{MATHS}}}")
    if tag.startswith("{") or tag in ("rPr", "ctrlPr"):
        return ""
    if tag == "r":
        return "".join(child.text or "" for child in node if child.tag.endswith("}t"))
    value = node.get(f"{{{MATHS}}}val")
    inside = "".join(map(_said, node))
    return f"[{tag}{'=' + value if value is not None else ''}{' ' if inside else ''}{inside}]"


@pytest.mark.parametrize(
    ("tex", "expected"),
    [
        (r"\frac{1}{2}x", "[oMath [f [num 1][den 2]]x]"),
        (r"x^{2}_{1}", "[oMath [sSubSup [e x][sub 1][sup 2]]]"),
        (r"\sqrt{x}", "[oMath [rad [radPr [degHide=1]][deg][e x]]]"),
        (r"\sqrt[3]{8}", "[oMath [rad [radPr][deg 3][e 8]]]"),
        (r"(x+1)^2", "[oMath [sSup [e [d [dPr [begChr=(][endChr=)]][e x+1]]][sup 2]]]"),
        (r"\overline{AB}", "[oMath [bar [barPr [pos=top]][e AB]]]"),
        (r"\vec{u}", "[oMath [acc [accPr [chr=\u20d7]][e u]]]"),
        (r"|x|", "[oMath |x|]"),
        (
            r"\int_{0}^{1} x = 2",
            "[oMath [nary [naryPr [chr=∫][limLoc=subSup]][sub 0][sup 1][e \u2009x]]=2]",
        ),
        (
            r"\begin{cases}1 & a\\2\end{cases}",
            "[oMath [d [dPr [begChr={][endChr=]][e [m [mPr [plcHide=1][mcs [mc [mcPr [count=1][mcJc=left]]]"
            "[mc [mcPr [count=1][mcJc=left]]]]][mr [e 1][e a]][mr [e 2][e]]]]]]",
        ),
        (r"\lim_{x \to 0} x", "[oMath [limLow [e lim][lim x→0]]\u2009x]"),
        (r"3\text{ m}", "[oMath 3\u00a0m]"),
    ],
)
def test_formula_becomes_office_mathematics(tex: str, expected: str) -> None:
    assert office(tex) == expected
