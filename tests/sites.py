"""Built sites of the sample course for tests: a model's, a draft, one with failures, an empty and a scored one."""

from __future__ import annotations

from pipeline.publish import site
from pipeline.publish.base import Bundle
from tests import publishing
from tests.pages import read

_CRITIC = {
    "fidelity": 0.95,
    "quality": 0.875,
    "judgements": [
        {"criterion": "F1", "evidence": [{"id": "p1", "quotation": "a question"}], "finding": "All taught.",
         "missing": False, "score": 5, "fix": ""},
        {"criterion": "Q4", "evidence": [], "finding": "Nothing to judge.", "missing": True, "score": 1, "fix": ""},
    ],
}  # fmt: skip


def scored() -> Bundle:
    """A model's course with a critic's scores and a warning."""
    bundle = publishing.bundle(lessons=3)
    for row in bundle.lessons:
        row["critic"] = _CRITIC  # type: ignore[index]
        row["checks"] = {"warnings": [{"where": "p1.stem", "text": "<b>long</b> sentence"}]}  # type: ignore[index]
    return bundle


BUNDLES = {
    "model": publishing.bundle(),
    "draft": publishing.bundle(draft=True),
    "failed": publishing.bundle(failed=True),
    "empty": publishing.bundle(lessons=0, failed=True),
    "scored": scored(),
}
SITES = {name: site.build(bundle) for name, bundle in BUNDLES.items()}
TREES = {
    (name, path): read(data) for name, files in SITES.items() for path, data in files.items() if path[-5:] == ".html"
}
