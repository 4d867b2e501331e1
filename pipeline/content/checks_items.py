"""Checks of questions as questions: options, wording, marks, order, figures."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import median
from typing import Any

from pipeline.content import checks_remarks
from pipeline.content.checks_data import data_of, from_data, values_in
from pipeline.content.findings import Case, Fault, Severity
from pipeline.content.lesson import Item, Option, QuestionCard, WorkedExample
from pipeline.content.levels import level_row
from pipeline.drawing import figure as drawing

_SPACES = re.compile(r"\s+")
_OF_ABOVE = re.compile(r"\b(?:all|none|both|neither) of (?:the )?(?:above|these)\b|\ball the above\b", re.I)
_TRUE_FALSE = re.compile(r"\btrue or false\b|^\W*(?:true|false)\W*$", re.I)
_NEGATIVE = re.compile(
    r"\bwhich (?:\w+ ){0,6}(?:is|are|does|do|was|can) ?not\b|\bwhich (?:\w+ ){0,6}(?:isn|aren|doesn|don)['’]t\b"
    r"|\b(?:all|each) (?:\w+ ){0,6}except\b|\bexcept which\b",
    re.I,
)
_CONTENT = re.compile(r"[a-z]{5,}")
#: Of a formula: what is not printed, and commands, each about one sign wide.
_MARKUP = re.compile(r"\\(?:begin|end)\{\w+\}|[\\{}]|\\[()]")
_COMMAND = re.compile(r"\\(?!begin\b|end\b)[A-Za-z]+")
#: A name in code: vanNo, van_no.
_IN_CODE = re.compile(r"\b[A-Za-z]+(?:[a-z][A-Z]|_)\w*")
_NUMBER = re.compile(r"(?<![\d.,])\d[\d,]*(?:\.\d+)?")


def _choices(case: Case) -> Iterator[tuple[str, Item, Sequence[Option]]]:
    for where, item in case.lesson.items():
        if item.options:
            yield where, item, item.options


def alike(case: Case) -> Iterator[Fault]:
    """Warn of more or fewer options than the level has, of one that stands out by its length, of longest right ones."""
    longest = []
    row = level_row(case.course)
    for where, _, options in _choices(case):
        card = case.lesson.cards[int(where[1:].partition(".")[0]) - 1].kind
        if not row.fitting(len(options), card):
            yield Fault(f"{where}.options", f"{len(options)} options", f"{row.options} options at this level")
        sizes = [len(_MARKUP.sub("", _COMMAND.sub("x", option.text))) for option in options]
        if max(sizes) > 12 and max(sizes) > 1.6 * median(sizes):
            yield Fault(f"{where}.options", f"one option has {max(sizes)} characters", "options of like length")
        longest.append(sizes[0] > 1.2 * max(sizes[1:]))
    if len(longest) >= 3 and sum(longest) > 0.4 * len(longest):
        yield Fault("cards", f"the right option is the longest {sum(longest)} times", "no hint by length")


def wording(case: Case) -> Iterator[Fault]:
    """Check for "all of the above", true or false, "which is not", and an answer that stands in its question."""
    for where, item, options in _choices(case):
        for place, option in enumerate(options, 1):
            if _OF_ABOVE.search(option.text) or _TRUE_FALSE.search(option.text):
                yield Fault(f"{where}.options.{place}.text", option.text, "an answer of its own, no true or false")
        if _TRUE_FALSE.search(item.ask) or _NEGATIVE.search(item.ask):
            yield Fault(f"{where}.ask", item.ask, "a question asked positively, not true or false")
        if word := _only_in_key(item.ask, options):
            yield Fault(f"{where}.options", f"{word!r} of the question stands in the key only", "no such hint", "W")
    for where, item in case.lesson.items():
        yield from checks_remarks.told(where, item)
        for part, ask, answer, expression in _answers(item):
            # What parts share may have a quantity that one of them comes to: another compares with it.
            measured = bool(expression) and not part and _measured(answer, ask, expression)
            if measured or _told(ask if not part else f"{item.ask} {ask}", answer, expression):
                yield Fault(f"{where}{part}.ask", f"the answer {answer} stands in the question", "it is for the pupil")


def _answers(item: Item) -> Iterator[tuple[str, str, str, str]]:
    """Yield label, question, answer and expression of an item, or of each of its parts."""
    if item.answer:
        yield "", item.ask, item.answer, item.expression or ""
    for place, part in enumerate(item.parts or ()):
        yield f"({'abcdefgh'[place]})", part.ask, part.answer, part.expression or ""


def _told(ask: str, answer: str, expression: str) -> bool:
    """Say whether the question holds its answer: the words, or a number of two figures that nobody calculates with."""
    plain, said = (_SPACES.sub(" ", text.lower()).strip(" .") for text in (answer, ask))
    if _GIVEN.search(said):
        return False
    if plain.startswith("\\(") and len(plain) > 9 and plain in said:
        return True
    numbers = _NUMBER.findall(plain.replace("{,}", ""))
    if numbers and len(re.findall(r"[a-z]{3,}", plain)) < 3:
        digits = numbers[-1].replace(",", "")
        used = [number.replace(",", "") for number in _NUMBER.findall(expression)]
        asked = [number.replace(",", "") for number in _NUMBER.findall(said.replace("{,}", ""))]
        pattern = rf"\b(?:is|are|gives|equals|makes|answer|=)\W{{0,6}}£?{re.escape(digits)}(?![\d.])"
        return len(digits) >= 2 and digits in asked and digits not in used and re.search(pattern, said) is not None
    return len(plain.split()) >= 3 and plain in said


def _measured(answer: str, ask: str, expression: str) -> bool:
    """Say whether the quantity that is an answer, number and unit, stands in a question that does not begin from it."""
    given = {(datum.value, datum.unit) for datum in data_of(ask)}
    wanted = {(datum.value, datum.unit) for datum in data_of(answer)}
    begun = values_in(expression)
    known = any(from_data(value, begun) for value, _ in wanted) or _GIVEN.search(ask) or _CHECKED.search(ask)
    return bool(wanted) and wanted <= given and not known


#: Questions that give a value to be judged.
_CHECKED = re.compile(r"\b(?:whether|enough|right|correct|agree|says?|claims?|compare|is it|does it|can)\b", re.I)
#: Questions that give their answer on purpose.
_GIVEN = re.compile(r"\b(?:show|prove|verify|check|explain|confirm) (?:that|why|how)\b", re.I)


def _only_in_key(ask: str, options: Sequence[Option]) -> str | None:
    asked = set(_CONTENT.findall(ask.lower()))
    key = asked & set(_CONTENT.findall(options[0].text.lower()))
    names = {name.lower() for name in _IN_CODE.findall(ask)}
    if all(_shares(option.text, ask) for option in options):
        key -= names
    others = " ".join(option.text.lower() for option in options[1:])
    return next((word for word in sorted(key) if word not in others), None)


def _shares(text: str, ask: str) -> bool:
    """Say whether a text holds a word of the question, short ones left out."""
    one, other = (set(re.findall(r"\w{4,}", said.lower())) for said in (text, ask))
    return not one.isdisjoint(other)


#: How far the marks of a paper in a mock exam may be from its share of the minutes.
PAPER_SLACK = 0.2
#: Command words that ask for one thing only.
_ONE_MARK = re.compile(r"^\W*(?:state|name|write down)\b(?!.{0,80}\b(?:and|two|three|both)\b)", re.I)


#: How many marks a question says it carries: "(4)" at its end, "[3 marks]".
_CARRIES = re.compile(r"(?:[(\[](\d{1,2})\s?marks?|(?<=[.?!])\s*[(\[](\d{1,2}))[)\]]\s*$")


def _carried(where: str, item: Item) -> Iterator[Fault]:
    """Yield where a question says another number of marks than it has."""
    asked = [(f"{where}.ask", item.ask, len(item.marks))]
    for place, part in enumerate(item.parts or ()):
        label = f"({'abcdef'[place]})"
        asked.append((f"{where}{label}.ask", part.ask, sum(text.startswith(label) for text in item.marks)))
    for at, text, count in asked:
        if (said := _CARRIES.search(text)) and int(said[1] or said[2]) != count:
            yield Fault(at, f"{said[0].strip()}, but there are {count} marks", "as many as in marks")


#: Marks that a text counts: "the third mark", "the last two marks".
_NTH_MARK = re.compile(r"\b(?:(first|second|third|fourth|fifth|sixth) mark|last (two|three|four|five) marks)\b", re.I)
_NTH = {"first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "sixth": 6} | {
    "two": 2, "three": 3, "four": 4, "five": 5
}  # fmt: skip


def _counted(case: Case) -> Iterator[Fault]:
    """Yield where a text counts marks that are not there."""
    for where, item in case.lesson.items():
        for place, text in enumerate(item.more or (), 1):
            if (said := _NTH_MARK.search(text)) and _NTH[(said[1] or said[2]).lower()] > len(item.marks):
                found = f"{said[0]}, but there are {len(item.marks)} marks"
                yield Fault(f"{where}.more.{place}", found, "marks that there are")
    for number, card in enumerate(case.lesson.cards, 1):
        total = sum(len(item.marks) for item in card.items) if isinstance(card, QuestionCard) else 0
        said = re.search(r"\b(\d{1,3}) marks\b(?! (?:each|for|in each))", getattr(card, "instructions", None) or "")
        if total and said and int(said[1]) != total:
            yield Fault(f"c{number}.instructions", f"{said[0]}, but there are {total}", "as many as in marks")


def marks(case: Case) -> Iterator[Fault]:
    """Check that marks of a question differ, "state" is worth one, and bands of a rubric fall within the total."""
    for where, item in case.lesson.items():
        yield from _carried(where, item)
        texts = [_SPACES.sub(" ", text.lower()) for text in item.marks]
        for place, text in enumerate(texts, 1):
            if text in texts[: place - 1]:
                yield Fault(f"{where}.marks.{place}", "the same mark twice", "a reason of its own for each mark")
        if len(item.marks) > 1 and not item.parts and _ONE_MARK.match(item.ask):
            yield Fault(f"{where}.marks", f"{len(item.marks)} marks for {item.ask[:40]}", "1 mark", "W")
    yield from _papers(case)
    yield from _counted(case)
    for number, card in enumerate(case.lesson.cards, 1):
        if isinstance(card, QuestionCard) and card.rubric:
            limits = [int(band.split(":")[0]) for band in card.rubric]
            total = sum(len(item.marks) for item in card.items)
            if any(one <= two for one, two in pairwise(limits)) or limits[0] > total:
                yield Fault(f"c{number}.rubric", f"bands from {limits} of {total} marks", "falling, within the total")


def _papers(case: Case) -> Iterator[Fault]:
    """Check that a whole paper of a mock exam has its marks; warn of a shorter one that misses its share by far."""
    papers = {part["id"]: part for part in (case.course.get("assessment") or {}).get("components", ())}
    for number, card in enumerate(case.lesson.cards, 1):
        paper = papers.get(card.component or "") if isinstance(card, QuestionCard) else None
        if isinstance(card, QuestionCard) and paper and paper.get("marks") and paper.get("minutes"):
            wanted, total = (
                paper["marks"] * card.minutes / paper["minutes"],
                sum(len(item.marks) for item in card.items),
            )
            if card.minutes == paper["minutes"] and total != paper["marks"]:
                yield Fault(f"c{number}", f"{total} marks in {card.minutes} minutes", f"{wanted:.0f}, as the paper has")
            elif abs(total - wanted) > PAPER_SLACK * wanted:
                yield Fault(f"c{number}", f"{total} marks in {card.minutes} minutes", f"about {wanted:.0f}", "W")


def scheme(case: Case) -> Iterator[Fault]:
    """Check that each mark says why it is given in words; warn where long questions say nothing of follow-through."""
    for where, item in case.lesson.items():
        for place, text in enumerate(item.marks, 1):
            why = text.split("\n")[0]
            if len(re.findall(r"[A-Za-z]{4,}", re.sub(r"\\\(.*?\\\)", " ", why))) < 1:
                yield Fault(f"{where}.marks.{place}", text, "why the mark is given, in words, then what earns it")
        if len(item.marks) > 2 and item.expression and not item.of("follow_through"):
            yield Fault(f"{where}.more", "no follow-through", "which marks are open after an error", "W")


def rising(case: Case) -> Iterator[Fault]:
    """Warn where marks of practice fall by more than one from a question to the next; the hardest is not the first."""
    for number, card in enumerate(case.lesson.cards, 1):
        if isinstance(card, QuestionCard) and card.kind in ("guided_practice", "independent_practice"):
            sizes = [len(item.marks) for item in card.items]
            if any(two < one - 1 for one, two in pairwise(sizes)):
                falling = all(two <= one for one, two in pairwise(sizes)) and len(sizes) > 2
                yield Fault(f"c{number}", f"marks {sizes}", "questions that get harder", "R" if falling else "W")


#: Words by which a question speaks of a drawing it needs.
_DRAWINGS = (
    r"(?:figure|diagram|graph|drawing|chart|sketch|circuit|scale drawing|box plot|scatter ?graph|number line|plot"
    r"|picture|stem[- ]and[- ]leaf diagram|map)"
)
_SPEAKS = re.compile(
    rf"\b(?:in|from|on|see|use|using|shown (?:in|by|on)|by) (?:the|this) {_DRAWINGS}\b"
    r"(?! of (?:y|the function|the equation|\\\())"
    rf"|\b{_DRAWINGS} (?:below|above|opposite)\b|\b(?:the|this) {_DRAWINGS} shows\b"
    r"|\b(?:shown|drawn|pictured) (?:below|above|opposite)\b",
    re.I,
)
_TABLE = re.compile(r"\b(?:in|from|see|use) (?:the|this) table\b|\btable (?:below|above|shows)\b", re.I)
_SHAPE = re.compile(r"\b(?i:triangle|quadrilateral|rectangle|parallelogram|kite|rhombus|trapezium) ([A-Z]{3,5})\b")


def _needed(found: re.Match[str], asked: str) -> bool:
    """Say whether words speak of a drawing that the page must have: not of one that the question itself describes."""
    noun = re.search(rf"{_DRAWINGS}|table", found[0], re.I)
    before = asked[: found.start()]
    return noun is None or not re.search(rf"\ban? (?:\w+[ -]){{0,3}}{re.escape(noun[0])}\b", before, re.I)


def figures(case: Case) -> Iterator[Fault]:
    """Check that a figure can be drawn, is there when a question speaks of it, and agrees with the question."""
    parts: list[tuple[str, Item | WorkedExample]] = [*case.lesson.items(), *case.lesson.examples()]
    for where, part in parts:
        shown = [figure.model_dump() for figure in part.figures or ()]
        for place, figure in enumerate(shown, 1):
            for fault in drawing.faults(figure):
                yield Fault(f"{where}.figures.{place}", fault, "a figure that can be drawn", also=(where,))
            for doubt in drawing.warnings(figure):
                yield Fault(f"{where}.figures.{place}", doubt, "values that fit each other", "W", (where,))
        asked = " ".join([part.ask, *(piece.ask for piece in getattr(part, "parts", None) or ())])
        if not shown and any(_needed(found, asked) for speaks in (_SPEAKS, _TABLE) for found in speaks.finditer(asked)):
            yield Fault(
                f"{where}.ask", "speaks of a drawing or table that is not there", "figures, or all data in words"
            )
        yield from _bars(where, shown)
        for place, figure in enumerate(shown, 1):
            yield from _contradictions(f"{where}.figures.{place}", figure, asked)
            yield from _other_data(f"{where}.figures.{place}", figure, asked, _calculation(part))
            yield from _cells(
                f"{where}.figures.{place}", figure, " ".join([asked, *part.working]), isinstance(part, Item)
            )
            yield from _titles(f"{where}.figures.{place}", figure)
            yield from _rows(f"{where}.figures.{place}", figure, asked)
            yield from _totals(f"{where}.figures.{place}", figure)
            yield from _fit(f"{where}.figures.{place}", figure)
    for number, card in enumerate(case.lesson.cards, 1):
        yield from _bars(f"c{number}", [figure.model_dump() for figure in getattr(card, "figures", None) or ()])
        for place, figure in enumerate(getattr(card, "figures", None) or (), 1):
            for fault in drawing.faults(figure.model_dump()):
                yield Fault(f"c{number}.figures.{place}", fault, "a figure that can be drawn")
            yield from _cells(f"c{number}.figures.{place}", figure.model_dump(), getattr(card, "text", ""))
            yield from _titles(f"c{number}.figures.{place}", figure.model_dump())
            yield from _totals(f"c{number}.figures.{place}", figure.model_dump())


#: A value that a title gives with its place: "5.00 at 0.71 s".
_READING = re.compile(rf"({_NUMBER.pattern})(?= (?:at|after) )")


def _calculation(part: Item | WorkedExample) -> str:
    pieces = [part, *(part.parts or ())] if isinstance(part, Item) else []
    return " ".join(piece.expression or "" for piece in pieces)


def _other_data(where: str, figure: Mapping[str, Any], asked: str, calculation: str) -> Iterator[Fault]:
    """Yield where points of a graph that the question tells again are others there."""
    if not any(line.startswith("x:") and "time" in line.lower() for line in figure["lines"]):
        return
    lines = [line.partition(":")[2] for line in figure["lines"] if line.split(" ")[0].rstrip(":") in ("line", "points")]
    drawn = {_value(number) for line in lines for number in _NUMBER.findall(line)}
    told = {_value(number) for number in _NUMBER.findall(asked)}
    used = {_value(number) for number in _NUMBER.findall(calculation)}
    # Where nothing is calculated, what the question measures is to be read off.
    measured = {float(datum.value) for datum in data_of(asked)} if not calculation.strip() else used
    strange, missing = drawn - told, (measured & told) - drawn
    if len(drawn & told) >= 2 and len(strange) == len(missing) == 1:
        yield Fault(where, f"{strange.pop():g} is drawn", f"{missing.pop():g}, as the question says")


def _titles(where: str, figure: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield where the title of a figure tells a quantity that its lines do not have."""
    titles = [line for line in figure["lines"] if line.startswith("title:")]
    there = {_value(n) for line in figure["lines"] if line not in titles for n in _NUMBER.findall(line)}
    told = {float(datum.value): datum.text for line in titles for datum in data_of(line)}
    told |= {_value(n): n for line in titles for n in _READING.findall(line)}
    strange = [text for value, text in told.items() if value not in there]
    if len(there) > 2 and strange and len(strange) < len(there):
        # A title of no number of the lines may name a thing: "Times for the 100 m".
        severity: Severity = "R" if len(strange) < len(told) else "W"
        found = f"the title says {strange[0]}, the lines do not"
        yield Fault(where, found, "a title with the numbers of the figure", severity)


