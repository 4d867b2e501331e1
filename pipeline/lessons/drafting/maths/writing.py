"""Decides how a question is written from one record: its lines of working are also its mark scheme."""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.lessons.drafting.maths.tex import m
from pipeline.lessons.drafting.parts import Example, Json, Question, Step, choice, option

#: (what we do, the line as TeX, the line for code to test).
Line = tuple[str, str, str]
_FOLLOW = "Later marks are open after a slip, as long as the rest is as hard as before."


def step(line: Line) -> Step:
    """Return a line of working."""
    does, tex, check = line
    return Step(does, m(tex) if tex else "", check)


def ask(
    stem: str,
    answer: Json,
    *lines: Line,
    why: str,
    asks: Sequence[int] = (0,),
    reveals: Sequence[int] = (),
    calculator: bool = False,
    hint: str = "",
    one: bool = False,
) -> Question:
    """Return a question with a mark for each line of its working, or one mark in all.

    Args:
        why: Feedback: why the method works.
        one: One mark, for the answer.
    """
    steps = tuple(step(line) for line in lines)
    bullets = tuple((each.does, each.shows or answer["shown"]) for each in steps)
    return Question(
        stem=stem,
        answer=answer,
        working=steps,
        scheme=(("Gives the right answer", answer["shown"]),) if one else bullets,
        feedback=why,
        calculator=calculator,
        asks=tuple(asks),
        reveals=tuple(reveals),
        hints=(hint,) if hint else (),
        follow_through="" if one else _FOLLOW,
    )


def pick(
    stem: str,
    key: tuple[str, str, str],
    *others: tuple[str, str, str, str],
    lines: Sequence[Line],
    why: str,
    asks: Sequence[int] = (0,),
    reveals: Sequence[int] = (0,),
    calculator: bool = False,
) -> Question:
    """Return a multiple-choice question of one mark.

    Args:
        key: (text, value, method).
        others: (text, value, what choosing it shows, mistake number or "").
    """
    text, value, method = key
    right = option(text, why, value=value, method=method)
    wrong = [option(shown, shows, value=worth, mistake=mistake) for shown, worth, shows, mistake in others]
    return ask(
        stem, choice(right, *wrong), *lines, why=why, asks=asks, reveals=reveals, calculator=calculator, one=True
    )


def example(problem: str, answer: str, *lines: Line) -> Example:
    """Return a worked example."""
    return Example(problem=problem, steps=tuple(step(line) for line in lines), answer=answer)


def told(text: str) -> str:
    """Return prose written over several lines as one paragraph."""
    return " ".join(text.split())
