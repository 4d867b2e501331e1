"""One lesson: ask, check by code, solve blindly, judge; what is wrong is corrected in its place, a few times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from pipeline.content.addresses import item_of, value_at
from pipeline.content.checks import check_lesson, summary
from pipeline.content.fields import problems
from pipeline.content.findings import Finding
from pipeline.content.lesson import LESSON_SCHEMA, Corrections, Lesson, Solutions
from pipeline.content.lesson_reader import SHAPE, read_lesson, tidy
from pipeline.content.money import sign_of
from pipeline.engine.step import StepContext
from pipeline.errors import ConfigError, TaskRejected
from pipeline.lessons import blind, patches, release
from pipeline.lessons.asks import Asks, Draft
from pipeline.lessons.course import Course
from pipeline.lessons.earlier import converted
from pipeline.lessons.prompts import EARLIER_PROMPTS, PLACEHOLDERS
from pipeline.lessons.schemas import Critique, Scheme
from pipeline.llm.answers import json_in, unwrapped
from pipeline.llm.base import Request
from pipeline.records.values import value_hash

#: Answers asked for after the first: of an outline or entry; whole lessons, where one cannot be read; corrections.
MAX_REVISIONS, MAX_UNREADABLE, MAX_CORRECTIONS = 3, 1, 3
#: Forms asked of the critic, and sets of solutions, while they cannot be used.
FORMS = 2

#: Rows whose warnings are mostly innocent: numbers in feedback and hints. People see them, the critic does not.
UNCERTAIN = frozenset({6, 14})

#: What helps where a lesson is not good enough: a model may write it better, code writes the same again.
_AGAIN = "Resume to try again; the other lessons are kept."
SCHEME_AGAIN = "Resume to try again; lessons are written once the scheme of work is there."
_SAME = "The offline author writes the same again, until the topic it comes from is mended (--bank)."

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


def prompt_hashes(ctx: StepContext) -> dict[str, str]:
    """Return the hash of each prompt that the run is pinned to; earlier runs had others."""
    found = {}
    for name in sorted({*PLACEHOLDERS, *EARLIER_PROMPTS}):
        with suppress(ConfigError):
            found[name] = value_hash(ctx.prompt(name))
    return found


def asks_of(ctx: StepContext) -> Asks:
    """Return the run's requests."""
    settings = ctx.settings
    return Asks(
        Course.from_json(ctx.pin("catalogue")), PinnedPrompts(ctx), str(settings["model"]), settings.get("effort"),
        blind_solve=settings.get("blind_solve") is not False,
    )  # fmt: skip


def offline(ctx: StepContext) -> bool:
    """Return whether code writes the course, and so nobody judges it."""
    if ctx.settings.get("author") != "offline":
        return False
    # What it writes depends on the topics of the bank.
    ctx.settings.get("bank")
    return True


def ask_until_valid(
    ctx: StepContext, build: Build, read: Callable[[str], Examined[M]], what: str, most: int = 1 + MAX_REVISIONS,
    hint: str = _AGAIN,
) -> M:  # fmt: skip
    """Return an answer that passes its checks; what is wrong with one is told with the next request.

    Raises:
        TaskRejected: Refused, or still wrong after the last revision; says what is wrong.
    """
    draft: Draft | None = None
    former: Request | None = None
    for _ in range(most):
        request = build(draft)
        answer = read(_text(ctx, request, what, former))
        if answer.value is not None:
            return answer.value
        former = request
        draft = Draft(answer.raw, answer.faults)
    raise _rejected(what, draft.faults if draft else (), hint)


def write_lesson(ctx: StepContext, order: int) -> dict[str, Any]:
    """Return one lesson of the scheme, released by code: {"order", "schema", "lesson", "checks", "critic"}.

    Raises:
        TaskRejected: Refused, or not good enough after the last correction; says why.
    """
    return _Writing(ctx, order).row()


