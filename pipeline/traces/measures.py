"""Metrics of a run that goes on: tokens, dollars, seconds, retries, and what waits."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

from opentelemetry.metrics import CallbackOptions, Meter, Observation

from pipeline.engine.events import Event
from pipeline.traces.call import usage_of
from pipeline.traces.names import ATTEMPT, ATTRIBUTES, CALL, METRICS, named
from pipeline.traces.spans import Span

#: Attributes of a call's span that its metrics are told apart by.
_ABOUT = tuple(name for word in ("operation", "provider", "asked_model", "model") for name in ATTRIBUTES[word])
_COUNTED = ("input", "output", "cache_read", "cache_write")
#: A map's items are told of by these; each has an end.
_ITEM_ENDS = frozenset({"task_completed", "task_failed"})
_NANOSECOND = 1e-9


class Measures:
    """Counts what spans and events tell."""

    def __init__(self, meter: Meter) -> None:
        self._counters = {
            word: meter.create_counter(METRICS[word].name, METRICS[word].unit, METRICS[word].text)
            for word in (*_COUNTED, "retries")
        }
        self._histograms = {
            word: meter.create_histogram(
                METRICS[word].name, METRICS[word].unit, METRICS[word].text,
                explicit_bucket_boundaries_advisory=METRICS[word].bounds,
            )
            for word in ("seconds", "usd")
        }  # fmt: skip
        self._lock = threading.Lock()
        #: Items of maps that are not finished, by the step and the map.
        self._waiting: dict[tuple[str, str], int] = {}
        self._in_flight = 0
        for word, observe in (("in_flight", self._calls), ("waiting", self._items)):
            meter.create_observable_gauge(METRICS[word].name, [observe], METRICS[word].unit, METRICS[word].text)

    def hear(self, event: Event) -> None:
        """Take in an event of a run."""
        data = event.data
        with self._lock:
            if event.type == "map_started":
                left = data["total"] - data["restored"] - data.get("failed", 0)
                self._waiting[data["path"], data["name"]] = left
            elif event.type in _ITEM_ENDS and (place := (data["path"], data["name"])) in self._waiting:
                self._waiting[place] -= 1
                if self._waiting[place] <= 0:
                    del self._waiting[place]
            elif event.type == "call_started":
                self._in_flight += 1
            elif event.type == "call_ended":
                self._in_flight = max(self._in_flight - 1, 0)

    def count(self, spans: Iterable[Span]) -> None:
        """Take in finished spans of a run that goes on."""
        for span in spans:
            if span.kind == CALL:
                self._count_call(span)
            elif span.kind == ATTEMPT and span.attributes[ATTRIBUTES["attempt"][0]] != 1:
                self._counters["retries"].add(1, named({"kind": ATTEMPT}))

    def _count_call(self, span: Span) -> None:
        row = span.row
        assert row is not None
        common: dict[str, Any] = {name: span.attributes[name] for name in _ABOUT if name in span.attributes}
        tokens = usage_of(row)
        for word in _COUNTED:
            if isinstance(count := tokens.get(word), int):
                self._counters[word].add(count, {**common, **named({"modality": "text"})})
        if row.usd is not None:
            self._histograms["usd"].record(float(row.usd), common)
        if row.k > 1:
            self._counters["retries"].add(1, named({"kind": CALL}))
        failed = named({"error": span.error or None})
        self._histograms["seconds"].record((span.end - span.start) * _NANOSECOND, {**common, **failed})

    def _calls(self, options: CallbackOptions) -> Iterable[Observation]:
        yield Observation(self._in_flight)

    def _items(self, options: CallbackOptions) -> Iterable[Observation]:
        with self._lock:
            yield Observation(sum(self._waiting.values()))
