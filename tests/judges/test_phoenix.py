"""Arize Phoenix, where it is installed (`phoenix` on PATH), receives a run: once, whole, at the ledger's price."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import threading
import urllib.request
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pipeline.app.traces import send_run
from pipeline.clock import SystemClock
from pipeline.cost.ledger import rows
from pipeline.store.base import Store
from pipeline.store.reader import records
from pipeline.testing import MemoryStore
from tests.unit.traces.test_traces_sending import made

#: It makes its database first, which takes long on a busy machine.
_TRIES, _SECONDS = 240, 0.5


@pytest.fixture
def phoenix(tmp_path: Path) -> Iterator[str]:
    """The address of a Phoenix that has nothing yet."""
    program = shutil.which("phoenix")
    if program is None:
        pytest.skip("Arize Phoenix (phoenix) is not installed")
    with socket.socket() as one, socket.socket() as two:
        one.bind(("127.0.0.1", 0))
        two.bind(("127.0.0.1", 0))
        port, grpc = one.getsockname()[1], two.getsockname()[1]
    environment = {**os.environ, "PHOENIX_HOST": "127.0.0.1", "PHOENIX_PORT": str(port), "PHOENIX_GRPC_PORT": str(grpc),
                   "PHOENIX_WORKING_DIR": str(tmp_path), "PHOENIX_TELEMETRY_ENABLED": "false"}  # fmt: skip
    url = f"http://127.0.0.1:{port}"
    with subprocess.Popen(
        [program, "serve"], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as served:
        try:
            assert any(_is_up(url) for _ in range(_TRIES))
            yield url
        finally:
            served.terminate()


def _is_up(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/healthz", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        threading.Event().wait(_SECONDS)
        return False


def _spans(url: str, many: int) -> list[dict[str, Any]]:
    """Return what it has, once it has so many: it stores what it took a moment later."""
    found: list[dict[str, Any]] = []
    for _ in range(_TRIES):
        with urllib.request.urlopen(f"{url}/v1/projects/default/spans?limit=1000", timeout=30) as answer:
            found = json.load(answer)["data"]
        if len(found) >= many:
            break
        threading.Event().wait(_SECONDS)
    return found


def _cost(url: str) -> Decimal:
    query = {"query": "{ projects { edges { node { costSummary { total { cost } } } } } }"}
    asked = urllib.request.Request(f"{url}/graphql", json.dumps(query).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(asked, timeout=30) as answer:
        (project,) = json.load(answer)["data"]["projects"]["edges"]
    return Decimal(repr(project["node"]["costSummary"]["total"]["cost"]))


def test_phoenix_has_each_call_once_with_its_tokens_and_dollars(phoenix: str, tmp_path: Path) -> None:
    store: Store = MemoryStore(SystemClock())
    first, second = made(store).run_id, made(store).run_id
    ledger = [row for run in (first, second) for row in rows(records(store, run))]
    # The first once more: what follows it shows that it has been taken in.
    sent = [send_run(store, run, phoenix, content=False) for run in (first, first, second)]
    found = _spans(phoenix, sent[0].spans + sent[2].spans)
    assert len(found) == sent[0].spans + sent[2].spans
    calls = [span["attributes"] for span in found if span["span_kind"] == "LLM"]
    assert len(calls) == len(ledger)
    assert sum(Decimal(repr(said["gen_ai.usage.cost.amount"])) for said in calls) == sum(row.low for row in ledger)
    assert sum(said["llm.token_count.total"] for said in calls) == sum(sum(row.tokens.values()) for row in ledger)
    assert abs(_cost(phoenix) - sum((row.low for row in ledger), Decimal(0))) < Decimal("1e-9")
