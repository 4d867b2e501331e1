"""Built sites of the sample course: a model's, a draft, one with failures, an empty, a scored, an exam."""

from __future__ import annotations

from dataclasses import replace

from pipeline.publish import site
from pipeline.publish.base import Bundle
from tests import publishing
from tests.pages import read

_CRITIC = {
    "rule": "A lesson is released if no score is below 3.",
    "fidelity": 0.95,
    "quality": 0.875,
    "judgements": [
        {"criterion": "F1", "evidence": [{"path": "c5.q1", "quotation": "a question"}], "finding": "All taught.",
         "missing": False, "score": 5, "fix": ""},
        {"criterion": "Q4", "evidence": [], "finding": "Nothing to judge.", "missing": True, "score": 1, "fix": ""},
    ],
}  # fmt: skip


def scored() -> Bundle:
    """A model's course with a critic's scores and a warning."""
    bundle = publishing.bundle(lessons=3)
    for row in bundle.lessons:
        row["critic"] = _CRITIC  # type: ignore[index]
        row["checks"] = {"warnings": [{"where": "c5.q1.ask", "text": "<b>long</b> sentence"}]}  # type: ignore[index]
    return bundle


def mock() -> Bundle:
    """A course whose second lesson is a mock exam and whose third no bank covers."""
    bundle = publishing.bundle(lessons=2, failed=True)
    bundle.scheme["entries"][1].update(lesson_type="mock_exam", calculator="exam_conditions", minutes=60)
    rows = [bundle.lessons[0], {**bundle.lessons[1], "lesson": publishing.mock_exam()}]
    missing = [{**bundle.failed[0], "not_written": ["num.fractions"]}]
    return replace(bundle, lessons=rows, failed=missing)


BUNDLES = {
    "model": publishing.bundle(),
    "draft": publishing.bundle(draft=True),
    "failed": publishing.bundle(failed=True),
    "empty": publishing.bundle(lessons=0, failed=True),
    "scored": scored(),
    "mock": mock(),
}
SITES = {name: site.build(bundle) for name, bundle in BUNDLES.items()}
TREES = {
    (name, path): read(data) for name, files in SITES.items() for path, data in files.items() if path[-5:] == ".html"
}
