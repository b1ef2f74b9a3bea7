"""State shared by the pumps of a gateway, and the binding of a pump to its source."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from gateway.endpoints.base import Source
from gateway.routing.origin_path import GatewayIdentity
from gateway.runtime.delivery.admission import AdmissionRules
from gateway.runtime.delivery.copy_paths import DEFAULT_RULES, PathRules
from gateway.runtime.delivery.outbound_batch import OutboundBatch
from gateway.runtime.inbound.echo_cache import EchoCache
from gateway.runtime.inbound.reply_addresses import ReplyAddresses
from gateway.runtime.inbound.source_memories import SourceMemories
from gateway.runtime.monitor.watchdog import Heartbeat
from gateway.runtime.outbound.lane import Lane
from gateway.runtime.outbound.spool import Spool
from gateway.runtime.record.batch_recorder import BatchRecorder
from gateway.runtime.record.connection_log import ConnectionLog
from gateway.runtime.record.loop_suspicions import LoopSuspicions
from gateway.runtime.record.recent_names import RecentNames
from gateway.translate.shorten import ShortNames

TraceBatch: TypeAlias = Callable[[OutboundBatch, frozenset[str]], None]  # carried header fields


@dataclass(frozen=True, slots=True)
class GatewayContext:
    """State shared by all endpoints of a gateway."""

    identity: GatewayIdentity
    lanes: Mapping[str, Lane]
    recorder: BatchRecorder
    message_ids: Iterator[bytes]  # of this run
    echoes: EchoCache
    heartbeats: Mapping[str, Heartbeat]  # by route; only routes with a heartbeat
    connections: ConnectionLog | None = None  # with an archive only
    require_lease: Callable[[], None] = lambda: None  # raises LeaseNotHeldError
    trace: TraceBatch | None = None  # with tracing only
    memories: SourceMemories | None = None  # of the sources
    make_spool: Callable[[str], Spool | None] = lambda _: None  # of the lane of an endpoint
    path_rules: PathRules = DEFAULT_RULES
    suspicions: LoopSuspicions = field(default_factory=LoopSuspicions)
    replies: ReplyAddresses = field(default_factory=ReplyAddresses)
    recent_names: RecentNames = field(default_factory=RecentNames)
    state_changed: Callable[[str], None] = lambda _name: None  # of a connection of this endpoint


@dataclass(frozen=True, slots=True)
class SourceBinding:
    """A source, the rules for the messages that it receives, and its back-off in seconds.

    `short_names` has the names that its routes shorten, None if they shorten none. `readers_ready`:
    no source of the same reload misses what its routes send. `shows_paths`: the source's kind
    carries origin paths.
    """

    source: Source
    rules: AdmissionRules
    backoff: tuple[float, float]
    short_names: ShortNames | None
    readers_ready: Callable[[], bool] = lambda: True
    shows_paths: bool = True
