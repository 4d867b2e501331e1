"""Checks of texts: scope, twins, reading, repeats, keywords, names, Britain, stray talk, safety, notation."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from statistics import mean
from typing import Any

from pipeline.content.banned_text import stray_talk
from pipeline.content.cast import NAME, PERSON
from pipeline.content.checks_aims import stems
from pipeline.content.findings import Case, Fault, Severity
from pipeline.content.lesson import ExplainerCard, Item
from pipeline.content.levels import level_row
from pipeline.content.numbers import FORMULA, numbers_in, without_formulas
from pipeline.content.spelling import misspelt
from pipeline.frameworks import region_of
from pipeline.publish import mathml

_WORD = re.compile(r"\w+")
#: Full stop, question mark or exclamation mark, perhaps with a quotation's end ("… parc. » Then"), before a space and
#: a capital; or the end of a paragraph.
_SENTENCE = re.compile(r"(?<=[.!?])(?:[\"”’']|\s?»)?\s+(?=(?:[\"“‘']|«\s?)?[A-ZÀ-ÖØ-Þ\\£\d(])|\n+")


def scope(case: Case) -> Iterator[Fault]:
    """Warn of a title word of a later outcome that neither the points nor the prior knowledge of the lesson have."""
    mine = set(case.entry.get("outcome_refs", ())) | set(case.entry.get("cross_cutting", ()))
    outcomes = [out for group in case.course["groups"] for out in group["outcomes"]]
    places = [number for number, out in enumerate(outcomes) if out["id"] in mine]
    allowed = " ".join(str(out) for out in outcomes[: max(places, default=len(outcomes)) + 1]).lower()
    allowed += " ".join([*case.lesson.prior, *case.lesson.keywords]).lower()
    general = {
        word[:6] for word in re.findall(r"[a-z]{6,}", f"{case.course['subject']} {case.course['title']}".lower())
    }
    later = {
        word: out["title"]
        for out in outcomes[max(places, default=len(outcomes)) + 1 :]
        for word in re.findall(r"[a-z]{8,}", out["title"].lower())
        if word[:7] not in allowed and word[:6] not in general and stems(word)
    }
    # What a class goes on to may be named to its teacher.
    said = [text for where, text in case.texts if not where.startswith("notes") and ".rubric" not in where]
    text = " ".join(said).lower()
    for word, title in later.items():
        if re.search(rf"\b{re.escape(word)}", text):
            yield Fault("cards", f"{word!r} belongs to a later outcome, {title}", "only what is taught by now")


def _grade(grave: bool) -> Severity:
    return "R" if grave else "W"


def reading(case: Case) -> Iterator[Fault]:
    """Check the length of sentences and words of explainers and twins against the level."""
    row = level_row(case.course)
    terms = " ".join(keyword.split(":")[0].lower() for keyword in case.lesson.keywords)
    for number, card in enumerate(case.lesson.cards, 1):
        if isinstance(card, ExplainerCard):
            yield from _readable(f"c{number}.text", card.text, row.sentence, row.long_words, terms)
            yield from _readable(f"c{number}.plain", card.plain, row.plain, 6, terms)


def _readable(where: str, text: str, sentence: tuple[int, int], long_words: int, terms: str) -> Iterator[Fault]:
    plain = without_formulas(text, "x")
    lengths = [len(one.split()) for one in _SENTENCE.split(plain) if one.strip()]
    for found, limit, what in ((mean(lengths), sentence[0], "on average"), (max(lengths), sentence[1], "at most")):
        if (found := round(found, 1)) > limit:
            grave = found > 1.5 * limit
            yield Fault(where, f"sentences of {found:g} words {what}", f"{limit} words {what}", _grade(grave))
    words = [word for word in re.findall(r"[a-z]{3,}", plain.lower()) if word not in terms]
    share = 100 * sum(_syllables(word) >= 3 for word in words) / max(1, len(words))
    if share > max(2 * long_words, long_words + 12):
        yield Fault(where, f"{share:.0f} % long words", f"at most {long_words} % of three or more syllables", "W")


def _syllables(word: str) -> int:
    return len(re.findall(r"[aeiouy]+", re.sub(r"(?:es|ed|e)$", "", word))) or 1


#: Two questions that share more than this part of their runs of five words are near copies.
_ALIKE = 0.6
_RUN = 5


def repeats(case: Case) -> Iterator[Fault]:
    """Check that no two questions, and no question and worked example, ask the same but for names and places."""
    items = [(f"{where}.ask", item.model_dump(exclude_none=True)) for where, item in case.lesson.items()]
    parts = [(where, part.model_dump(exclude_none=True)) for where, part in case.lesson.examples()]
    asked, shown = ([(where, asked_words(one), sums_of(one)) for where, one in ones] for ones in (items, parts))
    for index, (where, words, sums) in enumerate(asked):
        for other, before, its_sums in [*shown, *asked[:index]]:
            if words == before:
                yield Fault(where, f"the same question as {other}, names apart", "a question of its own")
                break
            if sums and sums == its_sums:
                # Two questions may want other quantities that come to one number; an example shows all of its sums.
                said, grave = f"the numbers and the answer of {other} in other words", _grade(".e" in other)
                yield Fault(where, said, "numbers of its own", grave)
                break
            if _near(words, before):
                yield Fault(where, f"nearly the same as {other}", "a different question", "W")
                break


#: The bases of a strand, the letters of a code.
_CODE = re.compile(r"\b[A-Z]{5,}\b")


def sums_of(item: Mapping[str, Any]) -> tuple[Sequence[Any], ...] | None:
    """Return the formulas or numbers that a question or example gives and its answer's; None where they tell little."""
    parts = item.get("parts", ())
    given = " ".join([item["ask"], *_lines(item), *(part["ask"] for part in parts)])
    # Where an example has no answer, it is what its last line comes to.
    last = re.split(r"=|≈|\\approx", item["working"][-1])[-1]
    answer = " ".join(part["answer"] for part in parts) or item.get("answer") or last
    if options := item.get("options"):
        answer = options[0]["text"]
    formulas = tuple(sorted(re.sub(r"\s", "", found) for found in FORMULA.findall(given) if re.search(r"\d", found)))
    numbers = tuple(sorted(n for n in numbers_in(given) if n > 1 or n.denominator > 1))
    result = tuple(sorted(set(numbers_in(answer))))
    codes = tuple(sorted(_CODE.findall(given)))
    return ((formulas or numbers) + codes, result) if result and (formulas or len(numbers) > 1) else None


