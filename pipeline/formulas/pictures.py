"""Figures and formulas as pictures that stand alone: SVG with its own style and fonts, and PNG of it by typst."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from xml.etree.ElementTree import Element

from pipeline.drawing import figure as draw
from pipeline.formulas import typst_maths

#: A column of 300 units is 78 mm wide on paper, so letters of a drawing are 11 pt high.
MM_A_UNIT = 0.26
_PIXELS_AN_INCH = 220.0
_MARGIN_MM = 1.0
#: A serif face that typst brings along; on other machines the drawing looks the same.
FONT = "Libertinus Serif"
#: What site.css says of drawings, in colours that print.
_STYLE = (
    "text{fill:#000;stroke:none}.clear{stroke:#fff;stroke-width:4px;paint-order:stroke}"
    ".hi{stroke:#0b4f7a}polygon.hi{stroke:none;fill:#0b4f7a}"
)
_OPENING = re.compile(r'<svg (viewBox="[^" ]+ [^" ]+ (?P<width>[0-9.]+) (?P<height>[0-9.]+)") width="100%"')
_PAGE = """#set page(width: auto, height: auto, margin: {margin}mm, fill: white)
#image(bytes(sys.inputs.svg), format: "svg", width: {width}mm)
"""


#: A formula by itself, as large as it is.
_FORMULA = """#set page(width: auto, height: auto, margin: 1pt, fill: none)
#set text(size: float(sys.inputs.size) * 1pt)
#show math.equation: set text(font: "New Computer Modern Math", weight: 450)
#math.equation(block: true, tree(json(bytes(sys.inputs.tree))))
"""
_POINTS = re.compile(r'width="(?P<width>[0-9.]+)pt" height="(?P<height>[0-9.]+)pt"')
_MM_A_POINT = 25.4 / 72


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawing and its size on paper."""

    #: One element with its namespace, style and size.
    svg: str
    width_mm: float
    height_mm: float
    #: All that is given, nothing that is sought.
    alt: str

    @property
    def png(self) -> bytes:
        """Return it as PNG on white, 220 pixels an inch, the same bytes on every machine."""
        return _png(self.svg, self.width_mm)


def picture(figure: Mapping[str, Any]) -> Picture | None:
    """Return a figure as a picture; None where it is a table or cannot be drawn."""
    drawn = draw.svg(figure, "f")
    found = _OPENING.match(drawn)
    if found is None:
        return None
    width, height = float(found["width"]), float(found["height"])
    look = f'width="{width:g}" height="{height:g}" color="#000" font-family="{FONT}"'
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" {found[1]} {look}'
    head, _, rest = drawn[found.end() :].partition("</title>")
    svg = f"{opening}{head}</title><style>{_STYLE}</style>{rest}"
    return Picture(svg, round(width * MM_A_UNIT, 1), round(height * MM_A_UNIT, 1), draw.description(figure))


def formula(content: Element, alt: str, points: float) -> Picture:
    """Return a formula, an mrow of MathML, as a picture of letters so high; `alt` says it in words."""
    import typst

    inputs = {"tree": json.dumps(typst_maths.tree(content)), "size": str(points)}
    page = f"{typst_maths.source()}{_FORMULA}".encode()
    svg = typst.compile(page, format="svg", sys_inputs=inputs, ignore_system_fonts=True).decode()
    found = _POINTS.search(svg)
    assert found is not None
    return Picture(
        svg, round(float(found["width"]) * _MM_A_POINT, 1), round(float(found["height"]) * _MM_A_POINT, 1), alt
    )


@lru_cache(256)
def _png(svg: str, width_mm: float) -> bytes:
    import typst

    page = _PAGE.format(margin=_MARGIN_MM, width=width_mm)
    made = typst.compile(
        page.encode(), format="png", ppi=_PIXELS_AN_INCH, sys_inputs={"svg": svg}, ignore_system_fonts=True
    )
    assert isinstance(made, bytes)
    return made
