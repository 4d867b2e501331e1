"""What OpenTelemetry's own packages do of it: the standard variables, spans and metrics over OTLP/HTTP.

No tracer or meter is registered with the process: what else in it makes spans is not ours to send.
"""

from __future__ import annotations

import logging
import math
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import requests
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, TraceFlags
from opentelemetry.trace.status import Status, StatusCode

from pipeline import __version__
from pipeline.errors import ConfigError
from pipeline.traces.names import CALL, CONVENTION
from pipeline.traces.spans import Span

SERVICE = "course-pipeline"
_PATHS = {"traces": "/v1/traces", "metrics": "/v1/metrics"}
_DEFAULT, _PROTOCOL = "http://localhost:4318", "http/protobuf"
_INSTANCE = "service.instance.id"
_SCOPE = InstrumentationScope("course-pipeline.traces", __version__, f"https://github.com/{CONVENTION}")
#: One request holds at most so many spans, of so much text.
MOST_SPANS, MOST_CHARACTERS = 512, 4_000_000
#: The collector has no such path.
_NO_SUCH = frozenset({404, 405, 501})

# What could not be sent is told by us, once, in one sentence.
logging.getLogger("opentelemetry").addHandler(logging.NullHandler())


@dataclass(frozen=True, slots=True)
class NotTaken:
    """Why a collector did not take what was sent."""

    #: HTTP status; 0: it did not answer.
    status: int
    reason: str

    @property
    def is_absent(self) -> bool:
        """Return whether it answers, but not at this path."""
        return self.status in _NO_SUCH


class _Line(requests.Session):
    """Notes how the collector answered: the exporter only logs it."""

    def __init__(self) -> None:
        super().__init__()
        self.refused: NotTaken | None = None

    def request(self, *given: Any, **more: Any) -> requests.Response:
        try:
            response = super().request(*given, **more)
        except requests.RequestException as error:
            self.refused = NotTaken(0, _SAYINGS.get(type(error), "it cannot be reached"))
            raise
        status = response.status_code
        kind = response.headers.get("content-type", "")
        if not 200 <= status < 300:
            self.refused = NotTaken(status, f"it answers HTTP {status}")
        elif kind.startswith("text/html"):
            self.refused = NotTaken(status, "it answers with a page, as no collector does")
        else:
            self.refused = _refused(status, response.content) if kind.startswith("application/x-protobuf") else None
        return response


_SAYINGS: dict[type[Exception], str] = {
    requests.ConnectTimeout: "it does not answer in time",
    requests.ReadTimeout: "it does not answer in time",
    requests.exceptions.SSLError: "its certificate is not trusted",
    requests.exceptions.InvalidURL: "its URL is invalid",
    requests.exceptions.InvalidSchema: "its URL is invalid",
    requests.exceptions.MissingSchema: "its URL is invalid",
}


def _refused(status: int, body: bytes) -> NotTaken | None:
    """Return why a collector did not take what it answers so; None: it took it."""
    try:
        number = ExportTraceServiceResponse.FromString(body).partial_success.rejected_spans
    except DecodeError:
        return NotTaken(status, "its answer is no collector's")
    return NotTaken(status, f"it rejected {number} of what was sent") if number else None


