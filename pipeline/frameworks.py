"""What follows from whose syllabus a course is of, and where its pupils live: one record each, as data."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

#: A course code of the SQA as it is printed: "C847 75"; its last two digits are the level.
SQA_CODE = re.compile(r"[A-Z]\d{3} \d\d")
#: Options enough for a quick check or a starter at any level.
FEWEST_OPTIONS = 3


@dataclass(frozen=True, slots=True)
class LevelRow:
    """Demand and reading limits of one level."""

    #: Command words an outcome may use, easiest first.
    commands: str
    #: Steps in one question, least and most.
    steps: tuple[int, int]
    #: Words in a sentence of an explainer: mean and longest.
    sentence: tuple[int, int]
    #: Words in a sentence of a plain twin: mean and longest.
    plain: tuple[int, int] = (10, 16)
    #: Share of words with three syllables or more, per cent, keywords not counted.
    long_words: int = 15
    #: Options of a multiple-choice question.
    options: int = 4

    def fitting(self, options: int, card: str) -> bool:
        """Say whether a question on a kind of card may have so many options."""
        return options == self.options or (card in ("check", "starter") and options == FEWEST_OPTIONS)


#: The SQA's levels are known by their names in any framework; all others by age.
SQA_LEVELS: Mapping[str, LevelRow] = {
    "national_3": LevelRow(
        "state, identify, name, match, calculate in one step", (1, 2), (10, 18), long_words=8, options=3
    ),
    "national_4": LevelRow("describe, calculate, compare", (2, 3), (12, 20), long_words=12, options=3),
    "national_5": LevelRow("explain, determine, show, justify simply", (2, 5), (14, 24)),
    "higher": LevelRow("justify, derive, evaluate, predict", (3, 6), (18, 28), (12, 18), 20),
    # No figures of its own: read as Higher until somebody measures it.
    "advanced_higher": LevelRow("justify, derive, evaluate, predict, prove", (3, 6), (18, 28), (12, 18), 20),
}
#: Names of other levels, and the age of their learners (years) at most.
_AGES = (
    (r"(?:year|y)_?[12]|kindergarten|grade_?[k1]|class_?[12]|p[123]|ks1", 7),
    (r"(?:year|y)_?[3-6]|(?:grade|class)_?[2-5]|p[4-7]|ks2|pyp|primary\w*|elementary\w*|a1", 11),
    (r"(?:year|y)_?[7-9]|(?:grade|class)_?[678]|s[123]|ks3|middle_school|a2", 14),
    (r"(?:year|y)_?1[01]|(?:grade|class)_?(?:9|10)|ks4|i?gcse\w*|ib_myp\w*|junior_cycle|high_school|b1", 16),
    (r"as?_level|ib\w*|dp\w*|[sh]l|(?:grade|class)_?1[12]|year_?1[23]|leaving_cert\w*|university\w*|b2|c[12]", 99),
)
#: Of a level whose name says nothing.
_USUAL_AGE = 15
#: Learners of up to this age (years) sit no exams, unless their course names papers.
_NO_EXAMS_UNTIL = 14
#: Age at most → what is asked of it; command words are the framework's.
_ROWS = (
    (7, LevelRow("", (1, 1), (8, 14), (7, 12), 6, 3)),
    (11, LevelRow("", (1, 2), (10, 16), (8, 14), 8, 3)),
    (14, LevelRow("", (1, 3), (12, 20), (10, 16), 12)),
    (16, LevelRow("", (2, 5), (14, 24))),
    (99, LevelRow("", (3, 6), (18, 28), (12, 18), 20)),
)
_COMMANDS = (
    "name, match, count, draw, say",
    "name, match, describe, compare, calculate in one step",
    "describe, calculate, compare, explain, assess, evaluate simply",
    "describe, calculate, compare, explain, assess, evaluate",
    "explain, analyse, derive, justify, assess, evaluate",
)


@dataclass(frozen=True, slots=True)
class Region:
    """What the place where pupils live decides: names, words, money, spelling, units."""

    #: As it stands in a sentence: "Scotland"; "" for no place in particular.
    title: str = ""
    #: "Scottish", where schools and settings are called so; else they are "in" the place.
    adjective: str = ""
    #: Of pages, as HTML names it.
    language: str = "en"
    #: The English of lessons, in a sentence; its spelling: "british", "american" or "" for either.
    english: str = "English as the course spells it"
    spelling: str = ""
    #: Before an amount of money, and its names; "" for no money in particular.
    currency: str = ""
    money: str = "money of any country"
    whole: str = "whole amounts"
    coins: str = "coins"
    #: Its smaller coin behind a number, and by name; "" for none.
    coin: str = ""
    coin_name: str = ""
    units: str = "metric units"
    #: Words of pages, worksheets and slides → what is said for them here, in small letters; those in others first.
    words: tuple[tuple[str, str], ...] = ()
    #: What a question asks where a sum is to be written as a product.
    factorise: str = "factorise"
    #: The rule on all this, as the author of lessons reads it.
    rule: str = "One spelling, that of the course; metric units."
    #: A pattern of money and units that do not belong there, where its own money is read as pounds.
    foreign: str = ""
    #: What is natural there, and what would be too much of it.
    natural: str = "a bus fare, not a landmark on every line"
    #: An evening out for a class, as the offline author names it.
    evening: str = "A music night"
    #: A city, two towns, and two that are 18 km apart, for examples in prompts.
    examples: tuple[str, str, str, str, str] = ("the city", "Northport", "Hillside", "the school", "the lake")
    people: tuple[str, ...] = (
        "Aiko", "Amara", "Anna", "Ayesha", "Bilal", "Carlos", "Chidi", "Daniel", "Elif", "Emma", "Farah", "Hana",
        "Imran", "Ines", "Jakub", "Kofi", "Lea", "Lucas", "Marek", "Maria", "Mei", "Nadia", "Noah", "Oliwia", "Omar",
        "Priya", "Samira", "Sofia", "Tomasz", "Wei", "Yusuf", "Zara",
    )  # fmt: skip
    places: tuple[str, ...] = (
        "a harbour town", "a village", "a large city", "a school", "a sports club", "a library", "a market",
        "a railway station", "a farm", "a park", "a workshop",
    )  # fmt: skip

    def said(self, text: str) -> str:
        """Return words that are ours, not a lesson's, as they are said here: "3 points" for "3 marks"."""
        if not self.words:
            return text
        there = dict(self.words)

        def here(found: re.Match[str]) -> str:
            word = there[found[1].lower()]
            return (word.capitalize() if found[1][0].isupper() else word) + found[2]

        return re.sub(rf"(?i)\b({'|'.join(there)})(s?)\b", here, text)


