"""Checks do nothing twice and nothing for nothing: counted, never timed."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from pipeline.content import checks_answers, checks_prose, checks_remarks, checks_sizes, checks_working, numbers
from pipeline.content.findings import Case
from pipeline.content.lesson import Lesson
from pipeline.maths import evaluation, statements, sums
from pipeline.maths.notation import statement
from tests.checking import course, lesson_of, scheme_of


def counted(monkeypatch: pytest.MonkeyPatch, module: Any, name: str) -> Counter[str]:
    """Count the calls of a function of a module, by what its first argument says."""
    calls: Counter[str] = Counter()
    real: Callable[..., Any] = getattr(module, name)

    def call(first: Any, *rest: Any) -> Any:
        calls[str(first)] += 1
        return real(first, *rest)

    monkeypatch.setattr(module, name, call)
    return calls


@pytest.fixture
def case() -> Case:
    entries = scheme_of(course(), 18)
    return Case(Lesson.model_validate(lesson_of(course(), entries, 2)), entries[1], course())


def test_a_method_is_calculated_once(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    checks_remarks._value.cache_clear()
    calls = counted(monkeypatch, checks_remarks, "calculated")
    assert list(checks_working.lines(case)) == []
    assert calls
    assert set(calls.values()) == {1}


def test_formulas_of_a_text_are_looked_for_once(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    checks_prose.formulas_in.cache_clear()
    calls = counted(monkeypatch, checks_prose, "formulas")
    assert list(checks_working.lines(case)) == []
    assert calls
    assert set(calls.values()) == {1}


def test_a_number_is_read_once(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers.number_of.cache_clear()
    numbers.numbers_in.cache_clear()
    numbers.numbers_alone.cache_clear()
    calls = counted(monkeypatch, numbers, "Fraction")
    assert [fault for fault in checks_answers.belongs(case) if not fault.severity] == []
    assert calls
    assert set(calls.values()) == {1}


def test_values_of_a_solution_are_listed_once(case: Case) -> None:
    where, item = case.lesson.items()[0]
    solution = checks_working.item_solution(case, where, item)
    assert solution.values is solution.values
    assert set(solution.formula_values) <= set(solution.values)
    assert len(solution.values) == len(set(solution.values)) > 0


def test_a_value_that_is_known_is_compared_no_further(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    compared = counted(monkeypatch, checks_working, "_same_number")
    right, rounded = statement("x^2+3").sides[0], statement("0.3").sides[0]
    assert checks_working._known(right, [rounded.value, right.value])
    assert not compared
    assert not checks_working._known(right, [rounded.value])
    assert compared


def test_numbers_that_stand_in_the_question_are_not_combined(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = counted(monkeypatch, checks_answers, "permutations")
    list(checks_answers.belongs(case))
    asked = [one for _, one in checks_answers.questions(case) if one.expression]
    assert sum(calls.values()) < len(asked) / 2


def test_a_text_without_a_number_is_not_searched_for_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = counted(monkeypatch, checks_sizes, "_of_people")
    compared = counted(monkeypatch, sums, "_false_comparisons")
    for text, searched in (("A door is tall.", False), ("A door is 9 m tall.", True)):
        assert [*checks_sizes.impossible(text)] == (["door is 9 m tall"] if searched else [])
        assert [*sums.false_sums(text)] == []
        assert (bool(calls), bool(compared)) == (searched, searched)


def test_an_equation_follows_from_itself_without_being_solved(monkeypatch: pytest.MonkeyPatch) -> None:
    solved = counted(monkeypatch, statements, "_solved")
    equation = statement("2q^2-11q+13=4")
    assert statements.follows(*equation.sides, equation)
    assert not solved


def test_a_solution_in_one_letter_is_tried_at_two_places(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = counted(monkeypatch, statements, "evaluate")
    left, right = statement("2q^2-11q=-9").sides
    assert statements.follows(left, right, statement("2q^2-11q+13=4"))
    assert sum(calls.values()) == 4
    assert not statements.follows(left, right, statement("2q^2-11q+14=4"))


def test_an_expression_is_walked_once_and_its_names_are_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluation.parsed.cache_clear()
    evaluation.names_in.cache_clear()
    walks = counted(monkeypatch, ast, "walk")
    assert evaluation.names_in("2*q\n+ 3.50") == evaluation.names_in("2*q\n+ 3.50") == {"q"}
    assert evaluation.evaluate("2*q\n+ 3.50", {"q": 4}) == 11.5
    # To check it, and for its names.
    assert sum(walks.values()) == 2