def _rows(where: str, figure: Mapping[str, Any], asked: str) -> Iterator[Fault]:
    """Yield where a row of a table gives a quantity another value than the question does."""
    for line in figure["lines"] if figure["kind"] == "table" else ():
        name, bar, value = line.partition(":")[2].rpartition("|")
        cells, label = _NUMBER.findall(value), name.strip()
        if not bar or len(cells) != 1 or "|" in label or len(label) < 4:
            continue
        quantity = rf"\b{re.escape(label)}\b (?:is|of|was|=) (?:about )?£?({_NUMBER.pattern})(\s?%)?"
        found = [said for said in re.finditer(quantity, asked, re.I) if bool(said[2]) == ("%" in line)]
        yield from _unlike(where, line, found, cells[0])


def _cells(where: str, figure: Mapping[str, Any], text: str, calculated: bool = False) -> Iterator[Fault]:
    """Yield where one number of a table or chart is a slip of one that its text says, and the others stand there."""
    if figure["kind"] not in ("table", "bar chart", "bar graph", "pie chart"):
        return
    said = " ".join(line.partition(":")[2] for line in figure["lines"] if not line.startswith(("title", "columns")))
    drawn, told = ({n.replace(",", "") for n in _NUMBER.findall(one)} for one in (said, text))
    strange = drawn - told
    for number in strange if len(strange) == 1 < len(drawn & told) else ():
        for other in sorted(told - drawn):
            off = sum(a != b for a, b in zip(number, other, strict=False))
            if len(number) == len(other) > 1 and (sorted(number) == sorted(other) or (off == 1 and not calculated)):
                yield Fault(where, f"{number}, where the words say {other}", "the numbers of the words")


