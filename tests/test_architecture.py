"""What the shape of the code promises: who may import whom, how large things get, which words are ours."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import pytest

from tests.sources import Source, agree, everything, floor, is_ours, module_names, package, where

#: Who stands on which floor. An import goes to a lower floor or stays within its own package.
FLOORS = {
    "errors": 0,
    "environment": 0,
    "extras": 0,
    "files": -1,
    "clock": 0,
    "records": 1,
    "graph": 2,
    "dot": 2,
    "cost": 2,
    "store": 2,
    "llm": 2,
    "frameworks": 1,
    "providers": 0.5,
    "html": 1.25,
    "drawing": 1.75,
    "maths": 1.5,
    "bank": 3.5,
    "content": 3,
    "publish": 2,
    "formulas": 2.25,
    "export": 2.5,
    "engine": 3,
    "formats": 4,
    "traces": 4,
    "travel": 4,
    "lessons": 5,
    "settings": 6,
    "testing": 6,
    "app": 7,
    "ui": 7.5,
    "cli": 8,
    "__main__": 9,
}

#: Floor mates that may be imported all the same: floor → floors beside it.
BESIDE = {"dot": {"graph"}, "extras": {"environment", "errors"}}

#: Which modules may import which outside package. The longest matching prefix counts.
OUTSIDE = {
    "anthropic": ("pipeline.llm",),
    "boto3": ("pipeline.llm.clients",),
    "httpx2": ("pipeline.llm",),
    "openai": ("pipeline.llm.openai",),
    "tenacity": ("pipeline.engine",),
    "genai_prices": ("pipeline.cost",),
    "msgspec": ("pipeline.records",),
    "pydantic": ("pipeline.lessons", "pipeline.content", "pipeline.llm.forms"),
    "annotated_types": ("pipeline.lessons", "pipeline.content"),
    "pydantic_core": ("pipeline.lessons", "pipeline.content"),
    "sympy": ("pipeline.maths", "pipeline.content", "pipeline.bank"),
    "yaml": ("pipeline.lessons", "pipeline.bank"),
    "click": ("pipeline.cli",),
    "tabulate": ("pipeline.cli",),
    "rich": ("pipeline.cli",),
    "distributed": ("pipeline.app.executors",),
    "matplotlib": ("pipeline.cli.cost_chart",),
    "langgraph": ("pipeline.formats.langgraph.saver",),
    "obstore": ("pipeline.store.objects",),
    "psycopg": ("pipeline.store.sql",),
    "google": ("pipeline.traces.otlp",),
    "opentelemetry": ("pipeline.traces",),
    "requests": ("pipeline.traces.otlp",),
    "jinja2": ("pipeline.ui",),
    "docx": ("pipeline.export",),
    "genanki": ("pipeline.export.anki",),
    "lxml": ("pipeline.export", "pipeline.formulas"),
    "pptx": ("pipeline.export.deck",),
    "typst": ("pipeline.export", "pipeline.formulas"),
    "starlette": ("pipeline.ui",),
    "uvicorn": ("pipeline.ui",),
}

#: These make what the rest knows as a protocol, so they may import late what only they choose.
LATE_IMPORTERS = re.compile(r"pipeline(\.app(\..+)?|\.cli(\..+)?|\.store\.url)?")

#: Modules' names that say nothing, and words that mean something else in this project.
EMPTY_NAMES = {"utils", "util", "helpers", "helper", "common", "misc"}
FOREIGN_WORDS = {"job", "jobs", "session", "sessions", "workflow", "workflows", "stage", "stages", "manager"}
#: Printed by a seed document, so these names are part of the interface.
GIVEN_NAMES = {
    "CheckpointManager", "pipeline.store.manager", "WorkflowState", "workflow_id", "stage_dir", "STAGE_DIR",
}  # fmt: skip

MAX_FILE_LINES = 500
MAX_FUNCTION_LINES = 60


# --- who imports whom -----------------------------------------------------------------------------


def test_every_module_stands_on_a_floor() -> None:
    floors = {floor(source.name) for source in package() if source.name != "pipeline"}
    assert floors <= set(FLOORS)


def test_imports_point_down() -> None:
    problems = []
    for source in package():
        own = floor(source.name)
        for item in source.imports:
            below = floor(item.target)
            if not is_ours(item.target) or not own or below in (own, "__version__"):
                continue
            if FLOORS.get(below, FLOORS["__main__"]) >= FLOORS[own] and below not in BESIDE.get(own, ()):
                problems.append(f"{where(source, item.line)}: {source.name} imports {item.target}")
    agree(problems)


def test_engine_knows_protocols_only() -> None:
    adapters = {"store", "llm", "publish"}
    # store/reader.py and store/parts.py read through the protocol, so they are above the adapters too;
    # store/availability.py, store/address.py and llm/forms.py know none.
    allowed = (["base"], ["reader"], ["parts"], ["availability"], ["address"], ["forms"])
    problems = [
        f"{where(source, item.line)}: the engine imports {item.target}"
        for source in package()
        if floor(source.name) == "engine"
        for item in source.imports
        if is_ours(item.target) and floor(item.target) in adapters and item.target.split(".")[2:] not in allowed
    ]
    agree(problems)


def test_imports_have_no_cycle() -> None:
    below = {
        source.name: {item.target for item in source.imports if not item.inside_function} & module_names()
        for source in package()
    }
    done: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, "a cycle: " + " -> ".join([*trail[trail.index(name) :], name])
        if name not in done:
            for target in sorted(below[name] - {name}):
                visit(target, (*trail, name))
            done.add(name)

    for name in sorted(below):
        visit(name, ())


def test_own_modules_are_imported_at_the_top() -> None:
    agree(
        [
            f"{where(source, item.line)}: imports {item.target} inside a function"
            for source in package()
            if not LATE_IMPORTERS.fullmatch(source.name)
            for item in source.imports
            if item.inside_function and is_ours(item.target)
        ]
    )


def test_outside_packages_stay_where_they_belong() -> None:
    problems = []
    for source in package():
        for item in source.imports:
            name = item.target.partition(".")[0]
            if is_ours(item.target) or name in sys.stdlib_module_names:
                continue
            if not source.name.startswith(OUTSIDE.get(name, ())):
                problems.append(f"{where(source, item.line)}: {source.name} imports {name}")
    agree(problems)


# --- how large ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Size:
    """How long a module is, or a function of it."""

    where: str
    name: str
    lines: int


@cache
def _sizes() -> tuple[Size, ...]:
    return tuple(
        Size(where(source, node.lineno), node.name, (node.end_lineno or node.lineno) - node.lineno + 1)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        else Size(where(source, 1), "", source.lines)
        for source in everything()
        for node in source.nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Module)
    )


def test_no_file_is_too_long() -> None:
    agree([f"{s.where}: {s.lines} lines" for s in _sizes() if not s.name and s.lines > MAX_FILE_LINES])


def test_no_function_is_too_long() -> None:
    agree([f"{s.where}: {s.name} has {s.lines} lines" for s in _sizes() if s.name and s.lines > MAX_FUNCTION_LINES])


# --- what may be called ---------------------------------------------------------------------------


def test_only_the_cli_prints() -> None:
    agree(
        [
            f"{where(source, node.lineno)}: print"
            for source in package()
            if floor(source.name) != "cli"
            for node in source.nodes
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
        ]
    )


def test_only_the_clock_knows_time_and_chance_ids() -> None:
    problems = []
    for source in package():
        if source.name == "pipeline.clock":
            continue
        for item in source.imports:
            if item.target in {"time", "uuid", "secrets"} - ({"secrets"} if floor(source.name) == "ui" else set()):
                problems.append(f"{where(source, item.line)}: imports {item.target}")
        for node in source.nodes:
            if not isinstance(node, ast.Attribute) or node.attr not in {"now", "utcnow", "today"}:
                continue
            if re.fullmatch(r"(datetime\.)?(datetime|date)\.\w+", ast.unparse(node)):
                problems.append(f"{where(source, node.lineno)}: {ast.unparse(node)}")
    agree(problems)


# --- words ----------------------------------------------------------------------------------------


def _words(name: str) -> set[str]:
    return {word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}


def _defined_names(source: Source) -> Iterator[tuple[str, int]]:
    for node in source.nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno


def test_names_use_the_glossary() -> None:
    problems = []
    for source in package():
        words = _words(source.name)
        if words & EMPTY_NAMES or (words & FOREIGN_WORDS and source.name not in GIVEN_NAMES):
            problems.append(f"{where(source, 1)}: the module's name")
        for name, line in _defined_names(source):
            if name not in GIVEN_NAMES and _words(name) & FOREIGN_WORDS:
                problems.append(f"{where(source, line)}: {name}")
    agree(problems)


def test_public_names_are_documented() -> None:
    problems = []
    for source in package():
        if not ast.get_docstring(source.tree):
            problems.append(f"{where(source, 1)}: the module has no docstring")
        for node in source.tree.body:
            if not isinstance(node, ast.FunctionDef | ast.ClassDef) or node.name.startswith("_"):
                continue
            if not ast.get_docstring(node):
                problems.append(f"{where(source, node.lineno)}: {node.name} has no docstring")
    agree(problems)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("JobQueue", {"job", "queue"}),
        ("HTTPSession", {"http", "session"}),
        ("run_stage2", {"run", "stage"}),
        ("stagecoach", {"stagecoach"}),
    ],
)
def test_names_are_split_into_words(name: str, words: set[str]) -> None:
    assert _words(name) == words
