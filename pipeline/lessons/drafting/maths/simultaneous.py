"""Simultaneous equations."""

from __future__ import annotations

from pipeline.lessons.drafting.maths.linear import one_step, value_of
from pipeline.lessons.drafting.maths.tex import Line, ask, code, example, m, pick, poly, poly_code, told
from pipeline.lessons.drafting.parts import (
    Draw,
    Example,
    Json,
    Mistake,
    Question,
    Topic,
    equation,
)


def topic() -> Topic:
    """Return the topic of outcome alg.simultaneous; points: build from a text, solve by graph, solve by algebra."""
    return Topic(
        name="simultaneous equations",
        can="build and solve a pair of simultaneous equations",
        aim="Find the pair of values that fits both equations",
        prior=("Solving a linear equation, and drawing the graph of a straight line",),
        facts=(
            "A pair of values solves simultaneous equations if it makes both of them true.",
            "On a graph the solution is the point where the two lines meet.",
            "Adding or subtracting multiples of the equations can remove one letter.",
        ),
        keywords=(("simultaneous equations", "two equations that must be true for the same values"),),
        mistakes=(
            Mistake(
                "Any pair that fits one of the equations is a solution.",
                "Many pairs fit one equation; the solution must fit both, so check it in both.",
            ),
            Mistake(
                "When one equation is multiplied, only its left side changes.",
                "Every term on both sides is multiplied, or the equation is no longer true.",
            ),
        ),
        explain=_PAIR,
        plain=_PAIR_PLAIN,
        non_example=r"\(x + y = 10\) alone has no single solution: 4 and 6 fit it, and so do 1 and 9.",
        example=_pair_example,
        makers=(_pair_which, _eliminate, _meeting, _cafe, _multiply_both, _parts_of_day),
        starters=(one_step, value_of),
    )


_PAIR = told(r"""
    In a café two teas and three scones cost £12, and two teas and one scone cost £8. What does each cost? Let a tea
    cost \(t\) pounds and a scone \(s\) pounds. The text gives two equations: \(2t + 3s = 12\) and \(2t + s = 8\).
    Both must be true for the same \(t\) and \(s\); they are simultaneous. Subtract the second from the first, and the
    teas are gone: \(2s = 4\), so \(s = 2\). Put this into one of the equations: \(2t + 2 = 8\), so \(t = 3\). A tea
    costs £3 and a scone £2. Check in the other equation: \(2 \times 3 + 3 \times 2 = 12\). If no letter has the same
    number in both equations, multiply one or both equations first, every term on both sides. Add the equations if the
    signs of that letter differ, subtract if they are the same. The solution can also be seen: draw both lines, and
    read off the point where they meet, because only that point lies on both.
""")
_PAIR_PLAIN = told(r"""
    Two teas and three scones cost £12. Two teas and one scone cost £8. A tea costs \(t\) pounds. A scone costs \(s\)
    pounds. So \(2t + 3s = 12\) and \(2t + s = 8\). Both must be true. Subtract the second from the first. The teas
    are gone: \(2s = 4\), so \(s = 2\). Put this in: \(2t + 2 = 8\), so \(t = 3\). A tea costs £3. A scone costs £2.
    Check: \(2 \times 3 + 3 \times 2 = 12\). Are the numbers before the letters different? Then multiply first.
    Multiply every term on both sides. Add if the signs differ. Subtract if they are the same. You can also draw both
    lines. The answer is the point where they meet.
""")


def _line(a: int, b: int, c: int) -> tuple[str, str]:
    """Return ax + by = c as TeX and code."""
    sign = "-" if b < 0 else "+"
    size = "" if abs(b) == 1 else str(abs(b))
    times = "" if not size else f"{size}*"
    return f"{poly([a, 0])} {sign} {size}y = {c}", f"{poly_code([a, 0])} {sign} {times}y = {c}"


