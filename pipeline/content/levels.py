"""What a level demands: command words, steps, length of sentences and words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pipeline.content.names import shown

#: Options enough for a quick check or a starter at any level.
FEWEST_OPTIONS = 3


@dataclass(frozen=True, slots=True)
class LevelRow:
    """Demand and reading limits of one level."""

    #: Command words an outcome may use, easiest first.
    commands: str
    #: Steps in one question, least and most.
    steps: tuple[int, int]
    #: Words in a sentence of an explainer: mean and longest.
    sentence: tuple[int, int]
    #: Words in a sentence of a plain twin: mean and longest.
    plain: tuple[int, int] = (10, 16)
    #: Share of words with three syllables or more, per cent, keywords not counted.
    long_words: int = 15
    #: Options of a multiple-choice question.
    options: int = 4

    def fitting(self, options: int, card: str) -> bool:
        """Say whether a question on a kind of card may have so many options."""
        return options == self.options or (card in ("check", "starter") and options == FEWEST_OPTIONS)


LEVEL_ROWS: Mapping[str, LevelRow] = {
    "national_3": LevelRow(
        "state, identify, name, match, calculate in one step", (1, 2), (10, 18), long_words=8, options=3
    ),
    "national_4": LevelRow("describe, calculate, compare", (2, 3), (12, 20), long_words=12, options=3),
    "national_5": LevelRow("explain, determine, show, justify simply", (2, 5), (14, 24)),
    "higher": LevelRow("justify, derive, evaluate, predict", (3, 6), (18, 28), (12, 18), 20),
    # No figures of its own: read as Higher until somebody measures it.
    "advanced_higher": LevelRow("justify, derive, evaluate, predict, prove", (3, 6), (18, 28), (12, 18), 20),
}
#: Age of learners (years), at most → the row of levels that have none of their own.
_ROWS_BY_AGE = ((12, "national_3"), (14, "national_4"), (16, "national_5"))


def level_row(level: str, age: int | None = None) -> LevelRow:
    """Return the row of a level; a level of another system reads as what learners of its age (years) can do.

    Without a row and without an age it reads as National 5.
    """
    if level in LEVEL_ROWS or age is None:
        return LEVEL_ROWS.get(level, LEVEL_ROWS["national_5"])
    return LEVEL_ROWS[next((name for most, name in _ROWS_BY_AGE if age <= most), "higher")]


def level_text(level: str, age: int | None = None) -> str:
    """Return the row as the prompts carry it."""
    row = level_row(level, age)
    return "\n".join(
        (
            f"Level: {shown(level)}." + (f" Learners are about {age} years old." if age is not None else ""),
            f"- Command words up to: {row.commands}.",
            f"- Steps in one question: {row.steps[0]} to {row.steps[1]}.",
            f"- Explainer sentences: {row.sentence[0]} words on average, {row.sentence[1]} at most;"
            f" at most {row.long_words} % of the words with three or more syllables, keywords not counted.",
            f"- Plain twin sentences: {row.plain[0]} words on average, {row.plain[1]} at most;"
            " at most 6 % of the words with three or more syllables.",
            f"- Multiple choice: {row.options} options"
            + (f"; {FEWEST_OPTIONS} will do in quick checks and starters." if row.options > FEWEST_OPTIONS else "."),
        )
    )
