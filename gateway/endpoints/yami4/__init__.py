"""The YAMI4 endpoint: its source, its sink, and what the registry calls to make them."""

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
    """A closed source; `instance` changes nothing, as a broker keeps nothing for a client."""
    del instance
    return Yami4Source(settings, subscriptions)


def open_sink(settings: Yami4Settings, *, instance: str = "") -> Yami4Sink:
    """A closed sink; `instance` changes nothing."""
    del instance
    return Yami4Sink(settings)
