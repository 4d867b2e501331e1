"""A user's own pipeline file: FILE.py:NAME, imported by path on the user's own word."""

from __future__ import annotations

import importlib.util
import os
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
    path = Path(os.path.expanduser(text)).absolute()
    if not colon or not name.isidentifier():
        raise ConfigError(
            f"{target!r} is not FILE.py:NAME.", hint="For example: ./pipeline.sh run my_pipeline.py:PIPELINE"
        )
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
