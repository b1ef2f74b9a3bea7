"""Spans by the OpenTelemetry SDK, with parents from elsewhere; a thread of the SDK exports them."""

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
from gateway.config.process import TracingRef
from gateway.tracing.context import Context
from gateway.tracing.otlp import Exporter

Facts: TypeAlias = Mapping[str, str | int]

WAITING: Final = 2048  # spans that wait for the exporter, about 4 MB; more are dropped
BATCH: Final = 512  # spans
PAUSE: Final = 1000  # milliseconds between two batches that are not full
CLOSING: Final = 2.0  # seconds for the last batches
NANO: Final = 1000  # nanoseconds in a microsecond


class Spans:
    """Begins and ends spans; mutable, it owns the SDK's provider and its thread.

    Which message is recorded is decided by who asks: whatever is begun here is exported.
    """

    def __init__(self, ref: TracingRef, name: str) -> None:
        """`name` is the gateway's.

        Raises:
            TracingError: the collector's certificates cannot be used.
        """
        resource = Resource.create(
            {
                "service.name": "gateway",
                "service.instance.id": name,
                "service.version": gateway.__version__,
            }
        )
        processor = BatchSpanProcessor(
            Exporter(ref),
            max_queue_size=WAITING,
            schedule_delay_millis=PAUSE,
            max_export_batch_size=BATCH,
        )
        self._provider = TracerProvider(ALWAYS_ON, resource, shutdown_on_exit=False)
        self._provider.add_span_processor(processor)
        self._tracer = self._provider.get_tracer("gateway", gateway.__version__)

    def begin(self, name: str, parent: Context | None, facts: Facts, at: int) -> Span:
        """A span since `at` in microseconds; without a parent it begins a trace."""
        around = None if parent is None else set_span_in_context(NonRecordingSpan(_given(parent)))
        return self._tracer.start_span(
            name, around, SpanKind.PRODUCER, dict(facts), start_time=at * NANO
        )

    def end(self, span: Span, facts: Facts, at: int, fault: str = "") -> None:
        """End `span` at `at` in microseconds; `fault` is the rule that refused the message."""
        span.set_attributes(dict(facts))
        if fault:
            span.set_status(Status(StatusCode.ERROR, fault))
        span.end(at * NANO)

    def close(self) -> None:
        """Export what waits, for at most CLOSING seconds, however the collector behaves."""
        closing = threading.Thread(target=self._provider.shutdown, name="traces", daemon=True)
        closing.start()
        closing.join(CLOSING)


def _given(parent: Context) -> SpanContext:
    state = TraceState.from_header([parent.state]) if parent.state else None
    flags = TraceFlags(TraceFlags.SAMPLED)
    return SpanContext(
        parent.trace, parent.span, is_remote=True, trace_flags=flags, trace_state=state
    )
