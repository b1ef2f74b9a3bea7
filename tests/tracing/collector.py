"""An OTLP collector on loopback for tests; decodes requests with OTLP's own classes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import KeyValue

from tests.waiting import PATIENCE


@dataclass(frozen=True, slots=True)
class ExportedSpan:
    """An exported span.

    Units: ids in hex, times in nanoseconds since 1970-01-01 UTC.
    """

    name: str
    trace: str
    span: str
    parent: str
    state: str
    began: int
    ended: int
    failed: str
    facts: Mapping[str, str | int]
    sender: Mapping[str, str | int]


class Collector:
    """The received spans and requests; `status` is the HTTP status of the answers.

    Thread-safe: guarded by self._changed.
    """

    def __init__(self) -> None:
        self.spans: list[ExportedSpan] = []
        self.requests: list[tuple[str, Mapping[str, str]]] = []  # paths and headers
        self.status = 200
        self._changed = threading.Condition()

    def take(self, path: str, headers: Mapping[str, str], body: bytes) -> None:
        request = ExportTraceServiceRequest.FromString(body)
        found = [
            ExportedSpan(
                span.name, span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex(),
                span.trace_state, span.start_time_unix_nano, span.end_time_unix_nano,
                span.status.message, facts(span.attributes), facts(part.resource.attributes),
            )
            for part in request.resource_spans
            for scope in part.scope_spans
            for span in scope.spans
        ]  # fmt: skip
        with self._changed:
            self.requests.append((path, headers))
            self.spans += found if self.status == 200 else []
            self._changed.notify_all()

    def wait_for(self, done: Callable[[list[ExportedSpan]], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: done(self.spans), PATIENCE), self.spans

    def wait_for_requests(self, times: int) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.requests) >= times, PATIENCE)


def facts(pairs: Iterator[KeyValue]) -> dict[str, str | int]:
    kinds = {pair.key: pair.value.WhichOneof("value") for pair in pairs}
    return {pair.key: getattr(pair.value, str(kinds[pair.key])) for pair in pairs}


@contextmanager
def collecting(port: int = 0) -> Iterator[tuple[Collector, str]]:
    """Run a collector; gives it with its base URL."""
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:  # the name that http.server calls
            body = self.rfile.read(int(self.headers["Content-Length"]))
            collector.take(self.path, dict(self.headers), body)
            self.send_response(collector.status)
            self.end_headers()
            self.wfile.write(ExportTraceServiceResponse().SerializeToString())

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield collector, f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
