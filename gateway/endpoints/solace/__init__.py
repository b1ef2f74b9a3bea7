"""The Solace endpoint; the queue of a source is named after the endpoint and `instance`."""

from __future__ import annotations

from gateway.endpoints.solace.made import count_held, end_made
from gateway.endpoints.solace.sink import SolaceSink
from gateway.endpoints.solace.source import open_source

__all__ = ["SolaceSink", "count_held", "end_made", "open_sink", "open_source"]

open_sink = SolaceSink
