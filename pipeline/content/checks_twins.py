"""Checks that a plain twin says what its text says: numbers, equations, length, and words of opposite meaning (23)."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from pipeline.content.fields import count_words
from pipeline.content.findings import Case, Fault, Severity
from pipeline.content.lesson import ExplainerCard
from pipeline.content.numbers import ANY_YEAR, FORMULA, without_formulas

_NUMBER = re.compile(r"(?<![\w.])\d+(?:[, ]\d{3})*(?:\.\d+)?")
_DIGITS = re.compile(r"\d+(?:\.\d+)?")
#: A number in words with what stands behind it: "72 square metres", "£240", "20 %".
_MEASURED = re.compile(
    r"(£)?(?<![\w.])(\d+(?:,\d{3})*(?:\.\d+)?)(?:\s?(%|°|[A-Za-zµΩ][\w⁻²³/]*(?:\s(?:[smg]|metres)[⁻²³]*)?))?"
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_WORD = re.compile(r"[a-z]{3,}")
#: Words that turn a sentence round when one stands in the place of the other.
_OPPOSITES = (
    ("larger", "smaller"), ("larger", "less"), ("greater", "smaller"), ("greater", "less"), ("more", "less"),
    ("more", "fewer"), ("higher", "lower"), ("longer", "shorter"), ("faster", "slower"), ("bigger", "smaller"),
    ("increases", "decreases"), ("rises", "falls"), ("grows", "shrinks"), ("upwards", "downwards"),
    ("positive", "negative"), ("multiply", "divide"), ("multiplied", "divided"), ("add", "subtract"),
    ("added", "subtracted"), ("before", "after"), ("always", "never"), ("left", "right"), ("above", "below"),
    ("maximum", "minimum"), ("largest", "smallest"), ("highest", "lowest"), ("first", "last"), ("same", "different"),
    ("equal", "unequal"), ("gains", "loses"), ("opens", "closes"), ("parallel", "perpendicular"), ("top", "bottom"),
    ("numerator", "denominator"), ("series", "parallel"), ("clockwise", "anticlockwise"), ("even", "odd"),
)  # fmt: skip
_EITHER_WAY = tuple(pair for both in _OPPOSITES for pair in (both, both[::-1]))
_SAID_OF_THINGS = frozenset(
    ("is", "are", "was", "were", "has", "have", *(word for both in _OPPOSITES for word in both))
)
#: Of these what stands behind them counts: "after the test" and "before the lesson" may both be true.
_OF_TIME = ("before", "after")
#: Words that two sentences share at least, as a part of the shorter one's, where they say the same thing.
_ALIKE = 0.6


def twin(case: Case) -> Iterator[Fault]:
    """Check that a plain twin has the numbers and formulas of its text, 60 to 80 % of its length, and its sense."""
    yield from years(case.texts)
    for number, card in enumerate(case.lesson.cards, 1):
        if isinstance(card, ExplainerCard):
            where, also = f"c{number}.plain", (f"c{number}.text",)
            full, plain = _figures(card.text), _figures(card.plain)
            wanted = "the same numbers and equations"
            added = sorted(plain - full)
            if added:
                yield Fault(where, f"{', '.join(added[:4])} is not in the text", wanted, also=also)
            if lost := sorted(full - plain):
                # A number that only names a step or a year may go; several cannot be chance.
                grave = len(lost) > max(2, len(full) // 4)
                yield Fault(where, f"{', '.join(lost[:4])} is missing", wanted, _grade(grave), also)
            for one, other in () if added else _exchanged(card.text, card.plain):
                yield Fault(where, f"{other}, where the text has {one}", wanted, also=also)
            # As it is printed: 80.4 % is 80 %.
            share = round(count_words(card.plain) / max(1, count_words(card.text)), 2)
            if not 0.6 <= share <= 0.8:
                grave = not 0.48 <= share <= 0.96
                yield Fault(where, f"{share:.0%} as long as the text", "60 to 80 %", _grade(grave), also)
            yield from (
                Fault(where, f"{other!r}, where the text says {one!r}: {said}", "the same claims", also=also)
                for one, other, said in _turned(card.text, card.plain)
            )
            for said, wanted in _denied(card.text, card.plain):
                yield Fault(where, f"{said!r}, where the text says {wanted!r}", "the same claims", also=also)


def _grade(grave: bool) -> Severity:
    return "R" if grave else "W"


def _figures(text: str) -> set[str]:
    """Return the numbers of a text, in formulas or beside them, without their thousands commas."""
    return {found.replace(",", "").replace(" ", "") for found in _NUMBER.findall(text.replace("{,}", ","))}


def _exchanged(text: str, plain: str) -> Iterator[tuple[str, str]]:
    """Yield formulas and quantities of one shape that are as many in text and twin, and differ in one number."""
    full, short = _shapes(text), _shapes(plain)
    for shape, ones in full.items():
        others = short.get(shape, Counter())
        if ones.total() == others.total() and len(lost := list((ones - others).elements())) == 1:
            gained = next((others - ones).elements())
            # "is 30°" and "to 180°" say different things.
            if " " not in shape or _before(lost[0], text) & _before(gained, plain):
                yield lost[0], gained


def _before(quantity: str, text: str) -> set[str]:
    """Return the words before a quantity, wherever it stands in a text."""
    return set(re.findall(rf"(\S+)\s{re.escape(quantity)}", text))


def _shapes(text: str) -> dict[str, Counter[str]]:
    """Return formulas and quantities by what is left of them without their digits."""
    found: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for printed in FORMULA.findall(text):
        formula = re.sub(r"\s|\\left|\\right", "", printed[2:-2])
        if re.search(r"\d", formula):
            found[_DIGITS.sub("#", formula)][formula] += 1
    for match in _MEASURED.finditer(without_formulas(text, "…")):
        if match[1] or match[3]:
            found[f"{match[1] or ''}# {match[3] or ''}"][match[0]] += 1
    return found


def _turned(text: str, plain: str) -> Iterator[tuple[str, str, str]]:
    """Yield a word of the text, its opposite in the twin and the sentence, where both sentences are about the same."""
    every = set(_WORD.findall(text.lower()))
    told = [(one, set(_WORD.findall(one))) for one in _SENTENCE.split(text.lower())]
    for sentence in _SENTENCE.split(plain.lower()):
        words = set(_WORD.findall(sentence))
        full, near = max(told, key=lambda one: len(one[1] & words))
        turned = {
            other: one
            for one, other in _EITHER_WAY
            if other in words and one not in words and other not in every and one in near
        }
        # "The more …, the longer …" and "the less …, the shorter …" say the same.
        if len(turned) != 1 or re.search(r"\bnot\b|n't", sentence) or _other_way_round(full, sentence):
            continue
        other, one = next(iter(turned.items()))
        matter, others = _behind(one, full), _behind(other, sentence)
        if one in _OF_TIME and matter and others and matter.isdisjoint(others):
            continue
        shared = len((words - {other}) & near)
        if shared >= max(2, _ALIKE * min(len(words) - 1, len(near) - 1)):
            yield one, other, sentence[:60]


def _behind(word: str, sentence: str) -> set[str]:
    """Return the words that stand next behind a word."""
    return set(_WORD.findall(" ".join(sentence.partition(f"{word} ")[2].split()[:4]))) - {"the", "and"}


def _other_way_round(text: str, plain: str) -> bool:
    """Say whether two comparisons name their things in another order: "a is longer than b", "b is shorter than a"."""
    things = []
    for sentence in (text, plain):
        before, than, after = (set(re.findall(r"\w+", side)) for side in sentence.partition(" than "))
        if not than:
            return False
        things.append((before - after - _SAID_OF_THINGS, after - before - _SAID_OF_THINGS))
    (first, second), (other_first, other_second) = things
    return len(first & other_second) + len(second & other_first) > len(first & other_first) + len(second & other_second)


_CLAUSE = re.compile(r"[.!?;:,](?:\s+|$)|\s(?:and|but|so|because|that)\s|\n+")
_DENIED = re.compile(r"\b(?:not|no|never|cannot|neither)\b|n['’]t\b", re.IGNORECASE)
#: Other words that deny, and words of mistakes and of conditions.
_UNSURE = re.compile(
    r"\b(?:no\w+|none|mistake|wrong|if|instead|than|except|unless|only"
    r"|the (?:more|less|fewer|(?:high|low|larg|small|great|long|short|fast|slow|bigg)er))\b",
    re.IGNORECASE,
)


def _denied(text: str, plain: str) -> Iterator[tuple[str, str]]:
    """Yield clauses of the twin and of the text that say the same, but one with a not or with the opposite word."""
    told = [(full, set(_WORD.findall(full.lower()))) for full in _CLAUSE.split(text) if full]
    for clause in filter(None, _CLAUSE.split(plain)):
        words = set(_WORD.findall(clause.lower()))
        near = [(full, others) for full, others in told if len(words & others) >= max(3, 0.5 * len(words | others))]
        if not near or _UNSURE.search(_DENIED.sub("", f"{clause} {near[0][0]}")):
            continue
        turned = [one in words - others and other in others - words for _, others in near for one, other in _EITHER_WAY]
        denied = [bool(_DENIED.search(full)) is not bool(_DENIED.search(clause)) for full, _ in near]
        if all(denied) or (sum(turned) == 1 == len(near) and not any(denied)):
            yield clause.strip(), near[0][0].strip()


def years(texts: Sequence[tuple[str, str]]) -> Iterator[Fault]:
    """Find a year that stands once, beside another of the same digits that is told of the same thing elsewhere."""
    told = [
        (where, year, {word[:5] for word in re.findall(r"[a-z]{4,}", clause.lower())})
        for where, text in texts
        for clause in _SENTENCE.split(text)
        for year in ANY_YEAR.findall(clause)
    ]
    times = Counter(year for _, year, _ in told)
    for where, year, words in told:
        for other in [one for one in times if sorted(one) == sorted(year) and times[one] > times[year] == 1]:
            if any(len(words & others) > 1 for _, one, others in told if one == other):
                yield Fault(where, f"the year {year}, elsewhere {other}", "one year for one thing", "R")
