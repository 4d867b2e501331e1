r"""Check 14: every printed line is true, leads to the answer, and earns its mark.

Lines are read as pupils read them. Text that holds words besides its formulas is read formula by formula, and then
nothing is concluded from what lies between.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from fractions import Fraction
from functools import cached_property
from itertools import pairwise, product
from typing import Any

from sympy import Integer, Rational

from pipeline.content.checks_data import REARRANGED, from_data, shown
from pipeline.content.checks_prose import NOT, Read, false_prose, formulas_in, read_line, unbalanced
from pipeline.content.checks_remarks import answers, non_example, slips, strangers
from pipeline.content.findings import Case, Check, Fault, Severity
from pipeline.content.lesson import ExplainerCard, Item, WorkedExample
from pipeline.content.numbers import CONSTANTS, FORMULA, in_words, numbers_alone, without_formulas
from pipeline.content.question import AskedPart, asked
from pipeline.content.relationships import course_formulas
from pipeline.maths.evaluation import EvaluationError
from pipeline.maths.notation import PrintedSide, PrintedStatement, formulas
from pipeline.maths.statements import Lines, equal, follows, half_place, names_of, signed, substituted
from pipeline.maths.trees import MathNode, NotReadError, Value

#: A question that begins with the formula it is about.
_SET = re.compile(
    r"^(?:Simplify|Work out|Evaluate|Expand|Factorise|Calculate|Write|Express|Rationalise)\s(?:\w+\s){0,3}\\\("
)
#: Numbers up to this may stand anywhere: places, counts, digits.
_SMALL = 12


class WorkingSolution:
    """Hold the working of a question or an example with all that is known of its letters and values."""

    def __init__(self, case: Case, questions: Sequence[AskedPart], working: Sequence[str], ask: str) -> None:
        nouns = frozenset(re.findall(r"[a-z]{3,}", ask.lower()))
        self.questions = questions
        self.nouns = nouns
        self.read = [read_line(line, nouns) for line in working]
        given = [*(one for question in questions for one in question.task), *formulas_in(ask)[0]]
        # "Find y for x = 10" of a part, beside its expression.
        given += [one for question in questions if question.ask != ask for one in formulas_in(question.ask)[0]
                  if one.relations == ("=",) and len(names_of(one)) == 1 and one not in given]  # fmt: skip
        answers = [one for question in questions for one in question.printed]
        related = {name for one in [*given, *answers] if one.relations for name in names_of(one)}
        expressions = [one.sides[0].node for one in given if not one.relations]
        own = {name for node in expressions if node.kind != "letter" for name in node.letters} - related
        self.lines = Lines(
            [line.statements for line in self.read],
            [one for one in [*given, *answers] if one.relations],
            frozenset(own),
            [*course_formulas(case.course), *(one for one in given if one.relations == ("=",))],
            inequality=next((one for one in given[:1] if set(one.relations) & {"<", ">", "<=", ">="}), None),
            rounded=any(question.rounding for question in questions),
            parted=len(questions) > 1,
        )
        self.given = given
        equations = [one for one in formulas_in(ask)[0] if one.relations == ("=",) and len(names_of(one)) > 1]
        alone = len(set(equations)) == 1 and len(questions) == 1 and len(questions[0].task) < 2
        #: What is to be rearranged or solved, in two letters or more.
        self.formula = equations[0] if alone and REARRANGED.search(ask) else None
        self.told = [Rational(n.numerator, n.denominator) for n in numbers_alone(without_formulas(" ".join(working)))]
        self.numbers = numbers_alone(" ".join([ask, *working, *(question.ask for question in questions)]))

    @property
    def whole(self) -> bool:
        """Say whether all lines were read, and each was found true."""
        return all(line.whole for line in self.read) and all(
            verdict.truth for line in self.read for one in line.statements for verdict in self.lines.verdicts(one)
        )

    def untrue(self, line: Read) -> str:
        """Return what is false in a line, "" for nothing; of alternatives ("or") one must hold."""
        told: dict[frozenset[str], list[str]] = {}
        for one in line.statements:
            said = next((verdict.said for verdict in self.lines.verdicts(one) if verdict.truth is False), "")
            if said and one.sides[0].node.kind != "letter":
                return said
            if one.relations:
                told.setdefault(names_of(one), []).append(said)
        for names, reasons in told.items():
            if any(reasons) and (not names or all(reasons)):
                return next(reason for reason in reasons if reason)
        return next((said for one in line.statements if (said := self._other_formula(one))), "")

    def _other_formula(self, one: PrintedStatement) -> str:
        """Return what a line says that does not follow from the formula that is to be rearranged, "" for nothing."""
        if self.formula is None or one.relations != ("=",) or len(names_of(one) & names_of(self.formula)) < 2:
            return ""
        try:
            holds = names_of(one) - names_of(self.formula) or follows(one.sides[0], one.sides[1], self.formula)
        except NotReadError:
            return ""
        said = f"{one.sides[0].text} = {one.sides[1].text}"
        return "" if holds else f"{said} does not follow from the formula of the question"

    @cached_property
    def values(self) -> list[Value]:
        """Return all values that the question, its working and its answers show, in formulas and in words."""
        numbers = [Rational(n.numerator, n.denominator) for n in self.numbers]
        return list(dict.fromkeys([*self.formula_values, *numbers]))

    @cached_property
    def formula_values(self) -> list[Value]:
        """Return those of formulas, and what the calculations come to."""
        shown = [*self.given, *(one for line in self.read for one in line.statements)]
        shown += [one for question in self.questions for one in question.printed]
        nodes = dict.fromkeys(node for one in shown for side in one.sides for node in side.node.walk())
        found = [part.value for node in nodes for part in _runs(node) if _valued(part)]
        for question in self.questions:
            with suppress(EvaluationError):
                if (value := question.value) is not None and not isinstance(value, tuple | list):
                    found.append(value)
        return list(dict.fromkeys(found))

    def leads_to(self, question: AskedPart) -> bool:
        """Say whether a line shows the values of the answer; true where something was not read."""
        shown = [side for line in self.read for one in line.statements for side in one.sides]
        if not question.printed or not shown or not all(line.whole for line in self.read):
            return True
        return all(
            any(_same(side, wanted.sides[-1]) for side in reversed(shown)) or _known(wanted.sides[-1], self.told)
            for wanted in question.printed
        )

    def dead_end(self) -> tuple[int, str] | None:
        """Return the line whose result no later line, and no answer, takes up; None where something is not read."""
        if not all(line.whole for line in self.read) or not all(question.printed for question in self.questions):
            return None
        later = [side for question in self.questions for one in question.printed for side in one.sides]
        for place in range(len(self.read), 0, -1):
            line = self.read[place - 1]
            for one in line.statements:
                result = one.sides[-1].node
                substituted = one.relations == ("=",) and one.sides[0].node.kind == "letter" and not result.letters
                calculated = substituted and result.kind in ("sum", "product", "quotient", "power", "root")
                if calculated and place < len(self.read) and not _taken_up(result, later):
                    return place, one.sides[-1].text
            later += [side for one in line.statements for side in one.sides]
        return None


def _taken_up(result: MathNode, later: Sequence[PrintedSide]) -> bool:
    """Say whether a value, or one it is rounded to, stands in a later line."""
    if not _valued(result) or hasattr(result.value, "shape"):
        return True
    wanted = abs(result.value)
    for side in later:
        if side.places is not None and abs(signed(abs(side.value) - wanted)) <= float(half_place(side)) * 1.001:
            return True
        values = [part.value for part in side.node.walk() if part.kind != "letter" and _valued(part)]
        if any(_same_number(abs(value), wanted) for value in values if not hasattr(value, "shape")):
            return True
    return False


def _runs(node: MathNode) -> Iterator[MathNode]:
    """Yield a node, and of a product its runs of factors: 9x of 9x(6x + 5)."""
    yield node
    count = len(node.parts) if node.kind == "product" else 0
    for start in range(min(count, 6)):
        yield from (MathNode("product", node.parts[start:end]) for end in range(start + 2, min(count, 6) + 1))


def _valued(part: Any) -> bool:
    try:
        return part.value is not None
    except NotReadError:
        return False


def _same(side: Any, wanted: Any) -> bool:
    """Say whether a line shows the value of an answer, perhaps before it is rounded."""
    if side.node == wanted.node:
        return True
    try:
        one, two = side.value, wanted.value
        if hasattr(one, "free_symbols") and (side.node.letters or wanted.node.letters):
            return bool(one == two) or bool((one - two).expand() == 0)
        if equal(one, two) or (wanted.direction and equal(one, -two)) or equal(one * 100, two) or equal(one, two * 100):
            return True
        return abs(signed(one - two)) <= float(half_place(wanted)) * 1.001
    except (NotReadError, TypeError, ValueError):
        return False


#: Solutions read last, each with its question: the checks and the summary ask for the same.
_LAST: OrderedDict[tuple[str, int], tuple[Item, WorkingSolution]] = OrderedDict()


def item_solution(case: Case, where: str, item: Item) -> WorkingSolution:
    """Return the working of a question."""
    known = _LAST.get((where, id(item)))
    if known is None or known[0] is not item:
        known = _LAST[where, id(item)] = (item, WorkingSolution(case, asked(where, item), item.working, item.ask))
        if len(_LAST) > 256:
            _LAST.popitem(last=False)
    return known[1]


def example_solution(case: Case, where: str, example: WorkedExample) -> WorkingSolution:
    """Return the working of an example."""
    return WorkingSolution(
        case, [AskedPart(where, example.ask, example.ask, example.answer or "", "")], example.working, example.ask
    )


def lines(case: Case) -> Iterator[Fault]:
    """Check row 14: working, marks, explanations and sums in words."""
    for where, item in case.lesson.items():
        solution = item_solution(case, where, item)
        yield from _working(where, solution, item.working)
        yield from _marks(where, item, solution)
        yield from _accepted(where, item, solution)
        yield from strangers(where, item, solution.formula_values, solution.values, case.taught)
        yield from slips(where, item)
        yield from answers(where, item, solution.values)
        yield from _not_given(where, item, solution)
    for where, example in case.lesson.examples():
        solution = example_solution(case, where, example)
        yield from _working(where, solution, example.working)
        yield from _example(where, solution)
        yield from strangers(where, example, solution.formula_values, solution.values)
        yield from slips(where, example)
        yield from _other_numbers(where, example, solution)
    yield from _equations(case)
    for number, card in enumerate(case.lesson.cards, 1):
        if isinstance(card, ExplainerCard):
            yield from non_example(f"c{number}", card)
    formula_lines = Lines([], formulas=course_formulas(case.course))
    for where, text in [*taught(case), *_told(case)]:
        yield from false_prose(where, text, formula_lines)


#: Texts that may say what is false.
_WRONG = re.compile(r"\.(?:belief|error|non_example|watch_for)$|\.options\.\d+\.(?:text|why)$")


def _equations(case: Case) -> Iterator[Fault]:
    """Find equations of chemistry that are not balanced."""
    for where, text in case.texts:
        if not _WRONG.search(where):
            yield from (
                Fault(where, f"{said} is not balanced", "as many atoms on both sides") for said in unbalanced(text)
            )


def _not_given(where: str, item: Item, solution: WorkingSolution) -> Iterator[Fault]:
    """Find a letter of a formula that is given a number which neither question nor working has."""
    there = shown(item)
    for place, (line, after) in enumerate(pairwise(solution.read), 2):
        for formula, one in product(line.statements, after.statements):
            at: dict[str, Value] = {}
            if formula.sides[0].node.kind != "letter" or len(names_of(formula)) < 3 or one.sides[-1].node.letters:
                continue
            # A product of powers of ten has more factors than its formula.
            if "10^" in one.sides[-1].text:
                continue
            if not _valued(one.sides[-1].node) or not substituted(formula.sides[-1].node, one.sides[-1].node, at):
                continue
            before = {v for read in solution.read[: place - 2] for s in read.statements for v in _results(s)}
            for letter, value in at.items():
                number = Fraction(int(value.p), int(value.q)) if getattr(value, "is_Rational", False) else None
                known = {0, 1, *before, *CONSTANTS}
                if number is not None and abs(number) not in known and not from_data(abs(number), there):
                    said = f"{letter} is {float(number):g} in the working, and in the question it is not"
                    yield Fault(f"{where}.ask", said, "all data", also=(f"{where}.working.{place}",))


def _results(one: PrintedStatement) -> Iterator[Fraction]:
    values = [side.node.value for side in one.sides if not side.node.letters and _valued(side.node)]
    yield from (abs(Fraction(int(v.p), int(v.q))) for v in values if getattr(v, "is_Rational", False))


def _example(where: str, solution: WorkingSolution) -> Iterator[Fault]:
    """Check that the working of an example begins from its own formula."""
    first = solution.questions[0].formulas[:1]
    if not _SET.match(solution.questions[0].ask) or not first or first[0].relations:
        return
    if first[0].sides[0].node.kind == "vector" or not all(line.whole for line in solution.read):
        return
    shown = [
        part for line in solution.read for one in line.statements for side in one.sides for part in side.node.walk()
    ]
    if shown and not _known(first[0].sides[0], [part.value for part in shown if _valued(part)]):
        yield Fault(
            f"{where}.ask", f"{first[0].sides[0].text} is in no line of the working", "the same numbers in both"
        )


def _other_numbers(where: str, example: WorkedExample, solution: WorkingSolution) -> Iterator[Fault]:
    """Find an example whose working begins with a number that its question has not, and leaves one of its own out."""
    asked_for, used = numbers_alone(example.ask), numbers_alone(" ".join(example.working))
    first = next((line for line in example.working if FORMULA.search(line)), "")
    results = [side.node for line in solution.read for one in line.statements for side in one.sides[1:]]
    shown = {node.value for node in results if _valued(node) and not hasattr(node.value, "shape")}
    strange = {n for n in numbers_alone(" ".join(formulas(first))) - asked_for if n > _SMALL}
    strange = {n for n in strange if Rational(n.numerator, n.denominator) not in shown}
    unused = {n for n in asked_for - used if n > _SMALL}
    if strange and unused:
        said = f"{_listed(unused)} is not used, the working has {_listed(strange)}"
        yield Fault(f"{where}.ask", said, "the same numbers in both", "W")


def _working(where: str, solution: WorkingSolution, working: Sequence[str]) -> Iterator[Fault]:
    wrong = False
    for place, line in enumerate(solution.read, 1):
        if said := solution.untrue(line):
            wrong = True
            yield Fault(
                f"{where}.working.{place}", said, r"a line that is true from side to side (\approx for rounding)"
            )
    if not wrong and (found := solution.dead_end()):
        place, text = found
        said = f"the result {text} is in no later line and no answer"
        yield Fault(f"{where}.working.{place}", said, "lines that lead on to the answer")
        wrong = True
    for question in solution.questions:
        if not wrong and not solution.leads_to(question):
            yield Fault(
                f"{where}.working.{len(working)}",
                f"no line gives the answer {question.answer}",
                "a last line that gives the answer",
                also=(f"{question.where}.answer",),
            )


def _listed(numbers: Iterable[Fraction]) -> str:
    return ", ".join(str(float(n)).removesuffix(".0") for n in sorted(numbers))


def _marks(where: str, item: Item, solution: WorkingSolution) -> Iterator[Fault]:
    known: list[Value] | None = None
    complete = all(line.whole for line in solution.read) and all(question.printed for question in solution.questions)
    for place, text in enumerate(item.marks, 1):
        earned = text.partition("\n")[2]
        if not earned:
            continue
        line = read_line(text, solution.nouns)
        if said := solution.untrue(line):
            yield Fault(f"{where}.marks.{place}", said, "what earns the mark, true as it stands")
            continue
        known = solution.values if known is None else known
        unknown = [one for one in line.statements if not one.relations and not _known(one.sides[0], known)]
        # Of a ± one value may be meant.
        either = re.search(r"±|\\pm\b", earned) and len(unknown) < len(line.statements)
        for one in unknown:
            if complete and not either:
                yield Fault(
                    f"{where}.marks.{place}",
                    f"{one.sides[0].text} is no value of the working or the answer",
                    "what a pupil writes to earn the mark",
                )


def _accepted(where: str, item: Item, solution: WorkingSolution) -> Iterator[Fault]:
    """Find a value in a formula of an accepted answer that neither the working nor the answer has."""
    if not all(line.whole for line in solution.read):
        return
    known = solution.values
    for place, text in enumerate(item.more or (), 1):
        kind, _, said = text.partition(": ")
        if kind not in ("accept", "must") or NOT.search(said):
            continue
        for one in formulas_in(said)[0]:
            side = one.sides[-1]
            if not one.relations and side.node.kind != "letter" and not _known(side, known):
                found = f"{side.text} is no value of the working or the answer"
                yield Fault(f"{where}.more.{place}", found, "what a right answer says", "R")


def _known(side: PrintedSide, known: Sequence[Value]) -> bool:
    """Say whether a value, perhaps with the other sign or before it was rounded, is among others."""
    if not _valued(side.node) or hasattr(side.value, "shape"):
        return True
    if side.value in known:
        return True
    others = [other for other in known if not hasattr(other, "shape")]
    names = {symbol for one in (side.value, *others) for symbol in one.free_symbols}
    at = dict(zip(sorted(names, key=str), map(Integer, (7, 11, 5, 13, 17, 3, 19, 23)), strict=False))
    wanted, off = abs(side.value.xreplace(at)), float(half_place(side)) if side.places else 0.0
    if any("." in part.text for part in side.node.walk()) and not side.places:
        off = abs(signed(wanted)) / 1000
    return any(_same_number(wanted, abs(other.xreplace(at)), off) for other in others)


def _same_number(one: Value, other: Value, off: float = 0.0) -> bool:
    try:
        return equal(one, other) or (off > 0 and abs(signed(one - other)) <= off * 1.001)
    except (NotReadError, TypeError):
        return False


def taught(case: Case) -> Iterator[tuple[str, str]]:
    """Yield the texts that tell facts, with their addresses; beliefs and errors are not among them."""
    lesson = case.lesson
    for name, texts in (("key_points", lesson.key_points), ("keywords", lesson.keywords)):
        yield from ((f"{name}.{place}", text) for place, text in enumerate(texts, 1))
    for place, one in enumerate(lesson.misconceptions, 1):
        yield f"misconceptions.{place}.correction", one.correction
    for number, card in enumerate(lesson.cards, 1):
        if isinstance(card, ExplainerCard):
            yield f"c{number}.text", card.text
            yield f"c{number}.plain", card.plain
    for where, item in lesson.items():
        yield f"{where}.feedback", item.feedback
        yield from ((f"{where}.more", text) for kind in ("accept", "hint", "alternative") for text in item.of(kind))
        if not item.options:
            yield from ((f"{one.where}.answer", one.answer) for one in asked(where, item) if in_words(one.answer))


def _told(case: Case) -> Iterator[tuple[str, str]]:
    """Yield what lines of working say in words."""
    lesson = case.lesson
    found = [(where, item.working) for where, item in lesson.items()]
    for where, working in [*found, *((where, example.working) for where, example in lesson.examples())]:
        for place, line in enumerate(working, 1):
            if not FORMULA.search(words := line.partition("\n")[0]):
                yield f"{where}.working.{place}", words


ROWS: tuple[tuple[int, Severity, str, Check, str], ...] = (
    (14, "B", "every printed line is true and leads to the answer", lines,
     r"Every relation in working, marks, examples, explanations and feedback is true from side to side; \(5.67\) for "
     r"\(5.672\) is written with \approx. A letter keeps its value within a question, and what is put in for it stands "
     "there. What a line works out is used in a later line or is the answer; the last line gives the answer; "
     "what earns a mark is a line or a value of the working. Sums in words are true, too (20 % of 80 is 16), and "
     "numbers in words of working, feedback and accepted answers are those of the question or one step from them (with "
     "an answer in words also an example: such as 4.2). A step in words (divide by 4) names a number of its line. An "
     "answer that feedback speaks of comes from an option, a wrong method or a line. Equations of chemistry are "
     "balanced. What is false on purpose stands in belief, error, why, non_example, or in a sentence with not, wrong, "
     "mistake."),
)  # fmt: skip
