"""Settings of the process: gateway, standby, archive, spool, dead letters, web page, tracing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from gateway.archive.layout import writer_name
from gateway.archive.location import DEFAULT_BUFFER
from gateway.setting import file_path, optional, seconds, secret, setting, size, timeout

_REACHED_AT: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  # every address
WhenFullText: TypeAlias = Literal["slow", "dead-letter-oldest", "dead-letter-newest"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveSettings:
    """Archive of the traffic."""

    path: str = setting(
        "folder, created when absent; or s3://bucket/prefix, hdfs://host/path", path="state"
    )
    buffer: str = setting(
        "local folder for the segments of a remote archive until they are uploaded",
        DEFAULT_BUFFER,
        path="state",
    )
    buffer_bytes: int = size(
        "bytes in `buffer` at which the sources are slowed", 1 << 30, minimum=1 << 16
    )
    keep_days: int | None = optional(
        "complete days to keep; all days when absent", minimum=1, unit="days"
    )
    sync: Literal["batch", "interval"] = setting(
        "`batch`: write rows to disk before their messages are settled at the source;"
        " `interval`: within a second",
        "batch",
    )
    segment_seconds: float | None = seconds(
        "age at which a segment is closed; when absent, 60 with 90,000 rows, and 900 with fewer",
        None,
        minimum=1,
    )
    segment_bytes: int = size("size at which a segment is closed", 64 << 20, minimum=1 << 16)
    seal_key: str | None = secret(
        "key that signs journals and seals, so that a forger without it is found; the other"
        " commands need it, too"
    )
    previous_seal_key: str | None = secret(
        "the key before `seal_key`, which proves what it signed; not one that a forger may have"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SpoolSettings:
    """Spool on disk for copies to unreachable targets, and for dead letters."""

    path: str = setting("folder, created when absent; each gateway needs its own", path="state")
    bytes: int = size("bytes on disk for each target endpoint", 1 << 30, minimum=1 << 16)
    messages: int | None = optional(
        "messages for each target endpoint; unlimited when absent", minimum=1
    )
    seconds: float | None = seconds(
        "age at which a spooled message becomes a dead letter; unlimited when absent",
        None,
        minimum=1,
    )
    shared: bool = setting(
        "the folder moves with the lease of a pair: both instances reach it, or its volume is"
        " attached to the holder's machine",
        False,
    )
    when_full: WhenFullText = setting(
        "action when the spool of a target is full: slow the source, or dead-letter the oldest or"
        " the newest message",
        "slow",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetterSettings:
    """Dead letters, kept in the folder of the spool."""

    bytes: int = size(
        "bytes on disk; beyond them the oldest dead letters are deleted", 256 << 20, minimum=1 << 16
    )
    endpoint: str | None = optional("endpoint that receives a copy of each dead letter")
    name: str = setting("name of these copies, in the dialect of that endpoint", "dead-letters")

    @property
    def fixed(self) -> int:
        """The setting that needs a restart."""
        return self.bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSettings:
    """Web page, health probes and metrics; without this section no port is opened."""

    address: str = setting(
        "listen address; an address reachable from other machines needs `token` or"
        " `client_ca_file`",
        "127.0.0.1",
    )
    port: int = setting("TCP port; 0: any free port", 8047, minimum=0, maximum=65535)
    token: str | None = secret("token that clients send as `Authorization: Bearer`")
    previous_token: str | None = secret(
        "a second token that is valid, too, while clients change from it to `token`"
    )
    cert_file: str | None = file_path(
        "server certificate (PEM); with it the page is served by HTTPS only"
    )
    key_file: str | None = file_path(
        "private key of the certificate (PEM); read from `cert_file` when absent"
    )
    client_ca_file: str | None = file_path(
        "CA for client certificates (PEM); clients without one are rejected"
    )
    spool_percent: float = setting(
        "fill level of a spool, in percent, at which the gateway is not ready",
        80.0,
        minimum=1,
        maximum=100,
    )

    @property
    def url(self) -> str:
        """The address of the page for a client on this machine."""
        host = _REACHED_AT.get(self.address, self.address)
        shown = f"[{host}]" if ":" in host else host
        return f"{'https' if self.cert_file else 'http'}://{shown}:{self.port}"

    @property
    def tokens(self) -> tuple[str, ...]:
        """The tokens that are valid; none for a page without."""
        return tuple(each for each in (self.token, self.previous_token) if each is not None)

    @property
    def fixed(self) -> WebSettings:
        """The settings that need a restart: all but the values of tokens and certificates."""
        return replace(
            self,
            token=self.token and "",
            previous_token=None,
            cert_file=self.cert_file and "",
            key_file=None,
            client_ca_file=self.client_ca_file and "",
        )


DEFAULT_URL: Final = WebSettings().url


@dataclass(frozen=True, slots=True, kw_only=True)
class TracingSettings:
    """OpenTelemetry traces; without this section no traces are made."""

    otlp: str = setting(
        "URL of the collector, such as http://host:4318; OTLP over HTTP, at /v1/traces when the"
        " URL has no path"
    )
    sample: float = setting(
        "fraction of the messages without a trace context that are traced; a message with one is"
        " traced when its context is sampled",
        0.01,
        minimum=0,
        maximum=1,
    )
    token: str | None = secret("token sent to the collector as `Authorization: Bearer`")
    ca_file: str | None = file_path(
        "CA of the collector's certificate (PEM); the system's trust store when absent"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseSettings:
    """The place where the instances of a pair keep their lease."""

    kind: Literal["file", "kubernetes"] = setting(
        "`file`: in a folder that both reach; `kubernetes`: a Lease of the cluster"
    )
    path: str | None = optional(
        "folder of `kind: file`, created when absent, but not the one around it; NFS is fine, with"
        " the mount option `noac`",
        path="state",
    )
    name: str | None = optional(
        "name of the Lease of `kind: kubernetes`; the gateway's name when absent"
    )
    namespace: str | None = optional("namespace of the Lease; the namespace of the pod when absent")


@dataclass(frozen=True, slots=True, kw_only=True)
class StandbySettings:
    """A pair: of two instances of this gateway one is active, and the other waits."""

    lease: LeaseSettings = setting("the lease, which only one instance holds")
    seconds: float = seconds(
        "time after which a silent holder has lost the lease", 10.0, minimum=1, maximum=600
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewaySettings:
    """The gateway process."""

    name: str = setting(
        "unique name of the gateway, written to archive rows and origin paths", "gateway"
    )
    instance: str = setting(
        "name of this process among those of the same `name`, as the two of a pair: the same after"
        " each start, as the host's name; the archive has a chain of journals for each",
        "",
    )
    stop_seconds: float = seconds(
        "time after SIGTERM for finishing messages in flight", 8.0, minimum=0, maximum=600
    )
    heartbeat_seconds: float = timeout("interval between two heartbeats of a route", 10.0)
    stuck_after_seconds: float = timeout(
        "time without an answer after which a target with unanswered messages counts as stuck and"
        " is reconnected",
        60.0,
    )
    isolate_after: int = setting(
        "connection losses after which the unanswered messages are searched by halves, to find the"
        " message that causes them",
        3,
        minimum=1,
    )
    max_hops: int = setting(
        "gateways that may send a message on; beyond it becomes a dead letter, so that no circle is"
        " endless. 0: any number",
        8,
        minimum=0,
        maximum=200,
    )
    path_key: str | None = secret(
        "secret that several gateways share: it signs the origin path of each copy, and the night"
        " then believes what another gateway's path says"
    )
    previous_path_key: str | None = secret(
        "the secret before `path_key`, as long as other gateways still use it"
    )

    @property
    def writer(self) -> str:
        """The name of this process as a writer of the archive."""
        return writer_name(self.name, self.instance)
