"""The package's source text, parsed once for all tests of its shape."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "pipeline"


@dataclass(frozen=True)
class Source:
    """One parsed module."""

    name: str
    path: Path
    tree: ast.Module
    lines: int

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """Every node; walked once for all tests."""
        return tuple(ast.walk(self.tree))

    @cached_property
    def imports(self) -> tuple[Import, ...]:
        """What it imports, save for the type checker only."""
        return tuple(imports_of(self.tree))


@dataclass(frozen=True)
class Import:
    """One imported module and where it is imported."""

    target: str
    line: int
    inside_function: bool


def parse(path: Path) -> Source:
    text = path.read_text(encoding="utf-8")
    parts = path.relative_to(ROOT).with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    return Source(name, path, ast.parse(text), text.count("\n"))


@cache
def package() -> tuple[Source, ...]:
    return tuple(parse(path) for path in sorted(PACKAGE.rglob("*.py")))


def everything() -> Iterator[Source]:
    yield from package()
    # Not kept: so many trees at once make each look of the garbage collector a long one.
    yield from (parse(path) for path in sorted((ROOT / "tests").rglob("*.py")))


@cache
def module_names() -> frozenset[str]:
    return frozenset(source.name for source in package())


def targets(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
        return
    assert node.level == 0, "imports are absolute"
    module = node.module or ""
    for alias in node.names:
        # `from pipeline.records import kinds` imports the module pipeline.records.kinds.
        full = f"{module}.{alias.name}"
        yield full if module == "pipeline" or full in module_names() else module


def is_typing_only(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def imports_of(node: ast.AST, *, inside: bool = False) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield from (Import(target, child.lineno, inside) for target in targets(child))
        elif not is_typing_only(child):
            function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from imports_of(child, inside=inside or function)


def is_ours(target: str) -> bool:
    return target == "pipeline" or target.startswith("pipeline.")


def floor(module: str) -> str:
    return [*module.split("."), ""][1]


def where(source: Source, line: int) -> str:
    return f"{source.path.relative_to(ROOT)}:{line}"


def agree(problems: list[str]) -> None:
    assert not problems, "\n".join(["", *problems])
