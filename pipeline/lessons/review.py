"""A lesson before a person: what was found of it, how an edit of it is checked, and which version is published."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.content.addresses import address, item_of, owner, value_at
from pipeline.content.checks import CODE, CRITIC, SOLVER, check_lesson, summary
from pipeline.content.findings import Finding
from pipeline.content.lesson import LESSON_SCHEMA
from pipeline.content.lesson_reader import tidy
from pipeline.errors import ConfigError, Pause, WaitingForHuman
from pipeline.lessons import blind, patches
from pipeline.lessons.release import LEAST, warning
from pipeline.lessons.schemas import CRITERION_NAMES
from pipeline.records.reviews import APPROVED, CONFLICT, EDITED, ReviewState

Json = dict[str, Any]
SEVERE, FINDING, NONE = "severe", "finding", "none"
#: A score up to this one is worth a look where it does not hold a lesson back.
_LOOK = 3


@dataclass(frozen=True, slots=True)
class ReviewFinding:
    """Say what code, solver or critic found of a lesson that a person should look at."""

    severity: str
    #: Who found it.
    who: str
    #: Address in the lesson; "" for all of it.
    where: str
    text: str
    wanted: str = ""

    def to_json(self) -> Json:
        """Return it as commands and pages show it."""
        return {name: getattr(self, name) for name in self.__slots__}


def findings_of(row: Mapping[str, Any]) -> list[ReviewFinding]:
    """Return what was found of a lesson, gravest first, from its row as it is stored."""
    checks = row.get("checks") or {}
    found = [_warning(each) for each in checks.get("warnings") or ()]
    found += [
        ReviewFinding(SEVERE, SOLVER, where, "who saw the question only came to another answer")
        for where, result in (checks.get("blind") or {}).items()
        if result == blind.DIFFERS
    ]
    found += _of_critic(row.get("critic") or {})
    return sorted(found, key=lambda each: each.severity != SEVERE)


def severity(row: Mapping[str, Any]) -> str:
    """Return how grave the gravest finding on a lesson is."""
    found = findings_of(row)
    return found[0].severity if found else NONE


def _warning(found: Any) -> ReviewFinding:
    if not isinstance(found, Mapping):
        return ReviewFinding(FINDING, CODE, "", str(found))
    where, text = str(found.get("where") or ""), str(found.get("text") or found.get("found") or "")
    grave = SEVERE if found.get("severity") in ("B", "R") else FINDING
    return ReviewFinding(grave, CODE, where, text, "" if found.get("text") else str(found.get("wanted") or ""))


def _of_critic(critic: Mapping[str, Any]) -> Iterator[ReviewFinding]:
    for claim in critic.get("claims") or ():
        if claim.get("status") in ("wrong", "unsure"):
            grave = SEVERE if claim["status"] == "wrong" else FINDING
            text = f"“{claim.get('quotation')}” may be wrong" if grave == FINDING else f"“{claim.get('quotation')}”"
            yield ReviewFinding(grave, CRITIC, str(claim.get("path") or ""), text, str(claim.get("reason") or ""))
    for concern in critic.get("concerns") or ():
        grave = SEVERE if concern.get("act") == "block" else FINDING
        text = f"{concern.get('category')}: “{concern.get('quotation')}”"
        yield ReviewFinding(grave, CRITIC, str(concern.get("path") or ""), text)
    for judged in critic.get("judgements") or ():
        score, name = judged.get("score"), str(judged.get("criterion"))
        if isinstance(score, int) and score <= _LOOK and name in LEAST:
            places = judged.get("paths") or [part.get("path") for part in judged.get("evidence") or ()]
            text = f"{CRITERION_NAMES[name]}, {score} of 5: {judged.get('finding')}"
            grave = SEVERE if score < LEAST[name] else FINDING
            yield ReviewFinding(grave, CRITIC, str(next(iter(places), "") or ""), text, str(judged.get("fix") or ""))


# --- edits ------------------------------------------------------------------------------------------


def leaves(value: Any, steps: tuple[str | int, ...] = ()) -> dict[str, Any]:
    """Return every text and number of a lesson by its address, in order."""
    if isinstance(value, Mapping):
        pairs: Sequence[tuple[str | int, Any]] = list(value.items())
    elif isinstance(value, list):
        pairs = list(enumerate(value))
    else:
        return {address(steps): value}
    return {name: leaf for step, inner in pairs for name, leaf in leaves(inner, (*steps, step)).items()}


def differences(before: Any, after: Any) -> list[tuple[str, Any, Any]]:
    """Return where two versions of a lesson differ: (address, before, after); None where there is nothing."""
    old, new = leaves(before), leaves(after)
    return [
        (name, old.get(name), new.get(name)) for name in dict.fromkeys((*old, *new)) if old.get(name) != new.get(name)
    ]


def changed(lesson: Mapping[str, Any], changes: Mapping[str, Any]) -> Json:
    """Return a lesson with new values at some addresses; an empty text takes an optional field away.

    Raises:
        ConfigError: There is no such place.
    """
    wanted = []
    for name, value in changes.items():
        former = value_at(lesson, name)
        number = isinstance(former, int) and isinstance(value, str) and value.strip().isdecimal()
        wanted.append(patches.Patch(name, int(value) if number else None if value == "" else value))
    scope = patches.PatchScope([owner(each.path) for each in wanted])
    made, refused = patches.apply(lesson, wanted, scope)
    if refused:
        where, why = refused[0].where, refused[0].found.removeprefix("the correction ")
        raise ConfigError(
            f"The lesson cannot be changed at {where}: it {why}.",
            code="no_such_place", hint="Places are named like c4.q2.answer, c2.text, key_points.1.",
        )  # fmt: skip
    return dict(made)


def checked(
    row: Mapping[str, Any], lesson: Any, entry: Mapping[str, Any], course: Mapping[str, Any]
) -> tuple[Json, list[Finding]]:
    """Return the row of a lesson as a person edited it, and what the checks say that must be put right first.

    Args:
        row: As it was before, of today's schema.
        lesson: All of the lesson, edited.
        entry: Its entry in the scheme.
        course: The pinned catalogue course.
    """
    plan = {**entry, "not_written": list(row.get("not_written") or ())}
    lesson = tidy(lesson)
    found = check_lesson(lesson, entry=plan, course=course)
    blocking = [each for each in found if each.severity != "W"]
    checks: Json = {"warnings": [warning(each) for each in found if each.severity == "W"]}
    if not blocking:
        checks |= summary(lesson, entry=plan, course=course)
    same = {
        where: result for where, result in (row["checks"].get("blind") or {}).items()
        if value_at(lesson, where) == value_at(row["lesson"], where)
    }  # fmt: skip
    if "blind" in row["checks"]:
        # The blind solution of a changed question no longer holds.
        checks["blind"] = same
    return {**row, "schema": LESSON_SCHEMA[1], "lesson": lesson, "checks": checks}, blocking


def place_of(where: str) -> str:
    """Return the part of a lesson that is edited as one: a question, a worked example, a card's text, a field."""
    return item_of(where) or owner(where)


