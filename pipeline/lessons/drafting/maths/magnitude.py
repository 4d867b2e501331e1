"""Magnitude of a vector in two and three dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt

from pipeline.lessons.drafting.maths.tex import Line, ask, example, m, pick, root, surd, surd_code, told, vector
from pipeline.lessons.drafting.parts import Draw, Example, Json, Mistake, Question, Topic, exact, numeric, wrong


def topic() -> Topic:
    """Return the topic of outcome geo.vector_magnitude."""
    return Topic(
        name="the magnitude of a vector",
        can="calculate the magnitude of a vector in two or three dimensions",
        aim="Find how long a vector is from its components",
        prior=("Pythagoras' theorem, and squares of negative numbers",),
        facts=(
            r"The magnitude of the vector with components x, y and z is \(\sqrt{x^2 + y^2 + z^2}\).",
            "The square of a negative component is positive.",
            "A magnitude is a length, so it is never negative.",
        ),
        keywords=(
            ("magnitude", "the length of a vector"),
            ("component", "how far a vector goes in one of the directions of the axes"),
        ),
        mistakes=(
            Mistake(
                "The square of a negative component is taken off.",
                "A negative number times itself is positive, so all squares are added.",
            ),
            Mistake(
                "The magnitude is the sum of the components.",
                "The components are the shorter sides of right-angled triangles; the squares are added, not the sides.",
            ),
        ),
        explain=_EXPLAIN,
        plain=_PLAIN,
        non_example="The direction of a vector is not its magnitude: opposite vectors have the same length.",
        example=_example,
        makers=(_which, _plane, _space, _simplest, _between, _missing),
        starters=(_hypotenuse, _square),
    )


_EXPLAIN = told(r"""
    A boat sails 5 km to the east and 12 km to the south. How far is it from where it began? The two parts of the way
    meet at a right angle, so Pythagoras' theorem gives the distance: \(5^2 + 12^2 = 169\) and \(\sqrt{169} = 13\), so
    13 km. A vector with the components 5 and −12 says the same, and its length is called its magnitude. Put negative
    components in brackets before you square them: \((-12)^2 = 144\), not −144. In three dimensions the theorem is used
    twice. Take the components 2, 3 and 6. The first two give a diagonal whose square is \(2^2 + 3^2 = 13\). This
    diagonal and the third component meet at a right angle again, so the square of the length is \(13 + 6^2 = 49\), and
    the magnitude is \(\sqrt{49} = 7\). In one step: \(\sqrt{2^2 + 3^2 + 6^2} = 7\). The magnitude of a vector
    \(u\) is written \(|u|\). It is a number, not a vector. If it is not a whole number, leave it as a surd in its
    simplest form unless you are told to round. For the vector from A to B take the coordinates of A from those of B
    first.
""")
_PLAIN = told(r"""
    A boat sails 5 km to the east. Then it sails 12 km to the south. How far away is it now? The two parts meet at a
    right angle. So use Pythagoras' theorem. \(5^2 + 12^2 = 169\) and \(\sqrt{169} = 13\). It is 13 km away. The vector
    has the components 5 and −12. Its length is its magnitude. Use brackets for negative numbers. \((-12)^2 = 144\).
    Now take three components: 2, 3 and 6. Square each. Add the squares: \(4 + 9 + 36 = 49\). Take the root:
    \(\sqrt{49} = 7\). The magnitude is 7. We write \(|u|\) for the magnitude of \(u\). It is a number. Is it not a
    whole number? Then leave a surd in its simplest form. For a vector from A to B, subtract first. Take the
    coordinates of A from those of B.
