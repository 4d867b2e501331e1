"""A course of the catalogue: units, skills and areas in one tree, validated; what a run is pinned to is its JSON."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from pipeline.content.names import LEVEL_DIGITS, MAX_NAME, level_name, subject_name
from pipeline.errors import CatalogueError
from pipeline.frameworks import FRAMEWORKS, REGIONS, SQA_CODE, near_name
from pipeline.records.values import value_hash

#: Version of the catalogue format this program reads.
FORMAT = 1

#: Characters of a title, a point or another text.
MAX_LINE = 400

Line = Annotated[str, Field(min_length=1, max_length=MAX_LINE)]
GroupId = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=20)]
OutcomeId = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*\.[a-z0-9_]+$", max_length=50)]


class _Row(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Point(_Row):
    """A content point or an assessment standard."""

    #: The outcome's id, a dot, and the printed code or, where it has none or a long one, the number in the list:
    #: "num.surds.1", "fin.o1.AS1.1".
    id: str
    #: Printed code; empty for a content point. Not unique in a course.
    code: str = ""
    text: Line
    skills: list[Line] = []


class CourseOutcome(_Row):
    """A learning outcome with its points in teaching order."""

    id: OutcomeId
    #: Printed code, e.g. O1; not unique in a course.
    code: str = ""
    title: Line
    points: list[Point] = Field(min_length=1)


class Weight(_Row):
    """Share of each question paper, per cent."""

    min: int = Field(ge=0, le=100)
    max: int = Field(ge=0, le=100)

    @model_validator(mode="after")
    def _rising(self) -> Self:
        if self.min > self.max:
            raise PydanticCustomError("weight", "min is above max")
        return self


class Group(_Row):
    """A unit, topic or area."""

    id: GroupId
    kind: Literal["unit", "topic", "area", "added_value_unit"]
    code: str = ""
    title: Line
    credits: int | None = Field(default=None, ge=0)
    weight: Weight | None = None
    #: Attached to outcomes of the other groups, never a lesson of its own.
    cross_cutting: bool = False
    outcomes: list[CourseOutcome]

    @model_validator(mode="after")
    def _has_outcomes(self) -> Self:
        if not self.outcomes and self.kind != "added_value_unit":
            raise PydanticCustomError("outcomes", "has no outcomes; only an added_value_unit may have none")
        return self


class Scqf(_Row):
    """Place in the Scottish credit framework."""

    level: int = Field(ge=1, le=12)
    credits: int | None = Field(default=None, ge=1)


class Component(_Row):
    """A paper, test or assignment."""

    id: GroupId
    title: Line
    marks: int | None = Field(default=None, ge=1)
    scaled: int | None = Field(default=None, ge=1)
    percent: int | None = Field(default=None, ge=1, le=100)
    minutes: int | None = Field(default=None, ge=1)
    calculator: bool | None = None
    internal: bool = False
    result: str = ""
    parts: list[str] = []
    question_types: list[str] = []


class Sheet(_Row):
    """Hold what candidates are given with a question paper: formulae, relationships or data."""

    title: Line
    #: One formula or value a line, in words and TeX.
    lines: list[Line] = Field(min_length=1, max_length=100)


class Assessment(_Row):
    """How the course is assessed."""

    #: "" with no components: not stated.
    model: str = ""
    components: list[Component] = []
    coursework: str | None = None
    threshold_percent_per_outcome: int | None = Field(default=None, ge=1, le=100)
    question_papers_percent: int | None = Field(default=None, ge=1, le=100)
    provided: list[str] = []
    sheets: list[Sheet] = []


class Source(_Row):
    """Where facts of the file come from, and whether somebody compared them."""

    ref: Line
    covers: list[Line] = Field(min_length=1)
    verified: bool | Literal["partly"]
    note: str = ""


class Course(_Row):
    """One subject at one level."""

    catalogue: int = FORMAT
    id: str
    #: Any, as content/names.py makes them of what people type: "design_technology", "year_9".
    subject: str = Field(min_length=1, max_length=MAX_NAME)
    level: str = Field(min_length=1, max_length=MAX_NAME)
    title: Line
    #: Usual age of its learners, in years; sets steps, command words and sentences of a level without a row of its own.
    age: int | None = Field(default=None, ge=4, le=99)
    #: Whose syllabus it is, by a name of pipeline/frameworks.py or as printed; "": SQA by its code, else nobody's.
    framework: str = Field(default="", max_length=60)
    #: Where its pupils live, by a name of pipeline/frameworks.py; "": where the framework is at home.
    region: str = Field(default="", max_length=40)
    #: As printed: "C847 75"; other systems' codes are welcome, and courses without one.
    code: str = Field(default="", max_length=24)
    #: course_ and the code without its space, lower case; without a code, of subject and level.
    course_id: str = Field(pattern=r"^course_[a-z0-9]+$")
    scqf: Scqf | None = None
    #: Terms under which the course may be passed on, and whom to name for it; "": not stated.
    licence: str = Field(default="", max_length=400)
    attribution: str = Field(default="", max_length=400)
    structure: Literal["units", "skills", "areas"]
    aims: list[Line] = []
    groups: list[Group] = Field(min_length=1)
    assessment: Assessment = Assessment()
    marking: list[Line] = []
    sources: list[Source] = []

    def outcomes(self, *, cross_cutting: bool = False) -> list[CourseOutcome]:
        """Return learning outcomes in teaching order: those with lessons of their own, or the cross-cutting ones."""
        return [out for group in self.groups if group.cross_cutting is cross_cutting for out in group.outcomes]

    def points(self) -> Iterator[Point]:
        """Yield points of the outcomes that have lessons of their own, in teaching order."""
        return (point for out in self.outcomes() for point in out.points)

    def group_of(self, outcome_id: str) -> Group:
        """Return the group an outcome belongs to; KeyError for an unknown one."""
        for group in self.groups:
            if any(out.id == outcome_id for out in group.outcomes):
                return group
        raise KeyError(outcome_id)

    def to_json(self) -> dict[str, Any]:
        """Return all of it, most defaults included: what a run is pinned to.

        Keys that courses had not from the beginning are left out where they say nothing: a course keeps its hash.
        """
        data = self.model_dump(mode="json")
        if not self.assessment.sheets:
            del data["assessment"]["sheets"]
        return {key: value for key, value in data.items() if key not in _LATER or value}

    @classmethod
    def from_json(cls, data: Any) -> Course:
        """Return the course that `to_json` wrote."""
        return cls.model_validate(data)

    def content_hash(self) -> str:
        """Return a hash that changes whenever anything a lesson could depend on changes."""
        return value_hash(self.to_json())


#: Keys of a course that came later.
_LATER = frozenset({"age", "framework", "region", "scqf", "licence", "attribution"})

Place = tuple[str | int, ...]


def course_problems(course: Course) -> list[tuple[Place, str]]:
    """Return what one part of a course says against another: the key's path and the fault."""
    return [*_name_problems(course), *_tree_problems(course)]


