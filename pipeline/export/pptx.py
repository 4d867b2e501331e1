"""Slides of a lesson for PowerPoint and Google Slides: one idea each, nothing of the answers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pipeline.export.base import Selection
from pipeline.export.deck import UNDER, Deck, SlideItem, items
from pipeline.formulas.plain_text import plain
from pipeline.html import clean, count
from pipeline.publish.lesson_page import calculator_rule, kind_of
from pipeline.publish.questions import ShownQuestion, divided
from pipeline.publish.view import CourseView, LessonView

#: Of an explanation on one slide, about.
_WORDS, _SENTENCES = 42, 3
#: Keywords on one slide, at most.
_KEYWORDS = 5
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z£$0-9\\])")


def files(chosen: Selection) -> Iterator[tuple[str, bytes]]:
    """Yield the slides of each lesson."""
    for lesson in chosen.lessons:
        yield f"{lesson.file}-slides.pptx", _Slides(chosen.view, lesson).made()


class _Slides:
    """The slides of one lesson in the order of its cards."""

    def __init__(self, view: CourseView, lesson: LessonView) -> None:
        language = view.region.language
        self._view, self._lesson = view, lesson
        self._deck = Deck(
            clean(lesson.title),
            language=language if "-" in language else "en-GB",
            foot=f"{view.title} · lesson {lesson.order}" + (" · offline draft" if view.bundle.draft else ""),
            comments=view.rights_line,
        )
        self._beliefs = dict(enumerate(lesson.lesson["misconceptions"], 1))
        self._warned = 0

    def made(self) -> bytes:
        lesson = self._lesson
        place = f"{self._view.title} · {lesson.type.lower()} {lesson.order}"
        self._deck.cover(lesson.title, [lesson.lesson["outcome"], place, *self._view.stated_rights])
        explained = False
        for card in lesson.cards:
            if card["kind"] == "explainer" and not explained:
                self._words()
                explained = True
            {"explainer": self._explainer, "modelling": self._modelling}.get(card["kind"], self._questions)(card)
        return self._deck.save()

    def _notes(self, card: Mapping[str, Any]) -> str:
        said = f"{kind_of(card, self._lesson)[1]}, {count(card['minutes'], 'minute')}. {card.get('instructions') or ''}"
        return said.strip()

    def _words(self) -> None:
        words = [word.partition(": ") for word in self._lesson.lesson["keywords"]]
        for start in range(0, len(words), _KEYWORDS):
            content = [
                each
                for term, _, meaning in words[start : start + _KEYWORDS]
                for each in items(meaning, lead=f"{term}:")
            ]
            self._deck.slides("Words you need" if not start else "More words you need", content)

    def _explainer(self, card: Mapping[str, Any]) -> None:
        ideas = _ideas(card["text"])
        figures = list(card.get("figures") or ())
        for place, idea in enumerate(ideas, 1):
            many = f" ({place} of {len(ideas)})" if len(ideas) > 1 else ""
            content = [item for sentence in idea for item in items(sentence)]
            self._deck.slides(f"{card['title']}{many}", content, notes=self._notes(card) if place == 1 else "")
        for figure in figures:
            self._deck.slides(f"{card['title']}: look at this", [], figures=[figure])
        self._deck.slides(f"{card['title']}: not an example", items(card["non_example"]))
        for number in card["mistakes"]:
            if belief := self._beliefs.get(number):
                content = [
                    *items(belief["belief"], lead="✗ A common mistake:"),
                    *items(belief["correction"], lead="✓ What is true:"),
                ]
                # The lesson numbers them in another order.
                self._warned += 1
                self._deck.slides(f"Watch out: mistake {self._warned}", content)

    def _modelling(self, card: Mapping[str, Any]) -> None:
        for number, example in enumerate(card["examples"], 1):
            title = card["title"] + (f", example {number}" if len(card["examples"]) > 1 else "")
            content = [*items(example["ask"])]
            for place, step in enumerate(example["working"], 1):
                words, shows = divided(step)
                content += items(words, mark="number", number=place)
                content += items(shows, mark=UNDER) if shows else []
            if example.get("answer"):
                content += items(example["answer"], lead="Answer:")
            self._deck.slides(title, content, figures=example.get("figures") or (), notes=self._notes(card))

    def _questions(self, card: Mapping[str, Any]) -> None:
        kind = kind_of(card, self._lesson)[1]
        asked = self._lesson.questions_of(card)
        calculators = bool(self._lesson.entry.get("calculator"))
        for place, question in enumerate(asked):
            rule = calculator_rule(question) if calculators else ""
            title = f"{kind}: question {question.number} ({question.worth})"
            notes = self._notes(card) if not place else ""
            figures = question.item.get("figures") or ()
            self._deck.slides(title, _question(question, rule), figures=figures, notes=notes, whole=True)


def _question(question: ShownQuestion, rule: str) -> list[SlideItem]:
    content = items(question.ask)
    for number, option in enumerate(question.options, 1):
        content += items(option.text, mark="letter", number=number)
    for number, part in enumerate(question.parts, 1):
        content += items(f"{part.ask} ({part.worth})", mark="part", number=number)
    return [*content, SlideItem(rule, muted=True)] if rule else content


def _ideas(text: str) -> list[list[str]]:
    """Return the sentences of an explanation, slide by slide, about as many words on each."""
    sentences = list(_sentences(text))
    lengths = [len(plain(sentence).split()) for sentence in sentences]
    number = max(-(-sum(lengths) // _WORDS), -(-len(sentences) // _SENTENCES))
    ideas: list[list[str]] = [[] for _ in range(number)]
    before = 0.0
    for sentence, words in zip(sentences, lengths, strict=True):
        ideas[int((before + words / 2) / sum(lengths) * number)].append(sentence)
        before += words
    return [idea for idea in ideas if idea]


def _sentences(text: str) -> Iterator[str]:
    r"""Yield the sentences of a text; formulas between \( and \) stay whole, lists are one sentence."""
    for paragraph in re.split(r"\n\s*\n", clean(text)):
        pending = ""
        for piece in [paragraph] if "\n" in paragraph.strip() else _SENTENCE.split(paragraph):
            pending = f"{pending} {piece}".strip()
            if pending.count(r"\(") == pending.count(r"\)") and pending.count(r"\[") == pending.count(r"\]"):
                yield pending
                pending = ""
        if pending:
            yield pending
