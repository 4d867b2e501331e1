"""What a worker is lent beside its task: model, prices, services, as one parcel that a process opens once."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pipeline.engine.contexts import Reducer
from pipeline.engine.entries import Prices
from pipeline.engine.retry import RetryPolicy
from pipeline.engine.setup import Definition, Setup
from pipeline.errors import ConfigError, PipelineError
from pipeline.llm.base import Model, ModelInfo
from pipeline.records.values import digest

#: Parcels that a process keeps open.
_MOST = 4
_lock = threading.Lock()
_open: dict[str, Tools] = {}


class Lent(dict[str, Any]):
    """Services that could be sent to a worker; of the others it says why they are not there."""

    def __init__(self, services: Mapping[str, Any], missing: Mapping[str, str]) -> None:
        super().__init__(services)
        self.missing = dict(missing)

    def __missing__(self, name: str) -> Any:
        if name in self.missing:
            raise ConfigError(
                f"The service {name!r} cannot be sent to a worker: {self.missing[name]}",
                hint="Use it in the step, not in what is mapped; or make it picklable.",
            )
        raise KeyError(name)

    def __reduce__(self) -> tuple[Any, ...]:
        return Lent, (dict(self), self.missing)


@dataclass(frozen=True, slots=True)
class Tools:
    """What is lent."""

    model: Model | None = None
    info: ModelInfo | None = None
    prices: Prices | None = None
    policy: RetryPolicy = field(default_factory=RetryPolicy)
    services: Mapping[str, Any] = field(default_factory=dict)
    reducers: Mapping[str, Reducer] = field(default_factory=dict)


def packed(definition: Definition, setup: Setup) -> bytes:
    """The parcel for the workers of a run.

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
            hint="Model, prices and reducers must be picklable: classes and functions at the top of a module.",
        ) from None


def unpacked(parcel: bytes) -> Tools:
    """What a parcel holds; a process opens it once."""
    key = digest(parcel)
    with _lock:
        if key not in _open:
            while len(_open) >= _MOST:
                del _open[next(iter(_open))]
            _open[key] = pickle.loads(parcel)
        return _open[key]
