"""One lesson: ask, check by code, judge once, revise; at most MAX_REVISIONS times."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from pipeline.engine.step import StepContext
from pipeline.errors import TaskRejected
from pipeline.lessons import release
from pipeline.lessons.asks import Asks, Draft
from pipeline.lessons.checks import check_lesson, summary
from pipeline.lessons.course import Course
from pipeline.lessons.fields import MAX_PROBLEMS, problems
from pipeline.lessons.findings import Finding
from pipeline.lessons.prompts import PLACEHOLDERS
from pipeline.lessons.release import Verdict
from pipeline.lessons.schemas import Critique, Entry, Lesson, Scheme
from pipeline.lessons.shape import parse_lesson
from pipeline.llm.answers import json_in, unwrapped
from pipeline.llm.base import Request

#: Answers asked for after the first.
MAX_REVISIONS = 3
#: Forms asked of the critic for one lesson, while they cannot be used.
CRITIC_FORMS = 2

Build = Callable[[Draft | None], Request]
M = TypeVar("M", bound=BaseModel)


class PinnedPrompts(Mapping[str, str]):
    """The run's prompts by name; only those that are used count as read."""

    def __init__(self, ctx: StepContext) -> None:
        self._ctx = ctx

    def __getitem__(self, name: str) -> str:
        return self._ctx.prompt(name)

    def __iter__(self) -> Iterator[str]:
        return iter(PLACEHOLDERS)

    def __len__(self) -> int:
        return len(PLACEHOLDERS)


def asks_of(ctx: StepContext) -> Asks:
    """Return the run's requests."""
    settings = ctx.settings
    return Asks(
        Course.from_json(ctx.pin("catalogue")), PinnedPrompts(ctx), str(settings["model"]), settings.get("effort")
    )


def offline(ctx: StepContext) -> bool:
    """Return whether code writes the course, and so nobody judges it."""
    return bool(ctx.settings.get("author") == "offline")


def ask_until_valid(ctx: StepContext, build: Build, read: Callable[[str], Examined[M]], what: str) -> M:
    """Return an answer that passes its checks; what is wrong with one is told with the next request.

    Raises:
        TaskRejected: Refused, or still wrong after the last revision; says what is wrong.
    """
    draft: Draft | None = None
    for _ in range(1 + MAX_REVISIONS):
        answer = read(_text(ctx, build(draft), what))
        if answer.value is not None:
            return answer.value
        draft = Draft(answer.raw, answer.faults)
    raise _rejected(what, draft.faults if draft else ())


def write_lesson(ctx: StepContext, order: int) -> dict[str, Any]:
    """Return one lesson of the scheme, released by code: {"order", "lesson", "checks", "critic"}.

    Raises:
        TaskRejected: Refused, or not good enough after the last revision; says why.
    """
    scheme = Scheme.model_validate(ctx.load("scheme"))
    entry, asks, course = scheme.entries[order - 1], asks_of(ctx), ctx.pin("catalogue")
    what = f"lesson {order}"
    draft = _asked_again(ctx)
    # The offline author would only say the same again.
    for _ in range(1 if offline(ctx) else 1 + MAX_REVISIONS):
        text = _text(ctx, asks.lesson(scheme.entries, order, draft), what)
        answer = examine_lesson(text, entry, course)
        if answer.value is None:
            draft = Draft(answer.raw, answer.faults)
            continue
        if offline(ctx):
            return _written(order, answer, None)
        critique, verdict = _judge(ctx, asks, entry, answer)
        if verdict.released:
            return _written(order, answer, release.record(critique, verdict))
        draft = Draft(answer.raw, (*verdict.reasons, *verdict.fixes))
    raise _rejected(what, draft.faults if draft else ())


def _asked_again(ctx: StepContext) -> Draft | None:
    """Return the lesson as it was, and what a person wants changed in it."""
    if ctx.remark is None:
        return None
    note, former = ctx.remark
    lesson = former.get("lesson") if isinstance(former, Mapping) else None
    wish = note.strip() or "A teacher was not content with it: write it anew."
    return Draft(lesson, (f"A teacher asks: {wish}",))


