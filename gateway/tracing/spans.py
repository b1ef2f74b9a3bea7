"""Spans of the OpenTelemetry SDK with parents from received messages."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Final, TypeAlias

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import (
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    TraceState,
    set_span_in_context,
)

import gateway
from gateway.config.process import TracingSettings
from gateway.tracing.context import TraceContext
from gateway.tracing.otlp import OtlpExporter

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
    ) -> Span:
        """Begin a span at `at`, in microseconds; without a parent it begins a trace."""
        context = None if parent is None else set_span_in_context(_remote_span(parent))
        return self._tracer.start_span(
            name, context, SpanKind.PRODUCER, dict(attributes), start_time=at * NANOSECONDS
        )

    def end(self, span: Span, attributes: Attributes, at: int, rule: str = "") -> None:
        """End `span` at `at`, in microseconds; `rule` is set if it rejected the message."""
        span.set_attributes(dict(attributes))
        if rule:
            span.set_status(Status(StatusCode.ERROR, rule))
        span.end(at * NANOSECONDS)

    def close(self) -> None:
        """Export the queued spans within CLOSE_TIMEOUT, even if the collector does not answer."""
        closing = threading.Thread(target=self._provider.shutdown, name="traces", daemon=True)
        closing.start()
        closing.join(CLOSE_TIMEOUT)


def _remote_span(parent: TraceContext) -> NonRecordingSpan:
    state = TraceState.from_header([parent.state]) if parent.state else None
    flags = TraceFlags(TraceFlags.SAMPLED)
    return NonRecordingSpan(
        SpanContext(parent.trace, parent.span, is_remote=True, trace_flags=flags, trace_state=state)
    )
