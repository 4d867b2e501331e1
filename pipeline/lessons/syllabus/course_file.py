"""Writes course files: one to fill in, and one from a list of outcomes that was understood."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, count
from pathlib import Path
from typing import Any

import yaml

from pipeline.content.names import LEVEL_DIGITS, level_name, shown, subject_name, usual_age
from pipeline.lessons import catalogue
from pipeline.lessons.course import FORMAT, latin
from pipeline.lessons.syllabus.tree import ListItem

#: Characters of a made-up id of a group, of an outcome.
_GROUP_ID, _OUTCOME_ID = 16, 24
#: Words that say nothing of an outcome.
_SMALL = frozenset({
    "a", "an", "the", "of", "to", "in", "on", "by", "for", "with", "from", "and", "or", "as", "at", "is", "are", "be",
    "their", "its", "that", "which", "into", "how", "what", "why", "when", "where", "can", "should", "will", "must",
    "able", "understand", "know", "explain", "describe", "identify", "state", "use", "using", "learn", "about", "unit",
    "topic", "area", "section", "chapter", "module", "strand", "theme", "part", "component",
})  # fmt: skip
#: Levels, and the framework and region that stand as examples; the last ones for all others.
_EXAMPLES = (
    (r"national_\d|(?:advanced_)?higher", "SQA", "Scotland"),
    (r"(?:grade|kindergarten|middle_school|high_school).*", "Common Core", "United States"),
    (r".*", "National Curriculum England", "England"),
)
#: What stands before the groups; what only somebody else can know stands as a comment.
_HEAD = """\
# One course. Check it with: subjects check FILE. List order is teaching order; ids are short, yours, unique.
catalogue: {format}
{names}{code:32}  # optional: as printed in the course specification
{scqf}{framework:32}  # optional: whose syllabus: SQA (also by such a code), Common Core, IB, …
{region:32}  # optional: where its pupils live; else where the framework is at home
{age}# licence: CC BY 4.0              # optional: terms under which the course may be passed on
# attribution: Example School     # optional: whom to name for it
structure: areas                  # units | skills | areas
# aims: [one line each]           # optional: what the course is for
"""
_AGE = "{:32}  # {}usual age of the learners; sets sentences, steps and command words\n"
#: What stands where the groups end, for what the list does not say.
_BLANK = """\
# Left blank, since the list of outcomes does not say it. What you add is told to the author of the lessons.
# assessment:
#   model: question_papers
#   components:
#     - {id: p1, title: Paper 1, marks: 50, minutes: 60}
# marking:
#   - one mark per bullet of the mark scheme, no half marks
"""
_TEMPLATE = Path(catalogue.__file__).with_name("catalogue") / "template.txt"


def template(subject: str, level: str) -> str:
    """Return the text of a course file to fill in, valid as it stands but for its content.

    Raises:
        CatalogueError: A text that cannot be the name of a subject or level.
    """
    return _head(subject_name(subject), level_name(level), "", example=True) + _TEMPLATE.read_text(encoding="utf-8")


def course_file(
    subject: str, level: str, title: str, groups: Sequence[ListItem], source: str, framework: str = ""
) -> str:
    """Return the text of a course file with these groups of outcomes of points.

    Args:
        title: Of the course; "": made from level and subject.
        source: Name of the file that the outcomes were read from.
        framework: That it names; "": none.
    """
    head = _head(subject_name(subject), level_name(level), title, framework)
    sources = {"sources": [{"ref": source, "covers": ["learning outcomes"], "verified": False}]}
    return head + _yaml({"groups": list(_groups(groups))}) + _BLANK + _yaml(sources)


def _head(subject: str, level: str, title: str, framework: str = "", *, example: bool = False) -> str:
    """Return the keys that come before the groups.

    Args:
        example: The code and credits of an SQA course are filled in, to be replaced.
    """
    digits, age = LEVEL_DIGITS.get(level, ""), usual_age(level)
    usual, region = next(names for pattern, *names in _EXAMPLES if re.fullmatch(pattern, level))
    scqf = f"scqf: {{level: {int(digits) - 70}{', credits: 24' if example else ''}}}\n" if digits else ""
    return _HEAD.format(
        format=FORMAT,
        names=_yaml({"subject": subject, "level": level, "title": title or f"{shown(level)} {shown(subject)}"}),
        code=f'code: "C000 {digits}"' if example and digits else '# code: "ABC-1"',
        scqf=scqf,
        framework=f"{'' if framework or (digits and not example) else '# '}framework: {framework or usual}",
        region=f"# region: {region}",
        age=_AGE.format(f"age: {age}", "") if age else "" if digits else _AGE.format("# age: 14", "optional: "),
    )


def _groups(groups: Sequence[ListItem]) -> Iterator[dict[str, Any]]:
    taken: set[str] = set()
    for group in groups:
        name = _free(_slug(group.text, _GROUP_ID) or "area", taken)
        kind = next((kind for kind in ("unit", "topic") if group.text.lower().startswith(kind)), "area")
        outcomes = [
            {"id": _free(f"{name}.{_slug(out.text, _OUTCOME_ID) or 'outcome'}", taken)}
            | _titled(out)
            | _points(out.below)
            for out in group.below
        ]
        yield {"id": name, "kind": kind} | _titled(group) | {"outcomes": outcomes}


def _titled(item: ListItem) -> dict[str, Any]:
    return ({"code": item.code} if item.code else {}) | {"title": item.text}


def _points(points: Sequence[ListItem]) -> dict[str, Any]:
    """Return points; with their codes where each has one that is printed for it alone."""
    codes = {point.code for point in points if any(map(str.isdigit, point.code))}
    if len(codes) < len(points):
        return {"points": [point.text for point in points]}
    return {"standards": [{"code": point.code, "text": point.text} for point in points]}


def _free(name: str, taken: set[str]) -> str:
    """Return an id that is not taken yet: with a number behind it where it is."""
    free = next(each for each in chain([name], (f"{name}{number}" for number in count(2))) if each not in taken)
    taken.add(free)
    return free


def _slug(text: str, most: int) -> str:
    """Return the words of a text that say what it is about, as far as they fit; "" where it has no Latin letters."""
    words = [word for word in re.findall(r"[a-z0-9]+", latin(text)) if not word.isdecimal()]
    telling = [word for word in words if word not in _SMALL and len(word) > 1] or words
    slug = ""
    for word in telling[:3]:
        if len(slug) + len(word) < most:
            slug += ("_" if slug else "") + word
    slug = slug or (telling[0][: most - 1] if telling else "")
    return slug if slug[:1].isalpha() else ""


class _Indented(yaml.SafeDumper):
    """Writes lists further to the right than their keys."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, indentless=False)


def _yaml(value: Mapping[str, Any]) -> str:
    """Return YAML with each text on one line."""
    said: str = yaml.dump(value, Dumper=_Indented, allow_unicode=True, sort_keys=False, width=10_000)
    return said
