"""The front door of tasks on an executor: checks that it can be, then makes what a run asks."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor

from pipeline.engine.remote.fleet import fleet_of
from pipeline.engine.remote.pool import Crew, check_options
from pipeline.engine.running import Running
from pipeline.engine.setup import Definition, Setup


def crew_on(
    executor: Executor, store_url: str, definition: Definition, setup: Setup, *, near: bool = False
) -> Callable[[Running], Crew]:
    """What Setup.crew is to be, so that maps go to an executor.

    Args:
        near: The workers are processes of this host, whatever the executor is.

    Raises:
        ConfigError: The workers cannot share the store, or cannot be sent what the tasks need.
    """
    check_options(setup.options)
    fleet = fleet_of(executor, store_url, definition, setup, near=near)
    return lambda running: Crew(running, fleet)
