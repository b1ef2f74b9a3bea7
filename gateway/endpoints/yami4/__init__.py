"""The YAMI4 endpoint: its source, its sink, and the functions by which the registry makes them."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.endpoints.base import Subscription
from gateway.endpoints.settings.yami4 import Yami4Settings
from gateway.endpoints.yami4.sink import Yami4Sink
from gateway.endpoints.yami4.source import Yami4Source

__all__ = ["Yami4Sink", "Yami4Source", "open_sink", "open_source"]


def open_source(
    settings: Yami4Settings, subscriptions: Sequence[Subscription], *, instance: str = ""
) -> Yami4Source:
    """Return a closed source; `instance` has no effect, as the broker keeps no client state."""
    del instance
    return Yami4Source(settings, subscriptions)


def open_sink(settings: Yami4Settings, *, instance: str = "") -> Yami4Sink:
    """Return a closed sink; `instance` has no effect."""
    del instance
    return Yami4Sink(settings)
