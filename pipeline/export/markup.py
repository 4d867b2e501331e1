"""Texts and figures of a course as XHTML for learning platforms: formulas as MathML or TeX, drawings as files."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from html import escape, unescape
from typing import Any, NamedTuple

from pipeline.drawing import figure as draw
from pipeline.formulas.pictures import Picture, picture
from pipeline.formulas.plain_text import plain
from pipeline.html import clean, el
from pipeline.publish import prose
from pipeline.publish.lesson_page import calculator_rule
from pipeline.publish.questions import ShownQuestion, divided
from pipeline.publish.tex import portable
from pipeline.publish.view import CourseView, LessonView

#: Characters of a title, at most.
_SHORT = 60
_EMPTY = re.compile(r"<(br|col|hr)(| [^>]*)>")
#: What pages say to keyboards and readers; the XHTML of platforms has no place for it.
_SCROLLS = re.compile(r'<div class="maths"[^>]*>')
_MATHS = re.compile(
    r'<math(?: xmlns="[^"]*")?( display="block")?[^>]*>.*?<annotation[^>]*>(.*?)</annotation></semantics>.*?</math>',
    re.DOTALL,
)
_ANNOTATED = re.compile(r"<semantics>(.*?)<annotation[^>]*>.*?</annotation></semantics>", re.DOTALL)
#: MathML 2, which QTI 2.1 has, knows large fractions inside a line only by a style.
_LARGE = re.compile(r'<math displaystyle="true">(.*?)</math>', re.DOTALL)


class Drawing(NamedTuple):
    """A figure of a question or an explanation: its file, or its table where it is none."""

    #: Name of the file without folder and ending; unique in the lesson.
    name: str
    drawn: Picture | None
    data: Mapping[str, Any]

    @property
    def file(self) -> str:
        return f"{self.name}.svg"

    @property
    def svg(self) -> bytes:
        return self.drawn.svg.encode() if self.drawn else b""

    def markup(self, source: str) -> str:
        """Return an image of that source with its description, or a table, under its caption."""
        words = draw.title(self.data)
        caption = f"<p>{line(words)}</p>" if words else ""
        return caption + (f"<p>{self.image(source)}</p>" if self.drawn else _table(self.data))

    def image(self, source: str) -> str:
        """Return the drawing as an image with its description."""
        assert self.drawn is not None
        size = 'width="{}" height="{}"'.format(
            *(round(side * 3.78) for side in (self.drawn.width_mm, self.drawn.height_mm))
        )
        alt = escape(clean(self.drawn.alt), quote=True)
        return f'<img src="{escape(source, quote=True)}" alt="{alt}" {size}/>'


def _table(data: Mapping[str, Any]) -> str:
    heads, rows = draw.table(data)
    if not rows:
        return blocks(draw.alt(data))
    head = el("tr", [el("th", prose.inline(cell) or "\u2013", scope="col") for cell in heads])
    body = [el("tr", [el("td", prose.inline(cell)) for cell in row]) for row in rows]
    return _xhtml(el("table", el("thead", head), el("tbody", body)))


def drawings(owner: Mapping[str, Any], anchor: str) -> list[Drawing]:
    """Return the figures of a card, an example or a question, named as pages name them."""
    made = enumerate(owner.get("figures") or (), 1)
    return [Drawing(f"{anchor}-f{place}", picture(data), data) for place, data in made]


def blocks(text: object) -> str:
    """Return a text with its paragraphs, lists and formulas as well-formed XHTML and MathML."""
    return _xhtml(prose.blocks(text))


def line(text: object) -> str:
    """Return a text of one line as well-formed XHTML and MathML."""
    return _xhtml(prose.inline(text))


def _xhtml(markup: str) -> str:
    out = _EMPTY.sub(r"<\1\2/>", markup.replace("<wbr>", ""))
    out = _LARGE.sub(r'<math><mstyle displaystyle="true">\1</mstyle></math>', _SCROLLS.sub('<div class="maths">', out))
    return out.replace("<math", '<math xmlns="http://www.w3.org/1998/Math/MathML"')


def bare(markup: str) -> str:
    """Return markup whose formulas are MathML alone: some players show the TeX of a formula beside it."""
    return _ANNOTATED.sub(r"\1", markup)


def with_tex(markup: str) -> str:
    r"""Return markup with its formulas as TeX between \( \) or \[ \], as MathJax sets it."""
    return _MATHS.sub(_tex, markup).replace("\\)\\(", "")


def _tex(found: re.Match[str]) -> str:
    made = escape(portable(unescape(found[2])), quote=False)
    return f"\\[{made}\\]" if found[1] else f"\\({made}\\)"


def title(text: object) -> str:
    """Return a text for a title: one line, formulas as plain characters."""
    return " ".join(plain(text).split())


def named(view: CourseView) -> str:
    """Return the title of the course; that of a draft says so."""
    return title(view.title) + (" (draft)" if view.bundle.draft else "")


def language(view: CourseView) -> str:
    """Return the tag of the language that the course is written in."""
    return view.region.language


def short(text: object) -> str:
    """Return the first words of a text for a title."""
    whole = title(text)
    return whole if len(whole) <= _SHORT else whole[:_SHORT].rsplit(" ", 1)[0] + " …"


def stem(lesson: LessonView, asked: ShownQuestion, source: Callable[[Drawing], str]) -> str:
    """Return what is asked, with the rule for the calculator and the figures; without parts and options."""
    told = calculator_rule(asked) if lesson.entry.get("calculator") in ("mixed", "exam_conditions") else ""
    rule = [f"<p>{told}</p>"] if told else []
    pictures = [drawing.markup(source(drawing)) for drawing in drawings(asked.item, asked.anchor)]
    return "".join([blocks(asked.ask), *rule, *pictures])


def asks(asked: ShownQuestion) -> list[str]:
    """Return its parts with their labels and marks."""
    return [f"<p><b>{part.label}</b> {line(part.ask)} ({part.worth})</p>" for part in asked.parts]


def solution(asked: ShownQuestion, *, scheme: bool) -> str:
    """Return the answer, the working and why it is so; with the mark scheme where a person gives the marks."""
    if asked.parts:
        answers = [f"<p><b>{part.label}</b> {line(part.answer)}</p>" for part in asked.parts]
    else:
        answers = [f"<p>Answer: {line(asked.answer)}</p>"]
    steps = "".join(f"<li>{step(words, shown)}</li>" for words, shown in map(divided, asked.item["working"]))
    marks = "".join(f"<li>{_mark(*row)}</li>" for row in asked.scheme) if scheme else ""
    return "".join(
        [
            *answers,
            f"<ol>{steps}</ol>",
            blocks(asked.item["feedback"]),
            f"<p>{asked.region.said('Marks')}:</p><ol>{marks}</ol>" if marks else "",
        ]
    )


def step(words: str, shown: str) -> str:
    """Return a step of a working: the words over the line of mathematics."""
    return line(words) + (f"<br/>{line(shown)}" if shown else "")


def _mark(label: str, earns: str, why: str) -> str:
    return " ".join(filter(None, [label, line(why), f"({line(earns)})" if earns else ""]))


# --- files of XML -----------------------------------------------------------------------------------


def document(element: str) -> bytes:
    """Return a file of XML."""
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{bare(element)}\n'.encode()


def quoted(text: object) -> str:
    """Return plain words for an attribute or an element."""
    return escape(clean(text), quote=True)


def of_schema(namespace: str, *places: str) -> str:
    """Return the attributes of a root element: its namespace and where schemas are, each after its namespace."""
    where = " ".join([namespace, *places])
    return f'xmlns="{namespace}" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:schemaLocation="{where}"'
