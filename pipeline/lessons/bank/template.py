"""A question as its author wrote it, with the space of its numbers; draws instances in an order the seed decides."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

from pipeline.lessons.bank import printing
from pipeline.lessons.bank.instance import Instance, Skip
from pipeline.lessons.bank.source import Fault, Mapping, Text
from pipeline.lessons.bank.space import Space, digest, permuted
from pipeline.lessons.maths.evaluation import EvaluationError, UndefinedValue, evaluate, holds, names_in

_T = TypeVar("_T")
#: A walk ends after so many places in a row that give nothing.
MAX_BARREN = 3_000
#: Why a value may be missing for some numbers only; anything else is a fault of the template.
_SKIPPED = frozenset(("not_real", "no_such_item", "no_mode"))


@dataclass(frozen=True)
class Setting:
    """What all questions of a topic share."""

    topic: str
    letters: str = ""
    fractions: bool = False
    calculator: bool = True


@dataclass
class Walk:
    """How far the order of one seed has been followed: the instances found, and why other places gave none."""

    found: list[Instance] = field(default_factory=list)
    keys: set[tuple[str, ...]] = field(default_factory=set)
    place: int = 0
    barren: int = 0
    skipped: Counter[str] = field(default_factory=Counter)


class Template:
    """One example, starter or question of a topic."""

    def __init__(self, setting: Setting, spec: Mapping, name: str) -> None:
        fractions = spec.get("numbers", "fraction" if setting.fractions else "decimal") == "fraction"
        self.setting, self.spec = replace(setting, fractions=fractions), spec
        self.id = str(spec.get("id", name))
        self.kind = str(spec.get("kind", ""))
        self.level, self.prior = int(spec.get("level", 1)), int(spec.get("prior", 1))
        self.asks = tuple(int(number) for number in spec.get("asks", "").replace(",", " ").split())
        self.calculator = spec["calculator"] == "yes" if "calculator" in spec else setting.calculator
        self.marks = len(spec["marks"])
        self.mistakes = frozenset(str(wrong["by"]) for wrong in spec.get("wrong", ()) if "by" in wrong)
        try:
            self.space = Space(spec.get("let", Mapping()))
        except Fault as fault:
            raise Fault(fault.line, f"{self.id}: {fault.reason}") from None
        self._walks: dict[tuple[str, int], Walk] = {}

    def draw(self, n: int, seed: object = "", *, skip: int = 0) -> Instance:
        """Return the n-th admissible instance in the order of a seed; after the last the first comes again.

        Args:
            n: From 0.
            seed: Whose order.
            skip: Places of that order that are passed over first; the order goes on at its beginning.

        Raises:
            Fault: No numbers fit, or an expression is wrong.
        """
        walk = self.walk(n + 1, seed, skip)
        if not walk.found:
            raise Fault(self.spec.line, f"{self.id}: no numbers fit{self._reason(walk)}")
        return walk.found[n % len(walk.found)]

    def walk(self, count: int, seed: object = "", skip: int = 0) -> Walk:
        """Return the walk of a seed, followed until it has found so many instances or has ended."""
        walk = self._walks.setdefault((str(seed), skip % self.space.size), Walk())
        while len(walk.found) < count and walk.place < self.space.size and walk.barren < MAX_BARREN:
            self._step(walk, str(seed), skip)
        return walk

    def _step(self, walk: Walk, seed: str, skip: int) -> None:
        key = f"{self.setting.topic}|{self.id}|{seed}"
        place = permuted((walk.place + skip) % self.space.size, self.space.size, key)
        walk.place += 1
        walk.barren += 1
        try:
            values = self.space.at(place, self.compute)
            if not all(
                self.at(text, lambda text=text: self._holds(text, values)) for text in self.spec.get("where", ())
            ):
                raise Skip("where")
            instance = Instance(self, values, self.space.named(len(walk.found), key), place, seed)
            instance.check()
        except Skip as skip:
            walk.skipped[str(skip)] += 1
            return
        if instance.key in walk.keys:
            walk.skipped["repeat"] += 1
            return
        walk.keys.add(instance.key)
        walk.found.append(instance)
        walk.barren = 0

    def compute(self, text: str, values: dict[str, Any]) -> Any:
        """Return the value of an expression; a fault names the line where the text stands."""
        return self.at(text, lambda: evaluate(text, values, self.setting.letters))

    def _holds(self, text: str, values: dict[str, Any]) -> bool:
        return holds(text, values, self.setting.letters)

    def at(self, text: str, do: Callable[[], _T]) -> _T:
        """Return what `do` gives; say of a fault the line of a text and the question's id.

        Raises:
            Fault: The expression is wrong.
            Skip: It has no value for these numbers.
        """
        try:
            return do()
        except EvaluationError as error:
            if isinstance(error, UndefinedValue) and error.code in _SKIPPED:
                raise Skip(str(error)) from None
            raise Fault(getattr(text, "line", self.spec.line), f"{self.id}: {error}") from None

    def _reason(self, walk: Walk) -> str:
        if not walk.skipped:
            return ""
        why, count = walk.skipped.most_common(1)[0]
        return f"; always {why}" if count == walk.skipped.total() else f"; mostly {why} ({count} of {walk.place:,})"

    @cached_property
    def hash(self) -> str:
        """Return what changes when the question is edited."""
        return f"{digest(repr(self.spec), self.setting) >> 192:016x}"

    def stem_texts(self) -> Iterator[Text]:
        """Yield the texts that put numbers before the pupil: stem, parts, figures."""
        yield self.spec["stem"]
        for part in self.spec.get("parts", ()):
            yield part["ask"]
        for figure in self.figures():
            yield from (value for key, value in figure.items() if key != "kind")

    def figures(self) -> list[Mapping]:
        """Return the figures as written."""
        figure = self.spec.get("figure", [])
        return [figure] if isinstance(figure, Mapping) else list(figure)

    @cached_property
    def seen(self) -> frozenset[str]:
        """Return the names that stand in the stem, in a part or a figure themselves."""
        found: set[str] = set()
        for text in self.stem_texts():
            for code in (piece.code for piece in printing.pieces(text) if piece.code):
                found |= {code} if code in self.space.people else self.at(text, lambda code=code: names_in(code))
        return frozenset(found)

    def answers(self) -> list[Mapping]:
        """Return where right answers stand: the question itself, or its parts."""
        return list(self.spec.get("parts", [self.spec]))