def _near(one: Sequence[str], two: Sequence[str]) -> bool:
    left, right = ({tuple(words[i : i + _RUN]) for i in range(len(words) - _RUN + 1)} for words in (one, two))
    return len(left & right) > _ALIKE * len(left | right) > 0


def asked_words(item: Mapping[str, Any]) -> list[str]:
    """Return the words and numbers of a question, figures and options included; names of people and towns are one."""
    parts = [part["ask"] for part in item.get("parts", ())]
    options = sorted(option["text"] for option in item.get("options", ()))
    text = NAME.sub("Name", " ".join([item["ask"], *_lines(item), *parts, *options]))
    return _WORD.findall(text.lower())


def _lines(item: Mapping[str, Any]) -> list[str]:
    return [line for figure in item.get("figures", ()) for line in figure["lines"]]


def repeats_between(lessons: Mapping[int, Mapping[str, Any]]) -> Iterator[tuple[int, Fault]]:
    """Find questions that an earlier lesson asked, in the same words, with other names or about other things.

    Yields:
        The order of the later lesson, and the fault.
    """
    first: dict[Any, str] = {}
    for order, lesson in lessons.items():
        mine: dict[Any, str] = {}
        for number, card in enumerate(lesson["cards"], 1):
            for place, item in enumerate(card.get("items", ()), 1):
                keys, where = [tuple(asked_words(item)), *filter(None, [sums_of(item)])], f"c{number}.q{place}"
                if before := next((first[key] for key in keys if key in first), ""):
                    yield order, Fault(where, f"asks what {before} asked: {item['ask'][:60]}", "a new question")
                mine |= {key: f"lesson {order} {where}" for key in keys if key not in mine}
        first = {**mine, **first}