class Collector:
    """Where traces and metrics go. One thread uses it."""

    def __init__(self, endpoint: str | None = None) -> None:
        """Make what sends; nothing is sent.

        Args:
            endpoint: URL of the collector, with or without /v1/traces; None: as the OTEL_* variables say, else this
                machine's port 4318. Headers, certificates, time limits and compression are the variables'.

        Raises:
            ConfigError: It is no URL of HTTP, or the variables ask for a protocol that is not spoken here.
        """
        check_protocol()
        self._endpoint = endpoint
        self._line = _Line()
        #: Its address for people, without user, password and query.
        self.shown = _shown(_url(endpoint, "traces"))
        self._spans = OTLPSpanExporter(_url(endpoint, "traces"), session=self._line)
        self._metrics: OTLPMetricExporter | None = None
        given = _given()
        name = os.environ.get("OTEL_SERVICE_NAME") or given.get("service.name") or SERVICE
        self._resource = Resource.create({"service.name": name})
        # A number drawn for the process would make each export of a run another one.
        kept = {key: value for key, value in self._resource.attributes.items() if key != _INSTANCE or key in given}
        self._of_spans = Resource(kept)

    @property
    def refused(self) -> NotTaken | None:
        """Return what came of the last request for spans; any thread may ask."""
        return self._line.refused

    @property
    def silent(self) -> bool:
        """Return whether it had no answer: more requests of the same may be tried."""
        refused = self._line.refused
        return refused is not None and not refused.status

    def send(self, spans: Sequence[Span]) -> NotTaken | None:
        """Send spans; return why they were not taken, None where they were. It may take as long as OTLP allows."""
        sent = self._spans.export([self._readable(span) for span in spans])
        if self._line.refused is None and sent is not SpanExportResult.SUCCESS:
            return NotTaken(0, "the spans cannot be encoded")
        return self._line.refused

    def meter(self) -> Meter:
        """Return what sends metrics."""
        line = _Line()
        self._metrics = OTLPMetricExporter(_url(self._endpoint, "metrics"), session=line)
        return Meter(self._metrics, line, self._resource)

    def close(self) -> None:
        """Give up what is being sent."""
        self._spans.shutdown()  # type: ignore[no-untyped-call]
        if self._metrics is not None:
            self._metrics.shutdown()

    def _readable(self, span: Span) -> ReadableSpan:
        def context(name: str) -> SpanContext:
            return SpanContext(int(span.trace, 16), int(name, 16), False, TraceFlags(TraceFlags.SAMPLED))

        return ReadableSpan(
            span.name, context(span.id), context(span.parent) if span.parent else None, self._of_spans,
            dict(span.attributes), kind=SpanKind.CLIENT if span.kind == CALL else SpanKind.INTERNAL,
            status=Status(StatusCode.ERROR if span.error else StatusCode.UNSET),
            start_time=span.start, end_time=span.end, instrumentation_scope=_SCOPE,
        )  # fmt: skip


class Meter:
    """Collects metrics, and sends them when it is told to."""

    def __init__(self, exporter: OTLPMetricExporter, line: _Line, resource: Resource) -> None:
        self._line = line
        self._reader = PeriodicExportingMetricReader(exporter, export_interval_millis=math.inf)
        provider = MeterProvider([self._reader], resource, shutdown_on_exit=False)
        #: Makes instruments.
        self.instruments = provider.get_meter(_SCOPE.name, _SCOPE.version, _SCOPE.schema_url)

    def send(self) -> NotTaken | None:
        """Send all that was counted so far; return why it was not taken."""
        self._line.refused = None
        self._reader.collect()
        return self._line.refused


def portions(spans: Iterable[Span]) -> Iterator[list[Span]]:
    """Yield spans in the portions of requests."""
    made: list[Span] = []
    size = 0
    for span in spans:
        more = sum(len(value) for value in span.attributes.values() if isinstance(value, str))
        if made and (len(made) == MOST_SPANS or size + more > MOST_CHARACTERS):
            yield made
            made, size = [], 0
        made.append(span)
        size += more
    if made:
        yield made


def check_protocol() -> None:
    """Refuse a protocol that is not spoken here.

    Raises:
        ConfigError: OTEL_EXPORTER_OTLP_PROTOCOL asks for it.
    """
    for name in ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"):
        wanted = os.environ.get(name, "").strip()
        if wanted not in ("", _PROTOCOL):
            raise ConfigError(
                f"{name} is {wanted}, but traces are sent by {_PROTOCOL} only.",
                code="unknown_protocol",
                hint=f"Set {name}={_PROTOCOL}, and the collector's port for it (4318 as a rule).",
            )


def _url(endpoint: str | None, signal: str) -> str:
    """Return the whole URL of a signal.

    Raises:
        ConfigError: It is no URL of HTTP.
    """
    own = "" if endpoint else os.environ.get(f"OTEL_EXPORTER_OTLP_{signal.upper()}_ENDPOINT", "").strip()
    base = (endpoint or os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT", "").strip() or _DEFAULT).rstrip("/")
    for path in _PATHS.values() if endpoint else ():
        base = base.removesuffix(path)
    url = own or base + _PATHS[signal]
    if not url.lower().startswith(("http://", "https://")) or not _hostname(url):
        raise ConfigError(
            f"The collector's address {_shown(url)!r} is no URL of HTTP.",
            code="invalid_endpoint",
            hint=f"For example --endpoint {_DEFAULT}.",
        )
    return url


def _shown(url: str) -> str:
    """Return an address without what may be secret in it."""
    scheme, slashes, rest = url.partition("://")
    host = re.split(r"[/?#]", rest if slashes else url, maxsplit=1)[0].rpartition("@")[2]
    return f"{scheme}://{host}" if slashes else host


def _hostname(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


def _given() -> dict[str, str]:
    """Return the attributes of OTEL_RESOURCE_ATTRIBUTES."""
    pairs = (pair.partition("=") for pair in os.environ.get("OTEL_RESOURCE_ATTRIBUTES", "").split(","))
    return {key.strip(): value.strip() for key, equals, value in pairs if equals}
