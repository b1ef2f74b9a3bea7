"""Tracing of the batches that lanes get; used only when tracing is configured.

A message is traced if its trace context is sampled. Among messages without a context, the share
`sample` is traced. A span lasts from the receipt to the target's answer; if the target carries
properties, the copy carries the span's context. All other messages pass unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from random import random
from typing import TYPE_CHECKING, TypeAlias

from gateway.clock import Clock
from gateway.config.process import TracingSettings
from gateway.errors import DriverMissingError
from gateway.extras import not_installed
from gateway.model.message import Message
from gateway.runtime.delivery.outbound_batch import Origin, OutboundBatch, PendingRow
from gateway.tracing.context import TRACEPARENT, TraceContext, context_of, with_context

if TYPE_CHECKING:  # the SDK is optional
    from opentelemetry.trace import Span

    from gateway.tracing.spans import SpanRecorder

OpenSpans: TypeAlias = "list[tuple[int, Span]]"  # with their positions in the batch


def open_span_recorder(ref: TracingSettings, name: str) -> SpanRecorder:
    """Create the span recorder of the gateway `name`; the caller closes them.

    Raises:
        DriverMissingError: the extra `otel` is not installed.
        TracingError: a file of the section `tracing` cannot be used.
    """
    try:
        recorder: SpanRecorder = import_module("gateway.tracing.spans").SpanRecorder(ref, name)
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("gateway"):
            raise
        raise DriverMissingError(
            f"tracing: {not_installed(str(error.name), 'otel')}; or remove the section"
        ) from error
    return recorder


@dataclass(frozen=True, slots=True)
class Tracer:
    """Begins the spans of a batch that is handed to a lane; they end with its answers.

    Among messages without a trace context, `share` are traced; `chance` gives a random number from
    0 to 1.
    """

    recorder: SpanRecorder
    share: float
    clock: Clock  # of the rows: a span begins with the receipt
    chance: Callable[[], float] = random

    def trace(self, batch: OutboundBatch, carries: frozenset[str]) -> None:
        """Trace the selected messages for a target that carries these header fields."""
        selected = self._select(batch.messages)
        if not selected:
            return
        messages = list(batch.messages)
        open_spans: OpenSpans = []
        for pending in batch.origin.pending_rows(batch):
            for index, position in enumerate(pending.positions):
                if position in selected:
                    span = _begin(self.recorder, pending, index, selected[position])
                    open_spans.append((position, span))
                    if "properties" in carries:
                        messages[position] = _with_span_context(messages[position], span)
        batch.origin = TracedOrigin(batch.origin, open_spans, self.recorder, self.clock)
        batch.messages = messages

    def _select(self, messages: Sequence[Message]) -> dict[int, TraceContext | None]:
        """Positions of the messages to trace, each with its parent."""
        found: dict[int, TraceContext | None] = {}
        for position, message in enumerate(messages):
            properties = message.headers.properties
            parent = context_of(properties) if TRACEPARENT in properties else None
            if parent.sampled if parent is not None else self.chance() < self.share:
                found[position] = parent
        return found


@dataclass(frozen=True, slots=True)
class TracedOrigin:
    """The origin of a batch with spans, which end with its answers."""

    origin: Origin
    open_spans: OpenSpans
    recorder: SpanRecorder
    clock: Clock

    def answered(self, batch: OutboundBatch) -> None:
        self.origin.answered(batch)
        at = self.clock()
        for position, span in self.open_spans:
            outcome = batch.settlements[position]
            facts = {"gateway.outcome": outcome.outcome.value, "gateway.attempts": batch.attempts}
            self.recorder.end(span, facts, at, outcome.rule)

    def pending_rows(self, batch: OutboundBatch) -> Sequence[PendingRow]:
        return self.origin.pending_rows(batch)


def _begin(
    recorder: SpanRecorder, pending: PendingRow, index: int, parent: TraceContext | None
) -> Span:
    """Begin the span of one message, with attributes from entry `index` of its pending rows."""
    common, columns = pending.rows.common, pending.rows.columns
    attributes = {
        "gateway.route": str(common["route"]),
        "gateway.source.endpoint": pending.source,
        "gateway.source.name": str(columns["source_name"][index]),
        "gateway.target.endpoint": str(common["endpoint"]),
        "messaging.system": str(common["system"]),
        "messaging.destination.name": str(columns["name"][index]),
    }
    received = int(str(common["received"]))
    return recorder.begin(f"relay {attributes['gateway.route']}", parent, attributes, received)


def _with_span_context(message: Message, span: Span) -> Message:
    context = span.get_span_context()
    properties = with_context(message.headers.properties, context.trace_id, context.span_id)
    return replace(message, headers=replace(message.headers, properties=properties))
