"""Two printed answers: the same, another, or not for code to say."""

from __future__ import annotations

import pytest

from pipeline.lessons.blind import opposed
from pipeline.maths.comparison import same_answer

SIGNIFICANT = "Give it to two significant figures."


@pytest.mark.parametrize(
    ("key", "answer", "ask", "same"),
    [
        ("0.038 cm", "0.038 cm", "", True),
        ("0.038 cm", "0.38 mm", "", True),
        ("0.038 cm", "0.03847", SIGNIFICANT, True),
        ("0.038 cm", "0.039 cm", SIGNIFICANT, False),
        ("0.038 cm", "0.038 kg", "", False),
        ("£12.50", "12.5", "", True),
        ("£12.50", "£12.05", "", False),
        (r"\(3\sqrt{5}\)", r"\(\sqrt{45}\)", "", True),
        (r"\(\frac{1}{3}\)", "0.33", "", True),
        ("20 s", "18 s", "", False),
        ("90,500", "90,480", "Round it to the nearest hundred.", True),
        ("x = 2 or x = −3", "x = -3 or x = 2", "", True),
        ("x = 2 or x = −3", "x = 2", "", False),
        ("x = 5", "5", "", True),
        ("x = 5", "y = 5", "", False),
        (r"\(x>2\)", r"\(2<x\)", "", True),
        (r"\(x>2\)", r"\(x\geq 2\)", "", False),
        (r"\(25x^3\)", r"\((5x)^2x\)", "", True),
        (r"\(25x^3\)", r"\(10x^3\)", "", False),
        (r"\(2.1\times 10^{10}\)", "21 000 000 000", "", True),
        ("It is lower on average.", "The mean is lower.", "", None),
        ("12 cm", "See the working.", "", None),
    ],
)
def test_answers_are_compared_by_what_they_say(key: str, answer: str, ask: str, same: bool | None) -> None:
    assert same_answer(key, answer, ask) is same


@pytest.mark.parametrize(
    ("key", "answer", "question", "accepted", "apart"),
    [
        ("exothermic", "endothermic", "Name the kind of reaction.", [], True),
        ("abiotic", "It is a biotic factor.", "Is light a biotic or an abiotic factor?", [], True),
        ("Go on, then turn left.", "Straight on, then turn right.", "Where does she go?", ["keep going"], True),
        ("magnesium oxide", "sulfuric acid", "Magnesium oxide is added to sulfuric acid. Which is used up?", [], True),
        ("exothermic", "It is not endothermic.", "Name the kind of reaction.", [], False),
        ("Yes, because one can cycle there.", "No, there is no beach.", "Is it a good town?", [], False),
        ("a shop", "a store", "Name a place.", [], False),
        ("a market", "a castle", "There are a castle and a market. Name one of them.", ["castle"], False),
        ("More shells lie between.", "The pull is less strong.", "Explain the trend.", [], False),
    ],
)
def test_answers_in_words_are_told_apart_by_opposites(
    key: str, answer: str, question: str, accepted: list[str], apart: bool
) -> None:
    assert opposed(key, answer, question, accepted) is apart
