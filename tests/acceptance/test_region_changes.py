"""A region that a course file names later: the run goes on with prompts of that region, and with its own others."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.app.stores import open_store
from pipeline.files import parse_json
from pipeline.lessons.syllabus.course_file import template
from pipeline.store.reader import load
from tests.said import Cli

COURSE = ("--subject", "science", "--level", "ks3", "--catalogue")


def test_prompts_follow_the_region_of_a_changed_course_file(
    cli: Cli, root: Path, out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "mine" / "science-ks3.yaml"
    file.parent.mkdir()
    file.write_text(template("science", "ks3"), encoding="utf-8")
    begun = cli("lessons", *COURSE, "mine", "--lessons", "3", "--yes")
    assert begun.code == 0, begun.err
    assert (said(root, "shared"), said(root, "solve")) == ("You plan lessons for schools.", said(root, "solve"))
    file.write_text(file.read_text(encoding="utf-8") + "region: England\n", encoding="utf-8")
    before = said(root, "solve")
    gone_on = cli("lessons", "--resume", "latest", "--catalogue", "mine", "--accept-changes", "--yes")
    assert gone_on.code == 0, gone_on.err
    assert said(root, "shared") == "You plan lessons for schools in England."
    assert said(root, "solve") == before


def said(root: Path, prompt: str) -> str:
    """The first sentence of a prompt that the newest run is pinned to."""
    store = open_store(f"files:{root}")
    state = load(store, next(head.run_id for head in store.heads()))
    text: str = parse_json(store.get_blob(state.run_id, state.pins[f"prompt:{prompt}"]))
    return text.partition(".")[0] + "."
