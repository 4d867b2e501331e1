"""Figures from their lines: faults, numbers, descriptions, drawings."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.drawing import figure as drawing
from pipeline.drawing.kinds import KINDS
from pipeline.drawing.values import function
from tests.figures import EXAMPLES, ROOT, documentation

FIGURES: list[dict[str, Any]] = [
    {"kind": kind, "lines": list(lines)} for kind, all in EXAMPLES.items() for lines in all
]
ELEMENTS = {"svg", "title", "path", "line", "circle", "rect", "polygon", "text", "tspan"}
ATTRIBUTES = set(
    "aria-labelledby class cx cy d fill fill-opacity font-size font-style font-weight height id points r role stroke"  # noqa: SIM905
    " stroke-dasharray stroke-linejoin stroke-opacity stroke-width text-anchor transform viewBox width x y".split()
)


def drawn(figure: dict[str, Any]) -> list[str]:
    """What is wrong with the drawing of a figure without faults."""
    svg, told = drawing.svg(figure, "f1"), [drawing.alt(figure)]
    heads, rows = drawing.table(figure)
    told += [*heads, *(cell for row in rows for cell in row)]
    found = [] if svg or figure["kind"] == "table" else ["nothing drawn"]
    if svg:
        root = ET.fromstring(svg)
        left, top, wide, high = map(float, root.attrib["viewBox"].split())
        for part in root.iter():
            found += [] if part.tag in ELEMENTS and set(part.attrib) <= ATTRIBUTES else [f"{part.tag} {part.attrib}"]
            told.append(part.text or "")
            if part.tag == "text":
                x, y = float(part.attrib["x"]), float(part.attrib["y"])
                found += (
                    [] if left <= x <= left + wide and top <= y <= top + high else [f"out of the frame: {part.text}"]
                )
        found += [f"id {one}" for one in re.findall(r' id="([^"]*)"', svg) if not one.startswith("f1-")]
    return found + [number for number in drawing.numbers(figure) if number not in " ".join(told)]


HOSTILE = (
    "<script>alert(1)</script>",
    '" onload="x',
    "&amp;<b>",
    "]]>",
    "שלום",
    "A\u202eB",
    "ab " * 40,
    "?",
    "x",
    "2x + 1",
)


@st.composite
def figures(draw: st.DrawFn) -> dict[str, Any]:
    """An example with other numbers, fewer lines, or words that nobody should write."""
    kind = draw(st.sampled_from(sorted(EXAMPLES)))
    lines = list(draw(st.sampled_from(EXAMPLES[kind])))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(lines) - 1))
        name = lines[at].partition(":")[0]
        lines[at] = draw(
            st.one_of(
                st.sampled_from([f"{name}: {word}" for word in HOSTILE]),
                st.integers(0, 400).map(lambda n, line=lines[at]: re.sub(r"\d+", str(n), line, count=1)),  # type: ignore[misc]
                st.just(name),
            )
        )
    return {"kind": kind, "lines": lines}


@given(figures())
def test_any_figure_has_faults_that_are_said_or_a_drawing_that_is_safe_and_whole(figure: dict[str, Any]) -> None:
    assert len(drawing.alt(figure)) <= 150
    if drawing.faults(figure):
        assert drawing.svg(figure, "f1") == ""
    else:
        assert drawn(figure) == []


def test_the_documentation_is_what_the_table_of_kinds_says() -> None:
    # python -m tests.figures > devops/docs/figures.md
    assert (ROOT / "devops/docs/figures.md").read_text() == documentation()


def test_every_kind_has_an_example() -> None:
    assert [kind.name for kind in KINDS] == list(EXAMPLES)


@pytest.mark.parametrize("figure", FIGURES, ids=str)
def test_an_example_has_no_fault_and_is_described_with_its_numbers(figure: dict[str, Any]) -> None:
    assert drawing.faults(figure) == []
    assert len(drawing.alt(figure)) <= 150
    assert len(drawing.svg(figure, "f")) < 8_000
    assert drawn(figure) == []


@pytest.mark.parametrize(
    ("kind", "lines", "fault"),
    [
        ("tetrahedron", ["side: 3 cm"], "no kind 'tetrahedron'; there are: triangle"),
        ("triangle", ["breadth: 3 cm"], "no line 'breadth' here; there are: title, corners"),
        ("triangle", ["PQ: -3 cm"], "'−3 cm' must be greater than 0"),
        ("triangle", ["PQ: 9 cm"], "a line 'corners: P Q R' is missing"),
        (
            "triangle",
            ["corners: A B C", "AB: 3 cm", "BC: 4 cm", "AC: 9 cm"],
            "no triangle has the sides 3 cm, 4 cm, 9 cm",
        ),
        (
            "triangle",
            ["corners: A B C", "angle A: 50°", "angle B: 60°", "angle C: 80°"],
            "add up to 180°, these to 190°",
        ),
        ("triangle", ["corners: A B C", "right angle: B", "AB: 3 cm", "BC: 4 cm", "AC: 6 cm"], "do not fit together"),
        ("triangle", ["corners: A B C", "AB: 30 cm", "AC: 30 cm", "angle A: 8°"], "too thin to read"),
        ("triangle", ["corners: A B C", "AB: 3 cm", "find: AB"], "AB is asked for and given"),
        ("polygon", ["corners: A B C", "shape: rectangle"], "a rectangle has 4 corners, not 3"),
        ("polygon", ["corners: A B C D", "shape: rectangle", "angle A: 80°"], "do not fit together"),
        ("circle", ["radius: 5 cm", "AB: 11 cm"], "the chord AB is longer than the diameter"),
        ("circle", ["radius: 5 cm", "AB: 8 cm", "distance O to AB: 4 cm"], "do not fit together"),
        ("solid", ["solid: cone", "radius: 5 cm", "height: 12 cm", "slant height: 14 cm"], "do not fit together"),
        ("solid", ["solid: cuboid", "corners: O A B C D E F G", "point A: (4, 1, 0)"], "does not fit a box"),
        ("axes", ["function: y = __import__('os')"], "is not a function such as"),
        ("axes", ["function: y = a*x^2"], "one letter beside numbers, not a, x"),
        ("axes", ["function: y = x^^2 +"], "is not a function such as"),
        ("axes", ["x: time / s, 10 to 0"], "the range must rise"),
        ("axes", ["x: x, 0 to 5", "y: y, 0 to 5", "points: (6, 1)"], "(6, 1) lies outside the axes"),
        ("axes", ["x: x, 0 to 5", "y: y, 0 to 5", "curve: (1, 1) (2, 4)"], "a curve has three points or more"),
        ("table", ["columns: a | b | c", "row 1: 2 | 3"], "'2 | 3' is not one cell for each of the 3 columns"),
        ("box plot", ["box A: 3 12 9 25 40"], "must be five rising numbers"),
        ("pie chart", ["slice a: 200°", "slice b: 150°"], "add up to 360°, these to 350°"),
        ("histogram", ["x: t", "y: n", "class 0 to 10: 5", "class 20 to 30: 5"], "starting where the one before ends"),
        ("histogram", ["x: t", "y: n", "class 0 to 10: 5", "class 10 to 30: 5"], "need heights that are densities"),
        ("stem-and-leaf", ["stem 1: 2 4", "key: 1 | 3 means 31"], "a stem, a leaf and their number"),
        ("tree", ["first red: 1.2"], "not a probability from 0 to 1"),
        ("tree", ["first red: 3/5", "first blue: 3/5"], "the probabilities of the first event add up to 1.2"),
        ("bearings", ["A to B: 65°"], "not a bearing in three figures"),
        ("bearings", ["A to B: 000°, 3 km", "B to C: 090°, 4 km", "AC: 6 km"], "AC would be 5 by the bearings"),
        ("rays", ["media: air | glass", "angle in: 40°", "reflected: 50°"], "equals the angle of incidence"),
        ("wave", ["wavelength: 8 cm", "cycles: 3", "length: 20 cm"], "number of waves times the wavelength"),
        ("energy levels", ["level 1: -2 J", "level 2: -3 J"], "the levels must rise"),
        ("bar chart", ["x: a", "y: b", *(f"bar a rather long name {n}: 3" for n in range(14))], "than can be read"),
    ],
)
def test_a_wrong_figure_is_a_fault_that_says_why(kind: str, lines: list[str], fault: str) -> None:
    assert fault in " ".join(drawing.faults({"kind": kind, "lines": lines}))


@pytest.mark.parametrize(
    ("text", "at", "height"),
    [
        ("y = sin^2 x", 90, 1.0),
        ("I = 12/R", 4, 3.0),
        (r"y = \frac{1}{2}x", 3, 1.5),
        ("h = 20t − 5t²", 2, 20.0),
        ("y = √(x − 1)", 0, None),
    ],
)
def test_a_function_is_read_as_it_is_printed(text: str, at: float, height: float | None) -> None:
    assert function(text)(at) == pytest.approx(height)


def test_values_of_a_circuit_that_do_not_fit_are_a_warning() -> None:
    lines = ["battery: 12 V", "series R: 4 Ω", "ammeter: 2 A", "voltmeter across R: 8 V"]
    assert drawing.faults({"kind": "circuit", "lines": lines}) == []
    assert drawing.warnings({"kind": "circuit", "lines": lines}) == ["2 A through 4 Ω in all is not 12 V"]


@pytest.mark.parametrize(
    ("lines", "alt", "numbers"),
    [
        (["corners: A B C", "AB: 5 cm", "BC: (2x + 1) cm"], "Triangle ABC: AB 5 cm, BC (2x + 1) cm.", ["5", "2", "1"]),
        (["corners: A B C", "angle A: 40", "title: A roof"], "A roof: angle A 40°.", ["40"]),
    ],
)
def test_the_description_names_what_is_given(lines: list[str], alt: str, numbers: list[str]) -> None:
    figure = {"kind": "triangle", "lines": lines}
    assert (drawing.alt(figure), drawing.numbers(figure)) == (alt, numbers)


@pytest.mark.parametrize(
    ("kind", "lines", "same", "alt"),
    [
        ("circle", ["center: O", "radius: 6 cm"], ["centre: O", "radius: 6 cm"], "center O"),
        ("polygon", ["corners: A B C D", "shape: Trapezoid", "AB: 12 m", "DC: 7 m", "parallel: AB DC"],
         ["corners: A B C D", "shape: trapezium", "AB: 12 m", "DC: 7 m", "parallel: AB DC"], "rapezoid"),
        ("solid", ["solid: rectangular prism", "length: 8 cm", "width: 4 cm", "height: 3 cm"],
         ["solid: cuboid", "length: 8 cm", "breadth: 4 cm", "height: 3 cm"], "prism: length 8 cm, width 4 cm"),
        ("solid", ["solid: Cube", "length: 8 cm"], ["solid: cube", "length: 8 cm"], "Cube"),
    ],
)  # fmt: skip
def test_american_and_capital_words_draw_the_same(kind: str, lines: list[str], same: list[str], alt: str) -> None:
    figure, other = {"kind": kind, "lines": lines}, {"kind": kind, "lines": same}
    assert drawing.faults(figure) == drawing.faults(other) == []
    assert re.sub("<title.*</title>", "", drawing.svg(figure, "f1")) == re.sub(
        "<title.*</title>", "", drawing.svg(other, "f1")
    )
    assert alt in drawing.alt(figure)


def test_an_equation_that_is_hidden_is_nowhere_told() -> None:
    figure = {
        "kind": "axes",
        "lines": ["x: x, 0 to 4", "y: y, -1 to 3", "function: y = (x - 2)^2 - 1", "hide: function"],
    }
    assert drawing.numbers(figure) == []
    assert "(x" not in drawing.svg(figure, "f") + drawing.alt(figure)
    assert drawing.table(figure) == (["x", "y"], [["0", "3"], ["1", "0"], ["2", "−1"], ["3", "0"], ["4", "3"]])


def test_the_same_figure_gives_the_same_bytes_under_its_prefix() -> None:
    figure = {"kind": "axes", "lines": EXAMPLES["axes"][0]}
    assert drawing.svg(figure, "a") == drawing.svg(figure, "a") == drawing.svg(figure, "b").replace("b-t", "a-t")


def test_the_prompt_names_every_kind_and_is_short() -> None:
    assert [line.split(" (")[0] for line in drawing.prompt_lines()] == list(EXAMPLES)
    assert len("\n".join(drawing.prompt_lines())) < 7_000


ENERGIES = ["x: reaction path, 0 to 8", "y: potential energy / kJ mol⁻¹, 0 to 180", "hide: function"]


def test_a_label_near_the_edge_finds_a_place_within_the_drawing() -> None:
    """The words of an endothermic reaction were "too large to read" at the end of its curve."""
    curve = "function: y = 20 + 140*2^(-(x - 4)^2) + 80/(1 + 10^(18 - 3*x))"
    labels = ["label reactants: (0, 20)", "label peak: (4, 160)", "label products: (8, 100)"]
    figure = {"kind": "axes", "lines": [*ENERGIES, curve, *labels]}
    assert drawing.faults(figure) == []
    _, _, wide, _ = map(float, re.findall(r'viewBox="([^"]+)"', drawing.svg(figure, "f"))[0].split())
    assert wide <= 320


def test_words_at_a_point_stand_without_its_coordinates_and_letters_with_them() -> None:
    lines = ["x: x, 0 to 8", "y: y, 0 to 9", "label highest point: (4, 8)", "label P: (2, 3)"]
    figure = {"kind": "axes", "lines": lines}
    assert re.findall(r"<text[^>]*>([^<]{2,})</text>", drawing.svg(figure, "f")) == ["P(2, 3)", "highest point"]
    assert drawing.alt(figure) == "Graph of y against x: highest point (4, 8), P(2, 3)."


def test_a_fault_of_a_drawing_too_wide_names_what_stands_at_its_edge() -> None:
    words = "a label of more MMMMMM words than one line"
    figure = {"kind": "axes", "lines": [*ENERGIES, "function: y = 20", f"label {words}: (8, 100)"]}
    assert [words in fault for fault in drawing.faults(figure)] == [True]


def test_a_curve_turns_only_at_its_points() -> None:
    lines = ["x: t, 0 to 8", "y: E, 0 to 180", "curve: (0, 20) (1, 20) (4, 160) (7, 100) (8, 100)", "grid: no"]
    drawn_line = re.findall(r'<path d="M([^"]+)"[^>]*class="hi"', drawing.svg({"kind": "axes", "lines": lines}, "f"))[0]
    heights = [float(pair.split()[1]) for pair in drawn_line.split("L")]
    turns = [b for a, b, c in zip(heights, heights[1:], heights[2:], strict=False) if (b - a) * (c - b) < 0]
    assert turns == [min(heights)]


def test_the_data_of_two_curves_say_which_row_is_whose() -> None:
    lines = [
        "x: x, 0 to 2",
        "y: y, 0 to 4",
        "function: y = x",
        "function: y = 2*x",
        "line: (1, 0) (1, 4)",
        "hide: function",
    ]
    heads, rows = drawing.table({"kind": "axes", "lines": lines})
    assert heads == ["", "x", "y"]
    assert list(dict.fromkeys(row[0] for row in rows)) == ["line", "curve 1", "curve 2"]
    assert (rows[0], rows[-1]) == (["line", "1", "0"], ["curve 2", "2", "4"])


def test_numbers_of_an_axis_can_be_left_away() -> None:
    figure = {"kind": "axes", "lines": [*ENERGIES[:2], "function: y = 20", "hide: x numbers"]}
    shown = re.findall(r"<text[^>]*>(\d+)</text>", drawing.svg(figure, "f"))
    assert shown == ["0", "50", "100", "150"]


def test_a_named_row_of_a_table_begins_with_its_name() -> None:
    """Its name was lost, and each number stood under the head of the one before."""
    lines = ["columns: element | radius / pm | energy", "row sodium: 160 | 502", "row 2: neon | 58 | 2087"]
    figure = {"kind": "table", "lines": lines}
    assert drawing.table(figure)[1] == [["sodium", "160", "502"], ["neon", "58", "2087"]]
    assert "sodium: 160 | 502" in drawing.alt(figure)


def test_a_second_line_of_a_graph_is_told_from_the_first() -> None:
    lines = ["x: x, 0 to 4", "y: y, 0 to 4", "line 1: (0, 0) (4, 4)", "line 2: (0, 4) (4, 0)", "grid: no"]
    bold = re.findall(r'<path[^>]*class="hi"[^>]*>', drawing.svg({"kind": "axes", "lines": lines}, "f"))
    assert ["dasharray" in line for line in bold] == [False, True]
