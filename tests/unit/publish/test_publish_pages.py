"""What a pupil, a teacher and a reviewer find on the pages of a course, and what they do not."""

from __future__ import annotations

import re

import pytest

from tests.pages import Element, read
from tests.sites import SITES

LESSON, SECOND = "01-simplifying-surds-with-square-factors", "02-multiplying-powers-with-the-same-base"
PAPER = "02-a-mock-exam-over-the-whole-of-the-course"


def lesson_of(bundle: str = "model") -> Element:
    return read(SITES[bundle][f"lessons/{LESSON}.html"])


def answers_of(bundle: str = "model") -> Element:
    return read(SITES[bundle][f"answers/{LESSON}.html"])


def with_class(page: Element, tag: str, name: str) -> list[Element]:
    return [element for element in page.all(tag) if element.attributes.get("class") == name]


def test_site_holds_the_pages_of_a_course() -> None:
    assert sorted(SITES["model"]) == sorted(
        [
            "index.html", "scheme.html", "about.html", "answers/index.html", "site.css",
            *(f"{folder}/{name}.html" for folder in ("lessons", "answers") for name in (LESSON, SECOND)),
            "data/course.json", "data/scheme.json", "data/about.json",
            *(f"data/schema/{name}.json" for name in ("about", "course", "lesson", "scheme")),
            *(f"data/{name}.json" for name in (LESSON, SECOND)),
            *(f"markdown/{name}{end}.md" for end in ("", "-answers") for name in (LESSON, SECOND)),
        ]
    )  # fmt: skip


@pytest.mark.parametrize(
    ("bundle", "page", "there", "absent"),
    [
        ("model", "index.html", [
            "SQA C847 75 · SCQF level 5 · 24 credits", "2 of 3 outcomes taught", "1.1Working with surds",
            "Partial course: 1 outcome has no lesson yet.", "Lesson 1: Simplifying surds with square factors",
            "1.3Working with fractionsNo lesson yet", "Cross-cutting skills: Reasoning skills",
            "Practised in lessons 1–2.", "Not covered",
        ], ["Lessons that failed"]),
        ("scored", "index.html", ["Every outcome has a lesson."], ["Partial", "Not covered"]),
        ("failed", "index.html", [
            "Lessons that failed", "Lesson 3: Adding two fractions simply", "answer of p3 is wrong",
        ], []),
        ("failed", "scheme.html", ["(not in this course)"], []),
        ("mock", "scheme.html", ["Adding two fractions simply (not written yet)"], []),
        ("mock", "index.html", ["Lesson 3 is not written yet", "1 of 3 outcomes taught", "Not covered"],
         ["Lessons that failed"]),
        ("model", f"lessons/{LESSON}.html", [
            "Read this part in plainer words", "CalculatorIn some questions", "Hints for question 2",
            "For the teacherpractical work: see the notes with the answers",
        ], [
            "It has no square factor.", "It is a little over 7 metres", "60\u202fcm", "19\u202fcm", "Feedback",
            "Secure", "Formulae list",
        ]),
        ("mock", f"lessons/{PAPER}.html", [
            "Mock exam 2 of 3", "Formulae list", "Area of a triangle", "You may use the data sheet and the ",
            "No calculator.",
        ], ["Words you need"]),
        ("model", f"answers/{LESSON}.html", [
            "Answer: 60\u202fcm", "Take the root of the square out.", "Question 2, 2 marks",
            "added instead of multiplying", "The square was not rooted.", "19\u202fcm", "Also accept", "Must have",
            "Do not accept", "Follow-through", "Answer (b): It is a little over 7 metres.", "found another answer",
            "Checked by calculation. A second solver, who saw the question only, found the same", "in part",
            "Not checked by code", "What a score means", "with extra time 63 minutes", "Feedback", "Secure",
            "It has no square factor.", "Other valid methods", "Square numbers up to 144. (earlier level)",
            "You can find factors. (lesson 3)", "about 7 metres of ropeexplains in context1",
            "Working with surdsWhat a surd is1, 2, 3",
        ], []),
        ("scored", f"answers/{LESSON}.html", [
            "0 of 9 answers were checked by code; 9 need a person. Left out: the blind", "fidelity 0.95, quality 0.88",
            "Outcome and points taught5All taught.c5.q1: “a question”", "Wrong options tell why–Nothing to judge.",
            "c5.q1.ask: <b>long</b> sentence", "What a surd is",
        ], []),
        ("model", "about.html", [
            "claude-sonnet-5-5", "bbbbbbbbbbbbbbbb", "Questions18", "Checked by calculation4", "in part2",
            "Not checked by code12", "No critic scored", "answered 4 and agreed in 2.",
            "Not reviewed: no teacher has read this", "What nobody checked", "Licence", "To report a mistake",
            "course specification", "Right options by place: ",
        ], []),
        ("scored", "about.html", ["0.950.88", "Lesson 1: 1 warning", "no score is below 3.",
          "Left out: the blind solve."], []),
    ],
)  # fmt: skip
def test_page_says_what_its_reader_needs_and_nothing_that_others_need(
    bundle: str, page: str, there: list[str], absent: list[str]
) -> None:
    text = read(SITES[bundle][page]).one("main").text
    assert [words for words in there if words not in text] == []
    assert [words for words in absent if words in text] == []


