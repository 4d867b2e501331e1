"""Checks of answers: what is printed is what the question's calculation gives, in the form and unit it asks for.

Rows 5, 6, 8, 9, 15; and `summary`: how each question was verified, the printed values of wrong methods.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, permutations
from typing import Any

from pipeline.content import checks_data, checks_remarks, checks_working
from pipeline.content.checks_prose import read_line
from pipeline.content.findings import Case, Check, Fault, Severity
from pipeline.content.lesson import Item
from pipeline.content.numbers import FREE, brought_by, mixed_numbers, numbers_in, one_step, ungrouped, without_formulas
from pipeline.content.question import AskedPart, asked, calculated, printed_like
from pipeline.drawing import figure
from pipeline.maths import forms
from pipeline.maths.evaluation import EvaluationError, relations_in
from pipeline.maths.notation import NotReadError, read, statement
from pipeline.maths.rounding import RoundingError


def questions(case: Case) -> Iterator[tuple[Item, AskedPart]]:
    """Yield everything that is asked, part by part."""
    for where, item in case.lesson.items():
        for one in asked(where, item):
            yield item, one


def answer_at(item: Item, one: AskedPart) -> str:
    """Return the address of what is printed as the answer."""
    return f"{one.where}.options.1.text" if item.options else f"{one.where}.answer"


# ---- 5, 15: the value and its form

#: A question with its answer in a note.
_TASK = re.compile(r"(.*)\s\([Aa]nswers?: (.+)\)\s*$", re.DOTALL)


def values(case: Case) -> Iterator[Fault]:
    """Check row 5: the printed answer is what its calculation gives; all solutions, no others."""
    for place, note in enumerate(case.lesson.notes, 1):
        for task, answer in _TASK.findall(note.text):
            if not (_SET.match(task) or checks_data.REARRANGED.search(task)):
                continue
            if said := AskedPart(f"notes.{place}.text", task, task, answer, "").outcome().fault:
                yield Fault(f"notes.{place}.text", said, "the answer of the question", "R")
    for item, one in questions(case):
        at = answer_at(item, one)
        if one.expression:
            try:
                relations_in(one.expression) or one.value
            except EvaluationError as refused:
                yield Fault(
                    f"{one.where}.expression", str(refused), "a calculation that code can read: 2*x, (3+4)/5, sqrt(2)"
                )
                continue
        said = one.outcome().fault
        if one.expression and not said and _SET.match(one.ask) and one.formulas and not one.formulas[0].relations:
            said = replace(one, expression="").outcome().fault
        if said:
            yield Fault(
                at, said, "the answer that the calculation gives", also=(f"{one.where}.expression", f"{one.where}.ask")
            )


def written(case: Case) -> Iterator[Fault]:
    """Check row 15: rounded and written as the words of the question ask."""
    for item, one in questions(case):
        if said := one.outcome().form:
            at = answer_at(item, one)
            yield Fault(at, said, "the rounding and the form that the question asks for", also=(f"{one.where}.ask",))


# ---- 6: the calculation belongs to the question

_WORDS = {
    "half": "1/2", "halve": "1/2", "halves": "1/2", "double": "2", "twice": "2", "triple": "3", "quarter": "4",
    "third": "3", "thirds": "3", "fifth": "5", "fifths": "5", "sixth": "6", "eighth": "8", "tenth": "10", "dozen": "12",
    "one": "1", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8", "nine": "9",
    "ten": "10", "eleven": "11", "twelve": "12", "hundred": "100", "thousand": "1000", "million": "1000000",
    "square": "2", "cube": "3", "pentagon": "5", "hexagon": "6", "octagon": "8", "decagon": "10",
}  # fmt: skip
_POWER_OF_TEN = re.compile(r"10\s*\^\s*\(?\s*-?\d+\s*\)?")
_PERCENT = re.compile(r"(\d+(?:\.\d+)?)\s?(?:\\?%|per cent)")
_WORD = re.compile(r"[a-z]{3,9}")
#: Powers of ten by which a number may be moved: pounds to pence, metres to centimetres.
_TENS = (Fraction(1000), Fraction(100), Fraction(10), Fraction(1, 10), Fraction(1, 100), Fraction(1, 1000))
#: An answer that is a year, and what asks for one: it is known, not worked out.
_A_YEAR, _OF_YEARS = re.compile(r"(1\d|20)\d\d"), re.compile(r"(?i)\b(year|date|when)\b")
#: A calculation that the question gives as a formula.
_SET = re.compile(r"^(?:Work out|Evaluate|Simplify|Calculate|Expand|Multiply out)\s(?:the value of\s)?\\\(")


def _given(item: Item, one: AskedPart) -> set[Fraction]:
    """Return the numbers that a question gives: in its words, its figures, and in answers to its earlier parts."""
    texts = [item.ask, *(part.ask for part in item.parts or ())]
    texts += [line for drawn in item.figures or () for line in drawn.lines]
    for drawn in item.figures or ():
        texts += figure.numbers(drawn.model_dump())
    earlier = [part.answer for part in asked(one.where.partition("(")[0], item) if part.where < one.where]
    found = {number for text in [*texts, *earlier] for number in (*numbers_in(text), *mixed_numbers(text))}
    for formula in one.formulas:
        value = formula.sides[0].node.value
        # 2 1/3 is 7/3, too.
        found |= (
            {Fraction(int(value.p)), Fraction(int(value.p), int(value.q))}
            if getattr(value, "is_Rational", False)
            else set()
        )
    words = (word for text in texts for word in _WORD.findall(text.lower()))
    return found | {Fraction(_WORDS[word]) for word in words if word in _WORDS}


def belongs(case: Case) -> Iterator[Fault]:
    """Check row 6: the numbers of a calculation stand in the question, and those of the question are used."""
    taught = case.taught
    for item, one in questions(case):
        given = _given(item, one)
        if one.expression and not _in_letters(one):
            used = numbers_in(_POWER_OF_TEN.sub("10", one.expression))
            free = given | taught | FREE | brought_by(one.question)
            strangers = [n for n in used if n not in free and not re.fullmatch("10*", str(n))]
            near = _made_of(given, one.question) if strangers else ()
            strangers = [n for n in strangers if n not in near]
            # The readings of a mean are those of the question.
            read = {n for found in checks_data.LISTS.findall(one.expression) for n in numbers_in(found)}
            strangers += sorted(read - given - taught - {*strangers})
            if len(used) == 1 and not re.search(r"[-+*/^(]", one.expression) and used[0] not in given:
                strangers = [*used]
            if strangers and not (one.formulas and _agrees(replace(one, expression=""))):
                yield Fault(
                    f"{one.where}.expression",
                    f"{', '.join(dict.fromkeys(map(_plain, strangers)))} is not in the question",
                    "the whole calculation in the numbers of the question or its figure",
                    also=(f"{one.where}.ask",),
                )
        elif (
            not one.expression
            # What is read off a figure is not calculated.
            and not item.figures
            and one.value is None
            and not one.task
            and one.printed
            and not one.formulas
            and _one_number(one)
            and not (_A_YEAR.fullmatch(one.answer) and _OF_YEARS.search(one.question))
        ):
            yield Fault(f"{one.where}.expression", "a number without its calculation", "expression", "W")
    for where, item in case.lesson.items():
        yield from _unused(where, item)
    yield from checks_data.slips(case)
    yield from checks_data.equations(case)
    yield from checks_data.conversions(case)


def _made_of(given: set[Fraction], question: str) -> set[Fraction]:
    """Return what one step makes of the numbers of a question: of two of them, of a percentage, by a power of ten."""
    percent = {Fraction(found) for found in _PERCENT.findall(ungrouped(question))}
    near = {near for n in percent for near in (n / 100, 1 + n / 100, abs(1 - n / 100), abs(100 - n), 100 + n)}
    near |= {made for a, b in permutations(given, 2) for made in one_step(a, b)}
    return near | {n * k for n in given for k in _TENS}


def _in_letters(one: AskedPart) -> bool:
    try:
        return bool(relations_in(one.expression)) or not numeric(one.value)
    except EvaluationError:
        return True


def numeric(value: Any) -> bool:
    """Say whether a value is one number."""
    return value is not None and not isinstance(value, tuple | list) and not value.free_symbols


def _plain(number: Fraction) -> str:
    return str(float(number)).removesuffix(".0")


def _one_number(one: AskedPart) -> bool:
    return len(one.printed) == 1 and not one.printed[0].sides[-1].node.letters


def _unused(where: str, item: Item) -> Iterator[Fault]:
    """Warn of numbers of the question that nothing uses."""
    if not all(one.outcome().compared for one in asked(where, item)):
        return
    used = " ".join(
        [item.expression or "", item.answer or "", *item.working, *item.marks]
        + [f"{part.expression} {part.answer} {part.ask}" for part in item.parts or ()]
        + [option.text for option in item.options or ()]
    )
    there = set(numbers_in(used))
    near = {share for n in there for share in (n * 100, abs(1 - n) * 100, n - 1, 100 - n)} | there
    unused = [n for n in dict.fromkeys(numbers_in(without_formulas(item.ask))) if n not in near | FREE]
    if unused and there:
        yield Fault(f"{where}.ask", f"{', '.join(map(_plain, unused))} is not used", "numbers that matter", "W")


# ---- 8, 9: options and wrong answers


def one_right(case: Case) -> Iterator[Fault]:
    """Check row 8: no wrong option has the value of the right one, no two options are one."""
    for where, item in case.lesson.items():
        shown = [
            replace(one, answer=option.text, choice=False)
            for one in asked(where, item)
            for option in item.options or ()
        ]
        for place, one in enumerate(shown[1:], 2):
            outcome = one.outcome()
            if (
                outcome.compared
                and not outcome.fault
                and not outcome.form
                and _directions(one) == _directions(shown[0])
            ):
                yield Fault(f"{where}.options.{place}.text", f"{one.answer} is right, too", "one right option")
        for (left, one), (right, other) in combinations(enumerate(shown, 1), 2):
            if left > 1 and _same_print(one, other):
                found = f"{one.answer} and {other.answer} are the same"
                yield Fault(f"{where}.options.{right}.text", found, "options that differ")


def _directions(one: AskedPart) -> list[str]:
    return [side.direction for printed in one.printed for side in printed.sides if side.direction]


def _same_print(one: AskedPart, other: AskedPart) -> bool:
    if " ".join(one.answer.split()) == " ".join(other.answer.split()):
        return True
    sides = [asked.printed[0].sides for asked in (one, other) if len(asked.printed) == 1]
    if (
        len(sides) < 2
        or any(len(side) != 1 for side in sides)
        or one.printed[0].sides[0].unit != other.printed[0].sides[0].unit
    ):
        return False
    if "calculation" in one.ask:
        return False
    try:
        return bool(sides[0][0].value == sides[1][0].value) and not forms.form_fault(one.ask, one.printed[0])
    except NotReadError:
        return False


def methods(case: Case) -> Iterator[Fault]:
    """Check row 9: a wrong method gives the option beside it, and never the right answer."""
    taught = case.taught
    for where, item in case.lesson.items():
        yield from checks_remarks.accepted(where, item)
        yield from _reasons(where, item, taught)
        first = asked(where, item)[0]
        for place, option in enumerate(item.options or (), 1):
            if option.method and place > 1:
                at = f"{where}.options.{place}.method"
                said = _method_fault(replace(first, expression=option.method, answer=option.text))
                if said:
                    yield Fault(
                        at, said, "the wrong calculation that gives the option", also=(at.replace("method", "text"),)
                    )
        for place, wrong in enumerate(item.wrong or (), 1):
            at = f"{where}.wrong.{place}.method"
            tried = [replace(one, expression=wrong.method) for one in asked(where, item)]
            if isinstance(value := _value(tried[0]), str):
                yield Fault(at, value, "a calculation that code can read")
            elif (
                len(tried) == 1
                and not tried[0].task
                and not _ROUNDS.search(wrong.method)
                and _gives_the_answer(tried[0], item.expression or "")
            ):
                yield Fault(at, f"{wrong.method} gives the right answer {tried[0].answer}", "a method that goes wrong")


def _reasons(where: str, item: Item, taught: set[Fraction]) -> Iterator[Fault]:
    """Find methods of other numbers than the question's, or other steps than their reason says; values without one."""
    told = [(f"{where}.options.{n}", one.method, one.why) for n, one in enumerate(item.options or (), 1)]
    told += [(f"{where}.wrong.{n}", one.method, one.error) for n, one in enumerate(item.wrong or (), 1)]
    parts = asked(where, item)
    known = {n for one in parts for text in (one.question, one.expression, one.answer) for n in numbers_in(text)}
    for at, method, reason in told:
        if not method:
            continue
        if not any(map(_in_letters, parts)) and (said := checks_remarks.another_step(reason, method)):
            yield Fault(f"{at}.method", said, "a method and a reason that tell the same", also=(at,))
        if item.figures or any(one.rounding or one.formulas or not one.expression for one in parts):
            # What is rounded, drawn or a formula has more numbers in it than stand there.
            continue
        strange = set(numbers_in(_POWER_OF_TEN.sub("10", method))) - known - set(numbers_in(reason))
        given = set().union(*(_given(item, one) for one in parts)) if strange else set()
        if strange and (strange := strange - given - taught - FREE - _made_of(given, parts[-1].question)):
            found = f"{', '.join(map(_plain, sorted(strange)))} is not in the question"
            yield Fault(f"{at}.method", found, "a wrong calculation over the numbers of the question", also=(at,))
    if item.expression and any(option.method for option in item.options or ()):
        for place, option in enumerate(item.options or (), 1):
            if place > 1 and not option.method and re.match(r"(?:\\\()?[-−£]?\d[^ ]*(?: [^ ]{1,8})?$", option.text):
                at = f"{where}.options.{place}"
                yield Fault(f"{at}.method", f"{option.text} comes from nowhere", "its wrong calculation", also=(at,))


