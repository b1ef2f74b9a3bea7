"""The YAMI4 endpoint: its source and its sink."""

from __future__ import annotations

from gateway.endpoints.yami4.sink import Yami4Sink
from gateway.endpoints.yami4.source import open_source

__all__ = ["Yami4Sink", "open_sink", "open_source"]

open_sink = Yami4Sink
