"""Subjects and levels: any that people name, and for the usual ones every spelling. Imports nothing heavy."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Iterable, Mapping

from pipeline.errors import CatalogueError

#: Canonical subject → its other names; other subjects have one name. Case, spaces, hyphens, underscores do not matter.
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
    "ks1": ("key_stage_1",),
    "ks2": ("key_stage_2",),
    "ks3": ("key_stage_3",),
    "ks4": ("key_stage_4",),
    "gcse": (),
    "igcse": ("international_gcse",),
    "as_level": (),
    "a_level": (),
    "ib_myp": ("myp",),
    "ib_diploma": ("ib", "ib_dp", "ibdp"),
}
#: Usual age of the learners of levels that have no row of demands of their own.
USUAL_AGES: Mapping[str, int] = {
    "ks1": 7, "ks2": 10, "ks3": 13, "ks4": 15, "gcse": 16, "igcse": 16, "as_level": 17, "a_level": 18,
    "ib_myp": 14, "ib_diploma": 18,
}  # fmt: skip
#: Levels that are a year of school, and the age (years) that learners reach in year 0.
_YEARS = ((r"(?:year|y)_?(\d{1,2})", 5), (r"(?:grade|class)_?(\d{1,2})", 6))
#: Characters of a name.
MAX_NAME = 40
#: Letters of a name from which on one that is nearly the same is a slip.
_SLIPS_FROM = 5
#: Words of names that are written in capitals.
_CAPITALS = frozenset({
    "gcse", "igcse", "as", "ib", "dp", "myp", "pyp", "ap", "ict", "it", "pe", "re", "rs", "pshe", "dt", "eal", "esl",
    "efl", "btec", "sat", "sl", "hl",
})  # fmt: skip
#: The last two digits of a course code, by level.
LEVEL_DIGITS: Mapping[str, str] = {
    "national_3": "73",
    "national_4": "74",
    "national_5": "75",
    "higher": "76",
    "advanced_higher": "77",
}


def subject_name(text: str) -> str:
    """Return the canonical name of any subject: "Maths" is mathematics, "Design & Technology" design_technology.

    Raises:
        CatalogueError: The text holds no letter or digit, or is too long for a name.
    """
    return known_subject(text) or _name("subject", text)


def level_name(text: str) -> str:
    """Return the canonical name of any level: "Nat 5" is national_5, "Year 9" year_9.

    Raises:
        CatalogueError: The text holds no letter or digit, or is too long for a name.
    """
    return known_level(text) or _name("level", text)


def known_subject(text: str) -> str | None:
    """Return the canonical subject of a name or alias; None where no such subject is known."""
    return _KNOWN.get(_plain(text))


def known_level(text: str) -> str | None:
    """Return the canonical level of a name or alias; None where no such level is known."""
    return _KNOWN_LEVELS.get(_plain(text))


def same_subject(one: str, other: str) -> bool:
    """Say whether two spellings mean the same subject."""
    return (known_subject(one) or _plain(one)) == (known_subject(other) or _plain(other))


def usual_age(level: str) -> int | None:
    """Return the age that learners of a level reach, in years; None where its name does not say it."""
    for pattern, before in _YEARS:
        if found := re.fullmatch(pattern, level):
            return int(found[1]) + before
    return USUAL_AGES.get(level)


def shown(name: str) -> str:
    """Return a canonical name for people: "national_5" is "National 5", "ks3" is "KS3"."""
    if name == "application_of_mathematics":
        return "Applications of Mathematics"
    return " ".join(_word(word) for word in name.split("_"))


def _word(word: str) -> str:
    if word in ("of", "and"):
        return word
    return word.upper() if word in _CAPITALS or re.fullmatch(r"[a-z]{1,3}\d+", word) else word.capitalize()


def course_name(subject: str, level: str) -> str:
    """Return a course for people: "Mathematics, National 5"; names that are none of ours as they stand."""
    return ", ".join(shown(name) if name.islower() else name for name in (subject, level) if name)


def nearest(text: str, names: Iterable[str]) -> str | None:
    """Return which of these names was probably meant; None where none is like it."""
    spellings = {_plain(name): name for name in names}
    near = difflib.get_close_matches(_plain(text), spellings, n=1, cutoff=0.75)
    return spellings[near[0]] if near else None


def new_names(subject: str, level: str) -> tuple[str, str]:
    """Return the canonical names of a course that is not there yet.

    Raises:
        CatalogueError: One cannot be a name, or is a usual one with two letters swapped or one left out.
    """
    found = subject_name(subject), level_name(level)
    for kind, name, usual in (("subject", found[0], SUBJECTS), ("level", found[1], LEVELS)):
        if name not in usual and (meant := next((each for each in usual if _is_slip(name, each)), "")):
            raise CatalogueError(
                f"There is no {kind} {name}. Did you mean {meant}?",
                code=f"invalid_{kind}",
                hint="Type it in its right spelling.",
            )
    return found


def _is_slip(name: str, meant: str) -> bool:
    """Say whether a name has two letters of another swapped, or lacks one; only of words long enough to tell."""
    if len(meant) < _SLIPS_FROM or not meant.replace("_", "").isalpha():
        return False
    lacking = {meant[:place] + meant[place + 1 :] for place in range(len(meant))}
    return sorted(name) == sorted(meant) or name in lacking


def _name(kind: str, text: str) -> str:
    """Return the form that a name has in files: lower case, an underscore between its words."""
    letters = unicodedata.normalize("NFKC", text).lower()
    words = "".join(char if unicodedata.category(char)[0] in "LMN" else " " for char in letters).split()
    name = "_".join(words)
    if name and len(name) <= MAX_NAME:
        return name
    wrong = f"is longer than {MAX_NAME} characters" if name else "holds no letter or digit"
    raise CatalogueError(
        f"{text!r} cannot be the name of a {kind}: it {wrong}.",
        code=f"invalid_{kind}",
        hint="A short name will do, such as design_technology or year_9; the title in the file may be longer.",
    )


def _plain(text: str) -> str:
    return re.sub(r"[\s_-]+", "", text).casefold()


def _spellings(table: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """Return each spelling, made plain, and the canonical name it stands for."""
    return {_plain(name): canonical for canonical, others in table.items() for name in (canonical, *others)}


_KNOWN = _spellings(SUBJECTS)
_KNOWN_LEVELS = _spellings(LEVELS)
