"""The stores that every test of the store's contract is run over."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.store.backend import Backend
from pipeline.store.base import Store
from pipeline.store.files import FileStore
from pipeline.store.folder import FolderBackend
from pipeline.store.memory import MemoryBackend, MemoryStore
from pipeline.store.objects.backend import open_objects
from pipeline.store.run_folder import RunFolder
from pipeline.store.runs import RunStore
from pipeline.store.sql.backend import open_backend, open_sql
from pipeline.store.url import open_store
from tests.faulty_disk import LazyDisk
from tests.journals import StillClock
from tests.servers.objects import moto as moto
from tests.servers.objects import objects as objects
from tests.servers.objects import proxy as proxy
from tests.servers.postgres import postgres as postgres
from tests.servers.postgres import postgresql as postgresql
from tests.servers.real_objects import rclone as rclone
from tests.servers.real_objects import weed as weed

#: Each keeps the whole contract.
STORES = ["files", "memory", "objects", "sqlite", "postgresql"]
#: Each keeps the whole contract of the seam below the store.
BACKENDS = ["memory", "files", "objects", "sqlite", "postgresql"]


@pytest.fixture
def clock() -> StillClock:
    return StillClock()


@pytest.fixture
def make_store(request: pytest.FixtureRequest, tmp_path: Path, clock: StillClock) -> Callable[[str], Store]:
    makers: dict[str, Callable[[], Store]] = {
        "files": lambda: FileStore(tmp_path / "runs", clock, disk=LazyDisk()),
        "memory": lambda: MemoryStore(clock),
        "objects": lambda: open_store(request.getfixturevalue("objects"), clock),
        "sqlite": lambda: open_sql(f"sqlite:{tmp_path}/runs.db", clock),
        "postgresql": lambda: open_sql(request.getfixturevalue("postgresql"), clock),
        "run folder": lambda: RunFolder(tmp_path / ".attractor_run", clock, disk=LazyDisk()),
    }
    return lambda kind: makers[kind]()


@pytest.fixture
def make_backend(request: pytest.FixtureRequest, tmp_path: Path, clock: StillClock) -> Callable[[str], Backend]:
    makers: dict[str, Callable[[], Backend]] = {
        "memory": MemoryBackend,
        "files": lambda: FolderBackend(tmp_path / "runs", clock, disk=LazyDisk()),
        "objects": lambda: open_objects(request.getfixturevalue("objects")),
        "sqlite": lambda: open_backend(f"sqlite:{tmp_path}/runs.db"),
        "postgresql": lambda: open_backend(request.getfixturevalue("postgresql")),
    }
    return lambda kind: makers[kind]()


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest, make_backend: Callable[[str], Backend]) -> Backend:
    return make_backend(request.param)


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, make_store: Callable[[str], Store]) -> Store:
    return make_store(request.param)


@pytest.fixture(params=[*STORES, "run folder"])
def run_store(request: pytest.FixtureRequest, make_store: Callable[[str], Store]) -> Store:
    """As far as one run goes, a folder that is itself the run is a store too."""
    return make_store(request.param)


@pytest.fixture(params=["sqlite", "postgresql"])
def sql(request: pytest.FixtureRequest, make_store: Callable[[str], RunStore]) -> RunStore:
    """A store in a database."""
    return make_store(request.param)
