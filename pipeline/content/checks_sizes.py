"""Checks that sizes are possible: of people and things, of shares of a whole, of angles, times and constants (20)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pipeline.content.cast import EVERY_PERSON
from pipeline.maths import units

_SENTENCE = re.compile(r"(?<=[.?!])\s")
_N = r"(?<![\d.,])(\d[\d,]*(?:\.\d+)?)"
_DIGIT = re.compile(r"\d")
#: People, and such as move or climb, whose height may be that above the ground.
_STANDING = (
    "person|people|man|woman|boy|girl|child|pupil|student|teacher|adult|teenager|toddler|baby|nurse|farmer|friend|"
    "brother|sister|mother|father"
)
_PERSON = rf"(?:{_STANDING}|player|runner|swimmer|cyclist|skater|driver|climber|athlete|passenger)s?"
_SOMEBODY = rf"(?:{_PERSON}|[Hh]e|[Ss]he|who|{'|'.join(EVERY_PERSON)})"
_A_MODEL = re.compile(r"\b(?:models?|toys?|dolls?|scale|statues?|drawings?|photo\w*|pictures?)\b", re.IGNORECASE)
_LENGTH = r"(m|cm|mm|km|metres|centimetres|kilometres)\b(?![²³/])"
_LONG = re.compile(r" (?:tall|high|long|wide)\b", re.IGNORECASE)
#: What a thing of everyday measures at most and at least, in metres.
_LENGTHS = {
    r"door": (0.1, 8), r"(?:pencil|pen|crayon)": (0.004, 0.4), r"(?:phone|mobile)": (0.03, 0.4), "book": (0.03, 0.8),
    r"(?:desk|table)": (0.2, 10), "chair": (0.2, 3), "car": (1, 15), "bus": (2, 30), "ladder": (0.2, 40),
    "football pitch": (30, 150), "classroom": (2, 60), "mountain": (200, 9000), "swimming pool": (1, 100),
    "lamp post": (0.05, 30), "bicycle": (0.4, 4),
}  # fmt: skip
#: Who or what moves, and the highest speed in m/s: a cheetah runs and a dolphin swims faster than a person.
_SPEEDS = {
    rf"(?:walkers?|pedestrians?|{_SOMEBODY} (?:\w+ly )?(?:is )?(?:walk|stroll)(?:s|ed|ing)?)": 4,
    rf"(?:(?:runn|jogg|sprint)ers?|{_SOMEBODY} (?:\w+ly )?(?:is )?(?:runs?|ran|running|jog\w*|sprint\w*))": 13,
    rf"(?:swimmers?|{_SOMEBODY} (?:\w+ly )?(?:is )?(?:swims?|swam|swimming))": 4,
    r"(?:cycl(?:e|es|ed|ing|ists?)|bicycle|bike)": 35,
    r"(?:car|bus|lorry|van|tram|taxi|tractor|motorbike|motorcycle)": 110, r"(?:ferry|boat|ship|canoe|kayak|yacht)": 45,
    "train": 170,
}  # fmt: skip
#: Things whose speed has no everyday bound, or is not that of what moves.
_FAST = re.compile(
    r"\b(?:sound|light|wave|signal|electron|proton|particle|rocket|plane|aircraft|jet|satellite|spacecraft|bullet|ball|"
    r"meteor\w*|planet|comet|current|water|wind|up to speed|model|toy)\b",
    re.IGNORECASE,
)
_SPEED = re.compile(rf"{_N}\s?((?:m/s|m s⁻¹|km/h|mph|miles per hour|metres per second|kilometres per hour))(?![²\w])")
_TALL = re.compile(
    rf"\b{_SOMEBODY}\b(?:\s(?:who|that))?\s(?:is|was|stands)\s(?:about\s)?{_N}\s?{_LENGTH}\stall\b"
    rf"|\bheight of (?:the|a|an|this|each)\s(?:{_STANDING})\s(?:is|of)\s{_N}\s?{_LENGTH}(?!\s(?:above|from|up)\b)"
)
_MASSES = (
    rf"\b{_PERSON}\s(?:of|with a|has a|have a)\smass(?:\sof)?\s{_N}\s?(kg|g)\b",
    rf"\b{_N}\s?(kg|g)\s{_PERSON}\b",
    rf"\bmass of (?:the|a|an)\s{_PERSON}\sis\s{_N}\s?(kg|g)\b",
)
#: Pattern with one number -> least and most, and what it is.
_BOUNDS: tuple[tuple[str, float, float, str], ...] = (
    (rf"{_N}\s?°C\b", -273.15, 1e9, "a temperature"),
    (rf"\b(?:body|patient'?s?) temperature (?:is|of) {_N}\s?°C", 30, 44, "a body temperature"),
    (rf"{_N} hours (?:a|per|each|every) day\b", 0, 24, "hours a day"),
    (rf"{_N} hours (?:a|per|each|every) week\b", 0, 168, "hours a week"),
    (rf"{_N} days (?:a|per|each|every) week\b", 0, 7, "days a week"),
    (rf"{_N} days (?:a|per|in a|in the) year\b", 0, 366, "days a year"),
    (rf"{_N} months (?:a|per|in a|in the) year\b", 0, 12, "months a year"),
    (rf"{_N} days (?:a|per|in a) month\b", 0, 31, "days a month"),
    (rf"\bclass of (?!(?:19|20)\d\d\b){_N}\b", 2, 60, "a class"),
    (rf"\b(?:earn\w*|wages?|paid|pay (?:of|is))\b(?:(?!\b(?:extra|more|rise|bonus)\b)[^.?;£]){{0,40}}£{_N} an hour\b",
     1, 500, "pay for an hour"),
    (r"(?:\b(?:[Aa]n?|[Oo]ne|[Ee]ach|[Ee]very|[Tt]he|[Tt]his) |^|[.?!,;] )(?:[Cc]offee|[Tt]ea|sandwich|pencil|pen"
     rf"|apple|cake|roll|loaf|bus ticket|ice cream|pie) costs? £{_N}", 0, 60, "the price of it"),
    (rf"{_N}\s?% (?:of (?:the|all|its|their|his|her) )(?:people|pupils|students|guests|voters|votes|class|customers|"
     r"visitors|passengers|seats|tickets)\b(?! (?:of last|of the (?:year|week|month|day)|last|in \d{4}|before|than)\b)"
     r"(?! an? \w+ (?:ago|before|earlier)\b)", 0, 100, "a share"),
    (rf"\b(?:loses?|lost|depreciates? by|discount of|sale of|falls? by|fell by) {_N}\s?%", 0, 100, "what is taken off"),
    (rf"{_N}\s?% (?:off|(?:is|are|was|were) taken off|is left|are left|discount|charge left)\b", 0, 100, "a share"),
    (rf"\bacute angle (?:of|is) {_N}\s?°", 0, 89.999, "an acute angle"),
    (rf"\bobtuse angle (?:of|is) {_N}\s?°", 90.001, 179.999, "an obtuse angle"),
    (rf"\breflex angle (?:of|is) {_N}\s?°", 180.001, 359.999, "a reflex angle"),
    (rf"\bbearing (?:of|is) {_N}\s?°", 0, 360, "a bearing"),
    (rf"\befficiency (?:of|is) {_N}\s?%", 0, 100, "an efficiency"),
    (rf"\bpH (?:of|is|value of) {_N}", -1, 14.5, "a pH"),
    (rf"\b(?:heart rate|pulse) (?:of|is) {_N} beats (?:a|per) minute", 25, 240, "a pulse"),
)  # fmt: skip
#: Constants of the data sheet by their names, with the values that are printed for them.
_CONSTANTS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    (r"Planck(?:'|’)s constant", r"10\^\{-34\}", ("6.63", "6.626")),
    (r"speed of light(?: in (?:a )?vacuum| in air)?", r"10\^\{?8\}?", ("3.0", "3.00", "3", "2.998")),
    (r"charge (?:of|on) (?:an|the|one) electron", r"10\^\{-19\}", ("1.6", "1.60", "1.602")),
    (r"mass of (?:an|the|one) electron", r"10\^\{-31\}", ("9.11", "9.1", "9.109")),
)
#: What is told of a probability at the end of a sentence: "the probability that the mean is 12 is 0.4".
_CHANCE = re.compile(
    rf"\bprobability (?:of|that|for)\b[^?;]*\s(?:is|was|equals|=) {_N}(?=[.;]?\s*$|,? (?:so|because|since|which|but)\b)"
)
#: Sentences in which what "is 7" is asked for, or supposed.
_ASKS = re.compile(
    r"\?|\b(?:calculate|find|work out|gives?|write|state|estimate|determine|explain|shows?|compare|uses?|needs?|wants?"
    r"|look for|means that|call|let|this is|what|how)\b",
    re.IGNORECASE,
)
_TIME_OF_DAY = re.compile(r"\b(?:at|from|until|till) (\d{1,2}):(\d{2})\b")
_A_RATIO = re.compile(r"\b(?:ratios?|scales?|maps?|mix\w*|shar\w+|parts)\b", re.IGNORECASE)
#: Where light is slower.
_MATTER = re.compile(r"\b(?:water|glass|diamond|plastic|perspex|liquid|medium|material|fibre|block|prism)\b")
_SHARES = re.compile(rf"(?:[A-Za-z][\w-]*(?: [a-z]+)? {_N}\s?%(?:,| and|, and)? ?){{3,}}")
_WHOLE = re.compile(r"\b(?:pie chart|survey\w*|asked|whole|made of|consists of|contains|composition)\b", re.IGNORECASE)
_DEGREES = rf"((?:{_N}\s?°(?:,| and|, and)? ?)+)"
_ANGLES = re.compile(
    rf"\b(?:[Tt]wo|[Tt]hree|[Tt]he)?\s?angles (?:of|in) (?:a|the|this) triangle (?:are|measure) {_DEGREES}"
    rf"|\btriangle (?:has|with)(?: (?:two|three))? angles (?:of )?{_DEGREES}"
)
#: Three sides of a triangle in words; questions whether there is one.
_UNIT = r"(?:\s?[a-z]+)?"
_SIDES = re.compile(
    rf"\btriangles?\b[^.?;]{{0,30}}\b(?:sides?|lengths)\b[^.?;\d]{{0,20}}{_N}{_UNIT},\s{_N}{_UNIT}\sand\s{_N}"
    rf"|\b(?:[Tt]riangle [A-Z]{{3}})\b[^.?;\d]{{0,12}}[A-Z]{{2}}(?: is| =)? {_N}{_UNIT},"
    rf"\s[A-Z]{{2}}(?: is| =)? {_N}{_UNIT} and [A-Z]{{2}}(?: is| =)? {_N}"
)
_WHETHER = re.compile(r"\b(?:can|cannot|could|possible|impossible|whether|why|is it|exists?|draw)\b", re.IGNORECASE)
_SOUGHT = r"\b(?:calculate|find|determine|work out|estimate|state|what is)\b[^.?]{0,40}\b"
#: What a question asks for, the least and the most that it may be, and what is said where it is not.
_ASKED: tuple[tuple[str, float, float, str], ...] = (
    (r"(?:kinetic energy|energy of (?:a|one|each|the) photon|work function)\b", 0, 1e99, "such an energy is positive"),
    (r"(?:frequency|resistance|capacitance|amplitude|half-life|concentration|period|standard deviation|range|"
     r"uncertainty)\b", 0, 1e99, "it is positive"),
    (r"(?:efficiency|percentage yield|atom economy|percentage (?:of|by) mass)\b", 0, 100, "it is from 0 to 100 %"),
    (r"pH\b", -1, 14.5, "a pH is from 0 to 14"),
)  # fmt: skip


def impossible_answer(ask: str, value: float) -> str:
    """Return why an answer cannot be what its question asks for, "" where it can."""
    said = (
        what
        for noun, least, most, what in _ASKED
        if not least <= value <= most and re.search(_SOUGHT + noun, ask, re.IGNORECASE)
    )
    return next(said, "")


def impossible(text: str) -> Iterator[str]:
    """Yield each size of a text that cannot be."""
    if not _DIGIT.search(text):
        return
    yield from _of_people(text)
    for thing, (least, most) in _LENGTHS.items() if _LONG.search(text) else ():
        said = rf"\b{thing}\b (?:is|of height|of length|stands)? ?(?:about )?{_N}\s?{_LENGTH}{_LONG.pattern}"
        for match in re.finditer(said, text, re.IGNORECASE):
            if not least <= in_base(match[1], match[2]) <= most and not _A_MODEL.search(text):
                yield match[0]
    for pattern, least, most, what in _BOUNDS:
        for match in re.finditer(pattern, text):
            sign = -1 if text[: match.start(1)].endswith(("-", "−")) else 1
            if not least <= sign * float(match[1].replace(",", "")) <= most:
                yield f"{match[0]}: {what}"
    yield from _of_chances(text)
    for match in _TIME_OF_DAY.finditer(text) if not _A_RATIO.search(text) else ():
        if int(match[1]) > 24 or int(match[2]) > 59:
            yield f"{match[0]}: a time of day"
    yield from _of_wholes(text)
    yield from _constants(text)


def _of_chances(text: str) -> Iterator[str]:
    for sentence in _SENTENCE.split(text):
        said = None if _ASKS.search(sentence) else _CHANCE.search(sentence)
        if said and float(said[1].replace(",", "")) > 1:
            yield f"{said[0]}: a probability"


def _of_people(text: str) -> Iterator[str]:
    for match in _TALL.finditer(text):
        number, unit = (match[1], match[2]) if match[1] else (match[3], match[4])
        if not 0.3 <= in_base(number, unit) <= 2.6 and not _A_MODEL.search(text):
            yield match[0]
    for pattern in _MASSES:
        for match in re.finditer(pattern, text):
            if not 1.5 <= float(match[1].replace(",", "")) / (1 if match[2] == "kg" else 1000) <= 250:
                yield match[0]
    for sentence in _SENTENCE.split(text) if _SPEED.search(text) else ():
        movers = [most for mover, most in _SPEEDS.items() if re.search(rf"\b{mover}\b", sentence, re.IGNORECASE)]
        for match in _SPEED.finditer(sentence) if movers and not _FAST.search(sentence) else ():
            if in_base(match[1], match[2]) > max(movers):
                yield f"{match[0]} in {sentence[:60]!r}"


def in_base(number: str, unit: str) -> float:
    """Return a length in metres, a speed in m/s."""
    known = units.unit({"miles per hour": "mph"}.get(unit, unit))
    return float(number.replace(",", "")) * float(known.factor if known else 1)


def _of_wholes(text: str) -> Iterator[str]:
    for match in _SHARES.finditer(text):
        total = sum(float(share.replace(",", "")) for share in re.findall(rf"{_N}\s?%", match[0]))
        if total > 100.6 and _WHOLE.search(text):
            yield f"{match[0].strip()} are {total:g} % together"
    for match in _SIDES.finditer(text) if not _WHETHER.search(text) else ():
        short, middle, long = sorted(float(side.replace(",", "")) for side in match.groups() if side)
        if short + middle <= long:
            yield f"{match[0].strip()}: two sides are together longer than the third"
    for match in _ANGLES.finditer(text):
        angles = [float(angle) for angle in re.findall(r"(\d+(?:\.\d+)?)\s?°", match[0])]
        if (
            sum(angles) > 180
            or (len(angles) == 3 and abs(sum(angles) - 180) > 1)
            or (len(angles) == 2 and sum(angles) == 180)
        ):
            yield match[0].strip()


def _constants(text: str) -> Iterator[str]:
    for name, power, values in _CONSTANTS:
        said = (
            rf"\b{name}\b(?: is|,| =|\s\\\(\w+\\\) is|\s\\\(\w+ ?=)?\s(?:\\\()?\s?{_N}"
            r"(\s*\\times\s*)(\d+\^\{?[-−]?\d+\}?)"
        )
        for match in (
            found for one in _SENTENCE.split(text) if not _MATTER.search(one) for found in re.finditer(said, one)
        ):
            if match[1] not in values or not re.fullmatch(power, match[3]):
                yield f"{match[0]}"
    gravity = (
        rf"acceleration due to gravity (?:is|on Earth is|of) {_N}\s?(?:m/s²|m s⁻²)"
        rf"|\b(?:take|use) {_N}\s?(?:m/s²|m s⁻²) (?:for|as) the acceleration due to gravity"
    )
    for match in re.finditer(gravity, text, re.IGNORECASE):
        if (match[1] or match[2]) not in ("9.8", "9.81", "10") and not re.search(
            r"\b(?:Moon|Mars|planet|measure\w*|mean)\b", text
        ):
            yield match[0]
