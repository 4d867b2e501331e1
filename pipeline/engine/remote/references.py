"""Functions by name, so that a worker elsewhere finds the same one: a module, or the file it was loaded from."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
import threading
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from pipeline.errors import ConfigError
from pipeline.records.values import encode_value

_MAIN = "__main__"
_loading = threading.RLock()


def reference(function: Callable[..., Any], where: str) -> dict[str, Any]:
    """How a function is found again: {"module", "name", "file"}; file "" where the module is imported by its name.

    Of a functools.partial of one with JSON values also "first": these values.

    Raises:
        ConfigError: It has no name of its own; says which map it is of.
    """
    if isinstance(function, partial) and not function.keywords:
        first = json.loads(encode_value(list(function.args), where))
        return {**reference(function.func, where), "first": first}
    module, name = getattr(function, "__module__", ""), getattr(function, "__qualname__", "")
    known = sys.modules.get(module)
    if known is None or "<" in name or _follow(known, name) is not function:
        raise ConfigError(
            f"{where}: its function has no name that a worker could import ({name or function!r}).",
            hint="Define it at the top of a module, not within another function.",
        )
    file = "" if "." in module else os.path.abspath(getattr(known, "__file__", None) or "")
    return {"module": module, "name": name, "file": file if file.endswith(".py") else ""}


def resolve(found: Mapping[str, Any]) -> Any:
    """The function that a reference names. Imports its module, as Python does.

    Raises:
        ConfigError: This process cannot import it.
    """
    try:
        with _loading:
            function = _follow(_module(found["module"], found.get("file", "")), found["name"])
        return partial(function, *found["first"]) if "first" in found else function
    except (ImportError, AttributeError, OSError) as error:
        raise ConfigError(
            f"A worker cannot import {found['name']} of {found.get('file') or found['module']}: {error}",
            hint="Workers need the same code at the same place as whoever started the run.",
        ) from None


def _module(name: str, file: str) -> ModuleType:
    known = sys.modules.get(name)
    if known is not None and (not file or os.path.abspath(getattr(known, "__file__", None) or "") == file):
        return known
    if not file or not os.path.isfile(file):
        return importlib.import_module(name)
    return _load(Path(file).stem if name == _MAIN else name, file)


def _load(name: str, file: str) -> ModuleType:
    """A file as a module, as `run FILE.py:NAME` loads it; what it imports from beside itself is found."""
    known = sys.modules.get(name)
    if known is not None and os.path.abspath(getattr(known, "__file__", None) or "") == file:
        return known
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is no Python file")
    folder = str(Path(file).parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _follow(module: ModuleType, name: str) -> Any:
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part)
    return found
