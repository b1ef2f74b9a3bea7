"""Lanes that trace what they are given; the gateway uses them only where traces are switched on.

A message whose context says `sampled`, or one of `sample` of those without a context, gets a span
from its receipt to the target's answer. Its copy carries the span's context, where the target has
properties. Every other message goes on untouched, a context that is not sampled included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from random import random
from typing import TYPE_CHECKING, TypeAlias

from gateway.clock import now
from gateway.config.process import TracingRef
from gateway.errors import DriverMissingError
from gateway.model.message import Message
from gateway.model.outcome import Settlement
from gateway.runtime.outbound.backlog import Parcel
from gateway.runtime.outbound.lane import Lane, Outlet
from gateway.runtime.outbound.spool_codec import End
from gateway.tracing.context import TRACEPARENT, Context, context_of, with_context

if TYPE_CHECKING:  # the SDK is optional
    from opentelemetry.trace import Span

    from gateway.tracing.spans import Spans

Open: TypeAlias = "list[tuple[int, Span]]"  # positions in a parcel, and their spans


def open_spans(ref: TracingRef, name: str) -> Spans:
    """The spans of the gateway `name`, to be closed by the caller.

    Raises:
        DriverMissingError: the extra is not installed.
        TracingError: a file of the section cannot be used.
    """
    try:
        made: Spans = import_module("gateway.tracing.spans").Spans(ref, name)
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("gateway"):
            raise
        raise DriverMissingError(
            f"tracing: the module {error.name!r} is not installed;"
            " run `pip install 'gateway[otel]'`, or take the section away"
        ) from error
    return made


@dataclass(frozen=True, slots=True)
class Sampler:
    """Decides who is traced; `chance` gives a number from 0 to 1."""

    share: float
    chance: Callable[[], float] = random

    def choose(self, messages: Sequence[Message]) -> list[tuple[int, Context | None]]:
        """Positions of the messages to trace, each with its parent."""
        return [*self._choose(messages)]

    def _choose(self, messages: Sequence[Message]) -> Iterator[tuple[int, Context | None]]:
        for position, message in enumerate(messages):
            properties = message.headers.properties
            parent = context_of(properties) if TRACEPARENT in properties else None
            if parent.sampled if parent is not None else self.chance() < self.share:
                yield position, parent


class TracedLanes(Mapping[str, "TracedLane"]):
    """The lanes of `lanes`, which may change meanwhile, each with a tracer in front of it."""

    def __init__(self, lanes: Mapping[str, Lane], spans: Spans, sampler: Sampler) -> None:
        self._lanes = lanes
        self._spans = spans
        self._sampler = sampler

    def __getitem__(self, endpoint: str) -> TracedLane:
        return TracedLane(self._lanes[endpoint], self._spans, self._sampler)

    def __iter__(self) -> Iterator[str]:
        return iter(self._lanes)

    def __len__(self) -> int:
        return len(self._lanes)


@dataclass(frozen=True, slots=True)
class TracedLane:
    """A lane whose parcels are traced on their way in and when their answer comes."""

    lane: Lane
    spans: Spans
    sampler: Sampler

    @property
    def outlet(self) -> Outlet:
        return self.lane.outlet

    def deliver(self, parcel: Parcel) -> None:
        chosen = self.sampler.choose(parcel.messages)
        self.lane.deliver(self._traced(parcel, dict(chosen)) if chosen else parcel)

    def _traced(self, parcel: Parcel, chosen: Mapping[int, Context | None]) -> Parcel:
        messages = list(parcel.messages)
        carried = "properties" in self.outlet.carries
        begun: Open = []
        for end in parcel.ends():
            for place, position in enumerate(end.positions):
                if position in chosen:
                    span = _begin(self.spans, end, place, chosen[position])
                    begun.append((position, span))
                    if carried:
                        messages[position] = _carrying(messages[position], span)

        def done(settlements: Sequence[Settlement], attempts: int) -> None:
            parcel.done(settlements, attempts)
            at = now()
            for position, span in begun:
                settled = settlements[position]
                facts = {"gateway.outcome": settled.outcome.value, "gateway.attempts": attempts}
                self.spans.end(span, facts, at, settled.rule)

        return replace(parcel, messages=messages, done=done)


def _begin(spans: Spans, end: End, place: int, parent: Context | None) -> Span:
    """A span of one message, told by what the archive will say of it."""
    common, columns = end.rows.common, end.rows.columns
    facts = {
        "gateway.route": str(common["route"]),
        "gateway.source.endpoint": end.source,
        "gateway.source.name": str(columns["source_name"][place]),
        "gateway.target.endpoint": str(common["endpoint"]),
        "messaging.system": str(common["system"]),
        "messaging.destination.name": str(columns["name"][place]),
    }
    received = int(str(common["received"]))
    return spans.begin(f"relay {facts['gateway.route']}", parent, facts, received)


def _carrying(message: Message, span: Span) -> Message:
    context = span.get_span_context()
    properties = with_context(message.headers.properties, context.trace_id, context.span_id)
    return replace(message, headers=replace(message.headers, properties=properties))
