"""The head of a run that its written head does not tell well enough, from its records: slower, and never wrong."""

from __future__ import annotations

from collections.abc import Iterable

from pipeline.errors import PipelineError
from pipeline.store.backend import Backend, Tip
from pipeline.store.base import Head
from pipeline.store.head import parse_head, whole_head
from pipeline.store.imports import document_problem, imported_view
from pipeline.store.survey import whole_lines
from pipeline.store.values import RunValues
from pipeline.store.view import first_problem, fresh_document


def rebuild(backend: Backend, tip: Tip) -> Head | None:
    """Return the head that a run's records say, without regard to its owner; None: it is no run."""
    run = tip.run
    if not tip.journal:
        return _of_document(run, tip.head)
    if problem := first_problem(tip.first()):
        return Head(run, {}, corrupt=problem.message)
    size = tip.size
    try:
        lines: Iterable[bytes] = whole_lines(backend.read(run))
        if size < 0:
            lines = list(lines)
            size = sum(len(line) + 1 for line in lines)
        document = fresh_document(run, lines, size, whole_head(tip.head), RunValues(backend, run).get)
    except PipelineError as error:
        return Head(run, {}, corrupt=error.message)
    return Head(run, document)


def _of_document(run: str, raw: bytes | None) -> Head | None:
    """Return the head of a run that is a document only, and not taken over yet."""
    if raw is None:
        return None
    document = parse_head(raw)
    problem = document_problem(document)
    if document is None or problem:
        return Head(run, {}, corrupt=f"It has no journal, and of checkpoint.json {problem}.")
    return Head(run, imported_view(document, run))
