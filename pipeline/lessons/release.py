"""Whether a lesson may be published: one rule over the critic's scores; and what is told the author where not."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from pipeline.content.addresses import texts, value_at
from pipeline.content.findings import Finding
from pipeline.lessons.schemas import CRITERIA, CRITERION_NAMES, FIDELITY, QUALITY, Critique, Judgement

#: Least score of a criterion of fidelity, and of quality.
LEAST: Mapping[str, int] = {**dict.fromkeys(FIDELITY, 4), **dict.fromkeys(QUALITY, 3)}
#: The rule in words; prompts and pages print it.
RULE = (
    "A lesson is released if no score of F1 to F5 is below 4, none of Q1 to Q7 below 3, no claim is wrong and no "
    "concern blocks."
)
#: Rows of the table of checks that the critic decides.
_CLAIM, _CONCERN, _SCORE = 21, 33, 0


@dataclass(frozen=True, slots=True)
class Verdict:
    """What code makes of a critique."""

    released: bool
    #: What must be put right; empty where it is released.
    findings: tuple[Finding, ...]
    #: Criteria whose score is void, with why: the form's fault, not the lesson's.
    void: Mapping[str, str]


def decide(critique: Critique, lesson: Mapping[str, Any]) -> Verdict:
    """Return the verdict on a lesson (as JSON) from its critique; what rests on no words of it counts for nothing."""
    void = _void(critique, lesson)
    findings = [
        _finding(_CLAIM, each.path, f"{each.quotation!r} is wrong", each.reason, lesson)
        for each in critique.claims
        if each.status == "wrong" and _stands(each.quotation, lesson)
    ]
    findings += [
        _finding(_CONCERN, each.path, f"{each.quotation!r} must not stand ({each.category})", "other words", lesson)
        for each in critique.concerns
        if each.act == "block" and _stands(each.quotation, lesson)
    ]
    for row in critique.judgements:
        if row.criterion not in void and row.score < LEAST[row.criterion]:
            found = f"{row.criterion} ({CRITERION_NAMES[row.criterion]}) has {row.score} of 5: {row.finding}"
            paths = [*row.paths, *(part.path for part in row.evidence)]
            findings.append(_finding(_SCORE, paths[0], found, row.fix, lesson, paths[1 : max(len(row.paths), 1)]))
    return Verdict(not findings and not void, tuple(findings), void)


def _finding(
    check: int, path: str, found: str, wanted: str, lesson: Mapping[str, Any], also: Iterable[str] = ()
) -> Finding:
    """Return a finding; a place that the lesson does not have is its cards."""
    where = path if value_at(lesson, path) is not None else "cards"
    return Finding(check, "R", where, found, wanted, tuple(name for name in also if value_at(lesson, name) is not None))


def record(critique: Critique, verdict: Verdict) -> dict[str, Any]:
    """Return the critique as it is published beside its lesson; the means are for people, they decide nothing."""
    rows: dict[str, Judgement] = {row.criterion: row for row in critique.judgements}
    scores = {key: rows[key].score for key in CRITERIA if key in rows and key not in verdict.void}
    return {
        "released": verdict.released,
        "rule": RULE,
        "fidelity": _mean(scores, FIDELITY),
        "quality": _mean(scores, QUALITY),
        "judgements": [rows[key].model_dump(mode="json") for key in CRITERIA if key in rows],
        "claims": [item.model_dump(mode="json") for item in critique.claims],
        "concerns": [item.model_dump(mode="json") for item in critique.concerns],
    }


def _mean(scores: Mapping[str, int], group: Sequence[str]) -> float | None:
    if any(key not in scores for key in group):
        return None
    return round(float(sum((Fraction(scores[key] - 1, 4) for key in group), Fraction(0)) / len(group)), 4)


def _void(critique: Critique, lesson: Mapping[str, Any]) -> dict[str, str]:
    counts: Counter[str] = Counter(row.criterion for row in critique.judgements)
    found = {key: f"judged {counts[key]} times, wanted once" for key in CRITERIA if counts[key] != 1}
    for row in critique.judgements:
        if row.criterion in found:
            continue
        for part in row.evidence:
            if value_at(lesson, part.path) is None:
                found[row.criterion] = f"the lesson has no {part.path!r}"
            elif not _stands(part.quotation, lesson):
                found[row.criterion] = f"the lesson does not say {part.quotation!r}"
    return found


def _stands(quotation: str, lesson: Mapping[str, Any]) -> bool:
    wanted = _plain(quotation)
    return bool(wanted) and any(wanted in _plain(text) for _, text in texts(lesson))


def _plain(text: str) -> str:
    """Return letters, digits and signs without regard to case, spaces and kinds of quotation marks."""
    return re.sub(r"[\s\"'“”‘’.…]+", "", text).casefold()


def warning(finding: Finding) -> dict[str, Any]:
    """Return a finding as it is recorded and shown beside its lesson."""
    return {**finding.to_json(), "text": finding.line().partition(": ")[2]}
