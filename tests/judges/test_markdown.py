"""Pandoc reads the Markdown, as itself and as GitHub does; KaTeX sets every formula that it found."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from pipeline.export.base import Selection, export
from pipeline.publish import mathml, tex
from pipeline.publish.view import CourseView
from tests.acceptance.test_site_html import drafted
from tests.judges.programs import not_set
from tests.sites import BUNDLES


def _nodes(tree: Any, kind: str) -> Iterator[Any]:
    """Yield the content of every element of one kind in what Pandoc read."""
    if isinstance(tree, Mapping):
        if tree.get("t") == kind:
            yield tree["c"]
        tree = list(tree.values())
    for item in tree if isinstance(tree, list) else ():
        yield from _nodes(item, kind)


def _course(name: str) -> CourseView:
    return CourseView(BUNDLES[name] if name in BUNDLES else drafted(*name.split(), 12))


@pytest.mark.parametrize("name", ["model", "mock", "mathematics national_5", "physics higher"])
def test_every_formula_survives(name: str) -> None:
    pandoc = pytest.importorskip("pypandoc").get_pandoc_path()
    view = _course(name)
    files = export(Selection(view, view.lessons), ["markdown"])
    formulas: set[str] = set()
    for source in ("markdown", "gfm"):
        for lesson in view.lessons:
            text = files[f"markdown/{lesson.file}.md"]
            done = subprocess.run([pandoc, "-f", source, "-t", "json"], input=text, capture_output=True, check=True)
            tree = json.loads(done.stdout)
            found = [formula for _, formula in _nodes(tree, "Math")]
            wanted = [
                re.sub(r"(?<!\\)\|", r"\\vert ", tex.portable(content))
                for question in lesson.questions
                for kind, content, _ in mathml.split(question.ask)
                if kind != "text"
            ]
            assert not [each for each in wanted if each.strip() not in {one.strip() for one in found}]
            assert not [word for word in _nodes(tree, "Str") if "$" in word or "\\" in word]
            assert not [*_nodes(tree, "Superscript"), *_nodes(tree, "Subscript"), *_nodes(tree, "Link")]
            formulas.update(found)
    assert not_set(formulas) == []
