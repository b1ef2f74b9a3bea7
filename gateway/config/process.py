"""The sections of the process itself: its name, archive, spool, dead letters, page and traces."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from gateway.archive.location import BUFFER

WhenFullText: TypeAlias = Literal["slow", "dead-letter-oldest", "dead-letter-newest"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveRef:
    """Where the record of the traffic goes."""

    path: str = field(
        metadata={"doc": "folder, made when absent; or s3://bucket/prefix, hdfs://host/path"}
    )
    buffer: str = field(
        default=BUFFER, metadata={"doc": "local folder of an archive elsewhere, until it is there"}
    )
    buffer_bytes: int = field(
        default=1 << 30,
        metadata={"minimum": 1 << 16, "doc": "that wait in it; past it the sources are slowed"},
    )
    keep_days: int | None = field(
        default=None, metadata={"minimum": 1, "doc": "whole days that are kept; all when absent"}
    )
    sync: Literal["batch", "interval"] = field(
        default="batch",
        metadata={"doc": "batch: on disk before the source is settled; interval: within a second"},
    )
    segment_seconds: float = field(
        default=60.0, metadata={"minimum": 1, "doc": "age at which a segment is closed"}
    )
    segment_bytes: int = field(
        default=64 << 20, metadata={"minimum": 1 << 16, "doc": "size at which a segment is closed"}
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SpoolRef:
    """Where copies wait for targets that are away, and dead letters for a person."""

    path: str = field(metadata={"doc": "folder; it is made when absent; one gateway each"})
    bytes: int = field(
        default=1 << 30, metadata={"minimum": 1 << 16, "doc": "on disk, for each target endpoint"}
    )
    messages: int | None = field(
        default=None, metadata={"minimum": 1, "doc": "for each target endpoint; no bound if absent"}
    )
    seconds: float | None = field(
        default=None,
        metadata={"minimum": 1, "doc": "older ones become dead letters; none if absent"},
    )
    when_full: WhenFullText = field(
        default="slow", metadata={"doc": "slow: the source waits; or what becomes a dead letter"}
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLettersRef:
    """What happens to messages that a target never takes; they lie in the spool's folder."""

    bytes: int = field(
        default=256 << 20, metadata={"minimum": 1 << 16, "doc": "on disk; past it the oldest go"}
    )
    endpoint: str | None = field(
        default=None, metadata={"doc": "where a copy of each is published too"}
    )
    name: str = field(
        default="dead-letters",
        metadata={"doc": "the name to publish them to, in the dialect of that endpoint"},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WebRef:
    """The page, the probes and the metrics; without this section nothing listens."""

    address: str = field(
        default="127.0.0.1",
        metadata={"doc": "where to listen; one that others reach needs token or client_ca_file"},
    )
    port: int = field(default=8047, metadata={"minimum": 0, "maximum": 65535, "doc": "0: any free"})
    token: str | None = field(
        default=None,
        repr=False,
        metadata={"secret": True, "doc": "what clients show as `Authorization: Bearer`"},
    )
    cert_file: str | None = field(
        default=None, metadata={"doc": "our certificate (PEM); with it only HTTPS is spoken"}
    )
    key_file: str | None = field(
        default=None, metadata={"doc": "the key of our certificate; in `cert_file` when absent"}
    )
    client_ca_file: str | None = field(
        default=None, metadata={"doc": "who may sign clients (PEM); others are not talked to"}
    )
    spool_percent: float = field(
        default=80.0,
        metadata={"minimum": 1, "maximum": 100, "doc": "a spool as full as this is not ready"},
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TracingRef:
    """Traces by OpenTelemetry; without this section none are made."""

    otlp: str = field(
        metadata={"doc": "the collector, as http://host:4318; OTLP over HTTP, with its own path"}
    )
    sample: float = field(
        default=0.01,
        metadata={
            "minimum": 0,
            "maximum": 1,
            "doc": "share of the messages without a trace context that are traced; those with"
            " one are traced when it says `sampled`",
        },
    )
    token: str | None = field(
        default=None,
        repr=False,
        metadata={"secret": True, "doc": "what the collector gets as `Authorization: Bearer`"},
    )
    ca_file: str | None = field(
        default=None, metadata={"doc": "who signs the collector (PEM); the system's when absent"}
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewayRef:
    """The process itself."""

    name: str = field(
        default="gateway", metadata={"doc": "stands in archive rows and origin paths; unique"}
    )
    stop_seconds: float = field(
        default=8.0,
        metadata={"minimum": 0, "maximum": 600, "doc": "time to finish what is in hand on SIGTERM"},
    )
    heartbeat_seconds: float = field(
        default=10.0, metadata={"minimum": 0.1, "doc": "between two heartbeats of a route"}
    )
    answer_seconds: float = field(
        default=60.0,
        metadata={"minimum": 0.1, "doc": "silence of a target that has work; then it is stuck"},
    )
    suspect_after: int = field(
        default=3,
        metadata={
            "minimum": 1,
            "doc": "breaks after which the messages under way are sent one by one",
        },
    )
