"""State shared by the pumps of a gateway, and the binding of a pump to its source."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from gateway.endpoints.base import Source
from gateway.endpoints.continuity import SubscriptionStore
from gateway.runtime.delivery.admission import AdmissionRules
from gateway.runtime.delivery.outbound_batch import OutboundBatch
from gateway.runtime.inbound.echo_cache import EchoCache
from gateway.runtime.monitor.watchdog import Heartbeat
from gateway.runtime.outbound.lane import Lane
from gateway.runtime.outbound.spool import Spool
from gateway.runtime.record.connection_log import ConnectionLog
from gateway.runtime.record.ledger import Ledger
from gateway.runtime.record.message_ids import MessageIds
from gateway.translate.shorten import ShortNames

TraceBatch: TypeAlias = Callable[[OutboundBatch, frozenset[str]], None]  # carried header fields


@dataclass(frozen=True, slots=True)
class GatewayContext:
    """State shared by all endpoints of the gateway named `gateway`."""

    gateway: str
    lanes: Mapping[str, Lane]
    ledger: Ledger
    message_ids: MessageIds
    echoes: EchoCache
    heartbeats: Mapping[str, Heartbeat]  # by route; only routes with a heartbeat
    connections: ConnectionLog | None = None  # with an archive only
    require_lease: Callable[[], None] = lambda: None  # raises LeaseNotHeldError
    trace: TraceBatch | None = None  # with tracing only
    sessions: SubscriptionStore | None = None  # with an archive or a spool only
    make_spool: Callable[[str], Spool | None] = lambda _: None  # of the lane of an endpoint


@dataclass(frozen=True, slots=True)
class SourceBinding:
    """A source, the rules for the messages that it receives, and its back-off in seconds.

    `short_names` has the names that its routes shorten, None if they shorten none. `removes`: at
    this address, a message is gone for others once it is settled. `readers_ready`: no source of the
    same reload misses what its routes send.
    """

    source: Source
    rules: AdmissionRules
    backoff: tuple[float, float]
    short_names: ShortNames | None
    removes: Callable[[str], bool]
    readers_ready: Callable[[], bool] = lambda: True
