"""A question with its numbers: what pupils and teachers read, computed where it is printed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any

from pipeline.bank.space import digest
from pipeline.bank.text import PlainWords, TextPiece, filled, pieces
from pipeline.bank.yaml_text import YamlText
from pipeline.drawing.figure import faults
from pipeline.maths.display import code, endless, inside, plain, prose, shown_value
from pipeline.maths.evaluation import evaluate
from pipeline.maths.units import printed

if TYPE_CHECKING:
    from pipeline.bank.template import Template

_NAME = re.compile(r"(?<![\w.])[A-Za-zΑ-ω]\w*(?!\w*\()")
_ROOTS = re.compile(r"^roots\(([^,]+), *\w+\)$")
#: Where a line of working goes on with its mathematics.
_LINE = re.compile(r"(?<=[.:?]) (?=\\\()| \| ")
#: Keys of a question that become texts of `more`, and their names there.
_MORE = {"accept": "accept", "must": "must", "reject": "reject", "alternative": "alternative",
         "follow": "follow_through", "hint": "hint"}  # fmt: skip


class Skip(Exception):
    """These numbers give no question."""


@dataclass(frozen=True)
class DrawnAnswer:
    """A right or wrong answer."""

    #: None for words.
    value: Any
    #: As printed.
    text: str
    code: YamlText
    #: The calculation over the stem's numbers.
    expression: str
    spec: Mapping[str, Any]


class Instance:
    """One question, ready to print."""

    def __init__(self, template: Template, values: dict[str, Any], place: int, seed: str) -> None:
        self.template, self.values, self.place, self.seed = template, values, place, seed
        self.id, self.level, self.marks = template.id, template.level, template.marks
        self._computed: dict[str, Any] = {}

    def check(self) -> None:
        """Make sure that these numbers give a question.

        Raises:
            Skip: Two answers are the same, or the figure cannot be read.
        """
        for one, other in combinations([*self.right[:1], *self.wrong], 2):
            if one.text == other.text:
                raise Skip(f"the same: {one.code} and {other.code}")
        for figure in self.figures:
            if found := faults(figure):
                raise Skip(f"figure: {found[0]}")

    @cached_property
    def right(self) -> list[DrawnAnswer]:
        """Return the right answers: one, or one a part."""
        return [self._answer(spec, "answer", "words") for spec in self.template.answers]

    @cached_property
    def wrong(self) -> list[DrawnAnswer]:
        """Return the wrong answers, printed as the right one is."""
        like = {key: value for key, value in self.template.spec.items() if key in ("form", "unit", "lead")}
        return [self._answer({**like, **spec}, "is", "text") for spec in self.template.spec.get("wrong", ())]

    def _answer(self, spec: Mapping[str, Any], key: str, words: str) -> DrawnAnswer:
        if words in spec:
            return DrawnAnswer(None, self.text(spec[words]), spec[words], "", spec)
        code = spec[key]
        with self.template.blaming(code):
            value = self.value(code)
            text = self.text(spec["as"]) if "as" in spec else self._printed(value, spec, wrong=key == "is")
            return DrawnAnswer(value, text, code, self.calculation(spec.get("expression", code)), spec)

    def _printed(self, value: Any, spec: Mapping[str, Any], *, wrong: bool) -> str:
        form, lead, unit = spec.get("form", ""), spec.get("lead", ""), spec.get("unit", "")
        values, fractions = value if isinstance(value, list) else [value], self.template.fractions
        if not values:
            raise Skip("no solution")
        if wrong and not form and not fractions and any(map(endless, values)):
            form = "3 sf"
        texts = [shown_value(part, form, fractions=fractions) for part in values]
        texts = [rf"\({lead} {inside(text)}\)" if lead else prose(text) for text in texts]
        return " or ".join(texts) + " " * (unit not in ("", "°")) + printed(unit)

    def value(self, code: str) -> Any:
        """Return the value of an expression with these numbers."""
        if code not in self._computed:
            self._computed[code] = evaluate(code, self.values, self.template.letters)
        return self._computed[code]

    def text(self, text: str, *, figure: bool = False) -> str:
        """Return a text of the template with its expressions printed."""
        with self.template.blaming(text):
            return filled(text, self._shown, figure=figure)

    def _shown(self, piece: TextPiece) -> str:
        if isinstance(known := self.values.get(piece.code), str):
            return PlainWords(known)
        return shown_value(self.value(piece.code), piece.form, fractions=self.template.fractions)

    def calculation(self, text: str) -> str:
        """Return an expression with the stem's numbers in the place of names; `roots(e, x)` becomes e = 0."""
        formulas = self.template.space.formulas

        def number(name: str) -> str:
            if name in formulas and name not in self.template.seen:
                return self.calculation(formulas[name])
            return code(self.values[name]) if name in self.values else name

        if text in self.values:
            return number(text)
        written = _NAME.sub(lambda found: _bracketed(number(found[0])), text)
        return _ROOTS.sub(r"\1 = 0", written)

    @cached_property
    def figures(self) -> list[dict[str, Any]]:
        """Return the figures as a lesson has them."""
        made = []
        for figure in self.template.figures:
            lines = [f"{key}: {self.text(text, figure=True)}" for key, text in figure.items() if key != "kind"]
            made.append({"kind": str(figure["kind"]), "lines": lines})
        return made

    @cached_property
    def ask(self) -> str:
        """Return the stem."""
        return self.text(self.template.spec["stem"])

    @cached_property
    def key(self) -> tuple[str, ...]:
        """Return the question's id and what it shows, without names: two instances with one key are one question."""
        people, shown = self.template.space.people, []
        for text in self.template.stem_texts():
            with self.template.blaming(text):
                shown += [self._shown(piece) for piece in pieces(text) if piece.code and piece.code not in people]
        return (self.id, *sorted(shown or (one.text for one in (*self.right, *self.wrong))))

    @property
    def origin(self) -> dict[str, Any]:
        """Return what leads back to this question: its id, seed, place, and a hash that an edit changes."""
        edited = f"{digest(self.template.topic['topic'], self.template.spec) >> 192:016x}"
        return {"question": self.id, "seed": self.seed, "place": self.place, "hash": edited}

    @cached_property
    def working(self) -> list[str]:
        """Return the lines of working: what we do, a line break, the line of mathematics."""
        return [_LINE.sub("\n", self.text(line), count=1) for line in self.template.spec["working"]]

    @cached_property
    def scheme(self) -> list[str]:
        """Return a text for each mark: why, and what earns it where that is not the answer."""
        found = []
        for line in self.template.spec["marks"]:
            why, _, earns = self.text(line).partition(" | ")
            found.append(why if earns in ("", *(answer.text for answer in self.right)) else f"{why}\n{earns}")
        return found

    @property
    def feedback(self) -> str:
        """Return why the answer is so."""
        spec = self.template.spec
        return self.text(spec["feedback"]) if "feedback" in spec else self.working[0].replace("\n", " ")

    def item(self, tests: Iterable[str], mistakes: Mapping[str, int] | None = None) -> dict[str, Any]:
        """Return the question as a lesson has it.

        Args:
            tests: What it is for: "point 2", "prior 1".
            mistakes: Numbers of the lesson's misconceptions by their ids here.
        """
        right, made = self.right[0], dict[str, Any](tests=list(tests))
        choice = self.template.kind == "choice"
        wrong = [
            _present(**{"method": one.expression, "text": one.text if choice else "",
                        "why" if choice else "error": self.text(one.spec["why"]),
                        "mistake": (mistakes or {}).get(one.spec.get("by", ""))})
            for one in self.wrong if choice or one.expression
        ]  # fmt: skip
        if "parts" in self.template.spec:
            made["parts"] = [
                _present(expression=one.expression, answer=one.text, ask=self.text(one.spec["ask"]))
                for one in self.right
            ]
        elif choice:
            options = [{"text": right.text, "why": self.feedback}, *wrong]
            made |= _present(expression=right.expression, options=options)
        else:
            made |= _present(expression=right.expression, answer=right.text, wrong=wrong)
        made |= {"working": self.working, "marks": self.scheme, "feedback": self.feedback}
        return {**made, **_present(more=self._more(), figures=self.figures), "ask": self.ask}

    def _more(self) -> list[str]:
        spec = self.template.spec
        texts = [(name, self.text(text)) for key, name in _MORE.items() for text in spec.get(key, ())]
        if self.template.kind != "choice":
            texts += [("reject", one.text) for one in self.wrong if one.value is None]
        return [f"{name}: {text}" for name, text in texts]

    def example(self) -> dict[str, Any]:
        """Return the question as a worked example."""
        answer = self.right[0].text if len(self.right) == 1 else ""
        told = plain(answer) in plain(self.working[-1])
        extra = _present(answer="" if told else answer, figures=self.figures)
        return {"working": self.working, **extra, "ask": self.ask}


def _bracketed(number: str) -> str:
    return number if re.fullmatch(r"[\w.]+", number) else f"({number})"


def _present(**fields: Any) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if value}