_TOTAL = re.compile(r"(?:grand |overall )?(?:totals?|sum|all|altogether)(?: \(.*\)| / .*)?", re.IGNORECASE)


def _totals(where: str, figure: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield where the last row or column of a table is called total and is not the sum of the others."""
    if figure["kind"] != "table":
        return
    lines = [line.partition(":") for line in figure["lines"]]
    cells_of = [said.split("|") for name, _, said in lines if name.startswith(("columns", "row"))]
    rows = [[cell.strip() for cell in row] for row in cells_of]
    if len({len(row) for row in rows}) != 1 or len(rows) < 3:
        return
    for table in (rows, [list(column) for column in zip(*rows, strict=True)]):
        if len(table) < 4 or not _TOTAL.fullmatch(table[-1][0]):
            continue
        for column in list(zip(*table[1:], strict=True))[1:]:
            cells = [re.fullmatch(r"(\D*?)(\d[\d,]*(?:\.\d+)?)(\D*)", cell) for cell in column]
            read = [cell for cell in cells if cell]
            if len(read) < len(cells) or len({(cell[1], cell[3]) for cell in read}) > 1:
                continue
            *parts, total = (_value(cell[2]) for cell in read)
            places = max(len(cell[2].partition(".")[2]) for cell in read)
            # Of rounded parts the last place may be missing.
            slack = len(parts) * 0.5 * 10**-places if places or "%" in read[0][3] else 0.0
            if abs(sum(parts) - total) > slack + 1e-9:
                yield Fault(where, f"the total {column[-1]}, but the parts make {sum(parts):g}", "a total of its parts")


def _unlike(where: str, line: str, found: Sequence[re.Match[str]], drawn: str) -> Iterator[Fault]:
    """Yield where a question names what a line of a figure names, and nowhere with its number."""
    if found and all(_value(said[1]) != _value(drawn) for said in found):
        yield Fault(where, f"{line}, but the question says {found[0][0]}", "the numbers of the question")


def _fit(where: str, figure: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield where a line of best fit leaves its points."""
    lines = dict(line.partition(":")[::2] for line in figure["lines"])
    fit = re.search(
        r"y = (-?\d+(?:\.\d+)?)\s?\*?\s?x ?([-+] ?\d+(?:\.\d+)?)?\s*$", lines.get("best fit", "").replace("−", "-")
    )
    points = [
        (float(x), float(y))
        for x, y in re.findall(r"\((-?\d+(?:\.\d+)?), ?(-?\d+(?:\.\d+)?)\)", lines.get("points", ""))
    ]
    if fit and len(points) > 2:
        off = [y - float(fit[1]) * x - float((fit[2] or "0").replace(" ", "")) for x, y in points]
        high = max(y for _, y in points) - min(y for _, y in points)
        if abs(sum(off)) / len(off) > 0.15 * high or max(map(abs, off)) > 0.5 * high:
            yield Fault(
                where, f"the line of best fit {fit[0]} leaves the points", "a line through the middle of the points"
            )


def _value(number: str) -> float:
    return float(number.replace(",", ""))


#: How questions say the sizes of a figure: 7 m high.
_SIZES = {
    "length": "long", "breadth": "(?:wide|broad)", "width": "(?:wide|broad)", "height": "(?:high|tall)",
    "depth": "deep",
}  # fmt: skip
_POINT = re.compile(r"\s*\((-?\d[\d.]*), ?(-?\d[\d.]*)\)\s*$")


def _has_size(name: str) -> str:
    """Return the pattern of words that say the size of a thing, first group: "the peak is at 140 kJ"."""
    return (
        rf"\b{re.escape(name)}\b(?: (?:has|have|is|are|was|at|of|stands?|lies?))* ({_NUMBER.pattern})(?= ?[A-Za-z%°])"
    )


def _bars(where: str, figures: Sequence[Mapping[str, Any]]) -> Iterator[Fault]:
    """Yield where a bar has another value than the column of a table beside it that has its axis as the head."""
    cells: dict[tuple[str, str], str] = {}
    for figure in figures:
        rows = [line.partition(":")[2] for line in figure["lines"] if "|" in line and figure["kind"] == "table"]
        heads, *others = [[cell.strip().lower() for cell in row.split("|")] for row in rows] or [[]]
        cells |= {(row[0], head): cell for row in others for head, cell in zip(heads[1:], row[1:], strict=False)}
    for place, figure in enumerate(figures, 1):
        axis = next((line[2:].strip().lower() for line in figure["lines"] if line.startswith("y:")), "")
        for line in figure["lines"]:
            bar = re.match(rf"bar (.+): ({_NUMBER.pattern})\s*$", line)
            cell = _NUMBER.findall(cells.get((bar[1].strip().lower(), axis), "")) if bar else []
            if bar and len(cell) == 1 and _value(bar[2]) != _value(cell[0]):
                found = f"{line}, but the table has {cell[0]}"
                yield Fault(f"{where}.figures.{place}", found, "one value for one thing")


def _contradictions(where: str, figure: Mapping[str, Any], asked: str) -> Iterator[Fault]:
    """Yield where a figure gives another number than the question for the same thing, or other corners."""
    corners = set("".join(line.split(":", 1)[1] for line in figure["lines"] if line.startswith("corners:")).split())
    named = list(_SHAPE.finditer(asked)) if corners and figure["kind"] in ("triangle", "polygon") else []
    if named and not any(set(found[1]) <= corners for found in named):
        yield Fault(where, f"corners {' '.join(sorted(corners))}", f"those of {named[0][0]}")
    for line in figure["lines"]:
        name, _, value = line.partition(":")
        if name.startswith("label ") and (point := _POINT.match(value)):
            told = list(re.finditer(_has_size(name.removeprefix("label ").strip()), asked, re.I))
            if told and all(_value(one[1]) not in (_value(point[1]), _value(point[2])) for one in told):
                yield Fault(where, f"{line}, but the question says {told[0][0]}", "the numbers of the question")
            continue
        number = _NUMBER.search(value)
        if number is None or len(_NUMBER.findall(value)) != 1:
            continue
        if size := _SIZES.get(name.strip()):
            measure = rf"({_NUMBER.pattern})\s?(?:m|cm|mm|km|metres|centimetres) {size}\b"
            yield from _unlike(where, line, list(re.finditer(measure, asked)), number[0])
        names = (name.strip(), name.strip()[::-1]) if re.fullmatch(r"[A-Z]{2}", name.strip()) else (name.strip(),)
        for label in names:
            said = re.finditer(
                rf"\b{re.escape(label)}\b(?: is| are| =|,? of| measures|\\\)| has(?: a)? length(?: of)?|:)*"
                r"\s*[^\w£(]{0,3}"
                r"(\d[\d,]*(?:\.\d+)?)(?![\d.]*\s*(?:times|:))",
                asked,
                re.I if len(label) > 2 else 0,
            )
            yield from _unlike(where, line, list(said), number[0])
