"""Every error that the source can raise: its class, code and words. Run as a module to renew the snapshot and the docs.

python -m tests.messages
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pipeline import errors
from tests.sources import ROOT, Source, package

SNAPSHOT = Path(__file__).with_name("messages.txt")
DOCS = ROOT / "devops" / "docs" / "errors.md"
BEGIN, END = "<!-- codes: made by tests/messages.py -->", "<!-- end of codes -->"

CLASSES = {
    name: cls
    for name, cls in vars(errors).items()
    if isinstance(cls, type) and issubclass(cls, (errors.PipelineError, errors.RunInterrupted))
}


@dataclass(frozen=True, order=True)
class Message:
    """One place where an error is made."""

    module: str
    cls: str
    code: str
    #: The sentence, with {} in the place of each value; "" where it comes from elsewhere.
    words: str


def _words(node: ast.expr | None) -> str:
    """Return the literal text of an expression, with {} in the place of values."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return _words(node.left) + _words(node.right)
    return "" if node is None else "{}"


def _made(source: Source) -> Iterator[Message]:
    for node in source.nodes:
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name not in CLASSES or (isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) != "errors"):
            continue
        given = {item.arg: item.value for item in node.keywords}
        code = _words(given.get("code")) or CLASSES[name].code
        yield Message(source.name, name, code, _words(node.args[0] if node.args else given.get("message")))


def messages() -> list[Message]:
    """Return every error that the source makes, sorted by module."""
    return sorted({message for source in package() if source.name != "pipeline.errors" for message in _made(source)})


def snapshot() -> str:
    """Return the snapshot: a line a message."""
    return "".join(f"{m.module}: {m.cls}[{m.code}]: {m.words!r}\n" for m in messages())


def table() -> str:
    """Return the table of codes for the docs."""
    codes: dict[tuple[str, str], None] = {(CLASSES[name].code, name): None for name in CLASSES}
    codes |= {(message.code, message.cls): None for message in messages() if "{" not in message.code}
    rows = [f"| `{code}` | `{cls}` | {CLASSES[cls].exit_code} |" for code, cls in sorted(codes)]
    return "\n".join(["| Code | Class | Exit |", "|---|---|---|", *rows])


def documented() -> str:
    """Return errors.md with the table of codes made anew."""
    before, _, rest = DOCS.read_text(encoding="utf-8").partition(BEGIN)
    return f"{before}{BEGIN}\n{table()}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    SNAPSHOT.write_text(snapshot(), encoding="utf-8")
    DOCS.write_text(documented(), encoding="utf-8")
