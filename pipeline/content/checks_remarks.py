"""Checks of what is said about a question: feedback, reasons, hints, answers in words, words of working (9, 12, 14).

A number that is said there is one of the question, or comes from them in one step. Small whole numbers may count
something else, unless a unit stands behind them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Set
from fractions import Fraction
from functools import lru_cache
from itertools import permutations
from typing import Any

from pipeline.content.checks_data import data_of, values_in
from pipeline.content.findings import Fault, Severity
from pipeline.content.lesson import ExplainerCard, Item, WorkedExample
from pipeline.content.numbers import (
    ANY_YEAR,
    CONSTANTS,
    FORMULA,
    OF_UNITS,
    ROUNDED,
    brought_by,
    in_words,
    number_of,
    numbers_alone,
    numbers_in,
    numbers_spelt,
    one_step,
    without_formulas,
)
from pipeline.content.question import asked, calculated
from pipeline.maths import units
from pipeline.maths.comparison import same_answer
from pipeline.maths.evaluation import EvaluationError

#: Numbers up to this may stand anywhere: places, counts, digits.
_SMALL = 12
#: What a step does with a number that stands in the line below it.
_STEP = re.compile(
    r"\b(?:[Dd]ivid\w+|[Mm]ultipl\w+|[Aa]dd\w*|[Ss]ubtract\w*|[Tt]ake|[Rr]oot of|[Tt]imes)\s(?:both sides |each side |"
    r"the \w+ side |top and bottom |it |this )?(?:by |the root of |off )?£?(\d[\d,]*(?:\.\d+)?)(?![\d.]*\s?(?:%|°))\b"
)
#: "…, so £730": the value of the formula before it.
_SO = re.compile(
    r"(\\\((?:(?!\\\)).)*=(?:(?!\\\)).)*\\\))[,.]?\s(?:so|which is|that is)\s(?:it is |that is |about )?£?"
    # What is counted ("so 4 is a factor", "so 3 sides") is no value.
    rf"(\d[\d,]*(?:\.\d+)?)(?=\s?(?:{units.PATTERN.pattern})?\s?(?:[.,;:)](?!\d)|$|\s?(?:is|are)\s(?:left|over|saved|spent|missing)\b))"
)
_CLAUSE = re.compile(r"(?<=[.!?;])\s+")
#: A number alone in a formula.
_BARE = re.compile(r"\\\(\s*([-−]?\d[\d.,]*(?:\{,\}\d{3})*)\s*\\\)")
#: Sentences that tell what comes of a mistake.
_OF_MISTAKES = re.compile(
    r"\b(?:answer|wrong\w*|mistake|error|forg\w+|instead|would|gives?|leads?|get|gets|comes?|if|without|only|not|too)\b"
    r"|(?-i:^[A-Z])\w+ing\b",
    re.IGNORECASE,
)
#: A bare value; questions whose answers are read off or estimated, so that others near it are accepted.
_VALUE = re.compile(r"(?:\\\()?[-−£]{0,2}\d[^%a-z]*(?:[A-Za-zµΩ°][\w⁻²³/ ]{0,12})?(?:\\\))?$")
_READ = re.compile(r"\b(?:estimate|about|approximately|graph|scale|measure|read|line of best fit)\b", re.IGNORECASE)
#: Who tests an answer chooses a number.
_TRIED = re.compile(r"\b(?:test|try|take|put|choose|substitute)\b", re.IGNORECASE)
_COMES_TO = re.compile(r"\b(?:which|that) (?:is|makes|gives) £?(\d[\d,]*(?:\.\d+)?)(?![\d.]*\d)")
_LABEL = re.compile(r"^\([a-f]\)\s*")
#: Questions whose answer is values in one order.
_ORDER = re.compile(r"\b(?:order(?:ed|s)?|sort(?:ed|s)?|ascending|descending|rank(?:ed|s)?)\b", re.IGNORECASE)
#: Numbers that need no source, whatever is spoken of; and a year in which something was.
_OF_ALL = OF_UNITS | CONSTANTS | {Fraction(0), Fraction(1)}
_YEAR = re.compile(r"\b[Ii]n (1[5-9]\d\d|20\d\d)(?![\d,]|\.\d)")
#: A number that somebody chose for an example; questions that leave such a choice to the pupil.
_EXAMPLE = re.compile(
    r"\b(?:such as|for example,?|e\.g\.|like|(?:can|may|might|could) (?:be|have))\s(?:[a-z]+\s)?"
    r"[£$€]?(\d[\d,]*(?:\.\d+)?)"
)
_CHOSEN = re.compile(
    r"\b(?:test data|(?:an|one) example|examples of|(?:a|one|any|your own) (?:value|number))\b", re.IGNORECASE
)
_AFTERNOON = re.compile(r"\b(1[3-9]|2[0-3]):\d\d\b")
_CLOCK = re.compile(r"\d{1,2}[:.]\d\d(?:\s?[ap]m)?$")
#: A hint that calls what it says the answer, or what a pupil comes to.
_CALLED_ANSWER = re.compile(r"\b(?:answer|comes? to|(?:should|will) (?:get|find|have))\b", re.IGNORECASE)


def strangers(
    where: str,
    part: Item | WorkedExample,
    known: Iterable[Any],
    worded: Iterable[Any],
    taught: Set[Fraction] = frozenset(),
) -> Iterator[Fault]:
    """Find numbers in words that no number of the question leads to.

    Args:
        known: Values of the formulas of its working and its answers.
        worded: Those with the numbers that lines of working say in words.
        taught: Numbers of the explanations; what is said of a question in words may be one of them.
    """
    texts = _printed(part)
    printed = {abs(n) for text in texts for n in [*numbers_alone(text), *values_in(text)]}
    by_formulas, by_words = printed | _rationals(known), printed | _rationals(worded)
    mistaken = {n for wrong in getattr(part, "wrong", None) or () for n in values_in(_value(wrong.method))}
    # What is said of a question may speak of its marks, not a mark of itself.
    in_marks = {abs(n) for text in getattr(part, "marks", ()) for n in [*numbers_alone(text), *values_in(text)]}
    is_calculated = _is_calculated(part)
    if not is_calculated and _CHOSEN.search(part.ask):
        return
    is_told = not is_calculated and (in_words(part.answer or "") or not numbers_alone(part.answer or ""))
    # In letters a count is one of terms, brackets, roots.
    expressions = [getattr(one, "expression", None) for one in (part, *(getattr(part, "parts", None) or ()))]
    in_numbers = is_calculated and not any(re.search(r"(?<![a-z])[a-z](?![a-z])", one or "") for one in expressions)
    of_words = {*taught, *(n for text in texts for n in numbers_spelt(text) if n > _SMALL)} if is_told else set()
    a_year, readings = _YEAR if is_calculated else ANY_YEAR, _readings(where, part)
    data: list[Fraction] = []
    for at, text, severity in _said(where, part):
        there = by_words if ".marks." in at else (by_formulas if ".working." in at else by_words) | in_marks
        words = without_formulas(text, " … ")
        there = there | (mistaken - {number_of(n) for n in _COMES_TO.findall(words) if ".feedback" in at})
        measured = {datum.value for datum in data_of(words)}
        said = numbers_alone(words)
        free = _OF_ALL | brought_by(words) | {Fraction(year) for year in a_year.findall(words)} - measured
        if is_told:
            free |= of_words | {Fraction(number.replace(",", "")) for number in _EXAMPLE.findall(words)}
        free |= {n for n in map(Fraction, _AFTERNOON.findall(words)) if n - 12 in there}
        told = [n for n in said if n > _SMALL or n.denominator > 1 or n in measured]
        counted = _counted(words, printed) if in_numbers and ".feedback" in at else set()
        if small := sorted(counted and counted - there - free - {*told} - _steps(_data(part))):
            yield Fault(at, f"{small[0]} stands nowhere else in the question", "numbers of the question", severity)
        strange = [n for n in told if n not in there and n not in free and not _rounds(n, there | ROUNDED)]
        strange = [n for n in strange if ".more." not in at or not any(4 * abs(n - read) <= read for read in readings)]
        if not strange:
            continue
        data = data or _data(part)
        near = _near(printed, percent="%" in part.ask) | _steps(data)
        strange = [n for n in strange if n not in near]
        strange = [n for n in strange if n not in _steps([*data, *(said - {n})])]
        if strange:
            # A graph may be read where it gives no number.
            severity = "W" if part.figures and ".working." in at else severity
            listed = ", ".join(f"{float(n):.10g}" for n in sorted(strange))
            yield Fault(at, f"{listed} stands nowhere else in the question", "numbers of the question", severity)


def _printed(part: Item | WorkedExample) -> list[str]:
    """Return what a question prints that its remarks may speak of."""
    texts = [part.ask, _valued(part.answer or ""), *(line.partition("\n")[2] for line in part.working)]
    texts += [text for line in part.working for text in FORMULA.findall(line.partition("\n")[0])]
    if isinstance(part, Item):
        texts += [part.expression or ""]
        texts += [f"{one.ask} {one.expression} {_valued(one.answer)}" for one in part.parts or ()]
        texts += [f"{option.text} {option.method}" for option in part.options or ()]
        texts += [wrong.method for wrong in part.wrong or ()]
    return texts + [line for figure in part.figures or () for line in figure.lines]


def _counted(words: str, printed: set[Fraction]) -> set[Fraction]:
    """Return the numbers from 4 to 12 of a sentence, but factors of printed ones, of a test or what a mistake gives."""
    if _OF_MISTAKES.search(words) or _TRIED.search(words):
        return set()
    counts = numbers_spelt(words) | numbers_alone(words)
    return {n for n in counts if 3 < n <= _SMALL and not any(one % n == 0 for one in printed)}


def _readings(where: str, part: Item | WorkedExample) -> set[Fraction]:
    """Return the answers of a question that is read off or estimated: others near them are accepted."""
    if not isinstance(part, Item):
        return set()
    return {abs(n) for one in asked(where, part) if _READ.search(one.question) for n in values_in(_valued(one.answer))}


def non_example(where: str, card: ExplainerCard) -> Iterator[Fault]:
    """Find a quantity of a non-example that neither its explanation has nor one step leads to."""
    texts = [card.text, *(line for figure in card.figures or () for line in figure.lines)]
    there = {n for text in texts for n in values_in(text)}
    own = [datum.value for datum in data_of(card.non_example)]
    # One that has other numbers altogether is of another case.
    for number in own if there & {*own} else ():
        if number not in there and number not in _steps(sorted(there | {*own} - {number})):
            said = f"{float(number):.10g} stands nowhere in the explanation"
            yield Fault(f"{where}.non_example", said, "numbers of the explanation", "R")


def _is_calculated(part: Item | WorkedExample) -> bool:
    """Say whether a question has a calculation anywhere: an expression, or a formula."""
    if isinstance(part, Item) and (part.expression or any(one.expression for one in part.parts or ())):
        return True
    return any(FORMULA.search(text) for text in (part.ask, part.answer or "", *part.working))


def _rationals(values: Iterable[Any]) -> set[Fraction]:
    return {abs(Fraction(int(n.p), int(n.q))) for n in values if getattr(n, "is_Rational", False)}


def _data(part: Item | WorkedExample) -> list[Fraction]:
    """Return the numbers that a question begins from and comes to."""
    texts = [part.ask, part.answer or ""]
    if isinstance(part, Item):
        texts += [part.expression or "", *(option.text for option in part.options or ())]
        texts += [f"{one.ask} {one.answer} {one.expression}" for one in part.parts or ()]
    return sorted({abs(n) for text in texts for n in values_in(text)})


def _rounds(number: Fraction, there: set[Fraction]) -> bool:
    """Say whether a number is another one, rounded: to its places, of at least two figures."""
    places = next(k for k in range(40) if (number * 10**k).denominator == 1)
    figures = str(number * 10**places).strip("0")
    half = Fraction(1, 2 * 10**places)
    return len(figures) > 1 and any(abs(other - number) <= half for other in there)


#: "The answer 150 m comes from …": a value that a pupil may come to.
_THE_ANSWER = re.compile(
    r"\b(?:[Tt]he|[Yy]our) (?:wrong )?answer (?:of )?£?(\d[\d,]*(?:\.\d+)?)(?![\d.]*\d|\s?/|.{0,12} would be)"
)


def answers(where: str, item: Item, values: Iterable[Any]) -> Iterator[Fault]:
    """Find feedback that speaks of an answer which no method, option or line gives."""
    texts = [item.answer or "", *item.working, *(option.text for option in item.options or ())]
    texts += [part.answer for part in item.parts or ()]
    there = {n for text in texts for n in values_in(text)}
    there |= {Fraction(v) for w in item.wrong or () if (v := _value(w.method)) and "e" not in v and "n" not in v}
    there |= _rationals(values)
    near = _near({abs(n) for n in there}, percent=False)
    for match in _THE_ANSWER.finditer(item.feedback) if item.wrong else ():
        number = number_of(match[1])
        if number not in near and not any(abs(n - number) <= Fraction(1, 2) for n in near if n.denominator > 1):
            said = f"{match[0]}, but no wrong method gives it"
            yield Fault(f"{where}.feedback", said, "what a wrong method gives", "R")


def _valued(answer: str) -> str:
    """Return an answer that is a value, "" for one in words."""
    return "" if in_words(answer) else answer


def _near(there: set[Fraction], *, percent: bool) -> set[Fraction]:
    """Return numbers in other units; the digits of decimals; of percentages also shares, and their rests."""
    found = {m for n in there for m in (n, n * 100, n / 100, n * 1000, n / 1000)}
    found |= {n * 10**power for n in there if n < 1 for power in range(1, 7)}
    return found | {m for n in there if percent for m in (1 + n / 100, abs(1 - n / 100), abs(100 - n), 100 + n)}


def _steps(data: list[Fraction]) -> set[Fraction]:
    """Return what one step makes of two numbers, or of one."""
    # One more and one less than a number are steps of counting only.
    pairs = permutations([n for n in data if n != 1], 2)
    found = {m for a, b in pairs for m in (*one_step(a, b), a * b / 100)}
    return found | {n**power for n in data if n < 10_000 for power in (2, 3)}


@lru_cache(1_024)
def _value(method: str) -> str:
    try:
        return f"{float(calculated(method, {})):.10g}"
    except (EvaluationError, TypeError):
        return ""


def _said(where: str, part: Item | WorkedExample) -> Iterator[tuple[str, str, Severity]]:
    """Yield address, text and severity of what is said about a question."""
    for place, line in enumerate(part.working, 1):
        yield f"{where}.working.{place}", line.partition("\n")[0], "R"
    if not isinstance(part, Item) and part.answer and in_words(part.answer):
        yield f"{where}.answer", part.answer, "R"
    if isinstance(part, Item):
        yield from ((f"{where}.feedback", text, _grade(text, part)) for text in _CLAUSE.split(part.feedback))
        for place, text in enumerate(part.marks, 1):
            yield f"{where}.marks.{place}", _BARE.sub(r"\1", text.partition("\n")[2]), "R"
        if not part.options:
            yield from ((f"{one.where}.answer", one.answer, "R") for one in asked(where, part) if in_words(one.answer))
        for place, text in enumerate(part.more or (), 1):
            kind = text.partition(":")[0]
            if kind in ("hint", "accept", "must", "alternative"):
                yield f"{where}.more.{place}", text.partition(": ")[2], "R" if kind in ("accept", "must") else "W"
        for place, option in enumerate(part.options or (), 1):
            yield f"{where}.options.{place}.why", option.why, "W" if place > 1 else "R"
        for place, wrong in enumerate(part.wrong or (), 1):
            yield f"{where}.wrong.{place}.error", wrong.error, "W"


def _grade(sentence: str, item: Item) -> Severity:
    """Return "W" for a sentence about a mistake whose value may not be listed, else "R"."""
    wrong = {Fraction(v) for one in item.wrong or () if (v := _value(one.method)) and v.replace(".", "").isdigit()}
    listed = bool(wrong) and not any(_rounds(n, wrong) or n in wrong for n in numbers_alone(item.feedback))
    return "W" if _OF_MISTAKES.search(sentence) and not listed else "R"


def slips(where: str, part: Item | WorkedExample) -> Iterator[Fault]:
    """Find a step that names another number than its line has, and a "so 12" after a formula that gives another."""
    before = " ".join(formula for formula in FORMULA.findall(part.ask)) + " " + part.ask
    for place, text in enumerate(part.working, 1):
        at, (words, _, line) = f"{where}.working.{place}", text.partition("\n")
        numbers = {n for shown in (line, before) for n in [*numbers_alone(shown), *numbers_in(shown)]}
        for match in _STEP.finditer(words) if line else ():
            number = number_of(match[1])
            # A common factor or multiple stands in no line.
            if number and not any(n and ((n / number) % 1 == 0 or ((number / n) % 1 == 0 and n != 1)) for n in numbers):
                yield Fault(at, f"{match[0]}: {match[1]} is not in the line", "the number of the step")
        before += " " + text
    texts = [(f"{where}.working.{place}", text) for place, text in enumerate(part.working, 1)]
    texts += [(f"{where}.feedback", part.feedback)] if isinstance(part, Item) else []
    for at, text in texts:
        yield from (Fault(at, said, "the value of the formula") for said in false_results(text))


def false_results(text: str) -> Iterator[str]:
    """Yield each "…, so 12" that says another value than the formula before it."""
    for match in _SO.finditer(text):
        sides = re.split(r"=|\\approx", match[1].removesuffix("\\)"))
        shown = numbers_in(sides[-1])
        said = number_of(match[2])
        scales = (1, 100, 1000, 10**6)
        same = {scaled for n in shown for scale in scales for scaled in (n * scale, n / scale)}
        if len(shown) == 1 and said not in same and not _rounds(said, same):
            yield f"{match[0][-40:]}: {match[2]} is not its value"


def told(where: str, item: Item) -> Iterator[Fault]:
    """Find hints that say the answer."""
    answers = [] if item.options else [(one.answer, one.question) for one in asked(where, item)]
    for place, text in enumerate(item.more or (), 1):
        kind, _, said = text.partition(": ")
        for answer, ask in answers if kind == "hint" else ():
            plain = re.sub(r"\s", "", answer)
            printed = r"\s*".join(map(re.escape, plain))
            measured = re.search(r"[A-Za-z£%°²³]|\d[\d.,]*\d", plain) and re.search(r"\d", plain)
            if measured and plain not in re.sub(r"\s", "", ask) and re.search(
                rf"(?<![\d.]){printed}(?![A-Za-z]|[\d.]*\d)", said
            ):  # fmt: skip
                # A fact may have the number of the answer: a right angle is 90°.
                severity: Severity = "R" if FORMULA.search(answer) or _CALLED_ANSWER.search(said) else "W"
                found = f"the hint says the answer {answer}"
                yield Fault(f"{where}.more.{place}", found, "help that leaves the work", severity)


#: What somebody did by the words of an error -> the signs that do it; who adds −2 subtracts.
_DID = (
    ("added", "+-"), ("subtracted|took (?:\\w+ ){1,5}(?:off|away)", "-"), ("multiplied|squared|doubled", "*^"),
    ("divided|halved", "/"),
)  # fmt: skip
_DONE = tuple((re.compile(rf"^(?:\([a-f]\) )?(?:You |The pupil )?(?:{did})\b", re.I), signs) for did, signs in _DID)
#: Words with which that may be another sign: 5 % added is a product.
_SHARES = re.compile(r"%|per cent|\b(?:only|interest|part|rate of|each|every|twice|double)\b")


def another_step(reason: str, method: str) -> str:
    """Return what a reason says was done where its method does something else, "" for nothing."""
    if _SHARES.search(reason) or not re.search(r"[-+*/^]", method):
        return ""
    for pattern, signs in _DONE:
        if (did := pattern.search(reason)) and not set(signs) & set(method):
            return f"{did[0]!r}, but the method is {method}"
    return ""


def accepted(where: str, item: Item) -> Iterator[Fault]:
    """Find a right answer among the rejected ones, and a wrong value among the accepted ones."""
    keys = {one.where.removeprefix(where): (one.answer, one.question) for one in asked(where, item)}
    for place, text in enumerate(item.more or (), 1):
        kind, _, said = text.partition(": ")
        label = (_LABEL.match(said) or [""])[0].strip()
        if kind not in ("accept", "reject") or label not in keys:
            continue
        key, ask = keys[label]
        value = _LABEL.sub("", said).rstrip(".")
        if "°C" in key:
            value = re.sub(r"\bdegrees(?: Celsius| C)?\b", "°C", value)
        same = same_answer(key, value, ask) and (not _ORDER.search(ask) or _in_order(key, value))
        if kind == "reject" and (same or value.casefold() == key.rstrip(".").casefold()):
            yield Fault(f"{where}.more.{place}", f"{said} is right", "an answer that is not")
        elif kind == "accept" and same is False and _compared(key, value) and not _READ.search(ask):
            yield Fault(f"{where}.more.{place}", f"{said} is not {key}", "an answer that is right")


def _compared(*answers: str) -> bool:
    """Say whether answers are bare values, and no times of day: 1:30 pm is 13:30."""
    return all(_VALUE.match(answer) for answer in answers) and not all(_CLOCK.match(answer) for answer in answers)


def _in_order(key: str, value: str) -> bool:
    """Say whether the values of two lists stand in one order."""
    wanted, found = (re.split(r",\s", text) for text in (key, value))
    return len(wanted) == len(found) and all(
        same_answer(*pair) is not False for pair in zip(wanted, found, strict=True)
    )
