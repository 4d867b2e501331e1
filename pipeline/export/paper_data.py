"""Texts, figures and tables as data that templates print: strings stay strings, nothing is markup."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pipeline.drawing import figure as draw
from pipeline.formulas import spoken
from pipeline.formulas.passages import Formula, Piece, blocks, line
from pipeline.formulas.pictures import picture
from pipeline.formulas.typst_maths import TALL, tree

Data = dict[str, Any]


def passages(value: str) -> list[Data]:
    """Return a text field's paragraphs, lists and formulas."""
    out: list[Data] = []
    for passage in blocks(value):
        pieces = _line(passage.pieces, block=passage.kind == "formula")
        if pieces and isinstance(pieces[0], str):
            pieces[0] = pieces[0].lstrip(" ")
        if passage.kind not in ("ul", "ol"):
            out.append({"k": passage.kind, "line": pieces})
        elif out and out[-1]["k"] == passage.kind:
            out[-1]["items"].append(pieces)
        else:
            out.append({"k": passage.kind, "items": [pieces]})
    return out


def words(value: object, *, before: str = "") -> list[Any]:
    """Return a text field that holds one line; `before` stands in front of it in bold."""
    start: list[Any] = [{"k": "strong", "text": before}, " "] if before else []
    return start + _line(line(str(value)))


def _line(pieces: Sequence[Piece], block: bool = False) -> list[Any]:
    return [
        _formula(one, block) if isinstance(one, Formula) else _run(one.text, one.raised, one.code) for one in pieces
    ]


def _run(text: str, raised: bool, code: bool) -> Any:
    if text == "\n":
        return {"k": "break"}
    return {"k": "raised" if raised else "code", "text": text} if raised or code else text


def _formula(formula: Formula, block: bool) -> Data:
    return {
        "k": "maths", "tree": tree(formula.content), "tex": formula.tex, "alt": spoken.words(formula.tex),
        "block": block, "tall": not block and any(node.tag in TALL for node in formula.content.iter()),
    }  # fmt: skip


# --- figures and tables ----------------------------------------------------------------------------


def figures(owner: Mapping[str, Any]) -> Iterator[Data]:
    """Yield the figures of a question or an example; a figure that is a table as one."""
    for figure in owner.get("figures") or ():
        drawn = picture(figure)
        caption = words(draw.title(figure)) if draw.title(figure) else []
        if drawn:
            yield {
                "k": "figure", "svg": drawn.svg, "mm": drawn.width_mm, "high": drawn.height_mm, "alt": drawn.alt,
                "caption": caption, "figure": figure,
            }  # fmt: skip
            continue
        heads, rows = draw.table(figure)
        if rows:
            yield table(caption, list(map(words, heads)), [list(map(words, row)) for row in rows], size=11)
        else:
            yield {"k": "p", "line": words(draw.alt(figure))}


def table(
    caption: Sequence[Any],
    head: Sequence[Any],
    rows: Sequence[Any],
    *,
    columns: Sequence[Any] = (),
    right: int = -1,
    size: float = 10,
) -> Data:
    """Return a table; sizes of columns are shares of the width or "auto", `size` is in points."""
    return {
        "k": "table", "caption": caption, "head": head, "rows": rows, "right": right, "size": size,
        "columns": list(columns) or ["auto"] * len(head),
    }  # fmt: skip


def steps(working: Sequence[tuple[str, str]]) -> Data:
    """Return lines of working: what we do, and the line of mathematics below it."""
    return {"k": "steps", "rows": [[words(does), words(shows) if shows else []] for does, shows in working]}
