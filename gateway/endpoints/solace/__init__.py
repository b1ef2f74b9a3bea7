"""The Solace endpoint; the queue of a source is named after the endpoint and `instance`."""

from __future__ import annotations

from gateway.endpoints.solace.sink import SolaceSink
from gateway.endpoints.solace.source import open_source

__all__ = ["SolaceSink", "open_sink", "open_source"]

open_sink = SolaceSink
