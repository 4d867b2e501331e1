"""A question with its numbers: what pupils and teachers read, computed where it is printed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pipeline.lessons.bank import printing
from pipeline.lessons.bank.source import Text
from pipeline.lessons.maths.evaluation import evaluate
from pipeline.lessons.maths.units import printed

if TYPE_CHECKING:
    from pipeline.lessons.bank.template import Template

_NAME = re.compile(r"(?<![\w.])[A-Za-zΑ-ω]\w*(?!\w*\()")
_ROOTS = re.compile(r"roots\(([^,]+), *\w+\)")
#: Where a line of working goes on with its mathematics.
_LINE = re.compile(r"(?<=[.:?]) (?=\\\()| \| ")
#: Keys of a question that become texts of `more`, and their names there.
_MORE = {"accept": "accept", "must": "must", "reject": "reject", "alternative": "alternative",
         "follow": "follow_through", "hint": "hint"}  # fmt: skip


class Skip(Exception):
    """These numbers give no question."""


@dataclass(frozen=True)
class Answer:
    """A right or wrong answer: value (None for words), how it is printed, the calculation over the stem's numbers."""

    value: Any
    text: str
    expression: str
    spec: Mapping[str, Any]


class Instance:
    """One question, ready to print."""

    def __init__(
        self, template: Template, values: dict[str, Any], names: dict[str, str], place: int, seed: str
    ) -> None:
        self.template, self.values, self.place, self.seed = template, {**values, **names}, place, seed
        self.id, self.level, self.marks = template.id, template.level, template.marks
        self._computed: dict[str, Any] = {}

    def check(self) -> None:
        """Make sure that these numbers give a question.

        Raises:
            Skip: Two answers are the same, or the figure cannot be read.
        """
        texts = [answer.text for answer in (*self.right[:1], *self.wrong)]
        if len(set(texts)) < len(texts):
            twice = next(answer for answer in self.wrong if texts.count(answer.text) > 1)
            twins = [self._code(one) for one in (*self.right[:1], *self.wrong) if one.text == twice.text]
            raise Skip(f"the same: {' and '.join(twins)}")
        for figure in self.figures:
            from pipeline.publish.drawing.figure import faults

            if found := faults(figure):
                raise Skip(f"figure: {found[0]}")

    def _code(self, answer: Answer) -> str:
        return str(answer.spec.get("is") or answer.spec.get("answer") or answer.text)

    @cached_property
    def right(self) -> list[Answer]:
        """Return the right answers: one, or one a part."""
        return [self._answer(spec, spec.get("answer"), spec.get("words")) for spec in self.template.answers()]

    @cached_property
    def wrong(self) -> list[Answer]:
        """Return the wrong answers, printed as the right one is."""
        like = {key: value for key, value in self.template.spec.items() if key in ("form", "unit", "lead")}
        return [
            self._answer({**like, **spec}, spec.get("is"), spec.get("text"), wrong=True)
            for spec in self.template.spec.get("wrong", ())
        ]

    def _answer(self, spec: Mapping[str, Any], code: Text | None, words: Text | None, *, wrong: bool = False) -> Answer:
        if code is None:
            return Answer(None, self.text(words or ""), "", spec)
        value = self.template.at(code, lambda: self.value(code))
        if "as" in spec:
            text = self.text(spec["as"])
        else:
            text = self.template.at(code, lambda: self._printed(value, spec, wrong))
        written = "" if wrong else spec.get("expression", "")
        return Answer(value, text, self.calculation(written or code), spec)

    def _printed(self, value: Any, spec: Mapping[str, Any], wrong: bool) -> str:
        form, lead, unit = spec.get("form", ""), spec.get("lead", ""), spec.get("unit", "")
        values = value if isinstance(value, list) else [value]
        if not values:
            raise Skip("no solution")
        if wrong and not form and not self.template.setting.fractions:
            form = "3 sf" if any(endless(part) for part in values) else ""
        texts = [printing.shown_value(part, form, fractions=self.template.setting.fractions) for part in values]
        if lead:
            text = " or ".join(rf"\({lead} {printing.inside(text)}\)" for text in texts)
        else:
            text = " or ".join(map(printing.prose, texts))
        return text + ("" if not unit else printed(unit) if unit == "°" else f" {printed(unit)}")

    def value(self, code: str) -> Any:
        """Return the value of an expression with these numbers."""
        if code not in self._computed:
            self._computed[code] = evaluate(code, self.values, self.template.setting.letters)
        return self._computed[code]

    def text(self, text: str, *, figure: bool = False) -> str:
        """Return a text of the template with its expressions printed."""
        return printing.filled(text, lambda piece: self._shown(piece, text), figure=figure)

    def _shown(self, piece: printing.Piece, text: str) -> str:
        if isinstance(known := self.values.get(piece.code), str):
            return printing.Words(known)
        value = self.template.at(text, lambda: self.value(piece.code))
        fractions = self.template.setting.fractions
        return self.template.at(text, lambda: printing.shown_value(value, piece.form, fractions=fractions))

    def calculation(self, text: str) -> str:
        """Return an expression with the stem's numbers in the place of names."""
        formulas = self.template.space.formulas

        def number(name: str) -> str:
            if name not in self.values:
                return name
            if name in formulas and name not in self.template.seen:
                return self.calculation(formulas[name])
            return printing.code(self.values[name])

        written = _NAME.sub(lambda found: found[0] if found[0] == text else _bracketed(number(found[0])), text)
        written = number(text) if written == text else written
        equation = _ROOTS.fullmatch(written)
        return f"{equation[1]} = 0" if equation else written

    @cached_property
    def figures(self) -> list[dict[str, Any]]:
        """Return the figures as a lesson has them."""
        return [
            {
                "kind": str(figure["kind"]),
                "lines": [f"{key}: {self.text(value, figure=True)}" for key, value in figure.items() if key != "kind"],
            }
            for figure in self.template.figures()
        ]

    @cached_property
    def ask(self) -> str:
        """Return the stem."""
        return self.text(self.template.spec["stem"])

    @cached_property
    def key(self) -> tuple[str, ...]:
        """Return the question's id and what it shows, without names: two instances with one key are one question."""
        people = self.template.space.people
        shown = [
            self._shown(piece, text)
            for text in self.template.stem_texts()
            for piece in printing.pieces(text)
            if piece.code and piece.code not in people
        ]
        return (self.id, *sorted(shown or (one.text for one in (*self.right, *self.wrong))))

    @property
    def origin(self) -> dict[str, Any]:
        """Return what leads back to this question: its id, seed, place, and a hash that an edit changes."""
        return {"question": self.id, "seed": self.seed, "place": self.place, "hash": self.template.hash}

    @cached_property
    def working(self) -> list[str]:
        """Return the lines of working: what we do, a line break, the line of mathematics."""
        return [_LINE.sub("\n", self.text(line), count=1) for line in self.template.spec["working"]]

    @cached_property
    def scheme(self) -> list[str]:
        """Return a text for each mark: why, and what earns it where that is not the answer."""
        answers = {answer.text for answer in self.right}
        found = []
        for line in self.template.spec["marks"]:
            why, _, earns = self.text(line).partition(" | ")
            found.append(f"{why}\n{earns}" if earns and earns not in answers else why)
        return found

    @property
    def feedback(self) -> str:
        """Return why the answer is so."""
        return self.text(self.template.spec["feedback"]) if "feedback" in self.template.spec else _words(self.working)

    def item(self, tests: Iterable[str], mistakes: Mapping[str, int] | None = None) -> dict[str, Any]:
        """Return the question as a lesson has it.

        Args:
            tests: What it is for: "point 2", "prior 1".
            mistakes: Numbers of the lesson's misconceptions by their ids here.
        """
        numbers, spec = mistakes or {}, self.template.spec
        made: dict[str, Any] = {"tests": list(tests)}
        if "parts" in spec:
            made["parts"] = [
                _present(expression=one.expression, answer=one.text, ask=self.text(one.spec["ask"]))
                for one in self.right
            ]
        else:
            made |= _present(expression=self.right[0].expression)
            if self.template.kind == "choice":
                made["options"] = self._options(numbers)
            else:
                made["answer"] = self.right[0].text
                wrong = [one for one in self.wrong if one.value is not None]
                made |= _present(
                    wrong=[
                        {"method": one.expression, "error": self.text(one.spec["why"]), **_mistake(one, numbers)}
                        for one in wrong
                    ]
                )
        made |= {"working": self.working, "marks": self.scheme, "feedback": self.feedback}
        return {**made, **_present(more=self._more(), figures=self.figures), "ask": self.ask}

    def _options(self, numbers: Mapping[str, int]) -> list[dict[str, Any]]:
        right = self.right[0]
        return [
            {"text": right.text, "why": self.feedback},
            *(
                {"text": one.text, "why": self.text(one.spec["why"]), **_present(method=one.expression),
                 **_mistake(one, numbers)}
                for one in self.wrong
            ),
        ]  # fmt: skip

    def _more(self) -> list[str]:
        spec = self.template.spec
        texts = [(name, text) for key, name in _MORE.items() for text in _listed(spec.get(key, []))]
        if self.template.kind != "choice":
            texts += [("reject", f"{one.spec['text']}") for one in self.wrong if one.value is None]
        return [f"{name}: {self.text(text)}" for name, text in texts]

    def example(self) -> dict[str, Any]:
        """Return the question as a worked example."""
        answer = self.right[0].text if len(self.right) == 1 else ""
        told = printing.plain(answer) in printing.plain(self.working[-1])
        return {
            "working": self.working,
            **_present(answer="" if told else answer, figures=self.figures),
            "ask": self.ask,
        }


def endless(value: Any) -> bool:
    """Say whether a number has no end as a decimal."""
    if isinstance(value, Fraction):
        return (10**12 * value).denominator != 1
    return not isinstance(value, tuple | list) and bool(value.is_number)


def _bracketed(code: str) -> str:
    return code if re.fullmatch(r"[\w.]+", code) else f"({code})"


def _words(working: list[str]) -> str:
    return working[0].replace("\n", " ")


def _mistake(answer: Answer, numbers: Mapping[str, int]) -> dict[str, int]:
    by = answer.spec.get("by")
    return {"mistake": numbers[by]} if by in numbers else {}


def _present(**fields: Any) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if value}


def _listed(texts: Any) -> list[Text]:
    return [texts] if isinstance(texts, Text) else list(texts)
