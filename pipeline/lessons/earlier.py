"""Lessons stored by version 1 of the schema, read as lessons of today's; nothing is rewritten, no printed word is lost.

Version 1 wrote values twice, for people and for the computer, and empty fields where there was nothing to say. Here the
text for people stays, with the calculation behind it. Ids become places: the third misconception is "mistake 3".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Json = dict[str, Any]

#: Quantities of version 1 whose function is called otherwise, or has no name.
_QUANTITIES = {
    "interquartile_range": "iqr({0})",
    "standard_deviation": "sd({0})",
    "range": "max({0}) - min({0})",
}
_FORMULA = re.compile(r"\\\((.*?)\\\)")
_FRACTION = re.compile(r"\\frac(\{(?:[^{}]|\{[^{}]*\})*\})")
#: What TeX and the notation of calculations write in different ways.
_MARKUP = re.compile(r"\\(?:times|cdot|left|right|,)|[\\{}()*\s]")
#: Charts of version 1 that are drawn from pairs of numbers.
_PLOTS = {
    "line_graph": ("axes", "line"),
    "function_graph": ("axes", "line"),
    "scatter": ("scatter graph", "points"),
}
_NOTES = ("watch_for", "if_they_struggle", "if_they_fly", "safety")


def converted(lesson: Mapping[str, Any], points: Sequence[str] = ()) -> Json:
    """Return a lesson of version 1 as JSON of version 2.

    Args:
        lesson: As it was stored.
        points: Ids of the points of its entry in the scheme, whose numbers the items name; else those it lists.
    """
    return _Lesson(lesson, points).read()


def current(row: Mapping[str, Any], entry: Mapping[str, Any]) -> Json:
    """Return a stored row of a lesson as one of today's; what version 1 said of its checks had no addresses."""
    if row.get("schema", 1) != 1 or row["lesson"] is None:
        return dict(row)
    checks = {"warnings": row["checks"].get("warnings", [])}
    return {**row, "schema": 2, "lesson": converted(row["lesson"], entry.get("points", ())), "checks": checks}


def _present(**fields: Any) -> Json:
    return {name: value for name, value in fields.items() if value not in (None, "", [])}


def _line(words: str, then: str) -> str:
    return f"{words}\n{then}" if then else words


