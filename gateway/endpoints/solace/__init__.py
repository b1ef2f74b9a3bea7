"""The Solace endpoint; the queue of a source is named after the endpoint and `instance`."""

from __future__ import annotations

from gateway.endpoints.solace.sink import SolaceSink
from gateway.endpoints.solace.source import SolaceSource

__all__ = ["SolaceSink", "SolaceSource", "open_sink", "open_source"]

open_source, open_sink = SolaceSource, SolaceSink
