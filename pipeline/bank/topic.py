"""Topics and where they are found: people's own folders first, then the shipped one; each file is read when needed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from pipeline.bank import shape
from pipeline.bank.space import digest
from pipeline.bank.template import Template
from pipeline.bank.yaml_text import YamlFault, YamlMap, parse
from pipeline.errors import BankError
from pipeline.files import read_text as text_of

#: Largest file, in bytes.
MAX_BYTES = 400_000
SHIPPED = Path(__file__).parent / "topics"
_HEADER = re.compile(r"^(course|teaches):[ ]*([^\s#]+)", re.MULTILINE)


class Topic:
    """One file of the bank.

    Raises:
        YamlFault: A `let` is wrong.
    """

    def __init__(self, root: YamlMap, path: Path) -> None:
        self.root, self.path = root, path
        self.course, self.outcome, self.name = str(root["course"]), str(root["teaches"]), str(root["topic"])
        self.can, self.aim = str(root["can"]), str(root["aim"])
        self.prior, self.facts = [str(text) for text in root["prior"]], [str(text) for text in root["facts"]]
        self.keywords = {str(term): str(text) for term, text in root["keywords"].items()}
        #: Name → belief that wrong answers come from, and its correction.
        self.misconceptions = {
            str(name): {key: str(entry[key]) for key in ("belief", "correction")}
            for name, entry in root["misconceptions"].items()
        }
        self.explain, self.plain, self.non_example = (
            re.sub(r"(?<!\n)\n(?!\n)", " ", root[key]) for key in ("explain", "plain", "non_example")
        )
        self.watch_for = " ".join(root.get("watch_for", []))
        self.calculator = root.get("calculator") != "no"
        self.examples, self.starters, self.questions = (
            [Template(root, item, f"{group}{n}") for n, item in enumerate(root[group], 1)] for group in shape.GROUPS
        )

    def templates(self) -> list[Template]:
        """Return examples, starters and questions."""
        return [*self.examples, *self.starters, *self.questions]


def read_topic(path: Path) -> Topic:
    """Return the topic of a file; one whose text was seen before is not read again.

    Raises:
        BankError: It cannot be read, or its shape is wrong; each fault names file, line and reason.
    """
    return _topic(path, read_text(path))


@lru_cache(256)
def _topic(path: Path, text: str) -> Topic:
    try:
        root = parse(text)
        faults = shape.problems(root)
        if not faults:
            return Topic(root, path)
    except YamlFault as fault:
        faults = [fault]
    lines = sorted({(fault.line, fault.reason) for fault in faults})
    raise BankError(
        "\n".join(f"{path}:{line}: {reason}" for line, reason in lines), code="invalid_bank", file=str(path)
    )


def read_text(path: Path) -> str:
    """Return the text of a bank file.

    Raises:
        BankError: It cannot be read, is too large or not UTF-8.
    """
    try:
        return text_of(path, MAX_BYTES)
    except OSError as error:
        raise BankError(f"{path}: cannot be read: {error.strerror}", code="unreadable_file") from None
    except ValueError as error:
        raise BankError(f"{path}:1: {error}", code="invalid_bank") from None


class Bank:
    """All topics there are.

    Args:
        folders: People's own folders; a topic there stands before the shipped one.

    Raises:
        BankError: A folder is missing, or two files of the own folders are of one topic.
    """

    def __init__(self, folders: Sequence[Path] = ()) -> None:
        #: (course, outcome) -> file.
        self.paths = {(of.name.replace("-", "/", 1), path.stem): path for of in SHIPPED.iterdir() for path in files(of)}
        own: dict[tuple[str, str], Path] = {}
        for folder in folders:
            if not folder.is_dir():
                raise BankError(f"--bank {folder}: there is no such folder", code="unreadable_file")
            for path in files(folder):
                found = dict(reversed(_HEADER.findall(read_text(path))))
                key = found.get("course", ""), found.get("teaches", "")
                if not all(key):
                    raise BankError(f"{path}:1: 'course' and 'teaches' are missing", code="invalid_bank")
                if key in own:
                    raise BankError(f"{own[key]} and {path} are both of {' '.join(key)}", code="topic_twice")
                own[key] = path
        self.paths |= own

    def topic(self, course: str, outcome: str) -> Topic | None:
        """Return the topic of an outcome, or None where nobody has written one.

        Raises:
            BankError: Its file is wrong.
        """
        path = self.paths.get((course, outcome))
        return read_topic(path) if path else None

    def hash(self, course: str) -> str:
        """Return what changes when a topic of a course is edited, added or taken away."""
        parts = [f"{out}\n{read_text(path)}" for (of, out), path in sorted(self.paths.items()) if of == course]
        return f"{digest(*parts) >> 192:016x}"


def files(folder: Path) -> list[Path]:
    """Return the files of topics in a folder and below, sorted; hidden folders hold none."""
    found = (path for path in folder.rglob("*.yaml") if path.is_file())
    return sorted(path for path in found if not any(part.startswith(".") for part in path.relative_to(folder).parts))