class _Writing:
    """One lesson on its way from the first reply to its release."""

    def __init__(self, ctx: StepContext, order: int) -> None:
        self._ctx, self._order = ctx, order
        self._entries = Scheme.model_validate(ctx.load("scheme")).entries
        self._entry = self._entries[order - 1]
        self._plan = self._entry.model_dump(mode="json")
        self._asks, self._course, self._offline = asks_of(ctx), ctx.pin("catalogue"), offline(ctx)
        self._lesson: Any = None
        self._warnings: list[Finding] = []
        #: Corrections that nobody asked for: of the last reply, and of all.
        self._refused: list[Finding] = []
        self._left_out: list[Finding] = []
        #: The last request for corrections, where its reply could not be used.
        self._unusable: Request | None = None
        #: How often each question failed, and how often its blind solution differed.
        self._failed: Counter[str] = Counter()
        self._differed: Counter[str] = Counter()
        #: Question → (what was solved, what came of it).
        self._solved: dict[str, tuple[Any, str]] = {}
        self._critic: dict[str, Any] | None = None

    def row(self) -> dict[str, Any]:
        missing = self._first()
        self._plan["not_written"] = list(missing)
        findings = self._findings() if self._lesson is not None else ()
        for _ in range(0 if self._offline else MAX_CORRECTIONS):
            if not findings:
                break
            before = self._lesson
            self._correct(findings)
            # An unchanged lesson is not solved or judged again.
            if self._lesson != before:
                findings = self._findings()
        if findings:
            raise _rejected(f"lesson {self._order}", [each.line() for each in findings], self._hint)
        return self._written(missing)

    @property
    def _hint(self) -> str:
        return _SAME if self._offline else _AGAIN

    def _first(self) -> Sequence[str]:
        """Ask for the lesson until one can be read; returns the outcomes that nobody has written for it (offline)."""
        draft, what = _asked_again(self._ctx, self._plan), f"lesson {self._order}"
        faults: Sequence[str] = ()
        former: Request | None = None
        for _ in range(1 if self._offline else 1 + MAX_UNREADABLE):
            request = self._asks.lesson(self._entries, self._order, draft)
            raw, fault = read_json(
                _text(self._ctx, request, what, former), frozenset(Lesson.model_fields) | {"not_written"}
            )
            missing = raw.pop("not_written", ()) if self._offline and isinstance(raw, dict) else ()
            self._lesson = tidy(raw)
            if not self._lesson and missing:
                self._lesson = None
                return list(missing)
            faults = [fault] if fault else [each.line() for each in _unreadable(self._lesson)]
            if not faults:
                return list(missing)
            former, draft = request, Draft(None, faults)
        raise _rejected(what, faults, self._hint)

    def _findings(self) -> Sequence[Finding]:
        """Return what holds the lesson back: by code, else by its blind solution, else by its critic."""
        found = check_lesson(self._lesson, entry=self._plan, course=dict(self._course))
        self._warnings = [each for each in found if each.severity == "W"]
        blocking = [each for each in found if each.severity != "W"]
        if blocking or self._offline:
            return blocking
        return self._solve() or self._judge()

    def _correct(self, findings: Sequence[Finding]) -> None:
        """Ask for corrections and apply those that the findings allow."""
        items = dict.fromkeys(item for each in findings if (item := item_of(each.where)))
        whole = [item for item in items if self._failed[item] and ".q" in item]
        scope = patches.PatchScope.of(findings, whole)
        present = _present(self._lesson, scope)
        lines = [each.line() for each in (*findings, *self._refused)]
        request = self._asks.correction(self._entries, self._order, present, lines, whole)
        text = _text(self._ctx, request, f"a correction of lesson {self._order}", self._unusable)
        raw, fault = read_json(text, frozenset(Corrections.model_fields))
        found, fault = patches.read_patches(raw) if not fault else ([], fault)
        self._refused = [Finding(SHAPE, "W", "the correction", fault, "")] if fault else []
        self._unusable = request if fault else None
        if fault:
            return
        self._failed.update(list(items))
        self._lesson, self._refused = patches.apply(self._lesson, found, scope)
        self._left_out += self._refused

    def _solve(self) -> list[Finding]:
        """Have the questions solved that were not solved as they are now; returns where the answers differ."""
        lesson = read_lesson(self._lesson).lesson
        if lesson is None or not self._asks.blind_solve:
            return []
        now = {where: blind.asked_of(where, item) for where, item in lesson.items()}
        new = [where for where, item in now.items() if self._solved.get(where, ("",))[0] != item]
        asked = blind.questions(lesson, new)
        if not asked:
            return []
        results, findings = blind.compared(lesson, self._solutions(asked), sign_of(self._course, self._lesson))
        for where in new:
            self._solved[where] = (now[where] if results.get(where) != blind.DIFFERS else None, results.get(where, ""))
        self._differed.update({item_of(each.where) for each in findings})
        if twice := [each for each in findings if self._differed[item_of(each.where)] > 1]:
            raise _rejected(f"lesson {self._order}", [each.line() for each in twice])
        return findings

    def _solutions(self, questions: Sequence[Mapping[str, Any]]) -> Solutions:
        """Return the answers to questions; what cannot be read is asked for once more."""
        return ask_until_valid(
            self._ctx, lambda draft: self._asks.solve(questions, draft), lambda text: examine(text, Solutions),
            f"the blind solution of lesson {self._order}", FORMS,
        )  # fmt: skip

    def _judge(self) -> Sequence[Finding]:
        """Have the lesson judged; an unusable form is asked for once more, with what was wrong with it."""
        former: Any = None
        void: tuple[str, ...] = ()
        what = f"the critic of lesson {self._order}"
        before: Request | None = None
        for _ in range(FORMS):
            request = self._asks.critic(self._entry, self._lesson, self._facts(), former, void)
            form = examine(_text(self._ctx, request, what, before), Critique)
            former, void = form.raw, form.faults
            if form.value is not None:
                verdict = release.decide(form.value, self._lesson)
                void = tuple(f"{key}: {why}" for key, why in verdict.void.items())
                if not void:
                    self._critic = release.record(form.value, verdict)
                    return verdict.findings
            before = request
        raise _rejected(what, void)

    def _facts(self) -> list[str]:
        """Return what passed, for the critic."""
        by = summary(self._lesson, entry=self._plan, course=dict(self._course))["by"]
        computed = sum(how != "nobody" for how in by.values())
        facts = [
            f"Code found nothing wrong with counts, references, marks, units and notation. Of {len(by)} questions it "
            f"computed the answers of {computed} anew.",
        ]
        if results := self._compared(by):
            facts.append(_agreement(len(results), len(by)))
        return facts + [f"Warning, {each.line()}" for each in self._warnings if each.check not in UNCERTAIN]

    def _compared(self, questions: Iterable[str]) -> dict[str, str]:
        """Return what came of the blind solution of these questions; without those whose answers code cannot compare.

        Corrections may have moved cards: addresses that are no longer questions are not among them.
        """
        return {where: self._solved[where][1] for where in questions if self._solved.get(where, ("", ""))[1]}

    def _written(self, missing: Sequence[str]) -> dict[str, Any]:
        row: dict[str, Any] = {"order": self._order, "schema": LESSON_SCHEMA[1], "lesson": self._lesson}
        checks: dict[str, Any] = {"warnings": [release.warning(each) for each in (*self._warnings, *self._left_out)]}
        if self._lesson is not None:
            checks |= summary(self._lesson, entry=self._plan, course=dict(self._course))
        if self._solved:
            checks["blind"] = self._compared(checks["by"])
        row |= {"checks": checks, "critic": self._critic}
        return row | ({"not_written": list(missing)} if missing else {})