# --- what is published ------------------------------------------------------------------------------


def refuse_undecided(rows: Sequence[Mapping[str, Any]], found: Mapping[int, ReviewState], *, all_of_them: bool) -> None:
    """Let a course wait for a person where one must decide first.

    Args:
        rows: The lessons of the course.
        found: How each stands, by its order.
        all_of_them: Only what was approved or edited is published.

    Raises:
        Pause: waiting_for_human.
    """
    made = [found.get(int(row["order"])) for row in rows if row["lesson"] is not None]
    torn = sum(each is not None and each.status == CONFLICT for each in made)
    left = sum(each is None or each.status not in (APPROVED, EDITED) for each in made) if all_of_them else torn
    if not left:
        return
    hint = "See `./pipeline.sh review RUN`, then resume."
    if torn:
        lessons = "1 lesson was edited by a person and made" if torn == 1 else f"{torn} lessons were edited and made"
        more = f" Waiting for review: {left} lessons." if left > torn else ""
        text = f"{lessons} again since: decide which version holds.{more}"
        raise Pause("waiting_for_human", WaitingForHuman(text, code="edit_in_conflict", hint=hint, lessons=left))
    text = f"Waiting for review: {left} lesson{'' if left == 1 else 's'}."
    raise Pause("waiting_for_human", WaitingForHuman(text, code="waiting_for_review", hint=hint, lessons=left))


def in_force(row: Mapping[str, Any], found: ReviewState | None, edit: Mapping[str, Any] | None) -> Json:
    """Return the row of a lesson as it is published: with a person's edit, and who reviewed it.

    Args:
        edit: The row as the person edited it, where an edit is in force.
    """
    made = {**row, **(edit or {}), "label": row.get("label", ""), "failed": row.get("failed")}
    if found is None or found.status not in (APPROVED, EDITED):
        return made
    return {**made, "review": {"by": list(found.names), "edited": edit is not None}}


def sign_off(rows: Sequence[Mapping[str, Any]]) -> Json | None:
    """Return who has read a whole course, and what they changed; None where some lesson has no reader."""
    read = [row.get("review") for row in rows if row["lesson"] is not None]
    if not read or None in read:
        return None
    edited = [str(row["order"]) for row in rows if (row.get("review") or {}).get("edited")]
    which = f"{' and '.join(filter(None, (', '.join(edited[:-1]), edited[-1])))} edited" if edited else ""
    changes = f"lesson{'' if len(edited) == 1 else 's'} {which}" if edited else ""
    return {"name": readers(rows), **({"changes": changes} if changes else {})}


def readers(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the names of all who reviewed lessons, in the order of the lessons: "A, B and C"."""
    names = list(dict.fromkeys(name for row in rows for name in (row.get("review") or {}).get("by", ())))
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1] if names else "")))
