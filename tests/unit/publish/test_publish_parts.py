"""The parts of pages: prose, figures, questions, colours."""

from __future__ import annotations

import itertools
import random
import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pipeline.publish
from pipeline.formulas.passages import Run, line
from pipeline.publish.answers_page import _question
from pipeline.publish.figures import figure, squared_paper
from pipeline.publish.lesson_page import options, room_for, working
from pipeline.publish.markdown import _md
from pipeline.publish.prose import Terms, blocks, formula, inline, words
from pipeline.publish.questions import ShownOption, ShownQuestion, _number, places, room
from pipeline.publish.site import ranges
from pipeline.publish.view import CourseView
from tests import publishing
from tests.pages import read

_CSS = (Path(pipeline.publish.__file__).parent / "site.css").read_text()


# --- prose ---------------------------------------------------------------------------------------


def test_words_are_set_like_print() -> None:
    for typed, set_as in (
        ("-4 degrees", "−4 degrees"), ("it was -0.5", "it was −0.5"), ("(-3, 4)", "(−3, 4)"),
        ("pages 3-4 and A-4", "pages 3-4 and A-4"), ("a well-known rule", "a well-known rule"),
        ("12 cm long", "12\u202fcm long"), ("5 m/s and 3 kg", "5\u202fm/s and 3\u202fkg"),
        ("8.0 W m⁻²", "8.0\u202fW\u202fm⁻²"), ("6 µF", "6\u202fµF"), ("3 men", "3 men"),
        ("£1,250.00", "£1,250.00"), ("a < b & c", "a &lt; b &amp; c"),
        ("Motion - equations and graphs, x - y", "Motion – equations and graphs, x - y"),
        ("p^2x^2-a^2", "p<sup>2</sup>x<sup>2</sup>-a<sup>2</sup>"),
        ("(a^m)^n = a^(mn)", "(a<sup>m</sup>)<sup>n</sup> = a<sup>mn</sup>"),
        ("10^-3 of it", "10<sup>−3</sup> of it"), ("a^<b> and ^ and x^^2", "a^&lt;b&gt; and ^ and x^^2"),
        ("a^(<b>)", "a<sup>&lt;b&gt;</sup>"), ("33 / °C", "33\u202f/\u202f°C"), ("3 / 4 of it", "3 / 4 of it"),
        ("12.54 / kJ", "12.54\u202f/\u202fkJ"), ("x = 2 or\n  x = 3", "x = 2 or<br>\u00a0\u00a0x = 3"),
        ("80 kJ mol⁻¹", "80\u202fkJ\u202fmol⁻¹"), ("0.5 mol l⁻¹", "0.5\u202fmol\u202fl⁻¹"), ("it is s⁻¹", "it is s⁻¹"),
        ("UPDATE Landing\nSET boxes = 60", "<code>UPDATE Landing</code><br><code>SET boxes = 60</code>"),
        ("IF a < 2\n  SEND a", "<code>IF a &lt; 2</code><br><code>\u00a0\u00a0SEND a</code>"),
    ):  # fmt: skip
        assert words(typed) == set_as


def test_blocks_makes_paragraphs_lists_and_formulas() -> None:
    made = blocks("One.\n\nTwo:\n- a\n- b\n\n1. x\n2. y\n\nSo \\[x = 2\\] holds.")
    shape = re.sub(r"<math.*?</math>", "M", made)
    assert shape == (
        "<p>One.</p><p>Two:</p><ul><li>a</li><li>b</li></ul><ol><li>x</li><li>y</li></ol>"
        '<p>So </p><div class="maths">M</div><p> holds.</p>'
    )


def test_lines_stand_on_the_page_as_they_were_written() -> None:
    assert blocks("What is shown?\n\nSET a TO 4\n SET b TO 5") == (
        "<p>What is shown?</p><p><code>SET a TO 4</code><br><code>\u00a0SET b TO 5</code></p>"
    )
    assert blocks("- one\n  two") == "<ul><li>one<br>two</li></ul>"
    assert _md("SET a TO 4\nSET b TO 5\n\n- one\n- two") == "`SET a TO 4`\\\n`SET b TO 5`\n\n- one\n- two"
    assert "<br>" not in blocks("So\n\\[x = 2\\]\nholds.")
    chemistry = ["Write both.\n2C + O₂ → 2CO\n2CO + O₂ → 2CO₂"]
    assert "2C + O₂ → 2CO<br>2CO + O₂ → 2CO₂" in working(chemistry)
    assert "a<br>b" in options([ShownOption("A", "a\nb", "", right=True)])


