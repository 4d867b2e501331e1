"""Whether a lesson may be published: arithmetic over the critic's form; the critic's own verdict decides nothing."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from pipeline.lessons.fields import texts
from pipeline.lessons.schemas import CRITERIA, CRITERION_NAMES, FIDELITY, QUALITY, Critique, Judgement

#: Least mean of each group, scores of 1 to 5 mapped to 0 to 1.
FIDELITY_LEAST, QUALITY_LEAST = Fraction(90, 100), Fraction(80, 100)
#: A criterion at or below this is enough to hold a lesson back.
TOO_LOW = 2
#: The printed overall number; it never decides.
FIDELITY_WEIGHT = Fraction(75, 100)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What code makes of a critique."""

    released: bool
    #: None where a criterion has no score.
    fidelity: Fraction | None
    quality: Fraction | None
    #: Why it is not released, one sentence each.
    reasons: tuple[str, ...]
    #: What the author is told to change, one order each.
    fixes: tuple[str, ...]
    #: Criteria whose score is void, with why: the form's fault, not the lesson's.
    void: Mapping[str, str]
    #: What a reader of the record should know (a contradicted model verdict).
    notes: tuple[str, ...]


def decide(critique: Critique, lesson: Mapping[str, Any]) -> Verdict:
    """Return the verdict on a lesson (as JSON) from its critique."""
    rows: dict[str, Judgement] = {row.criterion: row for row in critique.judgements}
    void = _void(critique, lesson)
    scores = {key: row.score for key, row in rows.items() if key not in void and not row.missing}
    fidelity, quality = _mean(scores, FIDELITY), _mean(scores, QUALITY)
    blocked = [item for item in critique.concerns if item.act == "block" and _stands(item.quotation, lesson)]
    wrong = [item for item in critique.claims if item.status == "wrong"]
    reasons = [*_low(scores, fidelity, quality), *_unscored(rows, void)]
    reasons += [f"{item.category}: {item.quotation!r} must not be published" for item in blocked]
    reasons += [f"{item.id}: {item.claim!r} is wrong: {item.reason}" for item in wrong]
    released = not reasons
    notes = []
    if (critique.verdict == "release") is not released:
        notes.append(f"the critic said {critique.verdict}, its own scores say otherwise")
    return Verdict(
        released,
        fidelity,
        quality,
        tuple(reasons),
        () if released else tuple(_fixes(critique, rows, void, [*blocked, *wrong])),
        void,
        tuple(notes),
    )


def record(critique: Critique, verdict: Verdict) -> dict[str, Any]:
    """Return the critique as it is published beside its lesson."""
    overall = None
    if verdict.fidelity is not None and verdict.quality is not None:
        overall = FIDELITY_WEIGHT * verdict.fidelity + (1 - FIDELITY_WEIGHT) * verdict.quality
    rows: dict[str, Judgement] = {row.criterion: row for row in critique.judgements}
    return {
        "fidelity": _decimal(verdict.fidelity),
        "quality": _decimal(verdict.quality),
        "overall": _decimal(overall),
        "released": verdict.released,
        "model_verdict": critique.verdict,
        "judgements": [rows[key].model_dump(mode="json") for key in CRITERIA if key in rows],
        "claims": [item.model_dump(mode="json") for item in critique.claims],
        "concerns": [item.model_dump(mode="json") for item in critique.concerns],
        "notes": list(verdict.notes),
    }


def _decimal(value: Fraction | None) -> float | None:
    return None if value is None else round(float(value), 4)


def _mean(scores: Mapping[str, int], group: Sequence[str]) -> Fraction | None:
    if any(key not in scores for key in group):
        return None
    return sum((Fraction(scores[key] - 1, 4) for key in group), Fraction(0)) / len(group)


def _low(scores: Mapping[str, int], fidelity: Fraction | None, quality: Fraction | None) -> list[str]:
    found = []
    for name, value, least in (("fidelity", fidelity, FIDELITY_LEAST), ("quality", quality, QUALITY_LEAST)):
        if value is not None and value < least:
            found.append(f"{name} is {float(value):.2f}, wanted {float(least):.2f}")
    found += [f"{key} ({CRITERION_NAMES[key]}) has {score} of 5" for key, score in scores.items() if score <= TOO_LOW]
    return found


def _unscored(rows: Mapping[str, Judgement], void: Mapping[str, str]) -> list[str]:
    found = [f"{key} has no score: {why}" for key, why in void.items()]
    found += [f"{key} ({CRITERION_NAMES[key]}): its part is missing" for key, row in rows.items() if row.missing]
    return found


def _void(critique: Critique, lesson: Mapping[str, Any]) -> dict[str, str]:
    counts: Counter[str] = Counter(row.criterion for row in critique.judgements)
    found: dict[str, str] = {}
    for key in CRITERIA:
        if counts[key] != 1:
            found[key] = f"judged {counts[key]} times, wanted once"
    for row in critique.judgements:
        if not row.missing and row.criterion not in found:
            for part in row.evidence:
                if not _has_id(part.id, lesson):
                    found[row.criterion] = f"the lesson has no {part.id!r}"
                elif not _stands(part.quotation, lesson):
                    found[row.criterion] = f"the lesson does not say {part.quotation!r}"
    return found


def _has_id(name: str, lesson: Mapping[str, Any]) -> bool:
    """Return an id, a keyword's term or a field of the lesson; what follows a dot is the critic's own addition."""
    plain = name.split(".")[0].split("/")[0].strip()
    return plain in lesson or any(plain == text for _, text in texts(lesson))


def _stands(quotation: str, lesson: Mapping[str, Any]) -> bool:
    wanted = _plain(quotation)
    return bool(wanted) and any(wanted in _plain(text) for _, text in texts(lesson))


def _plain(text: str) -> str:
    """Return letters, digits and signs without regard to case, spaces and kinds of quotation marks."""
    return re.sub(r"[\s\"'“”‘’.…]+", "", text).casefold()


def _fixes(
    critique: Critique, rows: Mapping[str, Judgement], void: Mapping[str, str], others: Sequence[Any]
) -> list[str]:
    found = [
        f"{item.id}: the claim {item.claim!r} is wrong: {item.reason}" for item in others if hasattr(item, "claim")
    ]
    found += [f"take out {item.quotation!r} ({item.category})" for item in others if not hasattr(item, "claim")]
    for row in critique.judgements:
        if row.criterion in void or (row.score == 5 and not row.missing):
            continue
        place = ", ".join(dict.fromkeys(part.id for part in row.evidence))
        found.append(f"{row.criterion} ({CRITERION_NAMES[row.criterion]}), at {place}: {row.finding} {row.fix}".strip())
    return found
