"""Decides what never belongs in a lesson: links, image tags, sources that do not exist, talk to a pupil or a judge.

Plain words and bounded patterns only: the text may be hostile.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

#: Name of the fault -> pattern. No nested repetition: each pattern is linear in the text.
_PATTERNS: Mapping[str, re.Pattern[str]] = {
    name: re.compile(pattern, re.IGNORECASE)
    for name, pattern in {
        "a link": r"\bhttps?:|\bwww\.|\b[a-z0-9-]{2,40}\.(?:com|org|net|co\.uk|scot|edu)\b",
        "an image tag or markup": r"!\[|<(?:img|script|iframe|svg|a|div|span|style|br)\b|</",
        "a document that is not on the page": (
            r"\bsee (?:the )?(?:worksheet|handout|textbook|slide|page \d|video|appendix)"
            r"|\b(?:worksheet|handout|jotter sheet) (?:\d|provided|attached)|\b(?:on|from) slide \d"
            r"|\bin your textbook\b"
        ),
        "a video or web site": r"\b(?:youtube|wikipedia|bitesize|khan academy|google|tiktok)\b|\bwatch "
        r"(?:the|this) (?:video|clip)\b",
        "learning styles": r"\blearning styles?\b|\b(?:visual|auditory|kinaesthetic|kinesthetic) learners?\b",
        "talk of an assistant": (
            r"\bas an ai\b|\blanguage model\b|\bi hope this helps\b|\bcertainly!|\bsure, here\b|\bhere is "
            r"(?:the|your) lesson\b"
            r"|\blet me know if\b|\bi cannot (?:help|assist)\b"
        ),
        "empty praise": r"\b(?:great job|well done|good luck|awesome|you(?:'|’)ve got this)\b",
        "words to the judge": (
            r"\bignore (?:all|any|the|previous|these) (?:previous |prior |above )?(?:instructions?|rules?|criteria)\b"
            r"|\b(?:reviewer|critic|judge|grader|evaluator)s?[,:] |\bgive (?:this|it) (?:a "
            r")?(?:full|top|high|maximum|5)\b"
            r"|\bthis lesson (?:deserves|should (?:pass|score))\b|\bscore (?:this|it) (?:5|high)"
        ),
    }.items()
}
#: All of them at once: nearly every text holds nothing.
_ANY = re.compile("|".join(f"(?:{pattern.pattern})" for pattern in _PATTERNS.values()), re.IGNORECASE)
#: Longer texts are cut before they are searched; no field of a lesson is so long.
_LONGEST = 20_000


def stray_talk(text: str) -> str | None:
    """Return what in the text belongs to no lesson, with the words found; None where there is nothing."""
    if not _ANY.search(text, 0, _LONGEST):
        return None
    for name, pattern in _PATTERNS.items():
        if match := pattern.search(text, 0, _LONGEST):
            return f"{name}: {match.group()[:60]!r}"
    return None