def test_blocks_and_formulas_that_cannot_be_set_are_text_and_long_ones_scroll() -> None:
    assert "<script" not in blocks(publishing.HOSTILE)
    assert blocks("") == ""
    assert inline(r"so \(x^\) is") == "so <code>x^</code> is"
    assert formula(r"\foo") == r"<p><code>\foo</code></p>"
    long = formula("a + b + c + d + e + f + g + h = 0")
    assert 'tabindex="0"' in long
    assert 'aria-label="Formula"' in long
    assert "tabindex" not in formula("a = b")


def test_long_formula_in_a_sentence_may_be_broken_before_its_equals_signs() -> None:
    made = inline(r"so \(4(2x - 3) - 2(x - 4) = 8x - 12 - 2x + 8 = 6x - 4\) holds")
    assert [piece.count("<math") for piece in made.split("<wbr>")] == [1, 1, 1]
    whole = (
        r"x = 2",
        r"\left(\frac{a = b + c + d}{2 + 3 + 4}\right)",
        r"\begin{pmatrix} a = 1 \\ b = 2 + 3 + 4 \end{pmatrix}",
    )
    assert all("<wbr>" not in inline(rf"\({formula}\)") for formula in whole)


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        (r"so \(30\div 10=3\). Then", "."),
        (r"is \(\sqrt{49}=7\) m. In", "\u202fm."),
        (r"\(90\div 600\times 100=15\) %", "\u202f%"),
        (r"(see \(x\)), then", "),"),
        (r"so \(x\) is", ""),
        (r"\(8\) metres", ""),
    ],
)
def test_line_never_begins_with_what_ends_a_formula(value: str, kept: str) -> None:
    made = str(inline(value))
    assert made.count('<span class="keep">') == bool(kept)
    assert not kept or f"</math>{kept}</span>" in made
    assert "".join(piece.text for piece in line(value) if isinstance(piece, Run)).count("Then") == value.count("Then")


def test_share_stays_on_one_line_and_steps_in_words_have_all_its_width() -> None:
    assert words("from 12 % to 90 %") == "from 12\u202f% to 90\u202f%"
    assert 'class="two"' not in working(["Name the factor and its kind."])
    assert 'class="two"' in working(["Add.\n\\(2+3=5\\)"])


def test_terms_link_only_the_first_use_of_whole_words() -> None:
    link = Terms([("surd", "w1"), ("root", "w2")])
    made = link("Absurd surds, a surd and a Root")
    assert made == (
        'Absurd <a href="#w1" class="term"><dfn>surds</dfn></a>, a surd and a '
        '<a href="#w2" class="term"><dfn>Root</dfn></a>'
    )
    assert link("another surd") == "another surd"
    # Signs of patterns are words all the same.
    assert Terms([("f(x)", "w1"), ("(", "w2")])("the value f(x) here").count("<dfn>f(x)</dfn>") == 1


# --- figures -------------------------------------------------------------------------------------


def test_figure_always_stands_with_its_data_or_in_words() -> None:
    chart, graph, shape = (figure(data, "f") for data in publishing.figures())
    assert [[cell.text for cell in line.children] for line in read(chart.encode()).one("tbody").children] == [
        ["May", "60"], ["June", "70"], ["July", "85"]]  # fmt: skip
    assert "−3" in graph
    assert "40°" in shape
    for made in (chart, graph, shape):
        assert read(made.encode()).one("figure").one("svg").attributes["role"] == "img"


def test_figure_that_cannot_be_drawn_is_words_and_data_and_its_words_are_text() -> None:
    impossible = {"kind": "triangle", "lines": ["corners: A B C", "AB: 9 cm", "BC: 1 cm", "AC: 2 cm"]}
    assert "<svg" not in figure(impossible, "f")
    assert "9\u202fcm" in figure(impossible, "f")
    for name in ("<script>1</script>", "<b>", "&quot;", '" onload="x', "]]>"):
        bars = {"kind": "bar chart", "lines": [f"title: {name}", f"x: {name}", f"y: {name}", f"bar {name}: 3"]}
        tree = read(figure(bars, "f").encode())
        assert {element.tag for element in tree.all()} <= {
            "figure", "svg", "title", "desc", "g", "path", "rect", "line", "text", "tspan", "figcaption", "details",
            "summary", "div", "table", "caption", "thead", "tbody", "tr", "th", "td",
        }  # fmt: skip
        assert not [element for element in tree.all() if "onload" in element.attributes]
        assert name in tree.text