def _gives_the_answer(one: AskedPart, right: str) -> bool:
    """Say whether a wrong method comes to the right value, unless only its form or its rounding is wrong."""
    if not _agrees(one) or _form_only(one):
        return False
    exact = replace(one, expression=right).value
    side = one.printed[0].sides[-1]
    return not one.rounding or exact is None or bool(one.value == exact) or bool(one.value != side.value)


#: A wrong method that rounds is about rounding: its value is printed as it is.
_ROUNDS = re.compile(r"\b(?:dp|sf|nearest|floor|ceil)\(")


def _form_only(one: AskedPart) -> bool:
    """Say whether a method has the right value in a form that the question does not want."""
    try:
        return bool(forms.form_fault(one.ask, statement(one.expression)))
    except NotReadError:
        return False


def _value(one: AskedPart) -> Any:
    """Return the value of a wrong method, or as text why it has none."""
    try:
        return one.value if not relations_in(one.expression) else None
    except EvaluationError as refused:
        return str(refused)


def _method_fault(one: AskedPart) -> str:
    value = _value(one)
    return value if isinstance(value, str) else one.outcome().fault


def _agrees(one: AskedPart) -> bool:
    outcome = one.outcome()
    return outcome.compared and not outcome.fault and not outcome.form


# ---- what pages say


