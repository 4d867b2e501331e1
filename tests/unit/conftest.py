"""The Messages API server that all tests of one process share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.servers.billing import BillingServer


@pytest.fixture(scope="session")
def _running() -> Iterator[BillingServer]:
    with BillingServer() as running:
        yield running


@pytest.fixture
def server(_running: BillingServer) -> BillingServer:
    """The server, begun anew."""
    _running.reset()
    return _running
