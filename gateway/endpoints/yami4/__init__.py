"""The YAMI4 endpoint: its source and its sink."""

from __future__ import annotations

from gateway.endpoints.yami4.sink import Yami4Sink
from gateway.endpoints.yami4.source import Yami4Source

__all__ = ["Yami4Sink", "Yami4Source", "open_sink", "open_source"]

open_source, open_sink = Yami4Source, Yami4Sink
