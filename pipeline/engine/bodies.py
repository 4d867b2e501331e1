"""The source text of the user's code that makes a step or task, as a hash: an edit between two starts is seen by it.

Only text is looked at, never a value: that of the body, and of the functions, classes and constants of the user's own
modules that it names. What this program holds, and what is installed, is not the user's.
"""

from __future__ import annotations

import ast
import functools
import sys
import sysconfig
import textwrap
import tokenize
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.util import resolve_name
from pathlib import Path
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from pipeline.records.values import digest

_HASH_CHARS = 16
_PROGRAM = str(Path(__file__).resolve().parent.parent)
_INSTALLED = (sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))
_NOT_THE_USERS = ("<", _PROGRAM, *(place for place in _INSTALLED if place))
#: How many wrappers a body is looked for in, and how many modules are known at once.
_DEPTH, _MOST = 8, 200

_Node = ast.stmt | ast.Lambda


@dataclass(slots=True)
class _Module:
    """The text of one module, as it was when it was first looked at."""

    names: Mapping[str, Any]
    lines: list[str] = field(default_factory=list)
    #: Definitions and lambdas by their first line; statements by the name that they bind; imports by name.
    defined: dict[int, list[_Node]] = field(default_factory=dict)
    bound: dict[str, list[ast.stmt]] = field(default_factory=dict)
    imported: dict[str, tuple[str, str]] = field(default_factory=dict)
    #: What a function's hash is made of: a thousand steps may share one definition.
    gathered: dict[CodeType, tuple[str, ...]] = field(default_factory=dict)

    def text(self, node: _Node) -> str:
        return textwrap.dedent("\n".join(self.lines[_first(node) - 1 : node.end_lineno]))


#: By the identity of the module's names: a module that is loaded anew is read anew.
_modules: dict[int, _Module] = {}


def code_of(body: Callable[..., Any]) -> str:
    """Return the hash of the source text of a body of the user's; "" where there is none to read."""
    parts: dict[str, None] = {}
    try:
        for function in _users(body, _DEPTH):
            parts.update(dict.fromkeys(_function(function)))
    except (RecursionError, ValueError, TypeError, AttributeError):
        # Code that is made while it runs may look like anything.
        return ""
    return digest("\n".join(parts).encode("utf-8", "surrogatepass"))[:_HASH_CHARS] if parts else ""


def place_of(error: BaseException) -> str:
    """Return the last place in the user's own code that an error came through, FILE:LINE; "" where there is none."""
    frames = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    own = [f"{Path(file).name}:{line}" for file, line in frames if not file.startswith(_NOT_THE_USERS)]
    return own[-1] if own else ""


def _users(body: Any, depth: int) -> Iterator[FunctionType]:
    """Yield the user's functions that a body is or wraps."""
    if depth == 0 or body is None:
        return
    inner: list[Any] = []
    if isinstance(body, functools.partial):
        inner = [body.func, *body.args, *body.keywords.values()]
    elif isinstance(body, MethodType):
        inner = [body.__func__]
    elif isinstance(body, FunctionType):
        if _is_users(body.__code__):
            yield body
        inner = [getattr(body, "__wrapped__", None), *_cells(body)]
    elif type(body).__module__.startswith("pipeline."):
        # One of ours that holds what is run.
        inner = [getattr(body, "run", None), getattr(body, "spec", None)]
    else:
        inner = [vars(type(body)).get("__call__")]
    for each in inner:
        yield from _users(each, depth - 1)


def _cells(function: FunctionType) -> list[Any]:
    found = []
    for cell in function.__closure__ or ():
        try:
            value = cell.cell_contents
        except ValueError:
            continue
        if isinstance(value, (FunctionType, MethodType, functools.partial)) or not _is_users(function.__code__):
            found.append(value)
    return found


def _is_users(code: CodeType) -> bool:
    return not code.co_filename.startswith(_NOT_THE_USERS)


def _function(function: FunctionType) -> tuple[str, ...]:
    """Return the text of a function of the user's, and of what it names."""
    code = function.__code__
    module = _module(function.__globals__, code.co_filename)
    if module is None:
        return ()
    if code not in module.gathered:
        parts: dict[str, None] = {}
        seen: set[tuple[int, str]] = set()
        nodes = module.defined.get(code.co_firstlineno, [])
        for node in [node for node in nodes if getattr(node, "name", "<lambda>") == code.co_name]:
            _gather(module, node, parts, seen)
        module.gathered[code] = tuple(parts)
    return module.gathered[code]


def _gather(module: _Module, node: _Node, parts: dict[str, None], seen: set[tuple[int, str]]) -> None:
    """Add the text of a definition, and of what it names."""
    parts[module.text(node)] = None
    for each in ast.walk(node):
        if isinstance(each, ast.Name):
            _resolve(module, each.id, parts, seen)
        elif isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name):
            value = module.names.get(each.value.id)
            if isinstance(value, ModuleType) and (other := _loaded(value)) is not None:
                _resolve(other, each.attr, parts, seen)


def _resolve(module: _Module, name: str, parts: dict[str, None], seen: set[tuple[int, str]]) -> None:
    if (id(module.names), name) in seen:
        return
    seen.add((id(module.names), name))
    for node in module.bound.get(name, ()):
        _gather(module, node, parts, seen)
    if name in module.imported:
        source, known = module.imported[name]
        other = sys.modules.get(source)
        if other is not None and (found := _loaded(other)) is not None:
            _resolve(found, known, parts, seen)


def _loaded(module: ModuleType) -> _Module | None:
    return _module(module.__dict__, str(getattr(module, "__file__", "") or "<none>"))


def _module(names: Mapping[str, Any], file: str) -> _Module | None:
    """Return a module of the user's; None: it is none, or its text is not there."""
    known = _modules.get(id(names))
    if known is not None and known.names is names:
        return known if known.lines else None
    if len(_modules) >= _MOST:
        _modules.clear()
    made = _modules[id(names)] = _Module(names)
    if file.startswith(_NOT_THE_USERS):
        return None
    try:
        with tokenize.open(file) as source:
            text = source.read()
        tree = ast.parse(text)
    except (OSError, SyntaxError, ValueError, RecursionError):
        return None
    made.lines = text.splitlines()
    _index(made, tree)
    return made if made.lines else None


def _index(module: _Module, tree: ast.Module) -> None:
    package = str(module.names.get("__package__") or "")
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            module.defined.setdefault(_first(node), []).append(node)
        elif isinstance(node, ast.ImportFrom):
            source = _source(node, package)
            module.imported.update({each.asname or each.name: (source, each.name) for each in node.names})
    for statement in tree.body:
        for name in _binds(statement):
            module.bound.setdefault(name, []).append(statement)


def _source(node: ast.ImportFrom, package: str) -> str:
    try:
        return resolve_name("." * node.level + (node.module or ""), package or None)
    except ImportError:
        return node.module or ""


def _binds(statement: ast.stmt) -> Iterator[str]:
    """Yield the names that a statement of a module binds."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield statement.name
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    for target in targets:
        yield from (each.id for each in ast.walk(target) if isinstance(each, ast.Name)) if target is not None else ()


def _first(node: _Node) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(each.lineno for each in decorators)])
