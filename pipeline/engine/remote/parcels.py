"""What a worker is sent: functions by name, and model, prices and services as one parcel."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import pickle
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, Generic, TypeVar

from pipeline.engine.ceiling import Prices
from pipeline.engine.contexts import Reducer
from pipeline.engine.retry import RetryPolicy
from pipeline.engine.setup import Definition, Setup
from pipeline.errors import ConfigError, PipelineError
from pipeline.llm.base import Model, ModelInfo
from pipeline.records.values import digest, encode_value
from pipeline.store.address import parse_store_url

_MAIN = "__main__"
_loading = threading.RLock()


def reference(function: Callable[..., Any], where: str) -> dict[str, Any]:
    """Return how a function is found again: {"module", "name", "file"}; file "" where the module is importable.

    For a functools.partial of one with JSON values also "first": these values.

    Raises:
        ConfigError: It has no name of its own; names its map.
    """
    if isinstance(function, partial) and not function.keywords:
        first = json.loads(encode_value(list(function.args), where))
        return {**reference(function.func, where), "first": first}
    module, name = getattr(function, "__module__", ""), getattr(function, "__qualname__", "")
    known = sys.modules.get(module)
    if known is None or "<" in name or _follow(known, name) is not function:
        raise ConfigError(
            f"{where}: its function has no name that a worker could import ({name or function!r}).",
            code="function_not_importable",
            hint="Define it at the top of a module, not within another function.",
        )
    file = "" if "." in module else os.path.abspath(getattr(known, "__file__", None) or "")
    return {"module": module, "name": name, "file": file if file.endswith(".py") else ""}


def resolve(found: Mapping[str, Any]) -> Any:
    """Return the function that a reference names. Imports its module, as Python does.

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
            code="function_not_importable",
            hint="Workers need the same code at the same place as the process that started the run.",
        ) from None


def _module(name: str, file: str) -> ModuleType:
    if not file or not os.path.isfile(file):
        return sys.modules.get(name) or importlib.import_module(name)
    for known in (name, Path(file).stem) if name == _MAIN else (name,):
        module = sys.modules.get(known)
        if module is not None and os.path.abspath(getattr(module, "__file__", None) or "") == file:
            return module
    return load_file(Path(file).stem if name == _MAIN else name, Path(file))


def load_file(name: str, path: Path) -> ModuleType:
    """Load a Python file as a module of that name; it can import from its own folder, as when it is run as a script."""
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None:
        raise ImportError(f"{path} is not a Python file")
    if str(path.parent) not in sys.path[:1]:
        sys.path.insert(0, str(path.parent))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        # Not by the loader: it takes kept bytecode for current if an edit left second and size alike.
        exec(compile(path.read_bytes(), str(path), "exec"), vars(module))
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _follow(module: ModuleType, name: str) -> Any:
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part)
    return found


Key = TypeVar("Key")
Kept = TypeVar("Kept")


class ProcessCache(Generic[Key, Kept]):
    """What a worker process keeps from one task to the next; the oldest goes first."""

    def __init__(self, most: float = 4) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._kept: dict[Key, Kept] = {}

    def find(self, key: Key) -> Kept | None:
        """Return what is kept; None: nothing."""
        with self._lock:
            return self._kept.get(key)

    def get(self, key: Key, make: Callable[[], Kept]) -> Kept:
        """Return what is kept, made first where it is not."""
        with self._lock:
            if key not in self._kept:
                while len(self._kept) >= self._most:
                    del self._kept[next(iter(self._kept))]
                self._kept[key] = make()
            return self._kept[key]


class Lent(dict[str, Any]):
    """Services that could be sent to a worker; for the others, the reason why they are missing."""

    def __init__(self, services: Mapping[str, Any], missing: Mapping[str, str]) -> None:
        super().__init__(services)
        self.missing = dict(missing)

    def __missing__(self, name: str) -> Any:
        if name in self.missing:
            raise ConfigError(
                f"The service {name!r} cannot be sent to a worker: {self.missing[name]}",
                code="service_not_picklable",
                hint="Use it in the step, not in what is mapped; or make it picklable.",
            )
        raise KeyError(name)

    def __reduce__(self) -> tuple[Any, ...]:
        return Lent, (dict(self), self.missing)


@dataclass(frozen=True, slots=True)
class Tools:
    """What a worker is lent beside its task."""

    model: Model | None = None
    info: ModelInfo | None = None
    prices: Prices | None = None
    policy: RetryPolicy = field(default_factory=RetryPolicy)
    services: Mapping[str, Any] = field(default_factory=dict)
    reducers: Mapping[str, Reducer] = field(default_factory=dict)


def packed(definition: Definition, setup: Setup) -> bytes:
    """Return the parcel for the workers of a run.

    Raises:
        ConfigError: Its model, prices or reducers cannot be sent to another process.
    """
    lent, missing = {}, {}
    for name, service in setup.services.items():
        try:
            pickle.dumps(service)
            lent[name] = service
        except Exception as error:
            missing[name] = f"{type(error).__name__}: {error}"
    tools = Tools(setup.model, setup.info, setup.prices, setup.policy, Lent(lent, missing), dict(definition.reducers))
    try:
        return pickle.dumps(tools)
    except PipelineError:
        raise
    except Exception as error:
        raise ConfigError(
            f"What the tasks need cannot be sent to a worker: {type(error).__name__}: {error}",
            code="tools_not_picklable",
            hint="Model, prices and reducers must be picklable: classes and functions at the top of a module.",
        ) from None


_parcels: ProcessCache[str, Tools] = ProcessCache()


def unpacked(parcel: bytes) -> Tools:
    """Return what a parcel holds; a process opens it once."""
    return _parcels.get(digest(parcel), lambda: pickle.loads(parcel))


def plain_url(url: str) -> str:
    """Return a store's URL as workers are told it: without a password, and the same in any folder."""
    named = parse_store_url(url)
    return f"{named.url}?allow_http=1" if named.allow_http else named.url


def own_url(url: str) -> str:
    """Return the URL of a store as this worker knows it: its own PIPELINE_STORE, if that is the same store."""
    own = os.environ.get("PIPELINE_STORE", "")
    return own if own and plain_url(own) == url else url
