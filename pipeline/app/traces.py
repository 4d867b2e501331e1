"""Traces of a start while it goes on, and of any run afterwards."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from pipeline.app.start import store_words_of
from pipeline.app.stores import head_of, open_store
from pipeline.clock import SystemClock
from pipeline.cost.ledger import LedgerRow, ledger
from pipeline.errors import PublishError
from pipeline.extras import is_installed, not_installed, packages
from pipeline.records.codec import Record, decode_line
from pipeline.settings import Execution
from pipeline.store.base import Head, Store
from pipeline.store.imports import import_lines
from pipeline.store.reader import all_records

if TYPE_CHECKING:
    from pipeline.traces.call import Told
    from pipeline.traces.live import LiveTraces
    from pipeline.traces.spans import Span

EXTRA = "otel"
#: Any of them asks for traces.
_ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
_NONE = "none"


def is_wanted(asked: bool | None) -> bool:
    """Return whether traces are sent: as asked, else where the standard variables name a collector."""
    if asked is not None:
        return asked
    off = os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    return not off and _exports("TRACES") and any(os.environ.get(name, "").strip() for name in _ENDPOINTS)


def _exports(signal: str) -> bool:
    return os.environ.get(f"OTEL_{signal}_EXPORTER", "").strip().lower() != _NONE


def live_traces(execution: Execution, *, content: bool, tell: Callable[[str], None]) -> LiveTraces:
    """Return what hears the events of runs in a start's store, and sends their traces from a thread of its own.

    Args:
        content: With prompts and replies.
        tell: Takes the one sentence about a collector that does not take them; of any thread.

    Raises:
        PackageMissing, ConfigError: It cannot be done.
    """
    _check_installed("--otel")
    from pipeline.traces.live import LiveTraces
    from pipeline.traces.otlp import Collector

    return LiveTraces(
        lambda: open_store(execution.store_url), Collector(), SystemClock(), tell=tell, told_of=_told_of(content),
        metrics=_exports("METRICS"), command=lambda run: f"./pipeline.sh traces {run}{store_words_of(execution)}",
    )  # fmt: skip


def _told_of(content: bool) -> Callable[[Store, str], Told]:
    from pipeline.traces.call import told_by

    return lambda store, run: told_by(lambda name: store.get_blob(run, name), content=content)


@dataclass(slots=True)
class SentTraces:
    """Tell what was sent of a run."""

    run: str
    endpoint: str
    #: A process works on it: what it has not finished is not there.
    going_on: bool
    #: Spans in all; of calls; their tokens, and USD where they are exactly known.
    spans: int = 0
    calls: int = 0
    tokens: int = 0
    usd: Decimal = Decimal(0)

    def add(self, span: Span) -> None:
        """Count a span that was taken."""
        self.spans += 1
        if span.row is not None:
            self.calls += 1
            self.tokens += sum(span.row.tokens.values())
            self.usd += span.row.usd or 0

    def to_json(self) -> dict[str, Any]:
        """Return it as the object of --json."""
        return asdict(self)


def send_run(store: Store, run: str, endpoint: str | None, *, content: bool) -> SentTraces:
    """Send the spans of any run; the same records give the same spans, so that doing it again changes nothing.

    Raises:
        PackageMissing, ConfigError: It cannot be begun.
        PublishError: The collector did not take them.
    """
    _check_installed("traces")
    from pipeline.traces.otlp import Collector, portions
    from pipeline.traces.spans import Tree, row_now

    head, collector = head_of(store, run), Collector(endpoint)
    # The owner first: what it wrote before it was gone is then in the records.
    owned = bool(store.holder(run))
    known = {row.seq: row for row in ledger(_records(store, head)).rows}

    def row_of(start: Record | None, end: Record | None) -> LedgerRow:
        row = row_now(start, end)
        return known.get(row.seq, row)

    def spans() -> Iterator[Span]:
        tree = Tree(run, row_of, _told_of(content)(store, run))
        for record in _records(store, head):
            yield from tree.apply(record)
        if not owned:
            yield from tree.close()

    sent = SentTraces(run, collector.shown, going_on=owned)
    for portion in portions(spans()):
        if (refused := collector.send(portion)) is not None:
            raise PublishError(
                f"The traces cannot be sent to {collector.shown}: {refused.reason}.",
                code="collector_refused",
                hint="The same command again sends them all; none counts twice.",
            )
        for span in portion:
            sent.add(span)
    return sent


def _records(store: Store, head: Head) -> Iterator[Record]:
    """Return all records of a run, also of one that is only a checkpoint.json so far."""
    if head.document.get("imported"):
        return map(decode_line, import_lines(head.document, SystemClock().now()))
    return all_records(store, head.run_id)


def _check_installed(what: str) -> None:
    if not all(map(is_installed, packages(EXTRA))):
        raise not_installed(EXTRA, what)