def _name_problems(course: Course) -> Iterator[tuple[Place, str]]:
    for key, given, canonical_name in (("subject", course.subject, subject_name), ("level", course.level, level_name)):
        try:
            wanted = canonical_name(given)
        except CatalogueError as error:
            yield (key,), error.message
        else:
            if wanted != given:
                yield (key,), f"is {given!r}, wanted its canonical name {wanted!r}"
    for key, given, near in (
        ("framework", course.framework, near_name(course.framework, FRAMEWORKS)),
        ("region", course.region, near_name(course.region, REGIONS)),
    ):
        if near:
            yield (key,), f"is {given!r}; did you mean {near}?"
    digits = LEVEL_DIGITS.get(course.level)
    if digits and SQA_CODE.fullmatch(course.code) and not course.code.endswith(digits):
        yield ("code",), f"{course.code!r} does not end in {digits}, the digits of {course.level}"
    if course.id != f"{course.subject}/{course.level}":
        yield ("id",), f"is {course.id!r}, wanted {course.subject}/{course.level}"
    wanted = course_id(course.subject, course.level, course.code)
    if course.course_id != wanted:
        source = "code" if course.code else "subject and the level"
        yield ("course_id",), f"is {course.course_id!r}, wanted {wanted}, made from the {source}"


def course_id(subject: str, level: str, code: str) -> str:
    """Return the id of a course: course_ and its code, or its subject and level, in small letters and digits.

    Where a letter has no Latin form, some digits of a hash stand for all.
    """
    text = latin(code or subject + level)
    plain = "".join(char for char in text if char.isascii() and char.isalnum())
    return "course_" + plain + ("" if plain == "".join(filter(str.isalnum, text)) else value_hash(text)[-6:])


def latin(text: str) -> str:
    """Return a text in small letters without accents."""
    return "".join(char for char in unicodedata.normalize("NFKD", text.lower()) if not unicodedata.combining(char))


def _tree_problems(course: Course) -> Iterator[tuple[Place, str]]:
    seen: set[str] = set()
    for g, group in enumerate(course.groups):
        yield from _once(seen, f"group {group.id}", ("groups", g, "id"))
        for o, out in enumerate(group.outcomes):
            where: Place = ("groups", g, "outcomes", o)
            yield from _once(seen, f"outcome {out.id}", (*where, "id"))
            if not out.id.startswith(f"{group.id}."):
                yield (*where, "id"), f"{out.id!r} does not begin with its group, {group.id}."
            for p, point in enumerate(out.points):
                yield from _once(seen, f"point {point.id}", (*where, "points", p))
    for c, part in enumerate(course.assessment.components):
        yield from _once(seen, f"component {part.id}", ("assessment", "components", c, "id"))
    if not course.outcomes():
        yield ("groups",), "no group has outcomes that can be taught; all are cross_cutting or empty"


def _once(seen: set[str], name: str, where: Place) -> Iterator[tuple[Place, str]]:
    if name in seen:
        yield where, f"{name} stands a second time; ids are unique in a course"
    seen.add(name)
