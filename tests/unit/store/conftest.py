"""Disks that refuse, and where records go that they refused."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from pipeline.store.files import FileStore
from tests.faulty_disk import FaultyDisk
from tests.journals import StillClock


@pytest.fixture(autouse=True)
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where emergency files go."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path / "state" / "pipeline" / "kept"


@pytest.fixture
def disk() -> FaultyDisk:
    return FaultyDisk()


@pytest.fixture
def store(tmp_path: Path, disk: FaultyDisk) -> FileStore:
    return FileStore(tmp_path / "runs", StillClock(), concurrency=2, disk=disk)
