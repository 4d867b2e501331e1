"""A store of objects against bare requests of the same server: python -m tests.benchmarks.objects.

The server is moto, in a process of its own: one that answers in its own time, which is why goals are ratios. With
OBJECTS_SERVER=weed the saves are measured over SeaweedFS too.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from statistics import median

from pipeline.clock import SystemClock
from pipeline.records.codec import decode_line
from pipeline.records.documents import head_document
from pipeline.records.fold import fold
from pipeline.store.head import head_bytes
from pipeline.store.memory import MemoryStore
from pipeline.store.objects import keys
from pipeline.store.objects.backend import open_objects
from pipeline.store.objects.tail import head_notes
from pipeline.store.runs import RunStore
from tests.benchmarks.measure import say
from tests.benchmarks.saves import saves
from tests.benchmarks.sql import timed
from tests.contract.harm import bucket_of
from tests.journals import small_run
from tests.servers.objects import Moto, environ

_RUNS, _WANTED, _PUTS = 10_000, 50, 100
_LOADED, _EMPTY = "loaded", "empty"


def serve() -> None:
    """Moto with a bucket in which the runs lie already; until the other side hangs up."""
    from moto.s3.models import s3_backends

    backend = s3_backends["123456789012"]["aws"]
    server = Moto()
    for name in (_LOADED, _EMPTY):
        backend.create_bucket(name, "us-east-1")
    lines = small_run()
    state, size = fold("r", map(decode_line, lines)), sum(map(len, lines))
    for number in range(_RUNS):
        run = f"2026{number // 1000 + 1:02d}01_{number:06d}"
        head = head_bytes({**head_document(state, size, ["seed"]), "run_id": run})
        made = backend.put_object(_LOADED, keys.head(run), head)
        made.set_metadata({f"x-amz-meta-{name}": text for name, text in head_notes(len(lines), 1).items()})
        backend.put_object(_LOADED, keys.journal(run, 1), b"".join(lines))
        backend.put_object(_LOADED, keys.lease(run), b'{"epoch":1}')
    print(server.endpoint, flush=True)
    sys.stdin.read()


@contextmanager
def served() -> Iterator[str]:
    """The address of such a server."""
    command = [sys.executable, "-m", "tests.benchmarks.objects", "serve"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.kill()


def newest(store: RunStore) -> None:
    """The newest of many runs, against as many bare requests as it takes: a read and a listing each."""
    names = [head.run_id for head in islice(store.heads(), _WANTED)]

    def look(number: int) -> None:
        bucket_of(store).get(keys.head(names[number % _WANTED]))
        next(bucket_of(store).under(keys.home(names[number % _WANTED])))

    bare = median(timed(look, 20))
    listing = median(timed(lambda _: next(bucket_of(store).under(keys.HEADS)), 5))
    took = median(timed(lambda _: list(islice(store.heads(), _WANTED)), 3))
    say(
        f"newest {_WANTED} of {_RUNS}: against a listing and {_WANTED} looks",
        took / (listing + _WANTED * bare),
        2.0,
        "×",
    )
    print(f"  {took:.0f} ms; a bare listing {listing:.1f} ms, a bare look {bare:.1f} ms")


def saved(name: str, store: RunStore) -> None:
    """A save of a layered run: four puts, beside a bare one and beside the same save that nobody stores."""
    bare = timed(lambda number: bucket_of(store).put(f"bare/{number}", b"x" * 300), _PUTS)
    times = sorted(saves(store))
    p95 = times[int(len(times) * 0.95)]
    say(f"{name}: a save of 1000 tasks, P95", p95, 50, "ms")
    memory = median(saves(MemoryStore(SystemClock())))
    print(f"  median {median(times):.1f} ms, of it in memory {memory:.1f} ms; a bare put {median(bare):.1f} ms")


def main() -> None:
    with served() as endpoint:
        os.environ.update(environ(endpoint))
        newest(RunStore(open_objects(f"s3://{_LOADED}"), SystemClock()))
        saved("moto", RunStore(open_objects(f"s3://{_EMPTY}/saves"), SystemClock()))
    if os.environ.get("OBJECTS_SERVER") == "weed":
        from tests.servers.real_objects import Weed

        with tempfile.TemporaryDirectory() as place:
            server = Weed(Path(place))
            try:
                os.environ.update(environ(server.endpoint))
                saved("SeaweedFS", RunStore(open_objects(f"s3://{server.bucket()}/saves"), SystemClock()))
            finally:
                server.stop()


if __name__ == "__main__":
    serve() if sys.argv[1:] == ["serve"] else main()
