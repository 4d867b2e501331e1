"""`log`: a run's records, one line each for people or one object each for programs."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator

import click

from pipeline.app.run_log import line_of, record_json, records_after
from pipeline.app.stores import open_store
from pipeline.cli.options import json_option, own_option, run_argument, store_option
from pipeline.cli.text import say, say_json
from pipeline.clock import Clock, SystemClock
from pipeline.records import kinds
from pipeline.records.codec import Record
from pipeline.store.base import Store
from pipeline.store.reader import resolve

#: Seconds between two looks for new records.
POLL_SECONDS = 0.5


@click.command("log")
@run_argument
@own_option("log", "--follow", "-f", is_flag=True, help="Wait for more records until the run ends.")
@json_option
@store_option
def log(run: str, follow: bool, as_json: bool, store: str | None) -> None:
    """Print a run's records, one per line; --follow waits for more until the run ends."""
    place = open_store(store)
    name = resolve(place, run)
    for record in following(place, name, SystemClock()) if follow else records_after(place, name, 0):
        if as_json:
            say_json(record_json(record))
        else:
            say(line_of(record))
        if follow:
            sys.stdout.flush()


def following(store: Store, run: str, clock: Clock, stop: threading.Event | None = None) -> Iterator[Record]:
    """Yield the records, then whatever is appended, until the run has ended (or `stop` is set)."""
    stop = stop or threading.Event()
    seq, ended = 0, False
    while True:
        for record in records_after(store, run, seq):
            seq, ended = record.seq, isinstance(record.fact, kinds.RunEnded)
            yield record
        if ended or clock.wait(stop, POLL_SECONDS):
            return
