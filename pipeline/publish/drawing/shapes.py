"""Triangles, polygons, circles, solids."""

from __future__ import annotations

from pipeline.publish.drawing import circles, polygons, solids
from pipeline.publish.drawing.lines import FigureKind, FigureLines, Line, choice
from pipeline.publish.drawing.values import corners, degrees, size

_FIND = Line("find", str, "find: PR", say="find {v}", given=False)
_SIDES = (
    Line("{PQ}", size, "PQ: 9 cm"),
    Line("angle {PQR}", degrees, "angle Q: 52°"),
    Line("right angle", corners, "right angle: Q", say="right angle at {v}", many=True),
    Line("equal", corners, "equal: PQ PR", say="{v} equal", many=True),
)


def tangent(value: str) -> tuple[tuple[str, ...], str]:
    """Return where tangents touch, and the point outside that they lead to, if it has a name."""
    touching, _, outside = value.partition(" to ")
    return corners(touching), corners(outside)[0] if outside else ""


def _corners(figure: FigureLines) -> str:
    return "".join(figure.value("corners", ()))


TRIANGLE = FigureKind(
    "triangle",
    "a triangle by its sides, angles, height; what is not known may be x, 2x + 1 or ?",
    (
        Line("corners", corners, "corners: P Q R", say="", needed=True),
        *_SIDES,
        Line("height from {P}", size, "height from P: 5 cm"),
        _FIND,
    ),
    polygons.draw,
    head=lambda figure: f"Triangle {_corners(figure)}",
)
_SHAPES = ("rectangle", "square", "parallelogram", "rhombus", "kite", "trapezium", "regular", "any")


def _polygon(figure: FigureLines) -> str:
    shape = figure.text("shape", "any")
    return f"{ {'regular': 'Regular polygon', 'any': 'Polygon'}.get(shape, shape.capitalize()) } {_corners(figure)}"


POLYGON = FigureKind(
    "polygon",
    "four or more corners, named in order",
    (
        Line("corners", corners, "corners: A B C D", say="", needed=True),
        Line("shape", choice(*_SHAPES), f"shape: {'|'.join(_SHAPES)}", say=""),
        *_SIDES,
        Line("parallel", corners, "parallel: AB DC", say="{v} parallel", many=True),
        Line("diagonal", corners, "diagonal: AC", say="diagonal {v}", many=True),
        _FIND,
    ),
    polygons.draw,
    head=_polygon,
    also=("quadrilateral", "rectangle"),
)
CIRCLE = FigureKind(
    "circle",
    "a circle with radii, chords, tangents, a sector",
    (
        Line("centre", corners, "centre: O", say="centre {v}"),
        Line("radius", size, "radius: 6 cm"),
        Line("diameter", size, "diameter: 12 cm"),
        Line("points", str, "points: A at 20°, B at 140°", say="", given=False),
        Line("middle {P}", corners, "middle M: AB", say="{0} middle of {v}"),
        Line("join", str, "join: OA OB AB", say="lines {v}"),
        Line("{PQ}", size, "AB: 8 cm"),
        Line("tangent at", tangent, "tangent at: A to T", say="tangent at {v}", many=True),
        Line("sector", corners, "sector: AOB", say="sector {v}"),
        Line("arc {PQ}", size, "arc AB: 9 cm"),
        Line("angle {PQR}", degrees, "angle AOB: 120°"),
        Line("right angle", corners, "right angle: ABC", say="right angle {v}", many=True),
        Line("distance {P} to {PQ}", size, "distance O to AB: 3 cm", say="{0} to {1} {v}"),
        _FIND,
    ),
    circles.draw,
)
_SOLIDS = ("cuboid", "cube", "cylinder", "cone", "sphere", "hemisphere", "pyramid", "prism")
SOLID = FigureKind(
    "solid",
    "a solid with its measures, or with named corners and coordinates",
    (
        Line("solid", choice(*_SOLIDS), f"solid: {'|'.join(_SOLIDS)}", say="", needed=True),
        *(
            Line(name, size, f"{name}: 8 cm")
            for name in ("length", "breadth", "height", "radius", "diameter", "slant height")
        ),
        Line("corners", corners, "corners: O A B C D E F G", say="corners {v}"),
        Line("{PQ}", size, "OF: ?"),
        Line("point {P}", str, "point A: (4, 0, 0)", say="{0}{v}"),
        Line("axes", choice("yes", "no"), "axes: yes", say="", given=False),
        _FIND,
    ),
    solids.draw,
    head=lambda figure: figure.text("solid", "solid").capitalize(),
)
KINDS = (TRIANGLE, POLYGON, CIRCLE, SOLID)
