"""`traces`: a run's spans, sent to an OpenTelemetry collector after the fact."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from pipeline.cli.options import json_option, own_option, run_argument, store_option
from pipeline.cli.text import count, money, tell

if TYPE_CHECKING:
    from pipeline.app.traces import SentTraces


@click.command("traces")
@run_argument
@own_option("traces", "--endpoint", metavar="URL",
            help="The collector's address for OTLP/HTTP.  [default: OTEL_EXPORTER_OTLP_ENDPOINT, else "
            "http://localhost:4318]")  # fmt: skip
@own_option("traces", "--otel-content", is_flag=True, help="Put prompts and replies into them.")
@json_option
@store_option
def traces(run: str, endpoint: str | None, otel_content: bool, as_json: bool, store: str | None) -> None:
    """Send the traces of any run: finished, crashed, going on, or of last year.

    Ids come from the run and its records: sending them again changes nothing, and adds what is new.
    """
    from pipeline.app.stores import open_store
    from pipeline.app.traces import send_run
    from pipeline.store.reader import resolve

    place = open_store(store)
    sent = send_run(place, resolve(place, run), endpoint, content=otel_content)
    tell([sent.to_json()], _lines(sent), as_json=as_json)


def _lines(sent: SentTraces) -> Iterator[str]:
    """Yield what was sent."""
    yield (
        f"Sent to {sent.endpoint}: {count(sent.spans, 'span')} of run {sent.run}, of these {count(sent.calls, 'call')} "
        f"with {sent.tokens:,} tokens and {money(sent.usd)}."
    )
    if sent.going_on:
        yield "The run goes on: what is unfinished is not in them yet. The same command again adds it."
