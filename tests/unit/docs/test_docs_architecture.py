"""The guide to the code names places that there are."""

from __future__ import annotations

import re

from pipeline.llm.base import Model
from pipeline.publish.base import Publisher
from pipeline.store.backend import Backend, Tail
from tests.documents import DOCS, ROOT, codes, table, text_of

#: Where what it names may lie, and what stands for a name of the reader's own.
FOLDERS = (ROOT, ROOT / "pipeline", DOCS)
TEMPLATE = re.compile(r"[*=( #]|/[A-Z]+\b")


def is_there(said: str) -> bool:
    """A path; else a module with a name in it."""
    if any((folder / said).exists() for folder in FOLDERS):
        return True
    path, _, name = said.partition(".")
    modules = [folder / f"{path}.py" for folder in FOLDERS]
    texts = [module.read_text(encoding="utf-8") for module in modules if module.is_file()]
    return any(not name or re.search(rf"^\s*(?:def |class )?{name.partition('.')[0]}\b", text, re.M) for text in texts)


def test_places_that_the_guide_names_exist() -> None:
    text = re.sub(r"```.*?```", "", text_of("architecture.md"), flags=re.DOTALL)
    named = {said for said in codes(text) if "/" in said and not TEMPLATE.search(said)}
    assert len(named) > 60
    assert not [said for said in sorted(named) if not is_there(said)]


def test_guide_names_the_verbs_of_the_seams() -> None:
    said = {row[0].strip("`"): set(row[1].split(" · ")) for row in table("architecture.md", "Seam", "Verbs")}
    for seam in (Backend, Tail):
        assert said[seam.__name__] == seam.__abstractmethods__
    for plain in (Model, Publisher):
        assert said[plain.__name__] == {name for name in vars(plain) if not name.startswith("_")}