class _Lesson:
    """One lesson on its way; keeps the numbers that its ids become."""

    def __init__(self, old: Mapping[str, Any], points: Sequence[str]) -> None:
        self._old = old
        self._places = {row["ref"]: row["card"] for row in old["points"]}
        self._points = _numbers(points or self._places)
        self._prior = _numbers(row["id"] for row in old["prior_knowledge"])
        self._keys = _numbers(row["id"] for row in old["key_learning_points"])
        self._mistakes = _numbers(row["id"] for row in old["misconceptions"])

    def read(self) -> Json:
        old = self._old
        return {
            "title": old["title"],
            "outcome": old["outcome"],
            "prior": [
                (f"lesson {row['from_lesson']}: " if row["from_lesson"] else "") + row["text"]
                for row in old["prior_knowledge"]
            ],
            "key_points": [row["text"] for row in old["key_learning_points"]],
            "keywords": [
                f"{row['term']}: {row['definition']}" + (f" (Gaelic: {row['gaelic']})" if row["gaelic"] else "")
                for row in old["keywords"]
            ],
            "misconceptions": [{key: row[key] for key in ("belief", "correction")} for row in old["misconceptions"]],
            "cycles": old["cycles"],
            "cards": [self._card(card) for card in old["cards"]],
            "notes": self._notes(),
            **_present(labels=[f"{one['category']}: {one['quotation']}" for one in old["labels"]]),
        }

    def _notes(self) -> list[Json]:
        notes = self._old["teacher_notes"]
        found = [("resources", "; ".join(notes["resources"])), *((kind, notes[kind]) for kind in _NOTES)]
        return [{"kind": kind, "text": text} for kind, text in found if text]

    def _card(self, old: Mapping[str, Any]) -> Json:
        head = {key: old[key] for key in ("kind", "title", "minutes")}
        if old["kind"] == "explainer":
            return head | self._explainer(old)
        if old["kind"] == "modelling":
            return {**head, "examples": [_example(example) for example in old["examples"]]}
        return {
            **head,
            **_present(component=old["component"], instructions=old["instructions"]),
            "items": [self._item(item, old["kind"]) for item in old["items"]],
            **_present(rubric=[f"{band['from_marks']}: {band['means']}" for band in old["rubric"]]),
        }

    def _explainer(self, old: Mapping[str, Any]) -> Json:
        # A point that a worked example teaches belongs to the explanation of its cycle.
        cycle = {card["id"] for card in self._old["cards"] if card is old or 0 != card["cycle"] == old["cycle"]}
        taught = [self._points[ref] for ref, card in self._places.items() if card in cycle and ref in self._points]
        return {
            "teaches": sorted(taught) or [1],
            **{key: old[key] for key in ("text", "plain", "non_example")},
            "mistakes": [self._mistakes[name] for name in old["misconceptions"]],
            **_present(figures=[*map(_figure, old["figures"])], watch_for=old["watch_for"]),
        }

    def _item(self, old: Mapping[str, Any], kind: str) -> Json:
        answer = old["answer"]
        parts = answer["parts"] if answer["kind"] == "structured" else ()
        made = _present(expression=_expression(answer, old["stem"]), **self._answer(answer), parts=[*map(_part, parts)])
        slips = [(part["label"] + " ", wrong) for part in parts for wrong in part["answer"].get("wrong", ())]
        slips += [("", wrong) for wrong in answer.get("wrong", ())]
        made |= _present(wrong=[self._wrong(before, wrong) for before, wrong in slips])
        bullets = [(part["label"] + " ", part["answer"], row) for part in parts for row in part["scheme"]]
        bullets += [("", answer, row) for row in old["scheme"]]
        return {
            "tests": self._tests(old, kind, {row["misconception"] for _, row in slips}),
            **made,
            "working": [_line(step["does"], step["shows"]) for step in old["working"]],
            "marks": [
                before + _line(row["generic"], "" if row["illustration"] == of["shown"] else row["illustration"])
                for before, of, row in bullets
            ],
            "feedback": old["feedback"],
            **_present(more=self._more(old), figures=[*map(_figure, old["figures"])]),
            "ask": old["stem"],
        }

    def _answer(self, answer: Mapping[str, Any]) -> Json:
        if answer["kind"] == "structured":
            return {}
        if answer["kind"] != "mcq":
            return {"answer": answer["shown"]}
        options = [*answer["options"]]
        right = options.pop(answer["key"])
        first = {"text": right["text"], "why": right["why"]}
        return {"options": [first, *map(self._option, options)]}

    def _option(self, old: Mapping[str, Any]) -> Json:
        known = _present(method=old["method"], mistake=self._mistakes.get(old["misconception"]))
        return {"text": old["text"], "why": old["why"], **known}

    def _wrong(self, before: str, old: Mapping[str, Any]) -> Json:
        known = _present(mistake=self._mistakes.get(old["misconception"]))
        return {"method": old["expression"] or old["value"], "error": before + (old["shows"] or "a slip"), **known}

    def _tests(self, old: Mapping[str, Any], kind: str, named: set[str]) -> list[str]:
        named = named | {option["misconception"] for option in old["answer"].get("options", ())}
        beliefs = [name for name in old["misconceptions"] if name not in named]
        found = [f"lesson {old['from_lesson']}"] if old["from_lesson"] else []
        for word, numbers, names in (
            ("point", self._points, old["points"]), ("key point", self._keys, old["key_points"]),
            ("mistake", self._mistakes, beliefs), ("prior", self._prior, [old["prior"]] if old["prior"] else []),
        ):  # fmt: skip
            found += [f"{word} {numbers[name]}" for name in names if name in numbers]
        return found or ["prior 1" if kind == "starter" else "point 1"]

    def _more(self, old: Mapping[str, Any]) -> list[str]:
        answer = old["answer"]
        parts = answer["parts"] if answer["kind"] == "structured" else ()
        pairs = [("", answer), *((f"{part['label']} ", part["answer"]) for part in parts)]
        said = [(kind, before + text) for before, one in pairs for kind, text in _words(one)]
        said += [("alternative", text) for text in old["alternatives"]]
        said += [("follow_through", old["follow_through"])] * bool(old["follow_through"])
        said += [("hint", text) for text in old["hints"]]
        if self._old["calculator"] == "exam_conditions" or old["calculator"] != (self._old["calculator"] == "calc"):
            said.append(("calculator", "yes" if old["calculator"] else "no"))
        return [f"{kind}: {text}" for kind, text in said]