def _system(one: tuple[int, int, int], two: tuple[int, int, int], x: int, y: int) -> Json:
    return equation(
        [_line(*one)[1], _line(*two)[1]],
        ["x", "y"],
        [[code(x), code(y)]],
        rf"\(x = {x}\), \(y = {y}\)",
    )


def _elimination(one: tuple[int, int, int], two: tuple[int, int, int], x: int, y: int) -> tuple[Line, ...]:
    """Return the lines that remove y by multiplying each equation by the other's number of y."""
    (a, b, c), (d, e, f) = one, two
    p, q = (1, 1) if abs(b) == abs(e) else (abs(e), abs(b))
    first, second = (p * a, p * b, p * c), (q * d, q * e, q * f)
    sign = 1 if first[1] == -second[1] else -1
    left, right = first[0] + sign * second[0], first[2] + sign * second[2]
    steps: list[Line] = []
    if (p, q) != (1, 1):
        steps.append(
            (
                f"Multiply the equations by {p} and {q}, so that y has the same number in both.",
                rf"{_line(*first)[0]} \text{{ and }} {_line(*second)[0]}",
                f"{_line(*first)[1]}; {_line(*second)[1]}",
            )
        )
    steps += [
        (
            f"{'Add' if sign > 0 else 'Subtract'} the equations.",
            f"{poly([left, 0])} = {right}",
            f"{poly_code([left, 0])} = {right}",
        ),
        ("Solve for x.", f"x = {x}", f"x = {x}"),
        ("Put x into one equation and solve for y.", f"y = {y}", f"y = {y}"),
    ]
    return tuple(steps)


def _system_numbers(draw: Draw, equal: bool) -> tuple[tuple[int, int, int], tuple[int, int, int], int, int]:
    x, y = draw.nonzero(-6, 8), draw.nonzero(-5, 7)
    while True:
        a, d = draw.whole(1, 6), draw.whole(1, 6)
        b = draw.whole(1, 4)
        e = draw.one((b, -b)) if equal else draw.one([n for n in (-5, -4, -3, -2, 2, 3, 4, 5) if abs(n) != b])
        scale = 1 if equal else abs(e)
        other = 1 if equal else b
        sign = 1 if b * scale == -e * other else -1
        if a * scale + sign * d * other != 0 and a * e != b * d:
            return (a, b, a * x + b * y), (d, e, d * x + e * y), x, y


def _pair_example(draw: Draw) -> Example:
    x, y = draw.one([(3, 2), (4, 1), (2, 5)])
    one, two = (3, 2, 3 * x + 2 * y), (5, -2, 5 * x - 2 * y)
    return example(
        rf"Solve algebraically \({_line(*one)[0]}\) and \({_line(*two)[0]}\).",
        rf"\(x = {x}\), \(y = {y}\)",
        *_elimination(one, two, x, y),
    )


def _pair_which(draw: Draw) -> Question:
    x, y = draw.whole(2, 7), draw.whole(1, 6)
    if y in (x, x + 1):
        return _pair_which(draw)
    one, two = (1, 1, x + y), (1, -1, x - y)
    pairs = [(x, y), (y, x), (x + 1, y - 1), (x + 1, y + 1)]
    says = (
        "",
        "The values changed places.",
        "This fits the first equation only.",
        "This fits the second equation only.",
    )
    texts = [rf"\(x = {p}\), \(y = {q}\)" for p, q in pairs]
    return pick(
        rf"Choose the solution of \({_line(*one)[0]}\) and \({_line(*two)[0]}\).",
        (texts[0], "", ""),
        *((texts[i], "", says[i], "0" if i > 1 else "") for i in (1, 2, 3)),
        lines=[
            ("Add the equations.", f"2x = {2 * x}", f"2*x = {2 * x}"),
            ("Solve for x, then for y.", rf"x = {x} \text{{ and }} y = {y}", f"x = {x}; y = {y}"),
        ],
        why="The right pair makes both equations true.",
        asks=(2,),
    )


