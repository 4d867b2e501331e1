"""A question as its author wrote it, with the space of its numbers; draws instances in an order the seed decides."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property

from pipeline.bank.instance import Instance, Skip
from pipeline.bank.space import Space, permuted
from pipeline.bank.text import pieces
from pipeline.bank.yaml_text import YamlFault, YamlMap, YamlText
from pipeline.maths.evaluation import EvaluationError, UndefinedValue, holds, names_in

#: A walk ends after so many places in a row that give nothing.
MAX_BARREN = 3_000
#: Why a value may be missing for some numbers only; anything else is a fault of the template.
_SKIPPED = frozenset(("not_real", "no_such_item", "no_mode"))


@dataclass
class Walk:
    """Follow an order of draws: the instances found so far, and why other places gave none."""

    found: list[Instance] = field(default_factory=list)
    keys: set[tuple[str, ...]] = field(default_factory=set)
    place: int = 0
    barren: int = 0
    skipped: Counter[str] = field(default_factory=Counter)

    def why(self) -> str:
        """Return why most of the places that gave nothing did so; there are some."""
        reason, count = self.skipped.most_common(1)[0]
        return f"always {reason}" if count == self.place else f"mostly {reason} ({count} of {self.place:,})"


class Template:
    """One example, starter or question of a topic."""

    def __init__(self, topic: YamlMap, spec: YamlMap, name: str) -> None:
        self.topic, self.spec = topic, spec
        self.id, self.kind = str(spec.get("id", name)), str(spec.get("kind", ""))
        self.letters = str(topic.get("letters", ""))
        self.fractions = spec.get("numbers", topic.get("numbers")) == "fraction"
        self.calculator = spec.get("calculator", topic.get("calculator")) != "no"
        self.level, self.prior = int(spec.get("level", 1)), int(spec.get("prior", 1))
        self.asks = tuple(int(number) for number in spec.get("asks", "").replace(",", " ").split())
        self.marks = len(spec["marks"])
        self.mistakes = frozenset(str(wrong["by"]) for wrong in spec.get("wrong", ()) if "by" in wrong)
        #: Where right answers stand: the question itself, or its parts.
        self.answers: list[YamlMap] = list(spec.get("parts", [spec]))
        figures = spec.get("figure", [])
        self.figures: list[YamlMap] = [figures] if isinstance(figures, YamlMap) else list(figures)
        self.space = Space(spec.get("let", YamlMap()))
        self._walks: dict[tuple[str, int], Walk] = {}
        #: Lessons are drawn in threads; the n-th instance of a walk is the same in any order.
        self._lock = threading.Lock()

    def draw(self, n: int, seed: object = "", *, skip: int = 0) -> Instance:
        """Return the n-th admissible instance in the order of a seed; after the last the first comes again.

        Args:
            skip: Places of that order that are passed over first; the order goes on at its beginning.

        Raises:
            YamlFault: No numbers fit, or an expression is wrong.
        """
        walk = self.walk(n + 1, seed, skip)
        if not walk.found:
            raise YamlFault(self.spec.line, f"{self.id}: no numbers fit; {walk.why()}")
        return walk.found[n % len(walk.found)]

    def walk(self, count: int, seed: object = "", skip: int = 0) -> Walk:
        """Return the walk of a seed, followed until it has found so many instances or has ended."""
        with self._lock:
            walk = self._walks.setdefault((str(seed), skip % self.space.size), Walk())
            while len(walk.found) < count and walk.place < self.space.size and walk.barren < MAX_BARREN:
                try:
                    instance = self._at(walk, str(seed), skip)
                    walk.keys.add(instance.key)
                    walk.found.append(instance)
                    walk.barren = 0
                except Skip as reason:
                    walk.skipped[str(reason)] += 1
            return walk

    def _at(self, walk: Walk, seed: str, skip: int) -> Instance:
        key = f"{self.topic['topic']}|{self.id}|{seed}"
        place = permuted((walk.place + skip) % self.space.size, self.space.size, key)
        walk.place += 1
        walk.barren += 1
        drawn = self.space.drawn(place) | self.space.named(len(walk.found), key)
        instance = Instance(self, drawn, place, seed)
        for name, formula in self.space.formulas.items():
            with self.blaming(formula):
                instance.values[name] = instance.value(formula)
        for text in self.spec.get("where", ()):
            with self.blaming(text):
                if not holds(text, instance.values, self.letters):
                    raise Skip("where")
        instance.check()
        if instance.key in walk.keys:
            raise Skip("repeat")
        return instance

    @contextmanager
    def blaming(self, text: str) -> Iterator[None]:
        """Say of a fault the line of a text and the question's id.

        Raises:
            YamlFault: The expression is wrong.
            Skip: It has no value for these numbers.
        """
        try:
            yield
        except EvaluationError as error:
            if isinstance(error, UndefinedValue) and error.code in _SKIPPED:
                raise Skip(str(error)) from None
            raise YamlFault(getattr(text, "line", self.spec.line), f"{self.id}: {error}") from None

    def stem_texts(self) -> list[YamlText]:
        """Return the texts that put numbers before the pupil: stem, parts, figures."""
        lines = [text for figure in self.figures for key, text in figure.items() if key != "kind"]
        return [self.spec["stem"], *(part["ask"] for part in self.spec.get("parts", ())), *lines]

    @cached_property
    def seen(self) -> frozenset[str]:
        """Return the names that stand in the stem, in a part or a figure themselves."""
        return self.names(self.stem_texts())

    def names(self, texts: list[YamlText]) -> frozenset[str]:
        """Return the names in the expressions of texts."""
        found: set[str] = set()
        for text in texts:
            with self.blaming(text):
                for code in (piece.code for piece in pieces(text) if piece.code):
                    found |= {code} if code in self.space.people else names_in(code)
        return frozenset(found)