def summary(case: Case) -> dict[str, Any]:
    """Return {"by": {address: "computed", "in part" or "nobody"}, "wrong": {address: printed value}} of a lesson."""
    by: dict[str, str] = {}
    wrong: dict[str, str] = {}
    for where, item in case.lesson.items():
        by[where] = _verified(case, where, item)
        for place, method in enumerate(item.wrong or (), 1):
            first = asked(where, item)[0]
            tried = replace(first, expression=method.method)
            if item.parts or (_agrees(tried) and _form_only(tried)):
                continue
            try:
                value = calculated(method.method, {})
                said = printed_like(value, tried)
                # Rounded as the right answer it is the right answer: what is wrong with it is how it is written.
                said = printed_like(value, tried, exact=True) if said == first.answer else said
            except (EvaluationError, RoundingError, NotReadError):
                continue
            if said != first.answer:
                wrong[f"{where}.wrong.{place}"] = said
    return {"by": by, "wrong": wrong}


def _verified(case: Case, where: str, item: Item) -> str:
    outcomes = [(one, one.outcome()) for one in asked(where, item)]
    right = [outcome.compared and not outcome.fault and not _read_off(one) for one, outcome in outcomes]
    if not any(right):
        return "nobody"
    solution = checks_working.item_solution(case, where, item)
    whole = all(right) and solution.whole and all(read_line(text, solution.nouns).whole for text in item.marks)
    for option in item.options or ():
        try:
            whole = whole and bool(read(option.text, solution.nouns))
        except NotReadError:
            whole = False
    return "computed" if whole else "in part"