def _judge(ctx: StepContext, asks: Asks, entry: Entry, answer: Examined[Any]) -> tuple[Critique, Verdict]:
    """Return the critic's form and what code makes of it; an unusable form is asked for once more."""
    warnings = [f"{row['where']}: {row['text']}" for row in answer.warnings]
    again: tuple[str, ...] = ()
    judged: tuple[Critique, Verdict] | None = None
    for _ in range(CRITIC_FORMS):
        text = _text(ctx, asks.critic(entry, answer.raw, warnings, again), f"the critic of lesson {entry.order}")
        form = examine(text, Critique)
        if form.value is None:
            again = form.faults
            continue
        judged = form.value, release.decide(form.value, answer.raw)
        if not judged[1].void:
            break
        again = tuple(f"{key}: {why}" for key, why in judged[1].void.items())
    if judged is None:
        raise _rejected(f"the critic of lesson {entry.order}", again)
    return judged


def _text(ctx: StepContext, request: Request, what: str) -> str:
    reply = ctx.ask(request)
    if reply.refused:
        raise TaskRejected(
            f"The model declined to write {what}.",
            code="model_declined",
            hint="Look at the entry: `./pipeline.sh show RUN sow`.",
        )
    return reply.text


def _written(order: int, answer: Examined[Any], critic: dict[str, Any] | None) -> dict[str, Any]:
    checks = {"warnings": list(answer.warnings), **summary(answer.raw)}
    return {"order": order, "lesson": answer.raw, "checks": checks, "critic": critic}


def _rejected(what: str, faults: Sequence[str]) -> TaskRejected:
    shown = "; ".join(faults[:3]) + (f" (and {len(faults) - 3} more)" if len(faults) > 3 else "")
    return TaskRejected(
        f"{what[0].upper()}{what[1:]} is not good enough: {shown}",
        code="answer_not_accepted",
        hint="Resume to try again; the other lessons are kept.",
        faults=list(faults),
    )


#: Copied from the scheme entry into the lesson, word for word.
COPIED = ("order", "lesson_type", "outcome_refs", "cross_cutting", "calculator", "minutes")


@dataclass(frozen=True, slots=True)
class Examined(Generic[M]):
    """A value, or why there is none."""

    value: M | None
    #: What must be put right, one sentence each; empty with a value.
    faults: tuple[str, ...] = ()
    #: The answer as JSON, for the next request; None where it was no JSON.
    raw: Any = None
    #: Findings that do not hold the lesson back, as JSON.
    warnings: tuple[dict[str, Any], ...] = ()


def read_json(text: str, names: frozenset[str]) -> tuple[Any, str]:
    """Return the JSON value of a text and "", or None and what is wrong.

    A byte-order mark, a code fence and words around the only object are no part of it; nor is what wraps the object
    that has any of the fields `names`: a key of another name, a list of one, a JSON text as a string.
    """
    try:
        value = json_in(text)
    except (ValueError, RecursionError) as error:
        return None, f"the answer is no JSON object: {error}"
    found = (inner for inner in unwrapped(value) if isinstance(inner, dict) and not names.isdisjoint(inner))
    return next(found, value), ""


def examine(text: str, model: type[M]) -> Examined[M]:
    """Return a reply as a value of `model`."""
    raw, fault = read_json(text, frozenset(model.model_fields))
    if fault:
        return Examined(None, (fault,))
    try:
        return Examined(model.model_validate(raw), raw=raw)
    except ValidationError as error:
        return Examined(None, tuple(problems(error)), raw)


def examine_lesson(text: str, entry: Entry, course: Mapping[str, Any]) -> Examined[Any]:
    """Return a reply as a lesson that fits its entry and passes the code checks; the value is its JSON.

    Args:
        course: The pinned catalogue.
    """
    raw, fault = read_json(text, frozenset(Lesson.model_fields))
    if fault:
        return Examined(None, (fault,))
    lesson, wrong = parse_lesson(raw)
    if lesson is None:
        return Examined(None, tuple(wrong), raw)
    plan = entry.model_dump(mode="json")
    differs = [f"{key}: {raw[key]!r}, wanted {plan[key]!r} as in the entry" for key in COPIED if raw[key] != plan[key]]
    findings = check_lesson(raw, entry=plan, course=dict(course))
    blocking = [item for item in findings if item.severity != "W"]
    faults = [*differs, *(item.line() for item in blocking)]
    if faults:
        return Examined(None, tuple(faults[:MAX_PROBLEMS]), raw)
    return Examined(lesson, (), raw, tuple(warning(item) for item in findings))


def warning(finding: Finding) -> dict[str, Any]:
    """Return a finding as it is recorded and shown beside its lesson."""
    return {**finding.to_json(), "text": f"{finding.found}; wanted {finding.wanted}"}