def keywords(case: Case) -> Iterator[Fault]:
    """Check that a keyword is defined without itself, and met in an explainer and in a question."""
    told = [(where, text) for where, text in case.texts if re.fullmatch(r"c\d+\.(?:text|plain)", where)]
    explained = " ".join(text for _, text in told).lower()
    asked = " ".join(text for where, text in case.texts if ".q" in where).lower()
    for number, keyword in enumerate(case.lesson.keywords, 1):
        term, _, definition = keyword.partition(":")
        stem, words = stem_of(term), [stem_of(word) for word in term.split()]
        same = re.search(rf"\b{re.escape(stem)}", definition.lower()) or (
            min(map(len, words)) > 4 and all(re.search(rf"\b{re.escape(word)}", definition.lower()) for word in words)
        )
        if same:
            yield Fault(f"keywords.{number}", f"{term!r} is defined by itself", "a definition without the term")
        if case.entry["lesson_type"] != "teach":
            continue
        if stem not in explained:
            found, also = f"{term!r} stands in no explainer", [where for where, _ in told]
            yield Fault(f"keywords.{number}", found, "a term that the lesson explains", also=also)
        if stem not in asked:
            yield Fault(f"keywords.{number}", f"{term!r} stands in no question", "a term that a question uses", "W")


def stem_of(term: str) -> str:
    """Return a term without the ending that changes with its use: rationalise, rationalising."""
    plain = term.strip().lower()
    return re.sub(r"(?:ies|es|s|ing|ed|e|y)$", "", plain) if len(plain) > 5 else plain


def usage(case: Case) -> Iterator[Fault]:
    """Check for the spelling, the money and the units of the course's region."""
    region = region_of(case.course)
    for where, text in case.texts:
        # Kinds, and the names of a figure's lines, are words of the schema.
        own = text.rpartition(": ")[2] if ".lines." in where else "" if where.endswith(".kind") else text
        plain = without_formulas(own, " ")
        if found := misspelt(plain, region.spelling):
            yield Fault(where, found[0], f"{region.english}: {found[1]}")
        if region.foreign and (strange := re.search(region.foreign, plain, re.I)):
            yield Fault(where, strange[0], f"{region.money} and {region.coins}, {region.units}")


def names(case: Case) -> Iterator[Fault]:
    """Check that working, marks and feedback speak of the people of the question."""
    cast = region_of(case.course).people
    for where, item in case.lesson.items():
        here = _people(item, cast)
        told = _named(" ".join([*item.working, *item.marks, item.feedback, item.answer or ""]), cast)
        strangers = [name for name in told if name not in here]
        if here and strangers:
            yield Fault(f"{where}.feedback", f"{strangers[0]} is not in the question", ", ".join(here))


def _people(item: Item, cast: Collection[str]) -> list[str]:
    return _named(" ".join([item.ask, *(part.ask for part in item.parts or ())]), cast)


def _named(text: str, cast: Collection[str]) -> list[str]:
    """Return the people of a text that the lesson's author was given; people of the subject are none of them."""
    return sorted(set(PERSON.findall(text)).intersection(cast))


