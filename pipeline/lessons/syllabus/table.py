"""Reads outcomes from a table: CSV with any delimiter and any names of columns, or a table of Markdown."""

from __future__ import annotations

import contextlib
import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby, zip_longest
from statistics import mean
from typing import TypeAlias

from pipeline.lessons.syllabus.markers import mark_of
from pipeline.lessons.syllabus.pages import plain
from pipeline.lessons.syllabus.text import bare, read_outcomes, trimmed
from pipeline.lessons.syllabus.tree import ListItem, SourceTree, lines

_DELIMITERS = ",;\t|"
#: Stands for a table in its text, with the line that it begins on.
_TABLE = "table "
#: Characters of a group's title, fewer than.
_TITLE = 60
#: Rows among which the names of the columns are looked for.
_HEAD_ROWS = 12
#: What a column is → words that its name may hold, those that decide first coming first.
_ROLES: Mapping[str, re.Pattern[str]] = {
    role: re.compile(rf"(?i)\b({words})\b")
    for role, words in {
        "code": "code|codes|ref|refs|reference|no|nr|number|numbers|num|id|identifier|n°|réf|nummer|número",
        "point": "points?|details?|success criteria|criteria|criterion|assessment standards?|indicative content|"
        "sub[- ]?outcomes?|sub[- ]?objectives?|elaborations?|benchmarks?|steps?",
        "outcome": "outcomes?|objectives?|standards?|statements?|descriptions?|descriptors?|expectations?|intentions?|"
        "competen\\w+|goals?|targets?|contents?|skills?|knowledge|text|what (students|pupils|learners).*|"
        "(students|pupils|learners) (should|will|can|must).*|lernziele?|kompetenz\\w*|inhalte?|objectifs?|capacités?|"
        "compéten\\w+|objetivos?|competencias?|resultados?",
        "group": "units?|topics?|areas?|strands?|themes?|sections?|modules?|domains?|chapters?|blocks?|headings?|"
        "categor\\w+|aspects?|concepts?|big ideas?|papers?|components?|clusters?|sub[- ]?topics?|thema|themen|kapitel|"
        "bereich|thèmes?|chapitres?|unités?|domaines?|unidad\\w*|temas?|bloques?|áreas?",
    }.items()
}
#: Words of the name of a column, at most; but for those that say what people should learn.
_NAME_WORDS = 4
_ASKING = re.compile(r"(?i)(what |students|pupils|learners|by the end)")
#: A cell like this is a printed code.
_CODE = re.compile(r"\(?[A-Za-z]{0,8}[ .-]?\d[\w.-]{0,12}\)?|[A-Za-z]{1,2}|\d{1,2}(\.\w{1,4})+")


#: A row that holds something: the line it begins on, and its cells, trimmed.
Row: TypeAlias = tuple[int, list[str]]
#: What stands where in a row: places by "outcomes", "groups", "points", "codes" and "codes of groups".
Columns: TypeAlias = Mapping[str, Sequence[int]]


def is_table(text: str) -> bool:
    """Say whether a text that need not be a table has columns with names that are understood."""
    rows = table_rows(text)
    return len(rows) > 1 and _head(rows) is not None and sum(len(row) > 1 for _, row in rows) > len(rows) * 0.8


def read_table(text: str, delimiter: str = "") -> SourceTree:
    """Return the groups, outcomes and points of a table.

    Args:
        delimiter: Between the cells of a row; "": the one that makes the most even table.
    """
    rows = table_rows(text, delimiter)
    if all(len(row) == 1 for _, row in rows):
        named = len(rows) > 1 and "outcome" in _roles(rows[0][1][0]) and len(rows[0][1][0].split()) < _NAME_WORDS
        cells = {line: " ".join(row[0].split()) for line, row in rows[named:]}
        return read_outcomes("\n".join(cells.get(line, "") for line in range(1, max(cells, default=0) + 1)), cells=True)
    return _read_rows(rows)


def read_markdown(text: str) -> SourceTree:
    """Return headings, lists and tables of a text in Markdown, each table below the heading that it stands under."""
    source = text.replace("\r\n", "\n").split("\n")
    listed = any(mark_of(line.strip(), frozenset()) for line in source)
    tables: dict[str, SourceTree] = {}
    notes: list[str] = []
    for _, block in groupby(enumerate(source, 1), lambda pair: pair[1].lstrip().startswith("|")):
        rows = [(number, _cells(line.strip())) for number, line in block if line.lstrip().startswith("|")]
        place, left = (rows[0][0] if rows else 0), [number for number, _ in rows]
        rows = [row for row in rows if any(re.search(r"[^\s:-]", cell) for cell in row[1])]
        source[place - 1 : place - 1 + len(left)] = [""] * len(left)
        if len(rows) > 1 and (_head(rows) or not listed):
            source[place - 1] = f"- {_TABLE}{place}"
            tables[f"{_TABLE}{place}"] = _read_rows(rows)
        elif left:
            notes.append(f"A table without a column of outcomes was left out ({lines(left)}).")
    reading = read_outcomes("\n".join(source), markdown=True)
    notes = [*reading.notes, *dict.fromkeys(note for table in tables.values() for note in table.notes), *notes]
    return SourceTree(_with_tables(reading.roots, tables), reading.title, notes)


