"""An OTLP receiver on loopback: it decodes what real exporters send."""

# The generated classes carry no complete types.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

import gzip
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class Collector:
    """Keeps the spans, the names of the numbers, and every byte that came."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.numbers: set[str] = set()
        self.raw = b""
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers["content-length"]))
                if self.headers.get("content-encoding") == "gzip":
                    raw = gzip.decompress(raw)
                outer.take(self.path, raw)
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                """Nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def take(self, path: str, raw: bytes) -> None:
        self.raw += raw
        if path == "/v1/traces":
            for resource in ExportTraceServiceRequest.FromString(raw).resource_spans:
                for scope in resource.scope_spans:
                    self.spans += scope.spans
        elif path == "/v1/metrics":
            for resource in ExportMetricsServiceRequest.FromString(raw).resource_metrics:
                for scope in resource.scope_metrics:
                    self.numbers |= {metric.name for metric in scope.metrics}

    def named(self, name: str) -> list[Any]:
        return [span for span in self.spans if span.name == name]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def told(span: Any) -> dict[str, Any]:
    """Its attributes."""
    found: dict[str, Any] = {}
    for one in span.attributes:
        kind = one.value.WhichOneof("value")
        found[one.key] = getattr(one.value, kind)
    return found