def _unreadable(lesson: Any) -> Sequence[Finding]:
    """Return why a value is no lesson at all; what can be read in part is corrected."""
    read = read_lesson(lesson)
    return read.findings if read.lesson is None or not read.lesson.cards else ()


def _agreement(compared: int, questions: int) -> str:
    """Return what a blind solution shows that agrees with the lesson."""
    if compared == questions:
        return f"Somebody who saw only the questions came to the lesson's answer in all {questions} of them."
    return (
        f"Somebody who saw only the questions came to the lesson's answer in all of the {compared} of {questions} "
        "questions whose answers code can compare; the others are answers in words or read from a drawing."
    )


def _present(lesson: Any, scope: patches.PatchScope) -> dict[str, Any]:
    """Return what a correction may change, and the lists that targets number."""
    if "cards" in scope.places:
        return {"lesson": lesson}
    names = ["prior", "key_points", "misconceptions", *scope.places]
    found = {name: value_at(lesson, name) for name in dict.fromkeys(names)}
    return {name: value for name, value in found.items() if value is not None}


def _asked_again(ctx: StepContext, entry: Mapping[str, Any]) -> Draft | None:
    """Return the lesson as it was, and what a person wants changed in it."""
    if ctx.remark is None:
        return None
    note, former = ctx.remark
    lesson = former.get("lesson") if isinstance(former, Mapping) else None
    if isinstance(former, Mapping) and lesson and former.get("schema", 1) == 1:
        lesson = converted(lesson, entry["points"])
    wish = note.strip() or "A teacher was not content with it: write it anew."
    return Draft(lesson, (f"A teacher asks: {wish}",))


def _text(ctx: StepContext, request: Request, what: str, instead_of: Request | None = None) -> str:
    reply = ctx.ask(request, instead_of=instead_of)
    if reply.refused:
        raise TaskRejected(
            f"The model declined to write {what}.",
            code="model_declined",
            hint="Look at the entry: `./pipeline.sh show RUN sow`.",
        )
    return reply.text


def _rejected(what: str, faults: Sequence[str], hint: str = _AGAIN) -> TaskRejected:
    shown = "; ".join(faults[:3]) + (f" (and {len(faults) - 3} more)" if len(faults) > 3 else "")
    return TaskRejected(
        f"{what[0].upper()}{what[1:]} is not good enough: {shown}",
        code="answer_not_accepted",
        hint=hint,
        faults=list(faults),
    )


@dataclass(frozen=True, slots=True)
class Examined(Generic[M]):
    """A value, or why there is none."""

    value: M | None
    #: What must be put right, one sentence each; empty with a value.
    faults: tuple[str, ...] = ()
    #: The answer as JSON, for the next request; None where it was no JSON.
    raw: Any = None


def read_json(text: str, names: frozenset[str]) -> tuple[Any, str]:
    """Return the JSON value of a text and "", or None and what is wrong.

    A byte-order mark, a code fence and words around the only object are no part of it; nor is what wraps the object
    that has any of the fields `names`: a key of another name, a list of one, a JSON text as a string.
    """
    try:
        value = json_in(text)
    except ValueError as error:
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
