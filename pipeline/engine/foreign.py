"""A user's own pipeline file: FILE.py:NAME, imported by path on the user's own word."""

from __future__ import annotations

import ast
import importlib.util
import os
import shlex
import sys
from pathlib import Path

from pipeline.engine.pipeline import Pipeline
from pipeline.errors import ConfigError


def load_pipeline(target: str) -> Pipeline:
    """The Pipeline object that FILE.py:NAME names. Runs the file, as Python's import does.

    Raises:
        ConfigError: No such file, it cannot be imported, or NAME is no Pipeline.
    """
    text, colon, name = target.rpartition(":")
    if not colon or not name.isidentifier():
        raise _unnamed(target if target.endswith(".py") else text)
    path = Path(os.path.expanduser(text)).absolute()
    if not path.is_file():
        raise ConfigError(f"{text!r} is no regular file." if path.exists() else f"There is no file {text!r}.")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ConfigError(f"{text!r} is not a Python file.", hint="Its name must end in .py.")
    module = importlib.util.module_from_spec(spec)
    # What the file imports from beside itself must be found, as when it is run as a script.
    sys.path.insert(0, str(path.parent))
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise ConfigError(f"{text} cannot be imported: {type(error).__name__}: {error}") from error
    found = getattr(module, name, None)
    if not isinstance(found, Pipeline):
        there = ", ".join(key for key, value in vars(module).items() if isinstance(value, Pipeline)) or "none"
        raise ConfigError(f"{name!r} in {text} is no Pipeline.", hint=f"Pipelines there: {there}.")
    return found


def _unnamed(file: str) -> ConfigError:
    """Return the error of a target that names a file and no pipeline in it; the file is read, not run."""
    path = Path(os.path.expanduser(file))
    if file.endswith(".py") and not path.is_file():
        return ConfigError(f"There is no file {file!r}.")
    names = _assigned(path) if file.endswith(".py") else []
    if not names:
        return ConfigError("A Python target is FILE.py:NAME; NAME is the Pipeline object in the file.",
                           hint="For example: ./pipeline.sh run my_pipeline.py:PIPELINE")  # fmt: skip
    commands = " or ".join(f"`run {shlex.quote(f'{file}:{name}')}`" for name in names)
    return ConfigError(f"{file} needs the NAME of a pipeline in it: FILE.py:NAME.", hint=f"Type {commands}.")


def _assigned(path: Path) -> list[str]:
    """Return the names that a file assigns a Pipeline to."""
    try:
        body = ast.parse(path.read_bytes()).body
    except (OSError, SyntaxError, ValueError, RecursionError):
        return []
    found = []
    for line in body:
        value = getattr(line, "value", None)
        if isinstance(line, (ast.Assign, ast.AnnAssign)) and isinstance(value, ast.Call):
            made = value.func.id if isinstance(value.func, ast.Name) else getattr(value.func, "attr", "")
            targets = line.targets if isinstance(line, ast.Assign) else [line.target]
            found += [each.id for each in targets if isinstance(each, ast.Name) and made == Pipeline.__name__]
    return found
