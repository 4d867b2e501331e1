"""Decides chance for the offline author: the same course, lesson and purpose always draw the same numbers and names."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

PEOPLE = (
    "Ailsa", "Callum", "Eilidh", "Fraser", "Iona", "Rory", "Zainab", "Kacper", "Priya", "Mairi", "Yusuf", "Skye",
    "Lewis", "Aisha", "Finlay", "Sofia", "Ravi", "Catriona", "Omar", "Kirsty", "Mateusz", "Nadia", "Ewan", "Mei",
    "Struan", "Amina", "Isla", "Jakub", "Chidi", "Morven",
)  # fmt: skip
PLACES = (
    "Oban", "Stornoway", "Paisley", "Dundee", "Inverness", "Kirkwall", "Lerwick", "Ayr", "Dumfries", "Perth",
    "Stirling", "Falkirk", "Galashiels", "Elgin", "Fort William", "Glenrothes", "Motherwell", "Arbroath", "Peebles",
    "Thurso", "Greenock", "Aviemore", "Portree",
)  # fmt: skip


class Draw:
    """A source of choices with a name of its own; never the clock, never a shared generator."""

    def __init__(self, *purpose: object) -> None:
        # A text seed gives the same sequence in every process and version of Python.
        self._random = random.Random("|".join(str(part) for part in purpose))
        self._next_pair = self.whole(0, 689)

    def whole(self, low: int, high: int) -> int:
        """Return a whole number from low to high, both possible."""
        return self._random.randint(low, high)

    def nonzero(self, low: int, high: int) -> int:
        """Return a whole number from low to high, but not nought."""
        return self.one([number for number in range(low, high + 1) if number])

    def one(self, choices: Sequence[T]) -> T:
        """Return one of the choices."""
        return choices[self._random.randrange(len(choices))]

    def some(self, choices: Sequence[T], count: int) -> list[T]:
        """Return so many different choices, in drawn order."""
        return self._random.sample(list(choices), count)

    def pair(self) -> tuple[str, str]:
        """Return a person and a town; the same pair comes back only after 690 others."""
        self._next_pair += 1
        # 30 and 23 have no common factor, so the two cycles meet again only after their product.
        return PEOPLE[self._next_pair % len(PEOPLE)], PLACES[self._next_pair % len(PLACES)]

    def person(self) -> str:
        """Return a first name."""
        return self.one(PEOPLE)

    def place(self) -> str:
        """Return a town."""
        return self.one(PLACES)
