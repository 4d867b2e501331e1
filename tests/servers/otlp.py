"""A collector: OTLP over HTTP on loopback, read with OpenTelemetry's own messages."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span


@dataclass
class Receiver:
    """What came, and how it is answered."""

    url: str = ""
    #: Spans in order of their coming, and the resource each came with.
    spans: list[Span] = field(default_factory=list)
    resources: list[dict[str, Any]] = field(default_factory=list)
    metrics: list[Any] = field(default_factory=list)
    requests: int = 0
    headers: list[dict[str, str]] = field(default_factory=list)
    #: How traces and metrics are answered: status, content type, spans rejected.
    status: int = 200
    metrics_status: int = 200
    kind: str = "application/x-protobuf"
    rejected: int = 0
    #: What it answers in the place of a message.
    garbage: bytes = b""
    #: No answer before it is set.
    answers: threading.Event = field(default_factory=threading.Event)
    came: threading.Event = field(default_factory=threading.Event)

    def of_kind(self, kind: str) -> list[Span]:
        """Return the spans of one kind: run, step, item, attempt, call."""
        return [span for span in self.spans if attributes(span)["course_pipeline.span"] == kind]

    def ids(self) -> list[str]:
        """Return the ids of all spans."""
        return [span.span_id.hex() for span in self.spans]


def attributes(span: Any) -> dict[str, Any]:
    """Return the attributes of a span, a resource or a data point as plain values."""
    return {pair.key: _plain(pair.value) for pair in span.attributes}


def _plain(value: Any) -> Any:
    kind = value.WhichOneof("value")
    found = getattr(value, kind)
    return [_plain(each) for each in found.values] if kind == "array_value" else found


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Serve a collector within a `with`."""
    receiver = Receiver()
    receiver.answers.set()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(receiver))
    server.daemon_threads = True
    receiver.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        receiver.answers.set()
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(receiver: Receiver) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            receiver.requests += 1
            receiver.headers.append({key.lower(): value for key, value in self.headers.items()})
            receiver.came.set()
            receiver.answers.wait(300)
            of_metrics = self.path == "/v1/metrics"
            status = receiver.metrics_status if of_metrics else receiver.status
            if status == 200 and of_metrics:
                for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                    receiver.metrics += [metric for scope in resource.scope_metrics for metric in scope.metrics]
            elif status == 200 and self.path == "/v1/traces":
                for found in ExportTraceServiceRequest.FromString(body).resource_spans:
                    for span in (span for scope in found.scope_spans for span in scope.spans):
                        receiver.spans.append(span)
                        receiver.resources.append(attributes(found.resource))
            answer = ExportTraceServiceResponse()
            answer.partial_success.rejected_spans = receiver.rejected
            data = answer.SerializeToString() if receiver.rejected else receiver.garbage
            self.send_response(status)
            self.send_header("content-type", receiver.kind)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    return Handler
