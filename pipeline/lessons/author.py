"""One lesson: ask, check by code, judge once, revise; at most MAX_REVISIONS times."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel

from pipeline.engine.step import StepContext
from pipeline.errors import TaskRejected
from pipeline.lessons import release
from pipeline.lessons.asks import Asks, Draft
from pipeline.lessons.checks import summary
from pipeline.lessons.critique import Critique
from pipeline.lessons.examine import Examined, course_of, examine, examine_lesson
from pipeline.lessons.prompts import PLACEHOLDERS
from pipeline.lessons.release import Verdict
from pipeline.lessons.scheme import Entry, Scheme
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
    """The run's requests."""
    settings = ctx.settings
    return Asks(course_of(ctx.pin("catalogue")), PinnedPrompts(ctx), str(settings["model"]), settings.get("effort"))


def offline(ctx: StepContext) -> bool:
    """Whether code writes the course, and so nobody judges it."""
    return bool(ctx.settings.get("author") == "offline")


def ask_until_valid(ctx: StepContext, build: Build, read: Callable[[str], Examined[M]], what: str) -> M:
    """An answer that passes its checks; what is wrong with one is told with the next request.

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
    """One lesson of the scheme, released by code: {"order", "lesson", "checks", "critic"}.

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
    """The lesson as it was, and what a person wants changed in it."""
    if ctx.remark is None:
        return None
    note, former = ctx.remark
    lesson = former.get("lesson") if isinstance(former, Mapping) else None
    wish = note.strip() or "A teacher was not content with it: write it anew."
    return Draft(lesson, (f"A teacher asks: {wish}",))


def _judge(ctx: StepContext, asks: Asks, entry: Entry, answer: Examined[Any]) -> tuple[Critique, Verdict]:
    """The critic's form and what code makes of it; an unusable form is asked for once more."""
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
        raise TaskRejected(f"The model declined to write {what}.", hint="Look at the entry: `show RUN sow`.")
    return reply.text


def _written(order: int, answer: Examined[Any], critic: dict[str, Any] | None) -> dict[str, Any]:
    checks = {"warnings": list(answer.warnings), **summary(answer.raw)}
    return {"order": order, "lesson": answer.raw, "checks": checks, "critic": critic}


def _rejected(what: str, faults: Sequence[str]) -> TaskRejected:
    shown = "; ".join(faults[:3]) + (f" (and {len(faults) - 3} more)" if len(faults) > 3 else "")
    return TaskRejected(
        f"{what[0].upper()}{what[1:]} is not good enough: {shown}",
        hint="Resume to try it anew; the other lessons are kept.",
        faults=list(faults),
    )