""")

_PLANE = ((3, 4, 5), (5, 12, 13), (8, 15, 17), (7, 24, 25), (6, 8, 10), (9, 12, 15), (12, 16, 20))
_SPACE = ((1, 2, 2, 3), (2, 3, 6, 7), (1, 4, 8, 9), (2, 6, 9, 11), (4, 4, 7, 9), (6, 6, 7, 11), (3, 4, 12, 13),
          (2, 10, 11, 15), (1, 12, 12, 17), (8, 9, 12, 17))  # fmt: skip


def _bracketed(value: int) -> str:
    return f"({value})" if value < 0 else str(value)


def _sum(components: Sequence[int]) -> str:
    """Return the sum of the squares, as TeX and as the evaluator reads it."""
    return " + ".join(f"{_bracketed(value)}^2" for value in components)


def _signed(draw: Draw, sizes: Sequence[int]) -> tuple[int, ...]:
    """Return components of these sizes in some order; the first may and the last must be negative."""
    order = list(sizes)
    if draw.whole(0, 1):
        order.reverse()
    return (order[0] * draw.one((-1, 1)), *order[1:-1], -order[-1])


def _lines(components: Sequence[int], length: int) -> tuple[Line, ...]:
    text = _sum(components)
    total = length * length
    return (
        ("Square the components and add the squares.", f"{text} = {total}", f"{text} = {total}"),
        ("Take the square root.", f"{root(total)} = {length}", f"sqrt({total}) = {length}"),
    )


def _errors(components: Sequence[int]) -> tuple[Json, ...]:
    added = sum(abs(value) for value in components)
    sizes = " + ".join(str(abs(value)) for value in components)
    return (wrong("1", sizes, str(added), "Added the components without squares and root"),)


def _asked(stem: str, components: Sequence[int], length: int) -> Question:
    return ask(
        stem,
        numeric(f"sqrt({_sum(components)})", str(length), str(length), errors=_errors(components)),
        *_lines(components, length),
        why="The components meet at right angles, so the square of the length is the sum of their squares.",
        reveals=(0, 1),
        hint="What is the square of a negative number?",
    )


def _example(draw: Draw) -> Example:
    sizes = draw.one(((2, 3, 6, 7), (1, 4, 8, 9), (2, 6, 9, 11)))
    components = (sizes[0], -sizes[1], sizes[2])
    return example(
        f"Calculate the magnitude of the vector {m(vector(*components))}.",
        str(sizes[3]),
        ("Write the negative component in brackets, so that its sign is squared too.", "", ""),
        *_lines(components, sizes[3]),
    )


def _which(draw: Draw) -> Question:
    a, b, length = draw.one([sizes for sizes in _PLANE if sizes[1] < 2 * sizes[0] + 3])
    components = (a, -b)
    less = b * b - a * a
    return pick(
        f"Choose the magnitude of the vector {m(vector(*components))}.",
        (str(length), str(length), f"sqrt({_sum(components)})"),
        (m(root(less)), f"sqrt({less})", "The square of the negative component was taken off.", "0"),
        (str(a + b), str(a + b), "The components were added without squares and root.", "1"),
        (str(length * length), str(length * length), "The square root was left out.", ""),
        lines=_lines(components, length),
        why="Both squares are positive; their sum is the square of the length.",
        reveals=(0, 1),
    )


def _plane(draw: Draw) -> Question:
    *sizes, length = draw.one(_PLANE)
    components = _signed(draw, sizes)
    return _asked(f"Calculate the magnitude of the vector {m(vector(*components))}.", components, length)


def _space(draw: Draw) -> Question:
    *sizes, length = draw.one(_SPACE)
    components = _signed(draw, sizes)
    return _asked(f"The vector u has components {m(vector(*components))}. Calculate |u|.", components, length)


def _simplest(draw: Draw) -> Question:
    k, (a, b, inside) = draw.whole(2, 5), draw.one(((1, 1, 2), (1, 2, 5), (1, 3, 10), (2, 3, 13)))
    components = (k * a, -k * b)
    total = k * k * inside
    text = _sum(components)
    return ask(
        f"Calculate the magnitude of the vector {m(vector(*components))}. Give your answer as a surd in its simplest "
        "form.",
        exact(
            "surd", f"sqrt({text})", surd_code(k, inside), "simplest", m(surd(k, inside)), errors=_errors(components)
        ),
        ("Square the components and add the squares.", f"{text} = {total}", f"{text} = {total}"),
        (
            f"Take the root, with {k * k} as a square factor.",
            f"{root(total)} = {surd(k, inside)}",
            f"sqrt({total}) = {surd_code(k, inside)}",
        ),
        why="The magnitude is the root of the sum of the squares, and a square factor comes out of a root.",
        reveals=(0, 1),
        hint="Which square number divides the number under the root?",
    )


def _between(draw: Draw) -> Question:
    *sizes, length = draw.one(_SPACE)
    components = _signed(draw, sizes)
    start = tuple(draw.nonzero(-4, 4) for _ in range(3))
    end = tuple(here + step for here, step in zip(start, components, strict=True))
    squares = " + ".join(f"({there} - {_bracketed(here)})^2" for here, there in zip(start, end, strict=True))
    return ask(
        f"A is the point {m(str(start))} and B is the point {m(str(end))}. Calculate the magnitude of the vector from "
        "A to B.",
        numeric(f"sqrt({squares})", str(length), str(length)),
        ("Take the coordinates of A from those of B.", vector(*components), ""),
        *_lines(components, length),
        why="A vector between two points has the differences of their coordinates as components.",
        reveals=(0,),
        hint="Which point is subtracted?",
    )


def _missing(draw: Draw) -> Question:
    a, b, length = draw.one(_PLANE)
    left = length * length - a * a
    return ask(
        f"The vector {m(vector(a, 'k'))} has magnitude {length}, and k is positive. Determine the value of k.",
        numeric(f"sqrt({length}^2 - {a}^2)", str(b), m(f"k = {b}")),
        (
            "Write the square of the magnitude with k.",
            f"{a}^2 + k^2 = {length}^2",
            f"{a}^2 + k^2 = {length}^2",
        ),
        ("Take the known square off.", f"k^2 = {left}", f"{length}^2 - {a}^2 = {left}"),
        ("Take the positive root.", f"k = {b}", f"sqrt({left}) = {isqrt(left)}"),
        why="The squares of the components add up to the square of the magnitude.",
    )


def _hypotenuse(draw: Draw) -> Question:
    a, b, length = draw.one(_PLANE)
    return ask(
        f"The shorter sides of a right-angled triangle are {a} cm and {b} cm. Calculate the hypotenuse in cm.",
        numeric(f"sqrt({a}^2 + {b}^2)", str(length), f"{length} cm", unit="cm"),
        (
            "Use Pythagoras' theorem.",
            f"{root(f'{a}^2 + {b}^2')} = {length}",
            f"sqrt({a}^2 + {b}^2) = {length}",
        ),
        why="The square on the hypotenuse is the sum of the squares on the other two sides.",
        one=True,
    )


def _square(draw: Draw) -> Question:
    value = draw.whole(2, 12)
    return ask(
        f"Calculate {m(f'(-{value})^2')}.",
        numeric(f"(-{value})^2", str(value * value), str(value * value)),
        (
            "A negative number times itself is positive.",
            rf"(-{value}) \times (-{value}) = {value * value}",
            f"(-{value})^2 = {value * value}",
        ),
        why="Two negative factors make a positive product.",
        one=True,
    )
