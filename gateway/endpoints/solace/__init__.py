"""The Solace endpoint: its source and its sink."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.endpoints.base import Subscription
from gateway.endpoints.settings.solace import SolaceSettings
from gateway.endpoints.solace.sink import SolaceSink
from gateway.endpoints.solace.source import SolaceSource

__all__ = ["SolaceSink", "SolaceSource", "open_sink", "open_source"]


def open_source(
    settings: SolaceSettings, subscriptions: Sequence[Subscription], *, instance: str = ""
) -> SolaceSource:
    """Return a closed source; its queue is named after the endpoint and `instance`."""
    return SolaceSource(settings, subscriptions, instance)


def open_sink(settings: SolaceSettings, *, instance: str = "") -> SolaceSink:
    """Return a closed sink; `instance` has no effect."""
    del instance
    return SolaceSink(settings)