def test_draft_says_so_on_every_page_and_keeps_search_engines_away() -> None:
    for name, draft in (("draft", True), ("model", False)):
        for path, data in SITES[name].items():
            if path.endswith(".html"):
                tree = read(data)
                robots = [m for m in tree.all("meta") if m.attributes.get("name") == "robots"]
                assert len(robots) == (draft or path.startswith("answers/"))
                assert ("draft" in tree.text.lower()) is draft
                assert ("Offline draft:" in tree.one("body").text) is draft
                assert tree.one("head").one("title").text.startswith("Draft: ") is draft
                assert ("Draft" in tree.one("style").text) is draft
                assert "Nobody has read it" in tree.one("footer").text
            if path.endswith(".md"):
                assert (b"Offline draft" in data) is draft
    assert "no teacher has read it" in read(SITES["scored"]["index.html"]).one("footer").text


def test_lesson_page_stands_in_teaching_order_with_its_kinds_in_words() -> None:
    page = lesson_of()
    kinds = [e.text for e in page.all("b") if e.parent and e.parent.attributes.get("class") == "kind"]
    assert kinds == ["Starter", "Explain", "Worked example", "Check", "Guided practice", "Exit ticket"]
    (main,) = with_class(page, "div", "main")
    parts = ("Words you need", "What you know", "A tile has", "Watch out", "Find the largest", "Does it", "Before you")
    places = [main.text.index(part) for part in parts]
    assert places == sorted(places)
    # Each misconception once; the calculator where it is allowed; no option is marked as the right one.
    for words in ("keeps its size", "Its root comes out", "Only products can be split", "Calculator allowed."):
        assert page.text.count(words) == 1, words
    assert "right" not in " ".join(e.attributes.get("class", "") for e in page.all("li"))


def test_lesson_page_numbers_questions_through_and_matches_the_answers() -> None:
    numbers = [e.attributes["id"] for e in with_class(lesson_of(), "li", "q")]
    assert numbers == [f"q{n}" for n in range(1, 10)]
    assert numbers == [e.attributes["id"] for e in answers_of().all("h3") if e.text.startswith("Question ")]


def test_lesson_page_links_the_first_use_of_a_keyword_to_its_meaning() -> None:
    terms = with_class(lesson_of(), "a", "term")
    assert [(e.text, e.attributes["href"]) for e in terms] == [("surd", "#w1"), ("square factor", "#w2")]
    assert [e.tag for e in terms[0].children] == ["dfn"]


def test_lesson_page_leaves_room_on_paper() -> None:
    rooms = [e.attributes["class"] for e in lesson_of().all("div") if "space" in e.attributes.get("class", "")]
    assert {"space m3", "space grid"} <= set(rooms)
    assert len(rooms) == 9  # two parts of one question; none after the multiple choice


def test_answers_page_adds_up_its_mark_tables() -> None:
    for table in answers_of().all("table"):
        if found := re.match(r"Question \d+, (\d+) mark", table.one("caption").text):
            rows = [row for body in table.all("tbody") for row in body.all("tr") if len(row.children) > 1]
            assert len(rows) == int(found[1])
            assert table.one("tfoot").text == f"Total{found[1]}"


def test_scheme_page_is_one_table_with_blocks_and_hours() -> None:
    page = read(SITES["failed"]["scheme.html"])
    heads = [e for e in page.one("table").all("th") if e.attributes.get("scope") == "rowgroup"]
    assert [e.text for e in heads] == ["Numerical skills2.5\u202fh"]
    assert page.one("tfoot").text == "Total2.5\u202fh"
