"""A scheduler, or a worker of one, as a process of its own; says its address once it is there."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import distributed


async def serve(role: str, place: str) -> None:
    """Serve until the process is ended."""
    dask: Any = distributed
    if role == "scheduler":
        member = dask.Scheduler(host="127.0.0.1", port=int(place), dashboard_address="127.0.0.1:0")
    else:
        member = dask.Worker(place, host="127.0.0.1", nthreads=1, dashboard_address="127.0.0.1:0")
    async with member:
        sys.stdout.write(f"{member.address}\n")
        sys.stdout.flush()
        await member.finished()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], sys.argv[2]))