@dataclass(frozen=True, slots=True)
class Framework:
    """What the body that publishes a syllabus decides."""

    #: As printed before a course's code: "SQA"; "" for none.
    title: str
    #: Key of REGIONS: where it is at home.
    region: str = "none"
    #: Its scale of levels and credits, in small letters a key of its courses; "" for none.
    scale: str = ""
    #: Command words that learners of up to 7, 11, 14 and 16 years, and older ones, are given.
    commands: tuple[str, str, str, str, str] = _COMMANDS
    #: Something that goes too far, as an example for the critic.
    logarithm: str = "a logarithm that no lesson taught"
    #: What it calls the mass of a mole.
    molar_mass: str = "molar mass"

    def row(self, level: str, age: int | None) -> LevelRow:
        """Return what a level demands: by its name where that has a row of its own, else by the age of its learners."""
        if level in SQA_LEVELS:
            return SQA_LEVELS[level]
        place = next(place for place, (most, _) in enumerate(_ROWS) if _years(level, age) <= most)
        return replace(_ROWS[place][1], commands=self.commands[place])


def has_exam(course: Mapping[str, Any]) -> bool:
    """Say whether a course's JSON names papers of an exam, or its learners are of the age for one."""
    papers = (course.get("assessment") or {}).get("components")
    return bool(papers) or _years(course["level"], course.get("age")) > _NO_EXAMS_UNTIL


