"""The guides as tests read them: their tables, code and links."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "devops" / "docs"
_CODE = re.compile(r"`([^`]+)`")


def text_of(name: str) -> str:
    """A document below devops/docs."""
    return (DOCS / name).read_text(encoding="utf-8")


def tables(name: str) -> list[list[list[str]]]:
    """Every table of a document: its rows of cells, the head first."""
    found: list[list[list[str]]] = []
    inside = False
    for line in text_of(name).splitlines():
        if not line.startswith("|"):
            inside = False
            continue
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if not inside:
            found.append([])
        inside = True
        if not all(set(cell) <= set("-: ") and cell for cell in cells):
            found[-1].append(cells)
    return found


def table(name: str, *head: str) -> list[list[str]]:
    """The rows, without the head, of all tables of a document whose head begins so."""
    rows = [row for found in tables(name) if tuple(found[0][: len(head)]) == head for row in found[1:]]
    assert rows, f"{name} has no table {head}"
    return rows


def codes(cell: str) -> list[str]:
    """What stands in backquotes."""
    return _CODE.findall(cell)


def fenced(name: str, language: str) -> list[str]:
    """The blocks of code in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text_of(name), re.MULTILINE | re.DOTALL)


def documents() -> list[Path]:
    """Every guide, and the README."""
    return [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]


def anchors(path: Path) -> set[str]:
    """The anchors of a document's headings, as GitHub makes them."""
    text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    heads = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}
