"""What the acceptance cases share: layered runs over each kind of store, runs of steps that die."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.clock import SystemClock
from pipeline.store.base import Store
from pipeline.store.files import FileStore
from pipeline.store.memory import MemoryStore
from tests.acceptance.cases.acting import Acting
from tests.layered import Layered
from tests.said import Cli


def _made(kind: str, folder: Path) -> Store:
    return MemoryStore(SystemClock()) if kind == "memory" else FileStore(folder, SystemClock())


@pytest.fixture(params=["memory", "files"])
def layered(request: pytest.FixtureRequest, tmp_path: Path) -> Layered:
    return Layered(_made(request.param, tmp_path / "runs"))


@pytest.fixture(params=["memory", "files"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """Another store than that of the command line."""
    return _made(request.param, tmp_path / "other")


@pytest.fixture
def acting(tmp_path: Path, root: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Acting:
    home = tmp_path / "acts"
    home.mkdir()
    monkeypatch.setenv("DYING_HOME", str(home))
    return Acting(home, root, cli)