def test_room_for_an_answer_grows_with_its_marks() -> None:
    assert [room_for(n, "Find x.").count(f"m{n}") for n in (1, 2, 3, 6)] == [0, 0, 1, 1]
    assert "m6" in room_for(9, "Find x.")
    assert squared_paper() in room_for(2, "Sketch the graph.")
    assert (ranges([1, 2, 3, 5, 8, 9]), ranges([4])) == ("1–3, 5, 8–9", "4")


# --- questions -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rising",
    [["48 m", "64 m", "96 m"], ["£9", "£12.50", "£1,100"], ["-5", "−3", "2"], [r"\(\frac{1}{3}\)", "1/2", "0.75"]],
)
def test_options_that_are_numbers_in_one_unit_rise(rising: list[str]) -> None:
    for texts in itertools.permutations(rising):
        assert [texts[index] for index in places(texts)] == rising


@given(st.lists(st.text(min_size=1), min_size=3, max_size=5, unique=True), st.randoms(use_true_random=False))
def test_order_of_options_depends_on_their_texts_only(texts: list[str], chance: random.Random) -> None:
    mixed = list(texts)
    chance.shuffle(mixed)
    seen = [mixed[index] for index in places(mixed)]
    assert sorted(seen) == sorted(texts)
    if len({_number(text) for text in texts}) == len(texts):
        assert seen == [texts[index] for index in places(texts)]


def test_right_option_stands_at_every_place_about_as_often() -> None:
    found = Counter(places([f"right {n}", f"wrong {n}", f"false {n}", f"no {n}"]).index(0) for n in range(400))
    assert all(60 <= found[place] <= 140 for place in range(4)), found


def test_marks_show_what_earns_them_or_the_answer_of_their_part() -> None:
    shown = [question for question in CourseView(publishing.bundle()).lessons[0].questions if question.number in (2, 9)]
    assert shown[0].scheme == [
        ("", r"\(\sqrt{25 \times 2}\)", "finds the square factor"), ("", r"\(4\sqrt{3}\)", "finds it")
    ]  # fmt: skip
    assert [label for label, _, _ in shown[1].scheme] == ["(a)", "(a)", "(b)"]
    assert shown[1].scheme[1][1] == r"\(5\sqrt{2}\)"


def test_answer_in_words_is_not_said_again_beside_each_mark() -> None:
    answer = "The function is written once, so a change is made once."
    item = {"ask": "Why?", "answer": answer, "marks": ["says that it is written once", "says what follows"]}
    shown = ShownQuestion(1, "c1.q1", {**item, "working": [], "feedback": "So."}, {"kind": "check"}, {}, False)
    page = _question(shown)
    assert page.count(answer) == 1
    assert ("Expected answer" in page, "says what follows</th>" in page) == (False, True)


# --- colours -------------------------------------------------------------------------------------


def tokens(dark: bool) -> dict[str, str]:
    light, _, rest = _CSS.partition("@media (prefers-color-scheme: dark)")
    found = dict(re.findall(r"--([a-z-]+): (#[0-9A-F]{6})", light))
    if dark:
        found.update(re.findall(r"--([a-z-]+): (#[0-9A-F]{6})", rest.partition("}")[0]))
    return found


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    bright, dim = sorted((luminance(one), luminance(other)), reverse=True)
    return (bright + 0.05) / (dim + 0.05)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_colours_keep_their_contrast(dark: bool) -> None:
    colours = tokens(dark)
    for ground in ("paper", "surface", "tint"):
        for text in ("ink", "muted", "accent", "green", "rust", "plum"):
            assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)
        assert contrast(colours["edge"], colours[ground]) >= 3, ground
    assert contrast(colours["warn"], colours["warn-bg"]) >= 4.5
    assert contrast(colours["focus-ink"], colours["focus"]) >= 4.5
    assert colours["paper"] == ("#13171C" if dark else "#FBFAF6")


def test_style_fetches_nothing_and_never_makes_mathematics_a_block() -> None:
    assert not re.search(r"url\(|@import|@font-face|https?:", _CSS)
    assert not re.search(r"math[^{}]*\{[^}]*display\s*:", _CSS)


def test_room_for_what_is_written_at_length_is_no_matter_of_marks() -> None:
    assert [room(3, written=ask) for ask in ("Write an Essay on trade.", "Write a paragraph.", "Say why.")] == [
        18,
        6,
        3,
    ]
    assert (room(9), room(1), room(9, written="Explain.")) == (6, 2, 9)