def _eliminated(draw: Draw, equal: bool) -> Question:
    one, two, x, y = _system_numbers(draw, equal)
    return ask(
        rf"Solve algebraically the system of equations \({_line(*one)[0]}\) and \({_line(*two)[0]}\).",
        _system(one, two, x, y),
        *_elimination(one, two, x, y),
        why="Once one letter is gone, what is left is an equation with one unknown.",
        asks=(2,),
        reveals=(0, 1),
        hint="Which letter can be removed most easily?",
    )


def _eliminate(draw: Draw) -> Question:
    return _eliminated(draw, True)


def _multiply_both(draw: Draw) -> Question:
    return _eliminated(draw, False)


def _meeting(draw: Draw) -> Question:
    x, y = draw.nonzero(-4, 5), draw.nonzero(-4, 6)
    m1 = draw.whole(1, 3)
    m2 = -draw.whole(1, 3)
    c1, c2 = y - m1 * x, y - m2 * x
    one, two = f"y = {poly([m1, c1])}", f"y = {poly([m2, c2])}"
    code1, code2 = f"y = {poly_code([m1, c1])}", f"y = {poly_code([m2, c2])}"
    return ask(
        rf"The lines \({one}\) and \({two}\) are drawn on one graph. Determine the coordinates of the point "
        rf"where they meet.",
        equation([code1, code2], ["x", "y"], [[code(x), code(y)]], m(f"({x}, {y})")),
        (
            "At the meeting point both give the same y.",
            f"{poly([m1, c1])} = {poly([m2, c2])}",
            f"{poly_code([m1, c1])} = {poly_code([m2, c2])}",
        ),
        ("Solve for x.", f"x = {x}", f"x = {x}"),
        ("Find y from one of the lines.", f"y = {y}", f"y = {y}"),
        why="Only the point where the lines meet lies on both, so its coordinates solve both equations.",
        asks=(1, 2),
        reveals=(0,),
    )


def _shopping(stem: str, one: tuple[int, int, int], two: tuple[int, int, int], x: int, y: int) -> Question:
    lines = _elimination(one, two, x, y)
    return ask(
        stem,
        _system(one, two, x, y),
        (
            "Write the two equations.",
            rf"{_line(*one)[0]} \text{{ and }} {_line(*two)[0]}",
            f"{_line(*one)[1]}; {_line(*two)[1]}",
        ),
        *lines,
        why="Each sentence of the text gives one equation; the solution must fit both.",
        asks=(0, 2),
        reveals=(0, 1),
        hint="Say what x and y stand for.",
    )


def _cafe(draw: Draw) -> Question:
    x, y = draw.whole(2, 6), draw.whole(2, 6)
    a, b, d = draw.whole(2, 5), draw.whole(1, 4), draw.whole(1, 6)
    if a == d:
        d += 1
    one, two = (a, b, a * x + b * y), (d, b, d * x + b * y)
    rolls = _counted(b, "roll")
    stem = (
        f"In a café in {draw.place()} {_counted(a, 'soup')} and {rolls} cost £{one[2]}; {_counted(d, 'soup')} "
        f"and {rolls} cost "
        f"£{two[2]}. Let a soup cost x pounds and a roll y pounds. Write two equations and solve them."
    )
    return _shopping(stem, one, two, x, y)


def _counted(number_of: int, thing: str) -> str:
    return f"{number_of} {thing}" + ("" if number_of == 1 else "s")


def _parts_of_day(draw: Draw) -> Question:
    x, y = draw.whole(3, 9), draw.whole(4, 12)
    a, b, d, e = draw.one([(2, 3, 3, 2), (3, 2, 2, 5), (4, 3, 3, 5), (2, 5, 5, 3)])
    one, two = (a, b, a * x + b * y), (d, e, d * x + e * y)
    who = draw.person()
    stem = (
        f"{who} trains for a race near {draw.place()}. A week with {a} short and {b} long runs is {one[2]} km "
        f"in all; a week with "
        f"{d} short and {e} long runs is {two[2]} km. All short runs are x km and all long runs y km. Write "
        f"two equations and "
        "solve them."
    )
    return _shopping(stem, one, two, x, y)
