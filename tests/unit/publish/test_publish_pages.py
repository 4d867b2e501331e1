"""What a pupil, a teacher and a reviewer find on the pages of a course, and what they do not."""

from __future__ import annotations

import re

from tests.pages import Element, read
from tests.sites import SITES


def lesson_of(bundle: str = "model") -> Element:
    return read(SITES[bundle]["lessons/01-simplifying-surds-with-square-factors.html"])


def answers_of(bundle: str = "model") -> Element:
    return read(SITES[bundle]["answers/01-simplifying-surds-with-square-factors.html"])


def test_site_holds_the_pages_of_a_course() -> None:
    lesson, second = "01-simplifying-surds-with-square-factors", "02-multiplying-powers-with-the-same-base"
    assert sorted(SITES["model"]) == sorted(
        [
            "index.html", "scheme.html", "about.html", "answers/index.html", "site.css",
            *(f"{folder}/{name}.html" for folder in ("lessons", "answers") for name in (lesson, second)),
            "data/course.json", "data/scheme.json", "data/about.json",
            *(f"data/{name}.json" for name in (lesson, second)),
            *(f"markdown/{name}{end}.md" for end in ("", "-answers") for name in (lesson, second)),
        ]
    )  # fmt: skip


def test_index_lists_every_outcome_with_its_lesson_or_says_that_there_is_none() -> None:
    text = read(SITES["model"]["index.html"]).one("main").text
    assert "SQA C847 75 · SCQF level 5 · 24 credits" in text
    assert "2 of 3 outcomes taught" in text
    assert "Partial course: 1 outcome has no lesson yet." in text
    assert "1.1Working with surds" in text
    assert "Lesson 1: Simplifying surds with square factors" in text
    assert "1.3Working with fractionsNo lesson yet" in text
    assert "Cross-cutting skills: Reasoning skills" in text
    assert "Practised in lessons 1–2." in text
    assert "Not covered" in text


def test_index_of_a_whole_course_does_not_call_it_partial() -> None:
    text = read(SITES["scored"]["index.html"]).one("main").text
    assert "Partial" not in text
    assert "Not covered" not in text
    assert "Every outcome has a lesson." in text


def test_index_names_the_lessons_that_failed_with_the_reason() -> None:
    text = read(SITES["failed"]["index.html"]).one("main").text
    assert "Lessons that failed" in text
    assert "Lesson 3: Adding two fractions simply" in text
    assert "answer of p3 is wrong" in text
    assert "(not in this course)" in read(SITES["failed"]["scheme.html"]).text
    assert "Lessons that failed" not in read(SITES["model"]["index.html"]).text


def test_draft_says_so_on_every_page_and_keeps_search_engines_away() -> None:
    for path, data in SITES["draft"].items():
        if path.endswith(".html"):
            tree = read(data)
            assert "Offline draft:" in tree.one("body").text
            assert tree.one("head").one("title").text.startswith("Draft: ")
            assert [m.attributes["content"] for m in tree.all("meta") if m.attributes.get("name") == "robots"] == [
                "noindex"
            ]
            assert "Draft" in tree.one("style").text
        if path.endswith(".md"):
            assert b"Offline draft" in data


def test_course_of_a_model_is_no_draft_and_its_answers_keep_search_engines_away() -> None:
    for path, data in SITES["model"].items():
        if path.endswith(".html"):
            tree = read(data)
            assert "draft" not in tree.text.lower()
            robots = [m for m in tree.all("meta") if m.attributes.get("name") == "robots"]
            assert len(robots) == path.startswith("answers/")


def test_every_page_says_that_nobody_has_read_a_course_without_a_critic() -> None:
    for path, data in SITES["model"].items():
        if path.endswith(".html"):
            assert "Nobody has read it" in read(data).one("footer").text
    assert "no teacher has read it" in read(SITES["scored"]["index.html"]).one("footer").text


def test_lesson_page_never_holds_an_answer() -> None:
    page = lesson_of()
    for words in (
        "7.07",
        "It has no square factor.",
        "It is a little over 7 metres",
        "60\u202fcm",
        "Feedback",
        "Secure",
    ):
        assert words not in page.text
        assert words in answers_of().text or words == "7.07"
    assert "right" not in " ".join(e.attributes.get("class", "") for e in page.all("li"))


def test_lesson_page_stands_in_teaching_order_with_its_kinds_in_words() -> None:
    page = lesson_of()
    kinds = [e.text for e in page.all("b") if e.parent and e.parent.attributes.get("class") == "kind"]
    assert kinds == ["Starter", "Explain", "Worked example", "Check", "Guided practice", "Exit ticket"]
    text = next(e for e in page.all("div") if e.attributes.get("class") == "main").text
    words = (
        "Words you need",
        "What you know",
        "A tile has",
        "Watch out",
        "Find the largest",
        "Does it",
        "Before you go",
    )
    places = [text.index(part) for part in words]
    assert places == sorted(places)
    assert "Read this part in plainer words" in text


