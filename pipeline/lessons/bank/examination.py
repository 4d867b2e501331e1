"""Examines a topic: what can be seen in its text, and what hundreds of drawn questions show."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pipeline.errors import BankError
from pipeline.lessons.bank import printing
from pipeline.lessons.bank.instance import Answer, Instance, endless
from pipeline.lessons.bank.source import Fault
from pipeline.lessons.bank.template import Template
from pipeline.lessons.bank.topic import Topic, read_topic
from pipeline.lessons.fields import count_words, problems
from pipeline.lessons.lesson import Item
from pipeline.lessons.maths import notation, statements
from pipeline.lessons.maths.evaluation import EvaluationError, evaluate, names_in, relations_in, same
from pipeline.lessons.maths.numbers import measured

#: Draws of each question, and findings of one that are told.
DRAWS, MAX_TOLD = 200, 3
#: Draws whose lines are read back, and draws that are held against the schema of lessons.
JUDGED, VALIDATED = 50, 5
#: Fewest different questions that one template gives in a bank.
FEWEST = 8
#: Form -> words of which the stem must say one.
_SAID = {
    "dp": "decimal place|nearest|whole", "sf": "significant", "nearest": "nearest",
    "scientific": "scientific|standard form",
}  # fmt: skip
_FIGURE = re.compile(
    "figure|graph|diagram|table|chart|plot|circuit|drawing|shown|shows|sketch|tree|scale drawing|map|below|number line",
    re.IGNORECASE,
)
_EXACT = re.compile("exact|in terms of|surd|simplest form|multiple of", re.IGNORECASE)
_UGLY = re.compile(r"\+ ?[-−]|[-−] ?[-−]|(?<![\d.,])1[a-z]\b|<[a-z]|\{\}|\^1(?!\d)|\bnan\b|zoo|None")
_ORDER = {"<": (-1,), ">": (1,), "<=": (-1, 0), ">=": (0, 1), "!=": (-1, 1)}
_COUNTS = {"explain": (80, 220), "can": (2, 12)}


@dataclass
class Row:
    """What was seen of one template."""

    id: str
    space: int = 0
    kept: int = 0
    tried: int = 0
    different: int = 0
    answer_in_stem: int = 0
    drawn: int = 0


@dataclass
class Examination:
    """The findings of one file, as (line, reason), warnings apart; a row for each template."""

    path: Path
    findings: list[tuple[int, str]] = field(default_factory=list)
    warnings: list[tuple[int, str]] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)


def examine(path: Path, draws: int = DRAWS) -> Examination:
    """Return what is wrong with a file, and how many questions it gives."""
    made = Examination(path)
    try:
        topic = read_topic(path)
    except BankError as error:
        for line in error.message.splitlines():
            number, _, reason = line.removeprefix(f"{path}:").partition(": ")
            made.findings.append((int(number) if number.isdigit() else 1, reason or line))
        return made
    made.findings += _of_topic(topic)
    for template in topic.templates():
        found = []
        try:
            found = [*_of_template(template), *_of_draws(template, draws, made)]
        except Fault as fault:
            found = [(fault.line, fault.reason)]
        made.findings += list(dict.fromkeys(found))[:MAX_TOLD]
    made.findings.sort()
    return made


def _of_topic(topic: Topic) -> Iterator[tuple[int, str]]:
    root = topic.root
    used = frozenset().union(*(template.mistakes for template in topic.templates()))
    for name, entry in root["misconceptions"].items():
        if name not in used:
            yield entry.line, f"misconception '{name}' is no wrong answer anywhere"
    for key, (low, high) in _COUNTS.items():
        if not low <= (count := count_words(root[key])) <= high:
            yield root[key].line, f"'{key}' has {count} words, wanted {low} to {high}"
    share = count_words(root["plain"]) / max(1, count_words(root["explain"]))
    if not 0.5 <= share <= 1.05:
        yield root["plain"].line, f"'plain' is {share:.0%} as long as 'explain', wanted 60 to 80 %"
    texts = [root[key] for key in ("explain", "plain", "non_example", "can", "aim")] + root["prior"] + root["facts"]
    texts += [text for entry in root["misconceptions"].values() for text in (entry["correction"],)]
    for text in (*texts, *root["keywords"].values()):
        for false in _judged(statements.Lines([]), _statements(text)):
            yield text.line, f"not true: {false}"


def _of_template(template: Template) -> Iterator[tuple[int, str]]:
    spec, name = template.spec, template.id
    stem = " ".join([spec["stem"], *(part["ask"] for part in spec.get("parts", ()))])
    for answer in template.answers():
        form = answer.get("form", "")
        for key, words in _SAID.items():
            if key in form.split() and template.kind != "choice" and not re.search(words, stem, re.IGNORECASE):
                yield form.line, f"{name}: form is {form}, but the stem does not say so"
        code = answer.get("expression") or answer.get("answer", "")
        reached = _reached(template, code, template.seen) if code else frozenset()
        rows = [names for names, rows in template.space.axes if len(rows) > 1 and not template.seen & {*names}]
        if hidden := [drawn for names in rows for drawn in names if drawn in reached]:
            yield (
                code.line,
                (
                    f"{name}: '{hidden[0]}' is in the answer, but the pupil does not see it; "
                    "write `expression` over the stem's numbers"
                ),
            )
    shown = template.seen | _names_in(template, [text for wrong in spec.get("wrong", ()) for text in wrong.values()])
    reached = frozenset().union(*(_reached(template, one) for one in shown)) | shown
    for names, rows in template.space.axes:
        if not reached & {*names} and len(rows) > 1:
            yield spec["let"].line, f"{name}: '{names[0]}' is drawn but the pupil never sees a number made from it"
    if "figure" in spec and not _FIGURE.search(stem):
        yield template.figures()[0].line, f"{name}: the stem does not speak of the figure"


def _names_in(template: Template, texts: Iterable[str]) -> frozenset[str]:
    codes = [piece.code for text in texts for piece in printing.pieces(text) if piece.code]
    return frozenset().union(*(template.at(code, lambda code=code: names_in(code)) for code in codes))


def _reached(template: Template, code: str, stop: frozenset[str] = frozenset()) -> frozenset[str]:
    """Return the names an expression depends on, through formulas; not through those that `stop` holds."""
    reached: set[str] = set()
    waiting = [code]
    while waiting:
        text = waiting.pop()
        for name in () if text in template.space.people else template.at(text, lambda text=text: names_in(text)):
            if name not in reached and name not in stop:
                reached.add(name)
                waiting += [template.space.formulas[name]] if name in template.space.formulas else []
    return frozenset(reached)


def _of_draws(template: Template, draws: int, made: Examination) -> Iterator[tuple[int, str]]:
    line = template.spec.line
    template.draw(0, "check")
    walk = template.walk(draws, "check")
    row = Row(template.id, template.space.size, walk.place - walk.skipped.total() + walk.skipped["repeat"], walk.place)
    row.different, row.drawn = len(walk.found), min(draws, walk.place)
    made.rows.append(row)
    for n, instance in enumerate(walk.found):
        for reason in _of_instance(instance, n):
            yield line, f"{template.id}: {reason}"
        answer = printing.plain(instance.right[0].text)
        row.answer_in_stem += bool(
            re.search(rf"(?<![\d.,]){re.escape(answer)}(?![\d.,])", printing.plain(instance.ask))
        )
    is_question = template.id in {str(item.get("id")) for item in _questions(made)}
    share = row.kept / row.tried
    if share < 0.15 and row.different < draws:
        reason = f"kept {share:.0%}: constraints throw away too much"
        made.warnings.append((line, f"{template.id}: {reason}{_mostly(template)}"))
    if is_question and row.different < min(FEWEST, draws):
        yield line, f"{template.id}: only {row.different} different; a question needs {FEWEST}"


def _questions(made: Examination) -> list[dict[str, str]]:
    return list(read_topic(made.path).root["questions"])


def _mostly(template: Template) -> str:
    skipped = template.walk(0, "check").skipped
    return f", mostly {skipped.most_common(1)[0][0]}" if skipped else ""


def _of_instance(instance: Instance, n: int) -> Iterator[str]:
    item = instance.item(["point 1"])
    texts = [item["ask"], item["feedback"], *item["working"], *item["marks"], *item.get("more", ())]
    texts += [option["text"] for option in item.get("options", ())]
    for false in _false(instance, item) if n < JUDGED else ():
        yield f"not true: {false}"
    for text in texts:
        if ugly := _UGLY.search(text):
            yield f"not as written by hand ({ugly[0]!r}): {text}"
    for answer in (*instance.right, *instance.wrong):
        yield from _of_answer(instance, answer)
    if n < VALIDATED:
        try:
            Item.model_validate(item)
        except ValidationError as error:
            yield problems(error)[0]


def _of_answer(instance: Instance, answer: Answer) -> Iterator[str]:
    if answer.value is None:
        return
    if len(answer.expression) > 300:
        yield "the calculation is longer than 300 characters"
    values = answer.value if isinstance(answer.value, list) else [answer.value]
    if "as" in answer.spec:
        if (read := _read(answer.text)) is not None and not same(read, answer.value):
            yield f"option {answer.text} is not the value of {answer.spec.get('is') or answer.spec['answer']}"
        return
    if "is" in answer.spec:
        return
    form = answer.spec.get("form", "")
    exact = form or instance.template.setting.fractions or _EXACT.search(instance.template.spec["stem"])
    if not exact and any(endless(value) for value in values):
        yield f"answer {answer.text} needs a form (2 dp, 3 sf, frac, exact)"
    lines = instance.working if len(instance.right) + len(values) > 2 else instance.working[-1:]
    told = printing.plain(" ".join(lines))
    for value in values:
        shown = printing.shown_value(value, form, fractions=instance.template.setting.fractions)
        if printing.plain(printing.prose(shown)) not in told:
            yield f"last line of working does not show the answer {printing.prose(shown)}: {lines[-1]}"
    yield from _of_expression(instance, answer)


def _of_expression(instance: Instance, answer: Answer) -> Iterator[str]:
    """Say whether the calculation that the lesson carries gives the answer."""
    if "expression" not in answer.spec:
        return
    letters = instance.template.setting.letters
    try:
        relations = relations_in(answer.expression)
        if not relations and not same(evaluate(answer.expression, letters=letters), answer.value):
            yield f"expression {answer.expression} is not the answer"
        used = sorted(names_in(answer.expression))
        values = answer.value if isinstance(answer.value, list) else [answer.value]
        for relation in relations:
            for value in values:
                parts = value if isinstance(value, tuple) else (value,)
                at = dict(zip(used, parts, strict=False))
                if relation.sign == "=" and len(parts) == len(used):
                    left, right = (evaluate(side, at) for side in (relation.left, relation.right))
                    if not same(left, right):
                        yield f"the answer does not fulfil {answer.expression}"
    except EvaluationError as error:
        yield f"expression: {error}"


def _read(text: str) -> object:
    """Return the value of a printed calculation; None where it is not one formula of numbers."""
    try:
        node = notation.tree(text.removeprefix(r"\(").removesuffix(r"\)"))
        return measured(node.value) if not node.letters else None
    except (notation.NotReadError, EvaluationError):
        return None


def _false(instance: Instance, item: dict[str, Any]) -> Iterator[str]:
    """Yield what is not true in the formulas of a question; the values that its lines give letters count."""
    parts, spec = item.get("parts", []), instance.template.spec
    given = [item["ask"], *(f"{part['ask']} {part['answer']}" for part in parts), item.get("answer", "")]
    others = [*item["marks"], item["feedback"], *item.get("more", ()), instance.right[0].text]
    lines = [_statements(text) for text in item["working"]]
    rounded = any(re.search("dp|sf|nearest", answer.get("form", "")) for answer in instance.template.answers())
    known = [one for text in given for one in _statements(text)]
    judge = statements.Lines(lines, known, rounded=rounded, parted="parts" in spec)
    for line in [*lines, *(_statements(text) for text in others)]:
        yield from _judged(judge, line)


def _judged(judge: statements.Lines, line: list[notation.Statement]) -> Iterator[str]:
    verdicts = (verdict for one in line for verdict in judge.verdicts(one) if verdict.truth is False)
    return (verdict.said.replace(" is not true", "", 1) for verdict in verdicts)


def _statements(text: str) -> list[notation.Statement]:
    """Return what the formulas of a text say, where they are read and say something."""
    found = []
    for formula in notation.formulas(text):
        with suppress(notation.NotReadError):
            found.append(notation.statement(formula))
    return [one for one in found if one.relations]
