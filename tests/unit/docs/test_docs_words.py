"""Words and links of the guides: the glossary is whole, no other words are used, nothing points nowhere."""

from __future__ import annotations

import re
from pathlib import Path

from tests.documents import DOCS, ROOT, anchors, documents, table, text_of

WORDS = [
    "run", "attempt", "try", "node", "edge", "step", "task", "outcome", "context", "checkpoint", "record",
    "journal", "head", "fold", "owner", "usage", "price", "charge", "ledger", "account", "budget", "gate",
    "layer", "artifact", "receipt", "resume", "fork",
]  # fmt: skip
#: Words that other systems use for what has a word of its own here.
OTHERS = re.compile(r"\b(?:jobs?|sessions?|workflows?|stages?|utils?|helpers?|managers?|common)\b", re.IGNORECASE)
#: Names of others that hold such a word.
NAMES = re.compile(r"CheckpointManager|Common (?:Cartridge|Core)")
LINK = re.compile(r"\]\(([^)\s]+)\)")


def _prose(path: Path) -> str:
    text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`]*`", "", text)


def test_docs_glossary_has_every_word() -> None:
    defined = {word for row in table("glossary.md", "Word", "Means") for word in re.findall(r"\*\*([^*]+)\*\*", row[0])}
    assert set(WORDS) <= defined
    assert "learning outcome" in defined


def test_docs_use_no_other_words() -> None:
    found = {path.name: OTHERS.findall(NAMES.sub("", _prose(path))) for path in documents()}
    assert {name: words for name, words in found.items() if words} == {}


def test_docs_links_lead_to_a_file_and_a_heading() -> None:
    broken = []
    for path in documents():
        text = re.sub(r"^```.*?^```$", "", path.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
        for target in LINK.findall(text):
            name, _, anchor = target.partition("#")
            file = (path.parent / name).resolve() if name else path
            if not file.exists() or (anchor and anchor not in anchors(file)):
                broken.append(f"{path.relative_to(ROOT)}: {target}")
    assert broken == []


def test_docs_are_all_reached_from_the_readme() -> None:
    linked = set(LINK.findall((ROOT / "README.md").read_text(encoding="utf-8")))
    assert {f"devops/docs/{path.name}" for path in DOCS.glob("*.md")} <= linked


def test_docs_decisions_are_short_and_numbered() -> None:
    paths = sorted((DOCS / "decisions").glob("*.md"))
    assert [path.name[:3] for path in paths] == [f"{number:03}" for number in range(1, len(paths) + 1)]
    for path in paths:
        text = path.read_text(encoding="utf-8")
        assert all(f"**{part}.**" in text for part in ("Context", "Choice", "Cost")), path.name
        assert len(text.split()) <= 400, path.name


def test_docs_changes_are_short() -> None:
    lines = [line for line in text_of("changelog.md").splitlines() if line.startswith("- ")]
    assert lines
    assert [line for line in lines if len(line.split()) - 1 > 25] == []


def test_docs_name_every_package_of_the_house() -> None:
    house = text_of("architecture.md").partition("## The house")[2]
    packages = {path.parent.name for path in (ROOT / "pipeline").glob("*/__init__.py")}
    told = set(re.findall(r"^(\w+)/ ", house, re.MULTILINE))
    assert told == packages
