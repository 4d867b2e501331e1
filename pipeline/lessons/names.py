"""Which subjects and levels there are and what people call them; no course files are read here."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence

from pipeline.errors import CatalogueError

#: Canonical name → what else it is called. Case, spaces, hyphens and underscores never matter.
SUBJECTS: Mapping[str, Sequence[str]] = {
    "mathematics": ("math", "maths"),
    "application_of_mathematics": (
        "applications_of_mathematics", "aom", "aoms", "app_math", "app_maths", "apps_math", "apps_maths",
        "application_of_maths", "applications_of_maths",
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
LEVELS: Mapping[str, Sequence[str]] = {
    "national_3": ("n3", "nat3"),
    "national_4": ("n4", "nat4"),
    "national_5": ("n5", "nat5"),
    "higher": ("h", "high"),
    "advanced_higher": ("ah", "adv_higher"),
}
_SEPARATORS = re.compile(r"[\s_\-]+")


def subject_name(text: str, more: Iterable[str] = ()) -> str:
    """The canonical subject of a name or alias; `more`: subjects of the user's own catalogue.

    Raises:
        CatalogueError: Unknown; lists the subjects and names the nearest.
    """
    return _canonical(text, {**dict.fromkeys(more, ()), **SUBJECTS}, "subject")


def level_name(text: str, more: Iterable[str] = ()) -> str:
    """The canonical level of a name or alias; `more`: levels of the user's own catalogue.

    Raises:
        CatalogueError: Unknown; lists the levels and names the nearest.
    """
    return _canonical(text, {**dict.fromkeys(more, ()), **LEVELS}, "level")


def _canonical(text: str, names: Mapping[str, Sequence[str]], kind: str) -> str:
    keys = {_key(alias): name for name, aliases in names.items() for alias in (name, *aliases)}
    wanted = _key(text)
    if wanted in keys:
        return keys[wanted]
    near = difflib.get_close_matches(wanted, keys, n=1, cutoff=0.6)
    guess = f" Did you mean {keys[near[0]]}?" if near else ""
    raise CatalogueError(
        f"There is no {kind} {text!r}.{guess}",
        hint=f"There are {', '.join(names)}.",
        kind=kind,
        text=text,
    )


def _key(text: str) -> str:
    return _SEPARATORS.sub("", text.strip().lower())
