"""Subjects and levels: one canonical name each, and every spelling people use for it. Imports nothing heavy."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping

from pipeline.errors import CatalogueError

#: Canonical subject → its other names. Case, spaces, hyphens and underscores do not matter.
SUBJECTS: Mapping[str, tuple[str, ...]] = {
    "mathematics": ("math", "maths"),
    "application_of_mathematics": (
        "applications_of_mathematics", "application_of_maths", "applications_of_maths", "applications",
        "aom", "aoms", "app_math", "app_maths", "apps_math", "apps_maths",
    ),
    "physics": ("phys",),
    "chemistry": ("chem",),
    "biology": ("bio",),
    "computing_science": ("computing", "cs"),
    "english": ("eng",),
    "history": ("hist",),
    "geography": ("geo",),
    "modern_studies": ("ms",),
    "music": (),
    "art": ("art_and_design",),
    "drama": (),
    "french": (),
    "german": (),
    "spanish": (),
    "gaelic": (),
}  # fmt: skip
#: Canonical level → its other names.
LEVELS: Mapping[str, tuple[str, ...]] = {
    "national_3": ("n3", "nat3"),
    "national_4": ("n4", "nat4"),
    "national_5": ("n5", "nat5"),
    "higher": ("h", "high"),
    "advanced_higher": ("ah", "adv_higher"),
}
#: The last two digits of a course code, by level.
LEVEL_DIGITS: Mapping[str, str] = {
    "national_3": "73",
    "national_4": "74",
    "national_5": "75",
    "higher": "76",
    "advanced_higher": "77",
}


def subject_name(text: str, more: Iterable[str] = ()) -> str:
    """Return the canonical subject of a name or alias; `more`: subjects of the user's own catalogue.

    Raises:
        CatalogueError: Unknown; lists what there is and names the nearest.
    """
    return _find("subject", text, {**dict.fromkeys(more, ()), **SUBJECTS})


def level_name(text: str, more: Iterable[str] = ()) -> str:
    """Return the canonical level of a name or alias; `more`: levels of the user's own catalogue.

    Raises:
        CatalogueError: Unknown; lists what there is and names the nearest.
    """
    return _find("level", text, {**dict.fromkeys(more, ()), **LEVELS})


def known_subject(text: str) -> str | None:
    """Return the canonical subject of a name or alias; None where no such subject is known."""
    return _KNOWN.get(_plain(text))


def known_level(text: str) -> str | None:
    """Return the canonical level of a name or alias; None where no such level is known."""
    return _KNOWN_LEVELS.get(_plain(text))


def shown(name: str) -> str:
    """Return a canonical name for people: "national_5" is "National 5"."""
    if name == "application_of_mathematics":
        return "Applications of Mathematics"
    return " ".join(word if word in ("of", "and") else word.capitalize() for word in name.split("_"))


def course_name(subject: str, level: str) -> str:
    """Return a course for people: "Mathematics, National 5"; names that are none of ours as they stand."""
    return ", ".join(shown(name) if name.islower() else name for name in (subject, level) if name)


def _plain(text: str) -> str:
    return re.sub(r"[\s_-]+", "", text).casefold()


def _spellings(table: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """Return each spelling, made plain, and the canonical name it stands for."""
    return {_plain(name): canonical for canonical, others in table.items() for name in (canonical, *others)}


_KNOWN = _spellings(SUBJECTS)
_KNOWN_LEVELS = _spellings(LEVELS)


def _find(kind: str, text: str, table: Mapping[str, tuple[str, ...]]) -> str:
    spellings = _spellings(table)
    wanted = _plain(text)
    if wanted in spellings:
        return spellings[wanted]
    near = difflib.get_close_matches(wanted, spellings, n=1, cutoff=0.6)
    guess = f" Did you mean {spellings[near[0]]}?" if near else ""
    raise CatalogueError(
        f"There is no {kind} {text!r}.{guess}",
        code=f"unknown_{kind}",
        hint=f"Known: {', '.join(table)}.",
        kind=kind,
        text=text,
        nearest=spellings[near[0]] if near else None,
    )
