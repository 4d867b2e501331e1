"""A good lesson of schema 2, written by hand: short, and right in all that is printed."""

from __future__ import annotations

import copy
from typing import Any

Json = dict[str, Any]


def item(ask: str, answer: str, lines: list[str], *tests: str, marks: list[str] | None = None, **more: Any) -> Json:
    """A question; the marks are one for each line unless given."""
    return {
        "tests": list(tests), "answer": answer, "working": lines, "marks": marks or ["gives the simplest form"],
        "feedback": "The square factor comes out of the root as its own root.", **more, "ask": ask,
    }  # fmt: skip


def simplify(number: int, square: int, rest: int, *tests: str, ask: str = "", **more: Any) -> Json:
    root = round(square**0.5)
    answer = rf"\({root}\sqrt{{{rest}}}\)"
    lines = [
        "Take out the largest square factor.\n" + rf"\(\sqrt{{{number}}}=\sqrt{{{square}}}\times\sqrt{{{rest}}}\)",
        "Write its root.\n" + rf"\(\sqrt{{{square}}}\times\sqrt{{{rest}}}={root}\sqrt{{{rest}}}\)",
    ]
    stem = ask or rf"Write \(\sqrt{{{number}}}\) in its simplest form."
    return item(stem, answer, lines, *tests, **more)


def rationalise(top: int, under: int, front: int, *tests: str, **more: Any) -> Json:
    fraction = rf"\frac{{{top}}}{{\sqrt{{{under}}}}}"
    lines = [
        "Multiply top and bottom by the root.\n"
        + rf"\({fraction}=\frac{{{top}\sqrt{{{under}}}}}{{{under}}}\)",
        "Divide the numbers.\n" + rf"\(\frac{{{top}\sqrt{{{under}}}}}{{{under}}}={front}\sqrt{{{under}}}\)",
    ]  # fmt: skip
    stem = rf"Write \({fraction}\) with a rational denominator, in its simplest form."
    return item(stem, rf"\({front}\sqrt{{{under}}}\)", lines, *tests, **more)


def whole(ask: str, answer: str, line: str) -> Json:
    return item(ask, answer, [f"Work it out.\n{line}"], "prior 1", marks=["gives the number"])


def example(made: Json) -> Json:
    return {"working": made["working"], "ask": made["ask"]}


TEXT = (
    r"A garden in Fort William is a square of 50 square metres. Its side is \(\sqrt{50}\) metres, and no whole number "
    "gives that. A surd is a root that is no whole number and no fraction. You make it simpler when you find a square "
    r"number that divides the number under the root. Here \(50=25\times 2\), and the root of 25 is 5. So the side is "
    r"\(\sqrt{50}=\sqrt{25}\times\sqrt{2}=5\sqrt{2}\) metres. Choose the largest square factor: then nothing is left "
    "to take out, and the surd is in its simplest form. The number in front counts how many of these roots there are."
)
PLAIN = (
    r"A square garden has 50 square metres. Its side is \(\sqrt{50}\) metres. A surd is a root that is no whole number "
    r"and no fraction. Find a square number that divides 50. \(50=25\times 2\). The root of 25 is 5. "
    r"So \(\sqrt{50}=\sqrt{25}\times\sqrt{2}=5\sqrt{2}\). Choose the largest square factor. Then nothing is left to "
    "take out. The surd is in its simplest form. The number in front counts the roots."
)
TEXT_2 = (
    r"A rope of 6 metres is shared by a rule that gives \(\frac{6}{\sqrt{3}}\) metres. A root below the line is hard "
    "to compare with other lengths, so you write the fraction anew. Multiply the top and the bottom by the same root. "
    r"Because \(\sqrt{3}\times\sqrt{3}=3\), the bottom becomes a whole number. The fraction keeps its value, since "
    r"\(\frac{\sqrt{3}}{\sqrt{3}}=1\). So \(\frac{6}{\sqrt{3}}=\frac{6\sqrt{3}}{3}=2\sqrt{3}\). The denominator is "
    "now rational: it is a whole number and no surd. Look last whether the numbers have a common factor, as 6 and 3 "
    "have here, and divide by it."
)
PLAIN_2 = (
    r"A rule gives \(\frac{6}{\sqrt{3}}\) metres of a rope of 6 metres. Write it without a root below the line. "
    r"Multiply the top and the bottom by the same root. \(\sqrt{3}\times\sqrt{3}=3\). The value stays the same, "
    r"because \(\frac{\sqrt{3}}{\sqrt{3}}=1\). So \(\frac{6}{\sqrt{3}}=\frac{6\sqrt{3}}{3}=2\sqrt{3}\). The bottom is "
    "a whole number now and no surd. Divide the numbers last if you can."
)

