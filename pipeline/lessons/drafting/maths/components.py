"""Adding and subtracting vectors by their components."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.lessons.drafting.maths.tex import Line, ask, example, m, pick, told, vector
from pipeline.lessons.drafting.parts import Draw, Example, Mistake, Question, Topic, column, numeric

Components = tuple[int, ...]


def topic() -> Topic:
    """Return the topic of outcome geo.vector_components."""
    return Topic(
        name="adding and subtracting vectors",
        can="add and subtract vectors with two or three components",
        aim="Work with each component by itself",
        prior=("Adding and subtracting negative numbers, and coordinates",),
        facts=(
            "Vectors are added by adding their first components, their second components, and so on.",
            "Subtracting a vector takes off each of its components; taking off a negative number adds.",
            "Only vectors with the same number of components can be added or subtracted.",
        ),
        keywords=(
            ("component", "how far a vector goes in one of the directions of the axes"),
            ("resultant", "the single vector that has the same effect as several one after the other"),
        ),
        mistakes=(
            Mistake(
                "The minus sign of a difference belongs to the first component only.",
                "Each component of the second vector is taken off, also the second and the third.",
            ),
            Mistake(
                "The components of one vector are added to each other.",
                "They point in different directions; first is added to first, and second to second.",
            ),
        ),
        explain=_EXPLAIN,
        plain=_PLAIN,
        non_example="The lengths of two vectors do not add up to the length of their sum, unless both point one way.",
        example=_example,
        makers=(_which, _plane, _space, _difference, _journey, _unknown),
        starters=(_add, _take_off),
    )


_EXPLAIN = told(r"""
    A drone flies 4 m to the east and 3 m up, and then 2 m to the east and 5 m down. Where is it now? To the east it
    has gone \(4 + 2 = 6\) m, and upwards \(3 + (-5) = -2\) m, so it is 2 m lower than where it began. Each direction is
    counted by itself. As vectors: \(\begin{pmatrix}4 \\ 3\end{pmatrix} + \begin{pmatrix}2 \\ -5\end{pmatrix} =
    \begin{pmatrix}6 \\ -2\end{pmatrix}\). The sum is called the resultant: one flight straight to the end. Subtracting
    works in the same way, but every component of the second vector is taken off: \(\begin{pmatrix}4 \\ 3\end{pmatrix}
    - \begin{pmatrix}2 \\ -5\end{pmatrix} = \begin{pmatrix}2 \\ 8\end{pmatrix}\), because \(3 - (-5) = 8\). Write the
    brackets around a negative number before you calculate. In three dimensions there is one more line:
    \(\begin{pmatrix}1 \\ 0 \\ -2\end{pmatrix} + \begin{pmatrix}3 \\ -4 \\ 6\end{pmatrix} = \begin{pmatrix}4 \\ -4 \\
    4\end{pmatrix}\). The order of a sum does not matter. The order of a difference does: the other way round, every
    component changes its sign.
""")
_PLAIN = told(r"""
    A drone flies 4 m to the east and 3 m up. Then it flies 2 m to the east and 5 m down. Where is it now? To the east
    it is \(4 + 2 = 6\) m. Upwards it is \(3 + (-5) = -2\) m. So it is 2 m lower than before. Count each direction by
    itself. As vectors: \(\begin{pmatrix}4 \\ 3\end{pmatrix} + \begin{pmatrix}2 \\ -5\end{pmatrix} = \begin{pmatrix}6 \\
    -2\end{pmatrix}\). The sum is the resultant. Now subtract. Take off every component. \(\begin{pmatrix}4 \\
    3\end{pmatrix} - \begin{pmatrix}2 \\ -5\end{pmatrix} = \begin{pmatrix}2 \\ 8\end{pmatrix}\). Look at the second
    line: \(3 - (-5) = 8\). Use brackets for negative numbers. With three components there is one more line. The order
    of a sum does not matter. The order of a difference does.
