"""`log`: a run's records as lines."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator

import click

from pipeline.cli.narrate import details, record_json
from pipeline.cli.options import json_option, open_store, own, run_argument, store_option
from pipeline.cli.text import say, say_json, when
from pipeline.clock import Clock, SystemClock
from pipeline.records.codec import Record, decode_line
from pipeline.records.kinds import RunEnded
from pipeline.records.lines import LineDamaged
from pipeline.store.base import Store
from pipeline.store.reading import resolve

#: Seconds between two looks for new records.
POLL_SECONDS = 0.5


@click.command("log")
@run_argument
@click.option("--follow", "-f", is_flag=True, envvar=own("log", "follow"), show_envvar=True,
              help="Wait for more records until the run ends.")  # fmt: skip
@json_option
@store_option
def log(run: str, follow: bool, as_json: bool, store: str | None) -> None:
    """Print a run's records, one a line; --follow waits for more until the run ends."""
    place = open_store(store)
    name = resolve(place, run)
    records = following(place, name, SystemClock()) if follow else after(place, name, 0)
    for record in records:
        if as_json:
            say_json(record_json(record))
        else:
            say(line_of(record))
        if follow:
            sys.stdout.flush()


def after(store: Store, run: str, seq: int) -> Iterator[Record]:
    """The records with a higher seq, in order; unreadable ones are left out."""
    for line in store.read(run, after=seq):
        try:
            yield decode_line(line)
        except LineDamaged:
            continue


def following(store: Store, run: str, clock: Clock, stop: threading.Event | None = None) -> Iterator[Record]:
    """As `after`, then whatever is appended, until the run has ended (or `stop` is set)."""
    stop = stop or threading.Event()
    seq, ended = 0, False
    while True:
        for record in after(store, run, seq):
            seq, ended = record.seq, isinstance(record.fact, RunEnded)
            yield record
        if ended or clock.wait(stop, POLL_SECONDS):
            return


def line_of(record: Record) -> str:
    """`   12  2026-01-09 14:30:22  step_completed  seed: course_id course_c84775`."""
    kind = getattr(record.fact, "name", "") if record.fact.kind == "unknown" else record.fact.kind
    return f"{record.seq:>6}  {when(record.at)}  {kind:<15}  {details(record.fact)}".rstrip()
