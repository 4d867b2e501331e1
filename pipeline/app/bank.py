"""The question bank as commands use it: files examined, a topic found by name, questions drawn."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.errors import BankError

if TYPE_CHECKING:
    from pipeline.bank.instance import Instance
    from pipeline.bank.topic import Topic
    from pipeline.lessons.checks_topics import Examination


def check(path: Path, draws: int) -> Iterator[Examination]:
    """Yield what is wrong with a file, or with each file of a folder.

    Raises:
        BankError: There is no such file or folder, or no topic in it.
    """
    from pipeline.bank.topic import Bank, files
    from pipeline.lessons.checks_topics import examine

    if not path.exists():
        raise BankError(f"{path}: there is no such file or folder", code="unreadable_file")
    found = files(path) if path.is_dir() else [path]
    if not found:
        raise BankError(f"{path}: holds no topic (a file NAME.yaml)", code="no_topic")
    for file in found:
        yield examine(file, draws)
    if path.is_dir():
        Bank([path])


def topic(name: str, folder: Path | None = None) -> Topic:
    """Return a topic by its file, or by its outcome ("num.surds"; "mathematics/national_5/num.surds").

    Raises:
        BankError: There is none, or more than one.
    """
    from pipeline.bank.topic import Bank, read_topic

    if name.endswith(".yaml"):
        return read_topic(Path(name))
    course, _, outcome = name.rpartition("/")
    all_paths = Bank([folder] if folder else []).paths
    found = {key: path for key, path in all_paths.items() if key[1] == outcome and course in ("", key[0])}
    if not found:
        near = sorted({of for _, of in all_paths if outcome in of or of.rpartition(".")[2] in outcome})
        hint = (
            f"Near it: {', '.join(near[:5])}."
            if near
            else "A topic is named by its outcome, as num.surds, or by its file."
        )
        raise BankError(f"There is no topic {name!r}.", code="unknown_topic", hint=hint)
    if len(found) > 1:
        both = " and ".join(f"{of}/{out}" for of, out in found)
        raise BankError(f"{name!r} may be {both}.", code="unknown_topic", hint="Write the course before it.")
    return read_topic(next(iter(found.values())))


def draw(of: Topic, seed: str, count: int, only: str = "") -> Iterator[Instance]:
    """Yield the first instances of each question of a topic, or of one.

    Raises:
        BankError: The topic has no such question, or one cannot be drawn.
    """
    from pipeline.bank.yaml_text import YamlFault

    templates = [template for template in of.templates() if only in ("", template.id)]
    if not templates:
        known = ", ".join(template.id for template in of.templates())
        raise BankError(f"{of.path} has no question {only!r}.", code="unknown_question", hint=f"There are {known}.")
    for template in templates:
        try:
            for n in range(count):
                yield template.draw(n, seed)
        except YamlFault as fault:
            raise BankError(f"{of.path}:{fault.line}: {fault.reason}", code="invalid_bank") from None
