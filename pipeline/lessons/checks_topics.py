"""Examines a topic: what can be seen in its text, and what hundreds of drawn questions show."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pipeline.bank.instance import DrawnAnswer, Instance
from pipeline.bank.template import Template
from pipeline.bank.topic import Topic, read_topic
from pipeline.bank.yaml_text import YamlFault
from pipeline.content import checks
from pipeline.content.fields import count_words, problems
from pipeline.content.findings import Case
from pipeline.content.lesson import Item, Lesson, QuestionCard
from pipeline.errors import BankError, CatalogueError
from pipeline.lessons.catalogue import Catalogue
from pipeline.lessons.course import Course
from pipeline.maths import notation, statements
from pipeline.maths.display import endless, plain, prose, shown_value
from pipeline.maths.evaluation import EvaluationError, Relation, evaluate, names_in, relations_in, same
from pipeline.maths.numbers import measured

#: Draws of each question; those of them whose lines are read back, and that are held against the schema of lessons.
DRAWS, JUDGED, VALIDATED = 200, 50, 5
#: Draws that the checks of lessons see, and which of those checks look at one question.
CHECKED, OF_ITEMS = 3, frozenset({5, 6, 8, 9, 12, 14, 15, 16, 17, 18, 19, 20, 30, 31, 34, 35})
#: Findings of one question that are told; fewest different ones of a question; least share of places that fit.
MAX_TOLD, FEWEST, LEAST_KEPT = 3, 8, 0.15
#: Part of a form -> words of which the stem must say one.
_SAID = {"dp": "decimal place|nearest|whole", "sf": "significant", "nearest": "nearest",
         "scientific": "scientific|standard form"}  # fmt: skip
_FIGURE = re.compile(
    "figure|graph|diagram|table|chart|plot|circuit|drawing|shown|shows|sketch|tree|map|below|number line", re.IGNORECASE
)
_EXACT = re.compile("exact|in terms of|surd|simplest form|multiple of", re.IGNORECASE)
_UGLY = re.compile(r"\+ ?[-−]|[-−] ?[-−]|(?<![\d.,])1[a-z]\b|<[a-z]|\{\}|\^1(?!\d)|\bnan\b|zoo|None")
#: Key of a topic -> fewest and most words.
_WORDS = {"explain": (80, 220), "can": (2, 12)}
#: (line, reason).
Finding = tuple[int, str]


@dataclass
class TemplateReport:
    """What was seen of one template."""

    id: str
    space: int
    tried: int
    kept: int
    different: int
    drawn: int
    answer_in_stem: int = 0


@dataclass
class Examination:
    """The findings of one file, warnings apart; a row for each template."""

    path: Path
    findings: list[Finding] = field(default_factory=list)
    warnings: list[Finding] = field(default_factory=list)
    rows: list[TemplateReport] = field(default_factory=list)


def examine(path: Path, draws: int = DRAWS) -> Examination:
    """Return what is wrong with a file, and how many questions it gives."""
    made = Examination(path)
    try:
        topic = read_topic(path)
    except BankError as error:
        for told in error.message.splitlines():
            line, _, reason = told.removeprefix(f"{path}:").partition(": ")
            made.findings.append((int(line) if line.isdigit() else 1, reason or told))
        return made
    made.findings += _of_topic(topic)
    course = _course(topic, made)
    for template in topic.templates():
        try:
            found = [*_of_template(template), *_of_draws(template, draws, made, template in topic.questions)]
            if not found and course and template not in topic.examples:
                found = list(_as_lesson(template, course))
        except YamlFault as fault:
            found = [(fault.line, fault.reason)]
        # One draw is enough to tell of a fault.
        once = {(line, re.sub(r"\d", "", reason)[:30]): (line, reason) for line, reason in reversed(found)}
        made.findings += sorted(once.values())[:MAX_TOLD]
    made.findings.sort()
    return made


def _course(topic: Topic, made: Examination) -> Course | None:
    with suppress(CatalogueError):
        course = Catalogue().course(*topic.course.split("/"))
        if topic.outcome not in [one.id for one in (*course.outcomes(), *course.outcomes(cross_cutting=True))]:
            made.warnings.append((topic.root["teaches"].line, f"{topic.outcome} is no outcome of {topic.course}"))
        return course
    return None


def _as_lesson(template: Template, course: Course) -> Iterator[Finding]:
    """Yield what the checks of lessons find in a few draws of a question."""
    with suppress(ValidationError):
        drawn = [template.draw(n, "lesson").item(["point 1"]) for n in range(CHECKED)]
        items = [Item.model_validate(item) for item in drawn]
        card = QuestionCard.model_construct(kind="assessment", title=template.id, minutes=5, items=items)
        empty: dict[str, Any] = {name: [] for name in Lesson.model_fields if name not in ("title", "outcome", "labels")}
        lesson = Lesson.model_construct(**{**empty, "title": template.id, "outcome": "I can", "cards": [card]})
        case = Case(
            lesson, {"points": [], "calculator": "calc" if template.calculator else "non_calc"}, course.to_json()
        )
        for row in checks.ROWS:
            for fault in row.check(case) if row.check and row.number in OF_ITEMS else ():
                if (fault.severity or row.severity) != "W":
                    where = fault.where.partition(".")[2].partition(".")[2] or "question"
                    yield template.spec.line, f"{template.id}: {where}: {fault.found}; wanted {fault.wanted}"


def _of_topic(topic: Topic) -> Iterator[Finding]:
    root, used = topic.root, {by for template in topic.templates() for by in template.mistakes}
    for name, entry in root["misconceptions"].items():
        if name not in used:
            yield entry.line, f"misconception '{name}' is no wrong answer anywhere"
    for key, (low, high) in _WORDS.items():
        if not low <= (count := count_words(root[key])) <= high:
            yield root[key].line, f"'{key}' has {count} words, wanted {low} to {high}"
    share = count_words(root["plain"]) / max(1, count_words(root["explain"]))
    if not 0.5 <= share <= 1.05:
        yield root["plain"].line, f"'plain' is {share:.0%} as long as 'explain', wanted 60 to 80 %"
    texts = [root[key] for key in ("explain", "plain", "non_example")] + root["facts"] + [*root["keywords"].values()]
    for text in (*texts, *(entry["correction"] for entry in root["misconceptions"].values())):
        for false in statements.untrue(statements.Lines([]), [text]):
            yield text.line, f"not true: {false}"


def _of_template(template: Template) -> Iterator[Finding]:
    spec, name, drawn = template.spec, template.id, template.space.axes
    stem = " ".join([spec["stem"], *(part["ask"] for part in spec.get("parts", ()))])
    unseen = [names for names, rows in drawn if len(rows) > 1 and not template.seen & {*names}]
    for answer in template.answers:
        form, code = answer.get("form", ""), answer.get("expression", answer.get("answer", ""))
        for key, words in _SAID.items():
            if key in form.split() and template.kind != "choice" and not re.search(words, stem, re.IGNORECASE):
                yield form.line, f"{name}: form is {form}, but the stem does not say so"
        reached = _reached(template, {code}, template.seen) if code else set()
        if hidden := [one for names in unseen for one in names if one in reached]:
            yield (
                code.line,
                (
                    f"{name}: '{hidden[0]}' is in the answer, but the pupil does not see it; "
                    "write `expression` over the stem's numbers"
                ),
            )
    told = template.seen | template.names([text for wrong in spec.get("wrong", ()) for text in wrong.values()])
    for names in unseen:
        if not (told | _reached(template, told)) & {*names}:
            yield spec["let"].line, f"{name}: '{names[0]}' is drawn but the pupil never sees a number made from it"
    if template.figures and not _FIGURE.search(stem):
        yield template.figures[0].line, f"{name}: the stem does not speak of the figure"


def _reached(template: Template, codes: set[str] | frozenset[str], stop: frozenset[str] = frozenset()) -> set[str]:
    """Return the names that expressions depend on, through formulas; not through those that `stop` holds."""
    reached: set[str] = set()
    waiting = [*codes - template.space.people.keys()]
    while waiting:
        text = waiting.pop()
        with template.blaming(text):
            new = names_in(text) - reached - stop
        reached |= new
        waiting += [template.space.formulas[name] for name in new if name in template.space.formulas]
    return reached


def _of_draws(template: Template, draws: int, made: Examination, question: bool) -> Iterator[Finding]:
    line, name = template.spec.line, template.id
    # A walk of its own: one that another check has followed farther would be counted.
    seed = f"check {draws}"
    template.draw(0, seed)
    walk = template.walk(draws, seed)
    kept = walk.place - walk.skipped.total() + walk.skipped["repeat"]
    row = TemplateReport(name, template.space.size, walk.place, kept, len(walk.found), min(draws, walk.place))
    made.rows.append(row)
    for n, instance in enumerate(walk.found):
        yield from ((at, f"{name}: {reason}") for at, reason in _of_instance(instance, n))
        answer = re.escape(plain(instance.right[0].text))
        row.answer_in_stem += bool(re.search(rf"(?<![\d.,]){answer}(?![\d.,])", plain(instance.ask)))
    if kept < LEAST_KEPT * walk.place and row.different < draws:
        made.warnings.append((line, f"{name}: kept {kept / walk.place:.0%}: too much is thrown away, {walk.why()}"))
    if question and row.different < min(FEWEST, draws):
        yield line, f"{name}: only {row.different} different; a question needs {FEWEST}"


def _of_instance(instance: Instance, n: int) -> Iterator[Finding]:
    spec, item = instance.template.spec, instance.item(["point 1"])
    written = [spec["stem"], spec.get("feedback", spec["stem"]), *spec["working"], *spec["marks"]]
    texts = [item["ask"], item["feedback"], *item["working"], *item["marks"]]
    lines = _lines(instance, item) if n < JUDGED else None
    for source, text in zip(written, texts, strict=True):
        for false in statements.untrue(lines, [text]) if lines else ():
            yield source.line, f"not true: {false}"
        if ugly := _UGLY.search(text):
            yield source.line, f"not as written by hand ({ugly[0]!r}): {text}"
    for answer in (*instance.right, *instance.wrong):
        if answer.value is not None:
            yield from ((answer.code.line, reason) for reason in _of_answer(instance, answer))
    yield from ((spec["working"][-1].line, reason) for reason in _of_last_line(instance))
    if n < VALIDATED:
        try:
            Item.model_validate(item)
        except ValidationError as error:
            yield spec.line, problems(error)[0]


def _lines(instance: Instance, item: dict[str, Any]) -> statements.Lines:
    """Return the lines of working with the values that they and the question give letters."""
    parts = item.get("parts", [])
    given = [item["ask"], item.get("answer", ""), *(f"{part['ask']} {part['answer']}" for part in parts)]
    rounded = any(re.search("dp|sf|nearest", answer.get("form", "")) for answer in instance.template.answers)
    known = [one for text in given for one in statements.said(text)]
    lines = [statements.said(text) for text in item["working"]]
    return statements.Lines(lines, known, rounded=rounded, parted=bool(parts))


def _of_last_line(instance: Instance) -> Iterator[str]:
    numbers = [
        prose(shown_value(value, one.spec.get("form", ""), fractions=instance.template.fractions))
        for one in instance.right
        if one.value is not None and "as" not in one.spec
        for value in (one.value if isinstance(one.value, list) else [one.value])
    ]
    lines = instance.working if len(numbers) > 1 or len(instance.right) > 1 else instance.working[-1:]
    for shown in numbers:
        if plain(shown) not in plain(" ".join(lines)):
            yield f"last line of working does not show the answer {shown}"


def _of_answer(instance: Instance, answer: DrawnAnswer) -> Iterator[str]:
    spec, fractions = answer.spec, instance.template.fractions
    values = answer.value if isinstance(answer.value, list) else [answer.value]
    if len(answer.expression) > 300:
        yield "the calculation is longer than 300 characters"
    if "as" in spec and (printed := _read(answer.text)) is not None and not same(printed, answer.value):
        yield f"option {answer.text} is not the value of {answer.code}"
    if "as" in spec or "is" in spec:
        return
    form = spec.get("form", "")
    if not form and not fractions and not _EXACT.search(instance.ask) and any(map(endless, values)):
        yield f"answer {answer.text} needs a form (2 dp, 3 sf, frac, exact)"
    if "expression" in spec:
        try:
            yield from _of_expression(answer, values, instance.template.letters)
        except EvaluationError as error:
            yield f"expression: {error}"


def _of_expression(answer: DrawnAnswer, values: list[Any], letters: str) -> Iterator[str]:
    """Say whether the calculation or the equations that the lesson carries have the answer."""
    relations = relations_in(answer.expression)
    if not relations and not same(evaluate(answer.expression, letters=letters), answer.value):
        yield f"expression {answer.expression} is not the answer"
    used = sorted(names_in(answer.expression))
    for relation, value in ((relation, value) for relation in relations for value in values):
        parts = value if isinstance(value, tuple) else (value,)
        if len(parts) == len(used) and not _fulfilled(relation, dict(zip(used, parts, strict=True))):
            yield f"the answer does not fulfil {answer.expression}"


def _fulfilled(relation: Relation, at: dict[str, Any]) -> bool:
    return relation.sign != "=" or same(evaluate(relation.left, at), evaluate(relation.right, at))


def _read(text: str) -> Any:
    """Return the value of a printed calculation; None where it is not one formula of numbers."""
    with suppress(notation.NotReadError, EvaluationError):
        node = notation.tree(text.removeprefix(r"\(").removesuffix(r"\)"))
        return None if node.letters else measured(node.value)
    return None