def _cells(line: str) -> list[str]:
    cells = re.split(r"(?<!\\)\|", line.strip("|"))
    return [bare(re.sub(r"\s*<br\s*/?>\s*", "\n", cell.strip()).replace("\\|", "|")) for cell in cells]


def _with_tables(nodes: Sequence[ListItem], tables: Mapping[str, SourceTree]) -> list[ListItem]:
    found: list[ListItem] = []
    for node in nodes:
        table = tables.get(node.text)
        found += table.roots if table else [replace(node, below=_with_tables(node.below, tables))]
    return found


def _read_rows(rows: Sequence[Row]) -> SourceTree:
    if found := _head(rows):
        place, columns = found
        title = " ".join(cell for _, row in rows[:place] for cell in row if cell)
        head, body = rows[place][1], rows[place + 1 :]
        if not columns["groups"]:
            columns = {**columns, "groups": _repeating([row for _, row in body], columns)}
    else:
        title, head, body, columns = "", [], rows, _guessed([row for _, row in rows])
    roots, empty = _tree(body, columns)
    notes = [_told(head, columns)]
    if empty:
        notes.append(f"Rows without an outcome were left out ({lines(empty)}).")
    return SourceTree(roots, title, notes)


def table_rows(text: str, delimiter: str = "") -> list[Row]:
    """Return the rows of a table."""
    text = plain(text.replace("\r\n", "\n").replace("\r", "\n"))
    first, _, rest = text.partition("\n")
    if found := re.fullmatch(r'"?sep=(.)"?\s*', first):
        return _parsed(rest, delimiter or found[1], 2)
    return _parsed(text, delimiter or max(_DELIMITERS, key=lambda one: _evenness(_parsed(text, one, 1))), 1)


def _parsed(text: str, delimiter: str, begin: int) -> list[Row]:
    # A mark that is never closed would take all rows after it into one cell.
    closed = text.count('"') % 2 == 0
    source = io.StringIO(text, newline="")
    reader = csv.reader(
        source, delimiter=delimiter, skipinitialspace=True, quoting=csv.QUOTE_MINIMAL if closed else csv.QUOTE_NONE
    )
    rows, line = [], begin
    with contextlib.suppress(csv.Error):
        for row in reader:
            if any(cells := [cell.strip() if closed else cell.strip().strip('"') for cell in row]):
                rows.append((line, cells))
            line = begin + reader.line_num
    return rows


def _evenness(rows: Sequence[Row]) -> tuple[float, int]:
    """Return how many rows have the usual number of cells, and that number; 0 where it is 1."""
    usual, times = Counter(len(row) for _, row in rows).most_common(1)[0] if rows else (1, 0)
    return (times / len(rows), usual) if usual > 1 else (0, 0)


# --- which column is which ------------------------------------------------------------------------------


def _head(rows: Sequence[Row]) -> tuple[int, Columns] | None:
    """Return the place of the row with the columns' names, and what they are; None where no row has such names."""
    for place, (_, row) in enumerate(rows[:_HEAD_ROWS]):
        if len(row) > 1 and all(len(cell) < _TITLE for cell in row) and (columns := _named(row)):
            return place, columns
    return None


def _named(head: Sequence[str]) -> Columns | None:
    roles = [_roles(name) for name in head]
    if len({role for found in roles for role in found}) < 2 and max(len(name.split()) for name in head) > 2:
        return None
    codes = [place for place, found in enumerate(roles) if "code" in found]
    of_groups = [place for place in codes if "group" in roles[place]][:1]
    points = [place for place, found in enumerate(roles) if "point" in found and "code" not in found]
    outcomes = [place for place, found in enumerate(roles) if "outcome" in found and not {"code", "point"} & set(found)]
    groups = [place for place, found in enumerate(roles) if found == ["group"]][:2]
    if not outcomes and points:
        # "Topic, Points": the points are what there is to teach.
        outcomes, points = points[:1], points[1:]
    if not outcomes or len([name for name in head if name]) < 2:
        return None
    # "Content" beside "Learning outcome" says what is in it.
    best = [place for place in outcomes if re.search(r"(?i)outcome|objective|standard", head[place])] or outcomes
    codes = [place for place in codes if place not in of_groups][:1]
    return {"outcomes": best[:1], "groups": groups, "points": points, "codes": codes, "codes of groups": of_groups}