def _years(level: str, age: int | None) -> int:
    """Return the age that a course is made for: its own, else the highest of learners of its level."""
    return age or next((most for pattern, most in _AGES if re.fullmatch(pattern, level)), _USUAL_AGE)


# --- regions and frameworks -----------------------------------------------------------------------

_NAMES_OF_BRITAIN = (
    "Adam", "Aisha", "Amelia", "Anjali", "Arjun", "Beth", "Bilal", "Chloe", "Connor", "Deepa", "Ella", "Emeka", "Ethan",
    "Freya", "Hannah", "Imani", "Jakub", "Jasmine", "Jerome", "Kai", "Leah", "Maisie", "Maya", "Mehmet",
    "Nathan", "Noor", "Oliwia", "Omar", "Priya", "Reuben", "Rosa", "Sana", "Tariq", "Tom", "Wei", "Yasmin", "Zofia",
)  # fmt: skip
#: What stands for pounds where another money is read as pounds.
FOREIGN_POUND = "₤"
_FOREIGN = (
    r"(?<!\\)\$\s?\d|\b\d+(?:\.\d+)?\s?(?:dollars?|{coins}|°F|degrees Fahrenheit|lbs?|ounces?|fluid ounces|gallons?"
    r"|feet|foot|inch(?:es)?|yards?)\b|\b(?:kilo|centi|milli)?meters\b|\b(?:kilo|centi|milli)meter\b"
)
_BRITAIN = Region(
    language="en-GB", english="British English", spelling="british", currency="£", money="pounds",
    whole="whole pounds", coins="pence", coin="p", coin_name="penny",
    rule="British spelling (colour, centre, metre, maths), pounds and pence, metric units.",
    foreign=_FOREIGN.replace("{coins}", "cents?"), people=_NAMES_OF_BRITAIN,
)  # fmt: skip
_AMERICAN = (
    ("pupil", "student"), ("mark scheme", "scoring guide"), ("mark", "point"), ("mock exam", "practice exam"),
    ("revision", "review"), ("scheme of work", "course plan"), ("scheme", "plan"), ("licence", "license"),
    ("practised", "practiced"), ("practise", "practice"), ("trapezium", "trapezoid"),
)  # fmt: skip
REGIONS: Mapping[str, Region] = {
    "none": Region(),
    "scotland": replace(
        _BRITAIN, title="Scotland", adjective="Scottish", natural="a bus fare in Dundee, not a tartan on every line",
        evening="A ceilidh night",
        examples=("Glasgow", "Oban", "Wick", "Stirling", "Falkirk"),
        people=(
            "Aileen", "Amara", "Angus", "Ayesha", "Beth", "Bilal", "Callum", "Catriona", "Chidi", "Craig", "Daniel",
            "Eilidh", "Ewan", "Farah", "Fergus", "Fiona", "Grace", "Hamish", "Hana", "Iain", "Imran", "Isla", "Jakub",
            "Kirsty", "Lewis", "Mairi", "Marek", "Megan", "Mohammed", "Morag", "Nadia", "Niamh", "Oliwia", "Priya",
            "Rory", "Ruaridh", "Samira", "Sandeep", "Sorcha", "Struan", "Tomasz", "Wei", "Yusuf", "Zara",
        ),
        places=(
            "Aberdeen", "Arbroath", "Aviemore", "Ayr", "Campbeltown", "Dingwall", "Dumfries", "Dunblane", "Dundee",
            "Dunoon", "Edinburgh", "Elgin", "Falkirk", "Fort William", "Galashiels", "Glasgow", "Greenock",
            "Inverness", "Kelso", "Kilmarnock", "Kirkcaldy", "Kirkwall", "Lerwick", "Livingston", "Motherwell",
            "Oban", "Paisley", "Perth", "Peterhead", "Portree", "Stirling", "Stornoway", "Stranraer", "Thurso",
            "Ullapool", "Wick",
        ),
    ),
    "england": replace(
        _BRITAIN, title="England", natural="a bus fare in Leeds, not a castle on every line",
        examples=("Manchester", "Whitby", "Truro", "Ripon", "Harrogate"),
        places=(
            "Birmingham", "Bolton", "Bradford", "Brighton", "Bristol", "Cambridge", "Carlisle", "Chester", "Coventry",
            "Derby", "Durham", "Exeter", "Gloucester", "Hull", "Ipswich", "Leeds", "Leicester", "Liverpool", "Luton",
            "Manchester", "Newcastle", "Norwich", "Nottingham", "Plymouth", "Portsmouth", "Sheffield", "Sunderland",
            "Truro", "Worcester", "York",
        ),
    ),
    "wales": replace(
        _BRITAIN, title="Wales", natural="a bus fare in Swansea, not a dragon on every line",
        examples=("Cardiff", "Tenby", "Barmouth", "Cardiff", "Newport"),
        people=("Carys", "Dylan", "Gethin", "Gwen", "Rhys", "Sioned", *_NAMES_OF_BRITAIN),
        places=(
            "Aberystwyth", "Bangor", "Barry", "Brecon", "Cardiff", "Cardigan", "Conwy", "Llandudno", "Llanelli",
            "Newport", "Pembroke", "Swansea", "Wrexham",
        ),
    ),
    "northern_ireland": replace(
        _BRITAIN, title="Northern Ireland", natural="a bus fare in Omagh, not a causeway on every line",
        examples=("Belfast", "Portrush", "Newcastle", "Belfast", "Bangor"),
        people=("Aoife", "Cara", "Ciara", "Conor", "Niamh", "Ruairi", *_NAMES_OF_BRITAIN),
        places=(
            "Armagh", "Ballymena", "Belfast", "Coleraine", "Cookstown", "Enniskillen", "Larne", "Limavady", "Lisburn",
            "Newry", "Omagh",
        ),
    ),
    "ireland": replace(
        _BRITAIN, title="Ireland", language="en-IE", english="Irish and British English", currency="€",
        money="euros", whole="whole euros", coins="cent", coin="", coin_name="cent",
        rule="British spelling (colour, centre, metre, maths), euros and cent, metric units.",
        foreign=_FOREIGN.replace("{coins}", "pence") + rf"|{FOREIGN_POUND}\s?\d",
        natural="a bus fare in Sligo, not a shamrock on every line",
        examples=("Dublin", "Dingle", "Westport", "Dublin", "Bray"),
        people=("Aoife", "Cian", "Ciara", "Conor", "Niamh", "Oisin", "Roisin", *_NAMES_OF_BRITAIN),
        places=(
            "Athlone", "Dublin", "Dundalk", "Ennis", "Galway", "Kilkenny", "Letterkenny", "Limerick", "Mullingar",
            "Sligo", "Tralee", "Waterford", "Wexford",
        ),
    ),
    "united_states": Region(
        title="the United States", language="en-US", english="American English", spelling="american", currency="$",
        money="dollars", whole="whole dollars", coins="cents", coin="¢",
        coin_name="cent", factorise="Factor", words=_AMERICAN, units="the units of the course, metric or customary",
        rule="American spelling (color, center, meter, math), dollars and cents, the units of the course; students and "
        "points, not pupils and marks.",
        foreign=rf"{FOREIGN_POUND}\s?\d|\b\d+(?:p\b|\s?pence\b)",
        natural="a bus fare in Tulsa, not a flag on every line",
        examples=("Chicago", "Duluth", "Boise", "Tampa", "Brandon"),
        people=(
            "Aaliyah", "Andre", "Anna", "Brianna", "Caleb", "Camila", "Carlos", "Chloe", "Darius", "Diego", "Elena",
            "Emily", "Ethan", "Gabriela", "Hannah", "Imani", "Jada", "Jamal", "Jayden", "Kayla", "Kevin",
            "Layla", "Lucia", "Marcus", "Maya", "Mei", "Miguel", "Naomi", "Noah", "Olivia", "Omar", "Priya", "Ryan",
            "Sofia", "Tyler", "Xavier", "Zoe",
        ),
        places=(
            "Albany", "Baltimore", "Boise", "Boulder", "Chicago", "Cleveland", "Denver", "Detroit", "Duluth",
            "El Paso", "Fresno", "Houston", "Memphis", "Miami", "Milwaukee", "Oakland", "Omaha", "Raleigh",
            "Sacramento", "Santa Fe", "Seattle", "Spokane", "Tampa", "Toledo", "Tucson", "Tulsa",
        ),
    ),
}  # fmt: skip
FRAMEWORKS: Mapping[str, Framework] = {
    "none": Framework(""),
    "sqa": Framework("SQA", "scotland", "SCQF", logarithm="a logarithm at National 5", molar_mass="gram formula mass"),
    "national_curriculum_england": Framework(
        "National Curriculum in England",
        "england",
        commands=(
            "name, match, sort, count, draw",
            "name, describe, compare, find, calculate in one step",
            "state, describe, calculate, compare, suggest, explain, assess, evaluate simply",
            "state, describe, calculate, compare, show that, explain, assess, evaluate",
            "describe, explain, show that, analyse, assess, evaluate, prove",
        ),
    ),
    "common_core": Framework(
        "Common Core",
        "united_states",
        commands=(
            "count, show, name, compare, tell",
            "find, show, describe, compare, explain in a sentence",
            "find, solve, represent, compare, interpret, explain",
            "solve, model, interpret, construct, explain, justify",
            "solve, model, derive, construct an argument, critique, prove",
        ),
    ),
    "ib": Framework(
        "IB",
        commands=(
            "name, list, draw, say",
            "list, state, describe, outline",
            "state, outline, describe, apply, explain",
            "describe, explain, apply, analyse, justify",
            "write down, find, calculate, show that, hence, determine, explain, justify, prove, discuss, evaluate",
        ),
    ),
}
#: Other names of them, as people write them.
_ALSO: Mapping[str, str] = {
    "nationalcurriculum": "national_curriculum_england", "nationalcurriculuminengland": "national_curriculum_england",
    "ncengland": "national_curriculum_england", "commoncorestatestandards": "common_core", "ccss": "common_core",
    "internationalbaccalaureate": "ib", "scottishqualificationsauthority": "sqa", "us": "united_states",
    "usa": "united_states", "theunitedstates": "united_states", "unitedstatesofamerica": "united_states",
    "international": "none",
}  # fmt: skip


def known_name(name: str, known: Mapping[str, object]) -> str:
    """Return the key of FRAMEWORKS or REGIONS that a name stands for, in any spelling; "" where none is known."""
    return _spellings(known).get(_plain(name), "")


def named_framework(text: str) -> str:
    """Return the title of the framework that a text names; "" where it names none, or several."""
    found = [each.title for each in FRAMEWORKS.values() if each.title and _in(each.title, text)]
    if not found and re.search(r"\bCCSS\b", text):
        # The codes of its standards: CCSS.MATH.CONTENT.8.EE.A.1.
        found = [FRAMEWORKS["common_core"].title]
    return found[0] if len(found) == 1 else ""


def _in(title: str, text: str) -> bool:
    words = title.replace(" ", r"\s+").replace(r"\s+in\s+", r"\s+(?:in\s+|for\s+)?")
    return bool(re.search(rf"\b{words}\b", text, 0 if title.isupper() else re.IGNORECASE))


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
    if key := known_name(given, REGIONS):
        return REGIONS[key]
    return Region(given, places=(f"a town in {given}", f"a village in {given}", f"a city in {given}"))


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
