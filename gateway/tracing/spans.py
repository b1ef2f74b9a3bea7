"""Spans of the OpenTelemetry SDK with parents from received messages, and their export.

The export is OTLP over HTTP, binary protobuf. The SDK's thread exports; no message waits for it. A
batch that fails is dropped. Each batch has its own connection, without a proxy; batches that are
not full are sent once a second.
"""

from __future__ import annotations

import logging
import ssl
import threading
from collections.abc import Mapping, Sequence
from contextlib import closing
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Final, TypeAlias
from urllib.parse import urlsplit

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_ON

import gateway
from gateway.config.process import TracingSettings
from gateway.errors import TracingError, first_line
from gateway.tracing.context import TraceContext

log = logging.getLogger(__name__)

HTTP_TIMEOUT: Final = 5.0  # seconds for each step of a request
TRACES_PATH: Final = "/v1/traces"  # OTLP specification, OTLP/HTTP Request; for a bare base URL


class OtlpExporter(SpanExporter):
    """Exports spans to one collector and logs each failure and recovery once.

    Mutable: owned by the SDK's exporting thread.
    """

    def __init__(self, ref: TracingSettings) -> None:
        """Prepare the requests; `export` connects.

        Raises:
            TracingError: the certificate file cannot be used.
        """
        url = urlsplit(ref.otlp)
        self._url = ref.otlp
        self._host, self._port = url.hostname or "", url.port
        self._path = (url.path if url.path.strip("/") else TRACES_PATH) + (
            url.query and f"?{url.query}"
        )
        self._headers = {"Content-Type": "application/x-protobuf"}
        if ref.token is not None:
            self._headers["Authorization"] = f"Bearer {ref.token}"
        self._tls = _tls(ref) if url.scheme == "https" else None
        self._failing = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        try:
            self._post(encode_spans(spans).SerializeToString())
        except (OSError, HTTPException) as error:
            if not self._failing:
                reason = first_line(error)
                log.warning("cannot export traces to %s: %s; they are dropped", self._url, reason)
            self._failing = True
            return SpanExportResult.FAILURE
        if self._failing:
            log.info("traces are exported to %s again", self._url)
        self._failing = False
        return SpanExportResult.SUCCESS

    def _post(self, body: bytes) -> None:
        with closing(self._connect()) as connection:
            connection.request("POST", self._path, body, self._headers)
            answer = connection.getresponse()
            if answer.status // 100 != 2:  # noqa: PLR2004  # HTTP success
                raise HTTPException(f"the collector answered {answer.status} {answer.reason}")

    def _connect(self) -> HTTPConnection:
        if self._tls is None:
            return HTTPConnection(self._host, self._port, timeout=HTTP_TIMEOUT)
        return HTTPSConnection(self._host, self._port, timeout=HTTP_TIMEOUT, context=self._tls)


def _tls(ref: TracingSettings) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=ref.ca_file)
    except (OSError, ssl.SSLError) as error:
        reason = error.strerror or error
        text = f"tracing: cannot use the certificates {ref.ca_file}: {reason}"
        raise TracingError(text) from error
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


Attributes: TypeAlias = Mapping[str, str | int]

MAX_QUEUED_SPANS: Final = 2048  # waiting for the exporter, about 4 MB; more are dropped
MAX_BATCH_SPANS: Final = 512
EXPORT_INTERVAL: Final = 1000  # milliseconds between two batches that are not full
CLOSE_TIMEOUT: Final = 2.0  # seconds for the last batches
NANOSECONDS: Final = 1000  # in a microsecond


class SpanRecorder:
    """Begins and ends spans; every span is exported, because the caller samples.

    Thread-safe: by the SDK, whose provider and exporting thread it owns.
    """

    def __init__(self, ref: TracingSettings, name: str) -> None:
        """`name` is the name of the gateway.

        Raises:
            TracingError: the certificate file cannot be used.
        """
        resource = Resource.create(
            {
                "service.name": "gateway",
                "service.instance.id": name,
                "service.version": gateway.__version__,
            }
        )
        processor = BatchSpanProcessor(
            OtlpExporter(ref),
            max_queue_size=MAX_QUEUED_SPANS,
            schedule_delay_millis=EXPORT_INTERVAL,
            max_export_batch_size=MAX_BATCH_SPANS,
        )
        self._provider = TracerProvider(ALWAYS_ON, resource, shutdown_on_exit=False)
        self._provider.add_span_processor(processor)
        self._tracer = self._provider.get_tracer("gateway", gateway.__version__)

    def begin(
        self, name: str, parent: TraceContext | None, attributes: Attributes, at: int
    ) -> trace.Span:
        """Begin a span at `at`, in microseconds; without a parent it begins a trace."""
        context = None if parent is None else trace.set_span_in_context(_remote_span(parent))
        return self._tracer.start_span(
            name, context, trace.SpanKind.PRODUCER, dict(attributes), start_time=at * NANOSECONDS
        )

    def end(self, span: trace.Span, attributes: Attributes, at: int, rule: str = "") -> None:
        """End `span` at `at`, in microseconds; `rule` is set if it rejected the message."""
        span.set_attributes(dict(attributes))
        if rule:
            span.set_status(trace.Status(trace.StatusCode.ERROR, rule))
        span.end(at * NANOSECONDS)

    def close(self) -> None:
        """Export the queued spans within CLOSE_TIMEOUT, even if the collector does not answer."""
        closing = threading.Thread(target=self._provider.shutdown, name="traces", daemon=True)
        closing.start()
        closing.join(CLOSE_TIMEOUT)


def _remote_span(parent: TraceContext) -> trace.NonRecordingSpan:
    state = trace.TraceState.from_header([parent.state]) if parent.state else None
    flags = trace.TraceFlags(trace.TraceFlags.SAMPLED)
    return trace.NonRecordingSpan(
        trace.SpanContext(
            parent.trace, parent.span, is_remote=True, trace_flags=flags, trace_state=state
        )
    )
