"""What follows from whose syllabus a course is of, and where its pupils live: one record each, as data."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

#: A course code of the SQA as it is printed: "C847 75"; its last two digits are the level.
SQA_CODE = re.compile(r"[A-Z]\d{3} \d\d")


@dataclass(frozen=True, slots=True)
class Region:
    """What the place where pupils live decides."""

    #: As people call it: "Scotland"; "" for no place in particular.
    title: str
    #: Of pages, as HTML says it.
    language: str = "en"
    #: Before an amount of money; "" for none in particular.
    currency: str = ""


@dataclass(frozen=True, slots=True)
class Framework:
    """What the body that publishes a syllabus decides."""

    #: As printed before a course's code: "SQA"; "" for none.
    title: str
    #: Key of REGIONS: where it is at home.
    region: str = "none"
    #: Its scale of levels and credits, in small letters a key of its courses; "" for none.
    scale: str = ""


REGIONS: Mapping[str, Region] = {
    "none": Region(""),
    "scotland": Region("Scotland", "en-GB", "£"),
    "england": Region("England", "en-GB", "£"),
    "wales": Region("Wales", "en-GB", "£"),
    "northern_ireland": Region("Northern Ireland", "en-GB", "£"),
    "ireland": Region("Ireland", "en-IE", "€"),
    "united_states": Region("the United States", "en-US", "$"),
}
FRAMEWORKS: Mapping[str, Framework] = {
    "none": Framework(""),
    "sqa": Framework("SQA", "scotland", "SCQF"),
    "national_curriculum_england": Framework("National Curriculum in England", "england"),
    "common_core": Framework("Common Core", "united_states"),
    "ib": Framework("IB"),
}
#: Other names of them, as people write them.
_ALSO: Mapping[str, str] = {
    "nationalcurriculum": "national_curriculum_england", "nationalcurriculuminengland": "national_curriculum_england",
    "ncengland": "national_curriculum_england",
    "commoncorestatestandards": "common_core", "ccss": "common_core", "internationalbaccalaureate": "ib",
    "us": "united_states", "usa": "united_states", "theunitedstates": "united_states",
    "unitedstatesofamerica": "united_states", "international": "none", "scottishqualificationsauthority": "sqa",
}  # fmt: skip


def known_name(name: str, known: Mapping[str, object]) -> str:
    """Return the key of FRAMEWORKS or REGIONS that a name stands for, in any spelling; "" where none is known."""
    return _spellings(known).get(_plain(name), "")


def near_name(name: str, known: Mapping[str, object]) -> str:
    """Return the known key that a name was very likely meant to be; "" where it is one, or like none."""
    if not name or known_name(name, known):
        return ""
    near = difflib.get_close_matches(_plain(name), _spellings(known), n=1, cutoff=0.88)
    return known_name(near[0], known) if near else ""


def framework_of(course: Mapping[str, Any]) -> Framework:
    """Return the framework of a course's JSON: the one it names, else the SQA's by its code, else none.

    One that is not known is only a title.
    """
    given = str(course.get("framework") or "")
    if not given:
        return FRAMEWORKS["sqa" if SQA_CODE.fullmatch(str(course.get("code") or "")) else "none"]
    return FRAMEWORKS[key] if (key := known_name(given, FRAMEWORKS)) else Framework(given)


def region_of(course: Mapping[str, Any]) -> Region:
    """Return the region of a course's JSON: the one it names, else where its framework is at home.

    One that is not known is only a title.
    """
    given = str(course.get("region") or "")
    if not given:
        return REGIONS[framework_of(course).region]
    return REGIONS[key] if (key := known_name(given, REGIONS)) else Region(given)


def standing(course: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return framework and code, level and credits of a course's JSON as its scale counts them; "" for what is not."""
    framework = framework_of(course)
    place = course.get(framework.scale.lower()) or {}
    return (
        " ".join(filter(None, (framework.title, course.get("code")))),
        f"{framework.scale} level {place['level']}" if place.get("level") else "",
        f"{place['credits']} credits" if place.get("credits") else "",
    )


def _spellings(known: Mapping[str, object]) -> dict[str, str]:
    return {_plain(key): key for key in known} | {also: key for also, key in _ALSO.items() if key in known}


def _plain(name: str) -> str:
    return re.sub(r"[\W_]+", "", name).casefold()
