"""`log` and `traces`: a run's records, printed or sent to a collector."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from pipeline.app.run_log import line_of, record_json, records_after
from pipeline.app.stores import open_store
from pipeline.app.words import count, money
from pipeline.cli.options import common_options, own_option, run_argument
from pipeline.cli.text import say, say_json, tell
from pipeline.clock import Clock, SystemClock
from pipeline.records import kinds
from pipeline.records.codec import Record
from pipeline.store.base import Store
from pipeline.store.reader import resolve

if TYPE_CHECKING:
    from pipeline.app.traces import SentTraces

#: Seconds between two looks for new records.
POLL_SECONDS = 0.5


@click.command("log")
@run_argument
@own_option("log", "--follow", "-f", is_flag=True, help="Wait for more records until the run ends.")
@common_options
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


def following(store: Store, run: str, clock: Clock) -> Iterator[Record]:
    """Yield the records, then whatever is appended, until the run has ended."""
    seq, ended = 0, False
    while True:
        for record in records_after(store, run, seq):
            seq, ended = record.seq, isinstance(record.fact, kinds.RunEnded)
            yield record
        if ended or clock.wait(threading.Event(), POLL_SECONDS):
            return


@click.command("traces")
@run_argument
@own_option("traces", "--endpoint", metavar="URL",
            help="The collector's address for OTLP/HTTP.  [default: OTEL_EXPORTER_OTLP_ENDPOINT, else "
            "http://localhost:4318]")  # fmt: skip
@own_option("traces", "--otel-content", is_flag=True, help="Put prompts and replies into them.")
@common_options
def traces(run: str, endpoint: str | None, otel_content: bool, as_json: bool, store: str | None) -> None:
    """Send the traces of any run: finished, crashed, going on, or of last year.

    Ids come from the run and its records: sending them again changes nothing, and adds what is new.
    """
    from pipeline.app.traces import send_run

    place = open_store(store)
    sent = send_run(place, resolve(place, run), endpoint, content=otel_content)
    tell([sent.to_json()], _sent_lines(sent), as_json=as_json)


def _sent_lines(sent: SentTraces) -> Iterator[str]:
    yield (
        f"Sent to {sent.endpoint}: {count(sent.spans, 'span')} of run {sent.run}, of these {count(sent.calls, 'call')} "
        f"with {sent.tokens:,} tokens and {money(sent.usd)}."
    )
    if sent.going_on:
        yield "The run goes on: what is unfinished is not in them yet. The same command again adds it."