def _read_off(one: AskedPart) -> bool:
    """Say whether the calculation is a bare number that no words of the question give: read off a figure."""
    bare = re.fullmatch(r"-?(\d+(?:\.\d+)?)", one.expression.strip())
    return bare is not None and Fraction(bare[1]) not in numbers_in(one.question)


ROWS: tuple[tuple[int, Severity, str, Check, str], ...] = (
    (5, "B", "an answer is what its calculation gives", values,
     "An answer is what its expression comes to, or the first formula of ask where there is no expression; an equation "
     "in expression (x^2 - 5*x + 6 = 0, parts parted by ;) is solved, and all its solutions are given, no others. In "
     "expression every product has its sign: 2*x, 3*(x + 1), sqrt(2), x^(3/2), sin(40), mean(3, 5, 8), (3, -2); "
     "part_a is the result of part (a)."),
    (6, "R", "a calculation belongs to its question", belongs,
     "Every number of expression stands in the question, its figure or an earlier part, or is taught in an explainer "
     "(8 bits of a byte); free are numbers such as 2, 60, 100, 180, 360, 1000, 273 beside °C, and 1.05 or 0.85 for 5 % "
     "or 15 %. It is the whole calculation, not its result. All data of the question are used, in units that go "
     "together. An equation in expression is that of ask."),
    (8, "B", "a multiple-choice question has exactly one right option", one_right,
     "No other option equals the right one or another option in value."),
    (9, "R", "a wrong answer comes from its method", methods,
     "A wrong option's method gives the option's text, rounded as the question says; no method of a wrong answer gives "
     "the right one. A wrong option that is a value has its method where the right one has its expression. A method "
     "has numbers of the question or of its reason, and does what its reason says first: added, subtracted, "
     "multiplied, divided. No text to reject is right, no text to accept wrong."),
    (15, "R", "an answer has the rounding and the form that its question asks for", written,
     "An answer has the rounding and the form that the words of its question ask for (list above) and shows as many "
     "figures: 4.0 to two significant figures. A rounded answer needs such words in its question."),
)  # fmt: skip