def variety(case: Case) -> Iterator[Fault]:
    """Warn where one person does nearly everything."""
    cast = region_of(case.course).people
    every = Counter(name for _, item in case.lesson.items() for name in _people(item, cast))
    if every and max(every.values()) > max(4, every.total() // 2):
        name, times = every.most_common(1)[0]
        yield Fault("cards", f"{name} in {times} questions", "people named about equally often")


def stray(case: Case) -> Iterator[Fault]:
    """Check for links, markup, sources that are not there, learning styles, praise, chat, words to a judge."""
    for where, text in case.texts:
        if found := stray_talk(text):
            yield Fault(where, found, "only what stands on the page")


#: What never reaches a pupil; what a teacher must be warned of by a label. Whole words, lower case.
_BLOCKED = re.compile(
    r"\b(?:suicid\w+|self[- ]harm\w*|kill (?:yourself|himself|herself|themselves)|porn\w*|(?<!oilseed )rape[ds]?"
    r"|cocaine|heroin|how to make (?:a )?(?:bomb|weapon|explosive)\w*|terroris\w+"
    r"|overdose\w*|slit (?:your|his|her) wrists?)\b",
    re.I,
)
_WARNED = {
    "gambling": r"\b(?:bet|bets|betting|gambl\w+|casino\w*|roulette|lottery|bookmaker\w*)\b",
    "mental_health": r"\b(?:lose weight|weight loss|diet pill\w*|body mass index|bmi|anorexi\w+"
    r"|depress(?:ed(?! (?:prices?|demand|areas?|regions?))|ion)|how much (?:she|he|they) weighs?"
    r"|calorie (?:limit|counting))\b",
    "crime": r"\b(?:murder\w*|stabb\w+|shoot(?:ing)? (?:a|the) (?:person|man|woman)|burglar\w*|robber\w*|stolen)\b",
    "upsetting_theme": r"\b(?:funeral\w*|(?<!tropic of )cancer|died in|dies in|death of|fatal\w*|corpse\w*|killed)\b",
    "violence": r"\b(?:rifle\w*|pistol\w*|handgun\w*|knife attack\w*|bullets?(?![ -](?:point|train|list))|missile\w*"
    r"|grenade\w*)\b",
    "practical_work": r"\b(?:light (?:a|the|your) bunsen|heat (?:the|your) (?:test )?tube|wear (?:your )?goggles"
    r"|(?:add|pour|mix|pipette) (?:\w+ ){0,4}(?:acid|hydroxide)|mains (?:socket|plug)|radioactive source)\b",
    "relationships": r"\b(?:alcohol|beer|wine|whisky|vodka|lager|vap(?:e|es|ing)|cigarette\w*|payday loan\w*)\b",
}
#: All of them at once: nearly every text holds nothing.
_ANY_WARNED = re.compile("|".join(_WARNED.values()), re.I)
_DANGEROUS = re.compile(
    r"\b(?:taste (?:it|the)|smell the (?:gas|fumes)|look (?:straight |directly )?at the sun"
    r"|inhale (?!(?:the )?(?:air|oxygen)|about|and|or|more|less|deeply|through|your|as|when)[a-z]+"
    r"|look (?:straight |directly )?into the (?:beam|laser)|touch the (?:live|bare) wires?"
    r"|push .{0,20}into (?:a|the) (?:mains )?socket|without (?:goggles|supervision|a guard|gloves)"
    r"|(?:drop\w*|throw\w*) .{1,40}(?:from|out of) (?:a|an|the) (?:\w+ )?(?:window|roof|balcony)\b.{0,60}\bcatch"
    r"|(?:let|ask|have) .{1,30}(?:drop|throw|climb) .{1,40}(?:window|roof|balcony)"
    r"|(?:let|ask|have) .{1,30}climb .{1,40}(?:desks?|chairs?)"
    r"|(?:stand|sit|hold a hand) (?:below|under|beneath) (?:the|a) (?:falling|swinging|hanging|heavy)"
    r"|connect .{1,30}to the mains|(?:heat|boil) .{1,30}in a (?:sealed|closed|stoppered|corked)"
    r"|mix (?:the )?bleach|add (?:the )?water to (?:the )?(?:concentrated )?(?:acid|sulfuric acid)"
    r"|pipette .{0,20}by mouth|lean over the"
    r"|drink (?:the|a little of the) solution|short[- ]circuit the (?:battery|cell))\b",
    re.I,
)
#: Words with another sense -> what a lesson of that sense speaks of, and what their text says where it is not meant.
_SENSES = {
    "depress": (
        r"\b(?:(?:air|low) pressure|anticyclones?|isobars?|weather|unemployment|recession|econom(?:y|ic)"
        r"|great depression|glaci\w+|freezing point|sea level)\b",
        r"\b(?:mood|mental\w*|anxi\w+|sad|doctor|suffer\w*|antidepress\w+|therap\w+|depressed)\b",
    ),
    "alcohol": (
        r"\b(?:\w*propanol|\w*butanol|methanol|hydroxyl|esters?|carboxylic|alk[ae]nes?|carbon atoms?)\b",
        r"\b(?:dr[iau]nk\w*|beer|wine|whisky|vodka|party|parties|pub|units? of alcohol)\b",
    ),
}
_REFUSED = re.compile(r"\b(?:never|not|nobody|no one|don't|avoid)\b", re.I)


def safety(case: Case) -> Iterator[Fault]:
    """Check for what must not reach a pupil, and for themes of which a label must warn the teacher."""
    for place, note in enumerate(case.lesson.notes, 1):
        if note.kind == "safety" and "risk assessment" not in note.text.lower():
            yield Fault(f"notes.{place}.text", note.text, "that the school's own risk assessment decides", "R")
    for where, text in case.texts:
        if where.startswith("labels"):
            continue
        if (found := _BLOCKED.search(text)) and not _taught(found, case):
            yield Fault(where, found[0], "nothing of the kind in a lesson")
        if dangerous := next((found for found in _DANGEROUS.finditer(text) if not _forbidden(found)), None):
            yield Fault(where, dangerous[0], "no instruction for dangerous work")
        yield from _themes(where, text, case)


def _themes(where: str, text: str, case: Case) -> Iterator[Fault]:
    """Yield the words of which a label must warn; a label of any kind that quotes them will do: kinds overlap."""
    labels = case.lesson.labels or ()
    told = {label.partition(":")[0] for label in labels}
    words = [(kind, re.search(words, text, re.I)) for kind, words in _WARNED.items() if kind not in told]
    for kind, found in [("upsetting_theme", _BLOCKED.search(text)), *(words if _ANY_WARNED.search(text) else ())]:
        if not found or any(found[0].lower() in label.lower() for label in labels):
            continue
        if _taught(found, case) if found.re is _BLOCKED else _meant(found, case):
            wanted = f"another setting, or a label ({kind}) that quotes it"
            yield Fault(where, found[0], wanted, "R", also=("labels",))


def _taught(found: re.Match[str], case: Case) -> bool:
    """Say whether the outcomes of the lesson name what is found, in any form: terrorist, terrorism."""
    outcomes = (out for group in case.course["groups"] for out in group["outcomes"])
    mine = str([out for out in outcomes if out["id"] in case.entry.get("outcome_refs", ())])
    return any(named[0].lower()[:6] == found[0].lower()[:6] for named in _BLOCKED.finditer(mine))


def _meant(found: re.Match[str], case: Case) -> bool:
    """Say whether a word has the sense that a class is warned of: no depression on a weather map."""
    for word, (matter, person) in _SENSES.items():
        if found[0].lower().startswith(word) and not re.search(person, found.string, re.I):
            return not any(re.search(matter, text, re.I) for _, text in case.texts)
    return True


def _forbidden(found: re.Match[str]) -> bool:
    """Say whether the sentence of dangerous words forbids them, shortly before or within."""
    before = re.split(r"[.!?]\s", found.string[max(0, found.start() - 40) : found.start()])[-1]
    return _REFUSED.search(before + found[0]) is not None


def notation(case: Case) -> Iterator[Fault]:
    """Check that every formula parses; no stray dollar sign or backslash."""
    for where, text in case.texts:
        if "\\" in text or "$" in text:
            for problem in mathml.check(text)[:1]:
                yield Fault(where, f"{problem}: {text}", "mathematics in the allowed notation")
