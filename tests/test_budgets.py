"""What the house may take up: budgets that only shrink, and lists of what is to go."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cache

from tests.sources import agree, floor, module_names, package


@dataclass(frozen=True)
class Budget:
    """How large a package may be: lines of Python, and floors of imports inside it."""

    lines: int
    floors: int


#: Lowered whenever a package gets smaller; the tests below refuse a budget with more than SLACK of air in it.
BUDGETS = {
    "root": Budget(1_875, 1),
    "records": Budget(3_935, 7),
    "graph": Budget(780, 3),
    "dot": Budget(2_830, 6),
    "cost": Budget(1_920, 5),
    "store": Budget(10_200, 8),
    "llm": Budget(2_785, 6),
    "publish": Budget(3_275, 8),
    "formulas": Budget(930, 2),
    "export": Budget(2_965, 4),
    "content": Budget(5_655, 11),
    "bank": Budget(900, 5),
    "maths": Budget(3_605, 6),
    "drawing": Budget(3_285, 7),
    "engine": Budget(9_220, 8),
    "formats": Budget(10_025, 8),
    "travel": Budget(2_200, 3),
    "lessons": Budget(6_560, 6),
    "app": Budget(8_645, 6),
    "cli": Budget(5_295, 6),
    "traces": Budget(1_160, 5),
    "ui": Budget(3_410, 8),
}
SLACK = 0.03
#: The files of the package in all, and its modules under 40 lines that have a single importer.
MAX_FILES = 480
MAX_SMALL_MODULES = 0
SMALL_LINES = 40

#: Names that look like verb forms and are no nouns; topics of school mathematics, named as teachers name them.
NOT_NOUNS = frozenset({"expanding", "factorising", "simultaneous"})
#: What is very likely a verb form.
_NOT_NOUNS = re.compile(
    r"(?!ceiling|string|drawing|pricing|routing|rounding|caching|setting|testing|heading|spending|spelling)[a-z]{2,}(ing|ed)"
)


@cache
def _below() -> dict[str, frozenset[str]]:
    """Return the modules of ours that each module imports at its top or inside functions."""
    return {source.name: frozenset(item.target for item in source.imports) & module_names() for source in package()}


def _package_of(name: str) -> str:
    return floor(name) if floor(name) in BUDGETS else "root"


@cache
def _depth(name: str) -> int:
    """Return on which floor of its own package a module stands."""
    parent = name.rpartition(".")[0]
    own = [target for target in _below()[name] if floor(target) == floor(name) and target not in (name, parent)]
    return 1 + max((_depth(target) for target in own), default=0)


def _measured() -> dict[str, Budget]:
    lines: dict[str, int] = dict.fromkeys(BUDGETS, 0)
    floors: dict[str, int] = dict.fromkeys(BUDGETS, 0)
    for source in package():
        name = _package_of(source.name)
        lines[name] += source.lines
        floors[name] = max(floors[name], _depth(source.name))
    return {name: Budget(lines[name], floors[name]) for name in BUDGETS}


def test_packages_keep_their_budgets() -> None:
    problems = []
    for name, is_now in _measured().items():
        budget = BUDGETS[name]
        if is_now.lines > budget.lines or is_now.floors > budget.floors:
            problems.append(f"{name}: {is_now}, over its budget of {budget}")
        elif budget.lines * (1 - SLACK) > is_now.lines or budget.floors > is_now.floors:
            problems.append(f"{name}: {is_now} is less than its {budget}: lower the budget")
    agree(problems)


def test_files_are_few() -> None:
    importers: dict[str, set[str]] = {}
    for name, targets in _below().items():
        for target in targets:
            importers.setdefault(target, set()).add(name)
    small = [
        source.name
        for source in package()
        if source.lines < SMALL_LINES and source.path.name != "__init__.py" and len(importers.get(source.name, ())) == 1
    ]
    assert len(package()) <= MAX_FILES
    assert len(small) <= MAX_SMALL_MODULES, "\n".join(small)


def test_modules_are_named_by_nouns() -> None:
    names = {source.path.stem for source in package()}
    new = {name for name in names - NOT_NOUNS if _NOT_NOUNS.fullmatch(name)}
    assert not new, f"no nouns: {sorted(new)}"


#: Class names that several modules have: each shall be one class. Take a name off; add none.
TWICE = frozenset(
    {
        "Answered", "Backend", "Changes", "Choice", "Claim", "Entry", "Group", "Listing", "Outcome", "Plan",
        "Point", "Recording", "Refusal", "Row", "Source", "StepFailed",
    }
)  # fmt: skip


def test_one_class_name_is_one_class() -> None:
    where: dict[str, list[str]] = {}
    for source in package():
        for node in source.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                where.setdefault(node.name, []).append(source.name)
    assert {name for name, modules in where.items() if len(modules) > 1} == TWICE, where


#: What is said to people: no decision goes by its words.
_SAID = re.compile(r"\b(message|hint|why|reason|sentence)$")


def _decides_by_words(node: ast.AST) -> bool:
    """Return whether a piece of code looks at the words of what is said to people."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr in {"startswith", "endswith"} and bool(_SAID.search(ast.unparse(node.func.value)))
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
        return isinstance(node.left, ast.Constant) and bool(_SAID.search(ast.unparse(node.comparators[0])))
    return False


def test_nothing_is_decided_by_the_words_of_a_message() -> None:
    found = {source.name: sum(map(_decides_by_words, source.nodes)) for source in package()}
    assert {name: count for name, count in found.items() if count} == {}
