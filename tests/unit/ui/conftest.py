"""A desk over a store of the test's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.desks import Served, serving


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The folder of the runs that the desk shows."""
    return tmp_path / "runs"


@pytest.fixture
def desk(root: Path) -> Iterator[Served]:
    """The real server over `root`, on a free port."""
    with serving(f"files:{root}") as served:
        yield served
