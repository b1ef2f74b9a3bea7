"""The JMS endpoint: its source and its sink."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.endpoints.base import Subscription
from gateway.endpoints.jms.connection import open_library
from gateway.endpoints.jms.sink import JmsSink
from gateway.endpoints.jms.source import JmsSource
from gateway.endpoints.settings.jms import JmsSettings

__all__ = ["JmsSink", "JmsSource", "open_sink", "open_source"]


def open_source(
    settings: JmsSettings, subscriptions: Sequence[Subscription], *, instance: str = ""
) -> JmsSource:
    """Return a closed source; `instance` becomes part of the client id.

    Raises:
        EndpointError: a subscription is not possible with these settings.
    """
    return JmsSource(settings, subscriptions, instance)


def warm_up(settings: JmsSettings) -> None:
    """Start Java and load the client library.

    Raises:
        DriverMissingError: a jar, a class or Java itself is missing; the text gives the remedy.
    """
    open_library(settings)


def open_sink(settings: JmsSettings, *, instance: str = "") -> JmsSink:
    """Return a closed sink; `instance` has no effect, as its connection has no client id."""
    del instance
    return JmsSink(settings)