def _numbers(names: Iterable[str]) -> dict[str, int]:
    return {name: number for number, name in enumerate(names, 1)}


def _expression(answer: Mapping[str, Any], asked: str) -> str:
    """Return the calculation behind an answer; "" where there is none, or the first formula asked is it."""
    match answer["kind"]:
        case "algebra":
            found = answer["from_expression"]
        case "equation" | "system":
            found = "; ".join(answer["equations"])
        case "inequality":
            found = answer["relation"]
        case "statistics":
            data = ", ".join(answer["data"])
            found = _QUANTITIES.get(answer["quantity"], answer["quantity"] + "({0})").format(data)
        case "vector":
            found = f"({', '.join(answer['expressions'])})"
        case "mcq":
            right = answer["options"][answer["key"]]
            found = right["method"] or right["expression"]
        case _:
            found = answer.get("expression", "")
    formula = _FORMULA.search(asked)
    return "" if formula and _signs(formula[1]) == _signs(found) else str(found)


def _signs(formula: str) -> str:
    r"""Return what TeX and the notation of calculations share: the same for \frac{3}{4} and 3/4."""
    return _MARKUP.sub("", _FRACTION.sub(r"\1/", formula).replace(r"\div", "/"))


def _part(old: Mapping[str, Any]) -> Json:
    answer, asked = old["answer"], old["prompt"]
    if answer["kind"] == "mcq":
        asked = "\n".join([asked, *(f"- {option['text']}" for option in answer["options"])])
    return _present(expression=_expression(answer, old["prompt"])) | {"answer": answer["shown"], "ask": asked}


def _words(answer: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """Yield what an answer in words may, must and must not say."""
    for kind, name in (("accept", "accepted"), ("must", "must_have"), ("reject", "reject")):
        yield from ((kind, text) for text in answer.get(name, ()) if text != answer["shown"])


def _example(old: Mapping[str, Any]) -> Json:
    steps = [_line(step["does"], step["shows"]) for step in old["steps"]]
    shown = old["answer"].removeprefix("\\(").removesuffix("\\)")
    answer = {} if shown in old["steps"][-1]["shows"] else {"answer": old["answer"]}
    return {"working": steps, **answer, "ask": old["problem"]}


def _figure(old: Mapping[str, Any]) -> Json:
    """Return a chart as one of today's; a shape, or what has no numbers to draw, as a table under its description."""
    columns, rows, kind = old["columns"], old["rows"], old["kind"]
    title = f"title: {old['alt']}"
    places = [[_number(cell) for cell in row] for row in rows]
    drawn = len(columns) == 2 and all(len(row) == 2 and row[1] is not None for row in places)
    if drawn and kind == "bar_chart":
        bars = [f"bar {name}: {value}" for name, value in rows]
        return {"kind": "bar chart", "lines": [title, f"x: {columns[0]}", f"y: {columns[1]}", *bars]}
    if drawn and kind in _PLOTS and all(row[0] is not None for row in places):
        axes = [
            f"{axis}: {name}, {_short(min(0, *values))} to {_short(max(0, *values))}"
            for axis, name, values in zip("xy", columns, zip(*places, strict=True), strict=True)
        ]
        name, line = _PLOTS[kind]
        spots = " ".join(f"({across}, {up})" for across, up in rows)
        return {"kind": name, "lines": [title, *axes, f"{line}: {spots}"]}
    table = [f"row {number}: {' | '.join(cells)}" for number, cells in enumerate(rows, 1)]
    return {"kind": "table", "lines": [title, f"columns: {' | '.join(columns)}", *table]}


def _number(cell: str) -> float | None:
    try:
        return float(cell.replace("−", "-"))
    except ValueError:
        return None


def _short(value: float) -> str:
    return f"{value:g}"
