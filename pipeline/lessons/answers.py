"""Answer kinds: what a key must carry so that code can compute it again.

Field order is the order of thinking: what is given, the whole calculation, the value, then the
errors; `shown` is the answer as a pupil should write it (text, may hold maths).
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pipeline.lessons.fields import Expression, IdOrNone, Part, Text

Shown = Annotated[
    Text, Field(min_length=1, max_length=300, description="the answer as a pupil should write it, unit included")
]
Unit = Annotated[str, Field(max_length=20, description="unit as printed (cm, £, m/s^2, °, %), empty for a pure number")]
Value = Annotated[
    str,
    Field(
        min_length=1, max_length=60, description="digits as printed, without unit; a decimal point, no thousands commas"
    ),
]


class Rounding(Part):
    """How the printed value comes from the exact one; always half up."""

    kind: Literal["exact", "dp", "sf", "nearest", "money"]
    amount: int = Field(
        ge=0, le=1_000_000, description="decimal places, significant figures or the multiple; 0 for exact and money"
    )


class WrongMethod(Part):
    """A wrong answer that a named error leads to."""

    misconception: IdOrNone = Field(description="id of the lesson's misconception, empty for a slip")
    expression: Expression = Field(description="the wrong calculation over the same numbers")
    value: Value
    shows: Text = Field(max_length=200, description="what the pupil probably did")


Wrong = Annotated[list[WrongMethod], Field(max_length=4)]


class Numeric(Part):
    """A number from one calculation."""

    kind: Literal["numeric"]
    expression: Expression = Field(min_length=1, description="the whole calculation, no rounding before its end")
    rounding: Rounding
    value: Value
    unit: Unit
    tolerance: str = Field(pattern=r"^\d+(\.\d+)?$", description="0 when exact, else at most half the last place shown")
    wrong: Wrong
    shown: Shown


class Exact(Part):
    """A surd, a fraction or a power in a required form."""

    kind: Literal["surd", "fraction", "power"]
    expression: Expression = Field(min_length=1, description="the calculation as set")
    value: Expression = Field(
        min_length=1, description="the final form in the same notation, e.g. 3*sqrt(2), (7/12), 2^(-3)"
    )
    form: Literal[
        "simplest", "rational_denominator", "lowest_terms", "mixed_number", "single_power", "positive_powers", "any"
    ]
    wrong: Wrong
    shown: Shown


class Algebra(Part):
    """An expression in letters, equal to the given one and in the form asked."""

    kind: Literal["algebra"]
    from_expression: Expression = Field(
        min_length=1, description="as given; for form subject the whole formula, e.g. v = u + a*t"
    )
    variables: list[str] = Field(min_length=1, max_length=6)
    form: Literal["expanded", "factorised", "single_fraction", "completed_square", "subject", "any"]
    subject: str = Field(max_length=12, description="the letter to make the subject; empty for other forms")
    answer: Expression = Field(
        min_length=1, description="the final expression; for form subject what the letter equals"
    )
    wrong: Wrong
    shown: Shown


class Root(Part):
    """One solution: a value for each variable, in their order."""

    values: list[Expression] = Field(min_length=1, max_length=4)


class Equation(Part):
    """An equation in one unknown, or a system."""

    kind: Literal["equation", "system"]
    equations: list[Expression] = Field(min_length=1, max_length=4, description="each with one =")
    variables: list[str] = Field(min_length=1, max_length=4)
    low: Expression = Field(description="least value allowed, empty for none; degrees in trigonometry")
    high: Expression = Field(description="greatest value allowed, empty for none")
    rounding: Rounding
    roots: list[Root] = Field(max_length=8, description="all solutions; none where there is no real root")
    wrong: Wrong
    shown: Shown


class Inequality(Part):
    """A linear inequality in one unknown."""

    kind: Literal["inequality"]
    relation: Expression = Field(min_length=1, description="as given, with <, >, <= or >=")
    variable: str = Field(min_length=1, max_length=12)
    sign: Literal["<", "<=", ">", ">="]
    boundary: Expression = Field(min_length=1)
    wrong: Wrong
    shown: Shown


class Statistics(Part):
    """A summary of one data set; s with n - 1, quartiles by halves without the median."""

    kind: Literal["statistics"]
    data: list[str] = Field(min_length=3, max_length=40)
    quantity: Literal[
        "mean",
        "median",
        "mode",
        "range",
        "lower_quartile",
        "upper_quartile",
        "interquartile_range",
        "standard_deviation",
    ]
    rounding: Rounding
    value: Value
    unit: Unit
    wrong: Wrong
    shown: Shown


class Geometry(Part):
    """A length, angle, area or volume; what is given must be able to exist."""

    kind: Literal["geometry", "trig"]
    shape: Literal["triangle", "right_triangle", "quadrilateral", "polygon", "circle", "solid", "line", "other"]
    sides: list[str] = Field(
        max_length=12, description="all sides that are given or found, for triangles opposite to angles in order"
    )
    angles: list[str] = Field(max_length=12, description="all angles in degrees that are given or found")
    expression: Expression = Field(min_length=1, description="the whole calculation, angles in degrees")
    rounding: Rounding
    value: Value
    unit: Unit
    tolerance: str = Field(pattern=r"^\d+(\.\d+)?$")
    wrong: Wrong
    shown: Shown


class Vector(Part):
    """Components of a vector, or coordinates of a point; exact."""

    kind: Literal["vector"]
    expressions: list[Expression] = Field(min_length=2, max_length=3, description="the calculation of each component")
    values: list[Value] = Field(min_length=2, max_length=3)
    wrong: Wrong
    shown: Shown


class Substitution(Part):
    """A quantity put into a relationship."""

    name: str = Field(min_length=1, max_length=12)
    value: Value
    unit: Unit


class Science(Part):
    """Relationship, substitution, answer with unit: the standard three marks."""

    kind: Literal["science"]
    relationship: Expression = Field(min_length=3, description="as an equation, e.g. v = u + a*t")
    relationship_ref: str = Field(max_length=60, description="catalogue point it belongs to")
    substitutions: list[Substitution] = Field(min_length=1, max_length=6)
    target: str = Field(min_length=1, max_length=12)
    expression: Expression = Field(min_length=1, description="what the target equals, in numbers")
    rounding: Rounding
    value: Value
    unit: Unit
    wrong: Wrong
    shown: Shown


class Option(Part):
    """One choice. The key has no misconception; every other option comes from one."""

    text: Text = Field(min_length=1, max_length=160)
    expression: Expression = Field(description="the option's value in evaluator notation, empty where it has none")
    method: Expression = Field(
        description="the calculation that leads to it, right for the key, wrong for the others; empty where none"
    )
    misconception: IdOrNone
    why: Text = Field(min_length=1, max_length=240, description="what choosing it shows, said to the pupil")


class Mcq(Part):
    """One right option; code puts the options in order."""

    kind: Literal["mcq"]
    options: list[Option] = Field(min_length=3, max_length=5, description="4 from National 5 up, 3 in quick checks")
    key: int = Field(ge=0, le=4, description="position of the right option, from 0")
    shown: Shown


class ShortText(Part):
    """Words or a simple drawing; not marked by code."""

    kind: Literal["short_text"]
    accepted: list[Text] = Field(min_length=1, max_length=8)
    must_have: list[Text] = Field(max_length=6, description="words or ideas without which there is no mark")
    reject: list[Text] = Field(max_length=6, description="answers that look right and are not")
    shown: Shown


PlainAnswer = Annotated[
    Numeric | Exact | Algebra | Equation | Inequality | Statistics | Geometry | Vector | Science | Mcq | ShortText,
    Field(discriminator="kind"),
]


class Bullet(Part):
    """One mark: why it is given, and what it looks like here."""

    generic: Text = Field(min_length=5, max_length=160, description="why the mark is given")
    illustration: Text = Field(min_length=1, max_length=200, description="what earns it in this question")


class SubPart(Part):
    """(a), (b), … of a structured question."""

    label: str = Field(pattern=r"^\([a-h]\)$")
    uses: list[str] = Field(max_length=4, description="labels of earlier parts whose result is needed")
    answer: PlainAnswer
    follow_through: bool = Field(description="true where it uses an earlier part")
    marks: int = Field(ge=1, le=8)
    scheme: list[Bullet] = Field(min_length=1, max_length=8)
    prompt: Text = Field(min_length=5, max_length=400)


class Structured(Part):
    """Parts, each with an answer of its own; their marks add up to the item's."""

    kind: Literal["structured"]
    parts: list[SubPart] = Field(min_length=2, max_length=6)
    shown: Shown


Answer = Annotated[
    Numeric
    | Exact
    | Algebra
    | Equation
    | Inequality
    | Statistics
    | Geometry
    | Vector
    | Science
    | Mcq
    | ShortText
    | Structured,
    Field(discriminator="kind"),
]
