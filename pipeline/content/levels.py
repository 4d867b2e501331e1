"""What a level demands, by the framework of its course: command words, steps, length of sentences and words."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from pipeline.content.names import shown
from pipeline.frameworks import FEWEST_OPTIONS, LevelRow, framework_of


def level_row(course: Mapping[str, Any]) -> LevelRow:
    """Return the row of a course's level, by its name or the age of its learners."""
    return framework_of(course).row(str(course["level"]), course.get("age"))


def level_text(course: Mapping[str, Any], unasked: Collection[str] = ()) -> str:
    """Return the row as the prompts carry it; `unasked`: command words that do not suit the subject."""
    row, age = level_row(course), course.get("age")
    commands = ", ".join(word for word in row.commands.split(", ") if word not in unasked)
    return "\n".join(
        (
            f"Level: {shown(course['level'])}." + (f" Learners are about {age} years old." if age is not None else ""),
            f"- Command words up to: {commands}.",
            f"- Steps in one question: {row.steps[0]} to {row.steps[1]}.",
            f"- Explainer sentences: {row.sentence[0]} words on average, {row.sentence[1]} at most;"
            f" at most {row.long_words} % of the words with three or more syllables, keywords not counted.",
            f"- Plain twin sentences: {row.plain[0]} words on average, {row.plain[1]} at most;"
            " at most 6 % of the words with three or more syllables.",
            f"- Multiple choice: {row.options} options"
            + (f"; {FEWEST_OPTIONS} will do in quick checks and starters." if row.options > FEWEST_OPTIONS else "."),
        )
    )
