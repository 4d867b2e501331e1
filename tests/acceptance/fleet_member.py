"""What the members of a fleet do, each in a process of its own: a scheduler, a worker, a coordinator."""

from __future__ import annotations

import asyncio
import faulthandler
import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from typing import Any

from pipeline.cli.main import main
from pipeline.store import lease, owner

#: What the process imports that they are forked from; none of it starts a thread. pytest is what the tests run, and
#: each child imports that too.
WARM = [
    "anthropic", "distributed", "genai_prices.data", "psycopg", "pytest",
    "pipeline.app.run_file", "pipeline.engine.engine", "pipeline.engine.remote.coordinator",
    "pipeline.llm.anthropic", "pipeline.publish.folder", "pipeline.store.objects.backend", "pipeline.store.sql.backend",
    "tests.acceptance.fleet_member",
]  # fmt: skip


def serve(role: str, place: str, env: Mapping[str, str], log: str, said: Connection) -> None:
    """A scheduler at a port, or a worker of a scheduler, until the process is ended; says its address."""
    _settle_in(env, log, log)
    asyncio.run(_serve(role, place, said))


async def _serve(role: str, place: str, said: Connection) -> None:
    import dask
    import distributed

    cluster: Any = distributed
    # Nobody starts its workers again, so it does not wait for a fourth to die over the same task.
    dask.config.set({"distributed.scheduler.allowed-failures": 1})
    if role == "scheduler":
        member = cluster.Scheduler(host="127.0.0.1", port=int(place), dashboard_address="127.0.0.1:0")
    else:
        member = cluster.Worker(place, host="127.0.0.1", nthreads=1, dashboard_address="127.0.0.1:0")
    async with member:
        said.send(member.address)
        await member.finished()


def coordinate(argv: Sequence[str], env: Mapping[str, str], out: str, log: str, host: str) -> None:
    """The command line; as on a host of that name, whose leases run out soon ("": on this one)."""
    _settle_in(env, out, log)
    if host:
        named = json.dumps({**owner.process(), "host": host, "boot": host})
        owner._own_text = lambda: named  # type: ignore[assignment]
        lease.BEAT_SECONDS, lease.TTL_SECONDS = 1, 2
    sys.exit(main(argv))


def work_for(env: Mapping[str, str]) -> None:
    """What a process of a pool does first."""
    os.environ.update(env)


def _settle_in(env: Mapping[str, str], out: str, log: str) -> None:
    os.environ.clear()
    os.environ.update(env)
    os.chdir(os.path.dirname(log))
    for number, name in ((1, out), (2, log)):
        os.dup2(os.open(name, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600), number)
    # Asked where it is, it says so in its log.
    faulthandler.register(signal.SIGUSR1)
