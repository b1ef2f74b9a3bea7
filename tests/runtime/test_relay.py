"""The relay of a source while other threads settle its batches."""

from __future__ import annotations

import threading
from pathlib import Path

from gateway.config.load import load
from gateway.endpoints.base import Batch
from gateway.model.message import Message
from gateway.routing.origin_path import GatewayIdentity
from gateway.runtime.context import GatewayContext
from gateway.runtime.delivery.rows import BatchOrigin, message_ids
from gateway.runtime.inbound.echo_cache import EchoCache
from gateway.runtime.inbound.in_flight import InFlightBatch
from gateway.runtime.record.batch_recorder import BatchRecorder
from gateway.runtime.record.counters import EndpointState
from gateway.runtime.relay import Relay
from gateway.runtime.wiring import make_source_binding
from tests.runtime.one_route import ONE_ROUTE
from tests.runtime.received_batches import received_batch


class SettledMeanwhile(set[InFlightBatch]):
    """Batches in flight whose last answers come as soon as a thread has begun to read them."""

    def copy(self) -> set[InFlightBatch]:
        found = super().copy()
        for each in found:
            each.relayed((), 0)
        return found


def test_the_oldest_batch_may_be_settled_while_it_is_read(tmp_path: Path) -> None:
    """An error there would end the connection, and lose the batch that the pump has just got."""
    file = tmp_path / "gateway.yaml"
    file.write_text(ONE_ROUTE)
    recorder = BatchRecorder({})
    context = GatewayContext(GatewayIdentity("test"), {}, recorder, message_ids(1), EchoCache(), {})
    binding = make_source_binding(load(file), "here")
    state, stop = EndpointState("here", "source"), threading.Event()
    relay = Relay(binding, state, context, stop)
    message = Message("a/1", b"x")
    received = received_batch([message], BatchOrigin("here", "mqtt", 7))
    batch = Batch([message], lambda _: None)
    relay.in_flight = SettledMeanwhile([InFlightBatch(batch, received, recorder)])

    assert relay.oldest_unsettled == 7