LESSON: Json = {
    "title": "Simplifying surds and rationalising denominators",
    "outcome": "I can simplify surds and write fractions with a rational denominator.",
    "prior": ["You know the square numbers up to 144.", "You can multiply two fractions."],
    "key_points": [
        "A surd is in its simplest form when no square number above 1 divides the number under the root.",
        "The root of a product is the product of the roots.",
        "Multiplying top and bottom by the root below the line makes the denominator rational.",
    ],
    "keywords": [
        "surd: A root of a whole number that is not itself a whole number or a fraction.",
        "denominator: The number below the line of a fraction.",
    ],
    "misconceptions": [
        {
            "belief": "Only the denominator has to be multiplied by the root.",
            "correction": "Top and bottom get the same factor, because only then is the fraction multiplied by 1.",
        }
    ],
    "cycles": [
        {"title": "Simplest form", "aim": "Simplify a surd by taking out its largest square factor"},
        {"title": "Rational denominators", "aim": "Remove a surd below the line and keep the value"},
    ],
    "cards": [
        {
            "kind": "starter", "title": "Squares and products", "minutes": 5,
            "items": [
                whole(r"Work out \(\sqrt{64}\).", "8", r"\(\sqrt{64}=8\)"),
                whole(r"Work out \(9\times 9\).", "81", r"\(9\times 9=81\)"),
                {**whole(r"Work out \(\frac{2}{3}\times\frac{4}{5}\).", r"\(\frac{8}{15}\)",
                         r"\(\frac{2}{3}\times\frac{4}{5}=\frac{8}{15}\)"), "tests": ["prior 2"]},
            ],
        },
        {
            "kind": "explainer", "title": "Taking out a square factor", "minutes": 6, "teaches": [1], "text": TEXT,
            "plain": PLAIN, "mistakes": [],
            "non_example": r"\(2\sqrt{12}\) is not in its simplest form, because 4 divides 12.",
        },
        {
            "kind": "modelling", "title": "A surd made simpler", "minutes": 4,
            "examples": [example(simplify(98, 49, 2))],
        },
        {
            "kind": "check", "title": "Do you see the square?", "minutes": 4,
            "items": [simplify(12, 4, 3, "point 1"), simplify(45, 9, 5, "point 1")],
        },
        {
            "kind": "explainer", "title": "No root below the line", "minutes": 6, "teaches": [2], "text": TEXT_2,
            "plain": PLAIN_2, "mistakes": [1],
            "non_example": r"\(\frac{6}{3}\) is not \(\frac{6}{\sqrt{3}}\): only the bottom was multiplied.",
        },
        {
            "kind": "modelling", "title": "A denominator made rational", "minutes": 4,
            "examples": [example(rationalise(14, 7, 2))],
        },
        {
            "kind": "check", "title": "Top and bottom", "minutes": 4,
            "items": [rationalise(10, 5, 2, "point 2"), rationalise(9, 3, 3, "point 2", "mistake 1")],
        },
        {
            "kind": "guided_practice", "title": "Practise both", "minutes": 12,
            "items": [
                simplify(18, 9, 2, "point 1"),
                simplify(75, 25, 3, "point 1"),
                rationalise(12, 6, 2, "point 2", wrong=[
                    {"method": "12/6", "error": "multiplied only the bottom by the root", "mistake": 1}
                ]),
                simplify(72, 36, 2, "point 1", ask=(
                    r"A square field near Oban has an area of 72 square metres, so its side is \(\sqrt{72}\) metres. "
                    r"Write the surd \(\sqrt{72}\) in its simplest form."
                )),
            ],
        },
        {
            "kind": "exit_ticket", "title": "Show what you can do", "minutes": 5,
            "items": [
                simplify(108, 36, 3, "point 1", "key point 1", "key point 2"),
                rationalise(20, 10, 2, "point 2", "key point 3"),
            ],
            "rubric": ["2: Secure, go on.", "0: Look at the worked examples again."],
        },
    ],
    "notes": [{"kind": "if_they_struggle", "text": "Write the list of square numbers on the board first."}],
}  # fmt: skip


def fresh() -> Json:
    """The lesson, to be spoilt."""
    return copy.deepcopy(LESSON)


def lesson_for(entry: Json) -> Json:
    """The lesson as one of another teach entry, which it names; further points are asked as the second is."""
    lesson = fresh()
    lesson["outcome"] = f"{lesson['outcome'].rstrip('.')}, as in {entry['label']}."
    more = range(3, len(entry["points"]) + 1)
    lesson["cards"][4]["teaches"] += more
    lesson["cards"][7]["items"][2]["tests"] += [f"point {number}" for number in more]
    return lesson
