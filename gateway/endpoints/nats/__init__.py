"""NATS: JetStream and core NATS, with the client library nats-py; `instance` names a consumer."""

from __future__ import annotations

from gateway.endpoints.nats.made import count_held, end_made
from gateway.endpoints.nats.sink import NatsSink
from gateway.endpoints.nats.source import open_source

__all__ = ["NatsSink", "count_held", "end_made", "open_sink", "open_source"]

open_sink = NatsSink