def test_lesson_page_numbers_questions_through_and_matches_the_answers() -> None:
    numbers = [e.attributes["id"] for e in lesson_of().all("li") if e.attributes.get("class") == "q"]
    assert numbers == [f"q{n}" for n in range(1, 16)]
    assert numbers == [e.attributes["id"] for e in answers_of().all("h3") if e.text.startswith("Question ")]


def test_lesson_page_links_the_first_use_of_a_keyword_to_its_meaning() -> None:
    terms = [e for e in lesson_of().all("a") if e.attributes.get("class") == "term"]
    assert [(e.text, e.attributes["href"]) for e in terms] == [("surd", "#w1"), ("square factor", "#w2")]
    assert [e.tag for e in terms[0].children] == ["dfn"]


def test_lesson_page_marks_gaelic_words_as_gaelic() -> None:
    assert [e.text for e in lesson_of().all("span") if e.attributes.get("lang") == "gd"] == ["freumh"]


def test_lesson_page_shows_each_misconception_once_with_its_correction() -> None:
    text = lesson_of().text
    for words in ("keeps its size", "Its root comes out", "Only products can be split"):
        assert text.count(words) == 1


def test_lesson_page_draws_charts_with_their_data_beside_them() -> None:
    page = lesson_of()
    drawn = [e for e in page.all("svg") if e.attributes.get("role") == "img"]
    captions = [e.text for e in page.all("caption")]
    assert len(drawn) == 2
    assert captions == [
        "The same data",
        "The same data",
        "A triangle with sides 7\u202fcm and 9\u202fcm and 40° between them.",
    ]


def test_lesson_page_leaves_room_on_paper_by_marks_and_squares_for_a_drawing() -> None:
    rooms = [e.attributes["class"] for e in lesson_of().all("div") if "space" in e.attributes.get("class", "")]
    assert "space m3" in rooms
    assert "space grid" in rooms
    assert len(rooms) == 15  # two parts of one question; none after the multiple choice


def test_lesson_page_says_where_the_calculator_is_allowed() -> None:
    text = lesson_of().text
    assert "CalculatorIn some questions" in text
    assert text.count("Calculator allowed.") == 1


def test_lesson_page_guides_the_teacher_by_a_line_not_a_banner() -> None:
    assert "For the teacherpractical work: see the notes with the answers" in lesson_of().text


def test_answers_page_gives_answer_working_marks_and_what_wrong_answers_show() -> None:
    text = answers_of().one("main").text
    for words in (
        "Answer: 60\u202fcm", "Take the root of the square out.", "Question 7, 3 marks", "added instead of multiplying",
        "Answer: B, ", "The square was not rooted.", "Also accept", "Must have", "Do not accept", "Follow-through",
        "Answer (b): It is a little over 7 metres.", "Checked by calculation.", "Checked by putting it back",
        "Not checkable by code", "in part", "What a score means", "with extra time 63 minutes",
    ):  # fmt: skip
        assert words in text, words


def test_answers_page_adds_up_its_mark_tables() -> None:
    for table in answers_of().all("table"):
        caption = table.one("caption").text
        if found := re.match(r"Question \d+, (\d+) mark", caption):
            rows = [row for body in table.all("tbody") for row in body.all("tr") if len(row.children) > 1]
            assert len(rows) == int(found[1])
            assert table.one("tfoot").text == f"Total{found[1]}"


def test_answers_page_writes_calculator_notation_as_mathematics() -> None:
    assert "*" not in re.sub(
        r"<annotation.*?</annotation>",
        "",
        SITES["model"]["answers/01-simplifying-surds-with-square-factors.html"].decode(),
    )


def test_answers_page_tells_the_reviewer_where_points_are_asked_and_what_the_critic_scored() -> None:
    text = answers_of("scored").text
    assert "12 of 15 answers were checked by code; 3 need a person." in text
    assert "fidelity 0.95, quality 0.88" in text
    assert "Outcome and points taught5All taught.p1: “a question”" in text
    assert "Wrong options tell why–Nothing to judge." in text
    assert "p1.stem: <b>long</b> sentence" in text
    assert "What a surd is" in text


def test_about_page_counts_what_code_checked_and_says_what_nobody_did() -> None:
    text = read(SITES["model"]["about.html"]).one("main").text
    for words in (
        "claude-sonnet-5-5", "bbbbbbbbbbbbbbbb", "Questions30", "Answers that need a person", "No critic scored",
        "No teacher has read this", "What nobody checked", "Licence", "To report a mistake", "course specification",
        "Right options by place: B 2.",
    ):  # fmt: skip
        assert words in text, words
    scores = read(SITES["scored"]["about.html"]).one("main").text
    assert "0.950.88" in scores
    assert "Lesson 1: 1 warning" in scores


def test_scheme_page_is_one_table_with_blocks_and_hours() -> None:
    page = read(SITES["failed"]["scheme.html"])
    heads = [e for e in page.one("table").all("th") if e.attributes.get("scope") == "rowgroup"]
    assert [e.text for e in heads] == ["Numerical skills2.5\u202fh"]
    assert page.one("tfoot").text == "Total2.5\u202fh"
