"""The guide to events names every event and every field that the package tells, and no other."""

from __future__ import annotations

import ast
from collections import defaultdict
from decimal import Decimal
from functools import cache
from pathlib import Path

from pipeline.app.plan import CoursePlan
from pipeline.app.run_list import row_of
from pipeline.app.start import RunReport
from pipeline.cli.progress import _MAKERS
from pipeline.cli.results import report_json
from pipeline.cli.text import JSON_VERSION
from pipeline.engine.result import RunResult
from pipeline.records.statuses import DETAILS
from pipeline.store.base import Head
from tests.documents import ROOT, codes, table, text_of

GUIDE = "observability.md"
#: What `**…` in a call stands for.
SPREAD = {"_place": {"step", "index", "total", "branch"}}


def _name(call: ast.Call) -> str:
    return str(getattr(call.func, "attr", getattr(call.func, "id", "")))


def _fields(call: ast.Call) -> set[str]:
    found: set[str] = set()
    for word in call.keywords:
        if word.arg is not None:
            found.add(word.arg)
        else:
            assert isinstance(word.value, ast.Call)
            found |= SPREAD[_name(word.value)]
    return found


@cache
def told() -> dict[str, set[str]]:
    """Event type → fields, from every call that tells one."""
    # Emitter.waiting makes this one.
    found: dict[str, set[str]] = defaultdict(set, {"waiting": {"reason", "until", "seconds"}})
    for path in sorted(Path(ROOT, "pipeline").rglob("*.py")):
        # The command line only hears.
        if "cli" in path.relative_to(ROOT).parts:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and _name(node) in ("emit", "_emit", "tell") and node.args:
                kind = node.args[0]
                assert isinstance(kind, ast.Constant), f"{path}:{node.lineno}: the type is not a plain text"
                found[str(kind.value)] |= _fields(node)
    return dict(found)


def test_docs_name_every_event_with_its_fields() -> None:
    documented = {codes(row[0])[0]: set(codes(row[2])) for row in table(GUIDE, "Type", "Told when")}
    assert documented == told()
    assert set(_MAKERS) <= set(told())


def test_docs_name_the_fields_of_the_last_line_and_of_a_plan() -> None:
    documented = {codes(row[0])[0]: codes(row[2]) for row in table(GUIDE, "Type", "Written when")}
    end = RunReport(RunResult("1", "completed"))
    assert documented["result"] == [name for name in report_json(end) if name != "type"]
    assert documented["error"] == ["error", "exit_code"]
    plan = text_of(GUIDE).partition("`--dry-run --json` writes one object of type `plan` with ")[2].partition(".")[0]
    assert codes(plan) == list(CoursePlan("", "", "", 1, Decimal(1), ()).to_json())


def test_docs_name_the_fields_of_a_listed_run() -> None:
    documented = {codes(row[0])[0]: codes(row[2]) for row in table(GUIDE, "Command", "One object for each")}
    assert documented["list --json"] == list(row_of(Head("1", {})).to_json())


def test_docs_name_the_format_version_and_every_status() -> None:
    assert f"the format version, which is **{JSON_VERSION}**" in text_of(GUIDE)
    documented = [codes(row[0])[0] for row in table(GUIDE, "Status", "Means")]
    assert sorted(documented) == sorted({"pending", "in_progress", "completed", "failed", "corrupt", *DETAILS})
