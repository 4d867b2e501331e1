"""The critic's form: evidence before finding before score, one row a criterion.

The verdict field is recorded and never obeyed: release.py decides.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pipeline.lessons.fields import Part, Text, Words

CRITIQUE_SCHEMA = ("critique", 1)

FIDELITY = ("F1", "F2", "F3", "F4", "F5")
QUALITY = ("Q1", "Q2", "Q3", "Q4", "Q5", "Q6", "Q7")
CRITERIA = FIDELITY + QUALITY

#: What each criterion asks; the anchors for 1, 3 and 5 are in prompts/critic.md.
CRITERION_NAMES = {
    "F1": "outcome and points taught",
    "F2": "within scope",
    "F3": "demand of the level",
    "F4": "follows the scheme entry",
    "F5": "facts right and consistent",
    "Q1": "clear explanation in small steps",
    "Q2": "model prepares the practice",
    "Q3": "misconceptions real and corrected",
    "Q4": "distractors diagnose",
    "Q5": "progression and load",
    "Q6": "mark scheme usable",
    "Q7": "inclusive, natural Scottish setting",
}


class Evidence(Part):
    """Where in the lesson."""

    id: str = Field(
        min_length=1, max_length=40, description="id of a card, item, keyword or misconception of the lesson"
    )
    quotation: Annotated[Text, Words(1, 12)] = Field(description="copied from there, word for word")


class Judgement(Part):
    """One criterion."""

    criterion: Literal["F1", "F2", "F3", "F4", "F5", "Q1", "Q2", "Q3", "Q4", "Q5", "Q6", "Q7"]
    evidence: list[Evidence] = Field(min_length=1, max_length=4)
    finding: Annotated[Text, Words(1, 40)]
    missing: bool = Field(description="true where the lesson lacks the part to be judged; the score is then ignored")
    score: int = Field(ge=1, le=5)
    fix: Text = Field(max_length=300, description="one order, with the id it is about; empty at 5")


class Claim(Part):
    """A checkable statement of the lesson."""

    id: str = Field(min_length=1, max_length=40)
    claim: Annotated[Text, Words(1, 40)]
    status: Literal["right", "wrong", "unsure"]
    reason: Text = Field(max_length=240)


class Concern(Part):
    """Something a pupil should not meet, or a teacher should know of."""

    category: str = Field(min_length=3, max_length=60)
    act: Literal["block", "label"]
    quotation: Annotated[Text, Words(1, 30)]


class Critique(Part):
    """The whole form."""

    claims: list[Claim] = Field(max_length=30)
    judgements: list[Judgement] = Field(min_length=len(CRITERIA), max_length=len(CRITERIA))
    concerns: list[Concern] = Field(max_length=10)
    verdict: Literal["release", "revise"]
