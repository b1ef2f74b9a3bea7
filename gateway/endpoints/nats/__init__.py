"""NATS: JetStream and core NATS, with the client library nats-py."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.endpoints.base import Subscription
from gateway.endpoints.nats.sink import NatsSink
from gateway.endpoints.nats.source import NatsSource
from gateway.endpoints.settings.nats import NatsSettings


def open_source(
    settings: NatsSettings, subscriptions: Sequence[Subscription], *, instance: str = ""
) -> NatsSource:
    """Return a closed source; its consumer is named after the gateway, the endpoint and `instance`.

    Raises:
        EndpointError: a subscription is not legal.
    """
    return NatsSource(settings, subscriptions, instance)


def open_sink(settings: NatsSettings, *, instance: str = "") -> NatsSink:
    """Return a closed sink; `instance` has no effect."""
    del instance
    return NatsSink(settings)
