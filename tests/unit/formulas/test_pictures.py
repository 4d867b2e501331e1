"""Figures as pictures that stand alone."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from pipeline.drawing import figure as drawing
from pipeline.formulas.pictures import formula, picture
from pipeline.publish import mathml
from tests.figures import EXAMPLES

CHART = {"kind": "bar chart", "lines": ["x: colour", "y: pupils", "bar red: 12", "bar blue: 7"]}
HOSTILE = "</text><script>1</script>"


@pytest.mark.parametrize("kind", sorted(EXAMPLES))
def test_a_figure_of_every_kind_is_xml_with_its_size(kind: str) -> None:
    for lines in EXAMPLES[kind]:
        figure = {"kind": kind, "lines": lines}
        drawn = picture(figure)
        if not drawing.svg(figure, "f"):
            assert drawn is None
            continue
        assert drawn is not None
        root = ElementTree.fromstring(drawn.svg)
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert 70 < drawn.width_mm < 90
        assert 0 < drawn.height_mm < 110
        # No table stands beside a picture, so its description is whole.
        assert "table" not in drawn.alt
        assert len(drawn.alt) >= len(drawing.alt(figure)) - len("; data in the table")


def test_what_is_written_in_a_figure_stays_text() -> None:
    drawn = picture({"kind": "free body", "lines": ["object: box", f"force up: {HOSTILE}", "force down: 3 N"]})
    assert drawn is not None
    assert not [node for node in ElementTree.fromstring(drawn.svg).iter() if "script" in node.tag]


def test_a_formula_is_a_picture_with_its_words() -> None:
    pytest.importorskip("typst")
    content = mathml.content(r"\frac{x+1}{2}")
    small, large = (formula(content, "x plus 1 over 2", points) for points in (12, 24))
    assert large.width_mm > 1.8 * small.width_mm > 0
    assert small.alt == "x plus 1 over 2"
    assert small.png.startswith(b"\x89PNG")


def test_a_figure_is_set_as_png() -> None:
    pytest.importorskip("typst")
    one = picture(CHART)
    assert one is not None
    assert one.png.startswith(b"\x89PNG")
