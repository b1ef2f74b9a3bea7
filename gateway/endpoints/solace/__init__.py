"""The Solace endpoint: its source, its sink, and what the registry calls to make them."""

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
    """A closed source; its queue is known by the endpoint's name and `instance`."""
    return SolaceSource(settings, subscriptions, instance)


def open_sink(settings: SolaceSettings, *, instance: str = "") -> SolaceSink:
    """A closed sink; `instance` changes nothing."""
    del instance
    return SolaceSink(settings)
