"""Worksheets, papers and answers as PDF: set, tagged, the same each time, and no answer in a pupil's file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from pipeline.errors import PublishError
from pipeline.export import paper, paper_data, pdf
from pipeline.export.base import DIFFICULTIES, Selection
from pipeline.export.paper import documents
from pipeline.export.worksheet import Worksheet, sheets
from pipeline.publish import tex
from pipeline.publish.base import Bundle
from pipeline.publish.view import CourseView
from tests import publishing
from tests.sites import BUNDLES

pytest.importorskip("typst")

#: What typst would run, or stop at, if a text were read as its markup.
HOSTILE = '#panic("run") #import "x.typ" #read("/etc/passwd") ] } ) " <label> @nobody // /* = - + *b* _i_ ` \'\' ~ --- https://x.y'
SECRET = "Kestrel"
#: Fields of a question that only the teacher sees.
TEACHERS = ("answer", "marks", "feedback", "error", "why")


def view(bundle: Bundle) -> CourseView:
    return CourseView(bundle)


def printed(bundle: Bundle) -> Iterator[tuple[CourseView, Worksheet]]:
    made = view(bundle)
    for lesson in made.lessons:
        yield from ((made, sheet) for sheet in sheets(lesson, DIFFICULTIES))


def document(blocks: list[dict[str, Any]]) -> dict[str, Any]:
    named = dict.fromkeys(("title", "foot", "about", "rights"), "T")
    return {**named, "lang": "en", "region": None, "paper": "a4", "size": 11, "blocks": blocks}


@pytest.mark.parametrize("name", ["model", "draft", "mock", "empty"])
def test_each_sheet_and_its_answers_are_set_as_tagged_pdf(name: str) -> None:
    made = view(BUNDLES[name])
    files = dict(pdf.files(Selection(made, made.lessons)))
    names = [name for _, sheet in printed(BUNDLES[name]) for name in (sheet.name, sheet.answers_name)]
    assert sorted(files) == sorted(f"{name}.pdf" for name in names)
    for data in files.values():
        assert data.startswith(b"%PDF-1.7")
        assert b"/StructTreeRoot" in data
        assert b"<pdfuaid:part>1</pdfuaid:part>" in data


def test_the_same_course_gives_the_same_bytes() -> None:
    made = view(BUNDLES["model"])
    chosen = Selection(made, made.lessons[:1], "core")
    assert list(pdf.files(chosen)) == list(pdf.files(chosen))


def test_a_mock_exam_has_a_front_page_for_each_paper() -> None:
    (made, sheet), *_ = [pair for pair in printed(BUNDLES["mock"]) if pair[1].lesson.mock_exam]
    blocks = paper.pupils_document(made, sheet)["blocks"]
    covers = [block for block in blocks if block["k"] == "cover"]
    assert len(covers) == len(sheet.sections)
    assert [f"Total: {sheet.sections[0].marks} marks"] in covers[0]["facts"]
    assert covers[0]["names"] == ["Name", "Class", "Date"]


def hidden(value: Any, inside: bool = False) -> Any:
    """The value with the secret behind every text that only the teacher sees."""
    if isinstance(value, dict):
        return {key: hidden(one, inside or key in TEACHERS) for key, one in value.items()}
    if isinstance(value, list):
        return [hidden(one, inside) for one in value]
    return f"{value} {SECRET}" if inside and isinstance(value, str) else value


def test_a_pupils_file_holds_nothing_of_the_teachers() -> None:
    bundle = publishing.bundle()
    for row in bundle.lessons:
        for card in row["lesson"]["cards"]:
            card.update(hidden({"items": card["items"]}) if "items" in card else {})
    for made, sheet in printed(bundle):
        assert SECRET in json.dumps(paper.teachers_document(made, sheet))
        # A hint may be the first step of the working, where that tells no answer.
        hints = " ".join(hint for one in sheet.questions for hint in one.hints)
        assert json.dumps(paper.pupils_document(made, sheet)).count(SECRET) == hints.count(SECRET)


def test_nothing_in_a_text_is_run() -> None:
    lines = [{"k": "p", "line": paper_data.words(HOSTILE)}, *paper_data.passages(f"{HOSTILE}\n\n- {HOSTILE}")]
    lines += paper_data.passages(r"\(\text{\#panic(1) \$x\$}\)")
    made = {**document(lines), "title": HOSTILE, "foot": HOSTILE}
    assert pdf.compiled(made).startswith(b"%PDF")


def formulas() -> list[str]:
    return [
        *(rf"a \{name} b" for name in [*tex.LETTERS, *tex.UPRIGHT, *tex.OPERATORS, *tex.FUNCTIONS, *tex.SPACES]),
        *(rf"\{name}_{{i=1}}^n x" for name in tex.LARGE),
        *(rf"\{name}{{AB}} \{name} x" for name in tex.ACCENTS),
        *(rf"\{name}{{AB}} \{name}{{x}}" for name in [*tex.FONTS, *tex.TEXTS]),
        *(rf"\left\{name} \frac{{1}}{{2}} \right\{name}" for name in tex.DELIMITERS),
        *(
            rf"\begin{{{name}}}{'{ll}' if name == 'array' else ''} x &= 1 \\ y & 2 \end{{{name}}}"
            for name in tex.ENVIRONMENTS
        ),
        *(f"a {sign} b" for sign in sorted(tex.SIGNS - set("()[]'"))),
        *(r"f''(x)", r"x_1'", r"[0,1)", r"\left|x\right|", r"{}^{14}_{6}C", r"\sqrt[3]{x}", r"\lim_{x \to 0} x"),
        *(r"\$ \% \# \& \_ \{ \}", r"(-2)^{-\frac{1}{2}}", "1,250.50"),
    ]  # fmt: skip


def test_every_formula_of_the_subset_is_set() -> None:
    blocks = [block for one in formulas() for block in paper_data.passages(rf"Set \({one}\). \[{one}\]")]
    assert "code" not in json.dumps([block["line"] for block in blocks])
    assert pdf.compiled(document(blocks)).startswith(b"%PDF")


def test_a_character_that_no_font_has_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    fonts = pdf._fonts(own=True)
    monkeypatch.setattr(pdf, "_fonts", lambda own: fonts)
    with pytest.raises(PublishError, match="中") as caught:
        pdf.compiled(document([{"k": "p", "line": ["中"]}]))
    assert caught.value.code == "pdf_not_set"


def test_threads_set_documents_at_once() -> None:
    wanted = [document([{"k": "p", "line": [f"{number} {place}"]} for place in range(30)]) for number in range(12)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(pdf.compiled, wanted)) == [pdf.compiled(one) for one in wanted]


def test_text_that_no_file_can_hold_does_no_harm() -> None:
    bundle = publishing.bundle(lessons=1)
    kept = frozenset({"kind", "tests", "method", "expression", "options", "more", "component"})
    bundle.lessons[0]["lesson"].update(publishing.poisoned(bundle.lessons[0]["lesson"], kept))
    made = view(bundle)
    assert dict(pdf.files(Selection(made, made.lessons, "support")))


def test_courses_elsewhere_are_set_in_their_language() -> None:
    bundle = publishing.bundle()
    made = view(Bundle(bundle.name, {**bundle.course, "region": "united_states"}, bundle.scheme, bundle.lessons))
    (_, paper_of_it), *_ = documents(Selection(made, made.lessons[:1], "core"))
    assert [paper_of_it[key] for key in ("lang", "region", "paper")] == ["en", "US", "us-letter"]
    assert b"/MediaBox[0 0 612 792]" in pdf.compiled(paper_of_it)