def _roles(name: str) -> list[str]:
    """Return what the name of a column may mean; a text that is no name means nothing."""
    name = name.strip().rstrip(":")
    if name in ("#", "№"):
        return ["code"]
    if any(char.isdigit() for char in name) or (len(name.split()) > _NAME_WORDS and not _ASKING.match(name)):
        return []
    return [role for role, words in _ROLES.items() if words.search(name)]


def _guessed(rows: Sequence[Sequence[str]]) -> Columns:
    """Return the columns of a table without names: the longest texts are outcomes, short ones that repeat groups."""
    cells = [list(filter(None, column)) for column in zip_longest(*rows, fillvalue="")]
    outcome = max(range(len(cells)), key=lambda place: mean(map(len, cells[place])) if cells[place] else 0)
    filled = [place for place, column in enumerate(cells) if column and place != outcome]
    codes = [place for place in filled if all(map(_CODE.fullmatch, cells[place]))][:1]
    groups = [place for place in filled if place < outcome and place not in codes][:2]
    return {"outcomes": [outcome], "groups": groups, "points": [], "codes": codes, "codes of groups": []}


def _repeating(rows: Sequence[Sequence[str]], columns: Columns) -> list[int]:
    """Return the first column of no known name whose short texts repeat from row to row: it groups them."""
    taken = {place for places in columns.values() for place in places}
    for place, column in enumerate(zip_longest(*rows, fillvalue="")):
        runs = [text for text, _ in groupby(column)]
        short = all(text and len(text) < _TITLE and not _CODE.fullmatch(text) for text in runs)
        if place not in taken and short and 1 < len(set(runs)) == len(runs) < len(column):
            return [place]
    return []


def _told(head: Sequence[str], columns: Columns) -> str:
    """Return which column was taken for what, and which for nothing."""
    names = {place: f'"{name}"' for place, name in enumerate(head) if name}
    parts = [
        f"{what} from {'column ' * (what == 'outcomes')}{' and '.join(names.pop(at, str(at + 1)) for at in places)}"
        for what, places in columns.items()
        if places
    ]
    said = f"Read {'; '.join(parts)}." if head else f"{'; '.join(parts).capitalize()}."
    return said + (f" Not used: {', '.join(names.values())}." if names else "")


# --- rows as a tree -------------------------------------------------------------------------------------


def _tree(rows: Sequence[Row], columns: Columns) -> tuple[list[ListItem], list[int]]:
    """Return rows below one another, and the lines of those without an outcome; an empty cell says what is above it."""
    top = ListItem("", heading=True)
    empty: list[int] = []
    above = [""] * len(columns["groups"])
    code, last = "", top
    for line, row in rows:
        for place, title in enumerate(" ".join(_cell(row, [at]).split()) for at in columns["groups"]):
            if title and title != above[place]:
                above, code, last = [*above[:place], title, *[""] * (len(above) - place - 1)], "", top
        code = _cell(row, columns["codes of groups"]) or code
        parent = _parent(top, above, code, line)
        found = list(_outcomes(row, line, columns))
        points = [point for place in columns["points"] for point in _points(_cell(row, [place]), line)]
        for node in found:
            same = parent.below[-1] if parent.below else top
            # One that is the same as the last before it goes on with its points.
            if same.heading or same.text != node.text or not columns["points"]:
                parent.below.append(node)
            last = parent.below[-1]
        (parent if last is top else last).below += points
        if not found and not points:
            empty.append(line)
    return top.below, empty


def _parent(top: ListItem, titles: Sequence[str], code: str, line: int) -> ListItem:
    """Return the heading of these titles, each below the one before; what is not there yet is made."""
    node = top
    for title in filter(None, titles):
        below = next((low for low in node.below if low.heading and low.text == title), None)
        if below is None:
            below = ListItem(title, line, code if node is top else "", heading=True)
            node.below.append(below)
        node = below
    return node


def _outcomes(row: Sequence[str], line: int, columns: Columns) -> Iterator[ListItem]:
    cell, code = _cell(row, columns["outcomes"]), _cell(row, columns["codes"])
    nodes = read_outcomes(cell).roots if _is_list(cell) else [ListItem(trimmed(cell))] if cell else []
    for place, node in enumerate(nodes):
        yield replace(node, line=line, heading=False, loose=False, code=(code if place == 0 else "") or node.code)


def _is_list(cell: str) -> bool:
    return "\n" in cell or ((mark := mark_of(cell, frozenset())) is not None and mark.kind == "bullet")


def _cell(row: Sequence[str], places: Sequence[int]) -> str:
    """Return the cell at the only place; "" where there is none."""
    return next((row[place] for place in places if place < len(row)), "")


def _points(cell: str, line: int) -> Iterator[ListItem]:
    """Yield the points of a cell: one a line, or between semicolons."""
    if _is_list(cell):
        yield from (ListItem(node.text, line, node.code, below=node.below) for node in read_outcomes(cell).roots)
    else:
        yield from (ListItem(part.strip(), line) for part in cell.split(";") if any(map(str.isalpha, part)))