""")


def _bracketed(value: int) -> str:
    return f"({value})" if value < 0 else str(value)


def _drawn(draw: Draw, count: int, most: int = 9) -> Components:
    return tuple(draw.nonzero(-most, most) for _ in range(count))


def _mixed(draw: Draw, count: int) -> Components:
    """Return components of which the last is negative, so that a sign matters in each question."""
    *first, last = _drawn(draw, count)
    return (*first, -abs(last))


def _by_component(one: Components, two: Components, sign: str) -> list[str]:
    return [f"{_bracketed(a)} {sign} {_bracketed(b)}" for a, b in zip(one, two, strict=True)]


def _result(one: Components, two: Components, sign: str) -> Components:
    return tuple(a + b if sign == "+" else a - b for a, b in zip(one, two, strict=True))


def _lines(one: Components, two: Components, sign: str) -> tuple[Line, ...]:
    parts, result = _by_component(one, two, sign), _result(one, two, sign)
    does = "Add" if sign == "+" else "Subtract"
    return (
        (f"{does} each component by itself.", vector(*parts), ""),
        (
            "Calculate, with care for the signs.",
            f"{vector(*parts)} = {vector(*result)}",
            f"{parts[-1]} = {result[-1]}",
        ),
    )


def _asked(stem: str, one: Components, two: Components, sign: str, why: str, reveals: Sequence[int] = ()) -> Question:
    parts, result = _by_component(one, two, sign), _result(one, two, sign)
    return ask(
        stem,
        column(parts, [str(value) for value in result], m(vector(*result))),
        *_lines(one, two, sign),
        why=why,
        reveals=reveals,
        hint="Which numbers belong to the same direction?",
    )


def _example(draw: Draw) -> Example:
    one, two = draw.one((((4, -1, 6), (2, 5, -3)), ((-2, 7, 1), (5, 3, -4)), ((3, 0, -5), (-6, 2, -1))))
    result = _result(one, two, "-")
    return example(
        f"Calculate {m(f'{vector(*one)} - {vector(*two)}')}.",
        m(vector(*result)),
        ("Write negative numbers in brackets, so that no sign is lost.", "", ""),
        *_lines(one, two, "-"),
    )


def _which(draw: Draw) -> Question:
    a, b = draw.one([(a, b) for a in range(2, 12) for b in range(2, 12) if a != b])
    one, two = (draw.nonzero(-9, 9), a), (draw.nonzero(-9, 9), -b)
    calculation = f"{a} - (-{b})"
    return pick(
        f"Choose the second component of {m(f'{vector(*one)} - {vector(*two)}')}.",
        (str(a + b), str(a + b), calculation),
        (str(a - b), str(a - b), "The minus sign was used for the first component only.", "0"),
        (str(-a - b), str(-a - b), "The vectors were subtracted the other way round.", ""),
        (str(b - a), str(b - a), "The sign of the first number was changed, not that of the second.", ""),
        lines=[("Take the second components from each other.", f"{calculation} = {a + b}", f"{calculation} = {a + b}")],
        why="Taking off a negative number adds it.",
        reveals=(0,),
    )


def _plane(draw: Draw) -> Question:
    one, two = _drawn(draw, 2), _mixed(draw, 2)
    return _asked(
        f"Calculate {m(f'{vector(*one)} + {vector(*two)}')}.", one, two, "+",
        "Components in the same direction are added.", (1,),
    )  # fmt: skip


def _space(draw: Draw) -> Question:
    one, two = _drawn(draw, 3), _mixed(draw, 3)
    return _asked(
        f"The vectors u and v are {m(vector(*one))} and {m(vector(*two))}. Calculate u + v.", one, two, "+",
        "A third component is added in the same way as the others.", (1,),
    )  # fmt: skip


def _difference(draw: Draw) -> Question:
    one, two = _drawn(draw, 3), _mixed(draw, 3)
    return _asked(
        f"The vectors p and q are {m(vector(*one))} and {m(vector(*two))}. Calculate p − q.", one, two, "-",
        "Every component of the second vector is taken off, and taking off a negative number adds.", (0,),
    )  # fmt: skip


def _journey(draw: Draw) -> Question:
    one, two = _drawn(draw, 2, 12), _mixed(draw, 2)
    return _asked(
        f"A helicopter leaves {draw.place()} and flies along {m(vector(*one))}, then along {m(vector(*two))}, both in "
        "kilometres to the east and to the north. Determine the single vector from where it began to where it is now.",
        one, two, "+", "The resultant of two parts of a way is their sum.",
    )  # fmt: skip


def _unknown(draw: Draw) -> Question:
    one, total = _mixed(draw, 3), _drawn(draw, 3)
    result = _result(total, one, "-")
    parts = _by_component(total, one, "-")
    return ask(
        f"The vector {m(vector(*one))} is added to the vector w, and the sum is {m(vector(*total))}. Determine w.",
        column(parts, [str(value) for value in result], m(vector(*result))),
        ("Take the known vector from the sum.", rf"w = {vector(*total)} - {vector(*one)}", ""),
        *_lines(total, one, "-"),
        why="Adding is undone by subtracting, component by component.",
        reveals=(0,),
        hint="How is adding undone?",
    )


def _add(draw: Draw) -> Question:
    a, b = draw.whole(2, 9), draw.whole(10, 20)
    return ask(
        f"Calculate {m(f'{a} + (-{b})')}.",
        numeric(f"{a} + (-{b})", str(a - b), str(a - b)),
        ("Adding a negative number takes it off.", f"{a} - {b} = {a - b}", f"{a} + (-{b}) = {a - b}"),
        why="A plus and a minus sign beside each other make a minus.",
        one=True,
    )


def _take_off(draw: Draw) -> Question:
    a, b = draw.whole(2, 9), draw.whole(2, 9)
    return ask(
        f"Calculate {m(f'-{a} - (-{b})')}.",
        numeric(f"-{a} - (-{b})", str(b - a), str(b - a)),
        ("Taking off a negative number adds it.", f"-{a} + {b} = {b - a}", f"-{a} - (-{b}) = {b - a}"),
        why="Two minus signs beside each other make a plus.",
        one=True,
    )
