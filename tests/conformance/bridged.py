"""A gateway between the broker of a system and brokers in memory, and an application at each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

from gateway.config.load import load
from gateway.endpoints.base import Sink, Source, Subscription
from gateway.endpoints.registry import make_sink, make_source
from gateway.endpoints.settings.base import EndpointSettings
from gateway.endpoints.settings.memory import MemorySettings
from gateway.model.copy_proof import HOPS, content_digest, render_proof
from gateway.model.message import Headers, Message
from gateway.model.outcome import ACCEPTED
from gateway.routing.origin_path import GatewayIdentity, wire_name
from gateway.runtime.delivery.rows import fingerprint
from gateway.runtime.gateway import Gateway
from gateway.runtime.identity import gateway_identity
from tests.archived import archived
from tests.endpoints.exchange import collect, opened, send
from tests.endpoints.written import written
from tests.waiting import until

MAX_HOPS = 3
FIRST, LAST = "f" * 32, "e" * 32
CONFIG = """\
gateway: {{name: plant, max_hops: {hops}, heartbeat_seconds: 0.2}}
archive: {{path: {folder}/archive}}
endpoints:
  there: {there}
  here: {{kind: memory, broker: here-{number}}}
  audit: {{kind: memory, broker: audit-{number}, broker_id: audit, allow: ["#"]}}
routes:
"""
_numbers = count()


@dataclass
class Application:
    """A client that publishes at a broker, and keeps what arrives there.

    Mutable: what arrives is added when a test waits for it.
    """

    source: Source
    sink: Sink
    arrived: list[Message] = field(default_factory=list)

    def publish(self, *messages: Message) -> None:
        assert send(self.sink, *messages) == [ACCEPTED] * len(messages)

    def wait_for(self, payload: bytes) -> Message:
        """Return the first message with this payload, which has arrived or arrives."""
        while not (found := [each for each in self.arrived if each.payload == payload]):
            self.arrived += collect(self.source, 1)
        return found[0]

    def payloads(self) -> list[object]:
        return [each.payload for each in self.arrived]


@dataclass
class Bridged:
    """A gateway of `routes` between the endpoints `there`, `here` and `audit`.

    `reads` is what the application at `there` subscribes to; `allow` are names that may be sent
    there, all by default. Mutable: its applications are.
    """

    folder: Path
    settings: EndpointSettings
    routes: str
    reads: str
    allow: tuple[str, ...] = ()
    number: int = field(default_factory=lambda: next(_numbers))

    def __post_init__(self) -> None:
        file = self.folder / "gateway.yaml"
        allow = {"allow": self.allow} if self.allow else {}
        text = CONFIG.format(
            hops=MAX_HOPS, folder=self.folder, number=self.number,
            there=written(self.settings, self.folder, backoff_max=1, **allow),
        )  # fmt: skip
        file.write_text(text + self.routes)
        self.configuration = load(file)
        self.there = self._application(self.settings, self.reads)
        self.here, self.audit = (
            self._application(MemorySettings(name=name, broker=f"{name}-{self.number}"), "#")
            for name in ("here", "audit")
        )

    def _application(self, settings: EndpointSettings, reads: str) -> Application:
        source = make_source(settings, [Subscription(reads)], instance="app")
        return Application(source, make_sink(settings, instance="app"))

    @contextmanager
    def running(self, *readers: Application) -> Iterator[Gateway]:
        """Run the gateway; of the applications, `readers` read, and all publish."""
        with ExitStack() as stack:
            gateway = Gateway(self.configuration)
            gateway.start()
            stack.callback(gateway.stop, 10)
            for each in (self.there, self.here, self.audit):
                ends = (each.source, each.sink) if each in readers else (each.sink,)
                stack.enter_context(opened(*ends))
            until(lambda: all(each.connection.value == "connected" for each in gateway.states))
            until(lambda: all(lane.direct for lane in gateway.lanes.values()))
            yield gateway

    def rows(self, leg: str, *columns: str) -> list[tuple[Any, ...]]:
        """The rows of a leg, when the gateway is stopped."""
        return sorted(
            tuple(row[each] for each in columns)
            for row in archived(self.folder)
            if row["leg"] == leg
        )

    @property
    def identity(self) -> GatewayIdentity:
        return gateway_identity(self.configuration)

    def say(self, address: str, payload: bytes, source_id: str | None = None) -> Message:
        """Return a message of an application at `there`."""
        return Message(address, payload, Headers(mode=self.settings.mode, source_id=source_id))

    def proven(self, message: Message, origin: Sequence[str], hops: int = 1) -> Message:
        """Return the message as a gateway, or a forger, sends it to `there`."""
        dialect = self.configuration.endpoints["there"].dialect
        name = wire_name(message.address, dialect).encode()
        digest = content_digest(name + fingerprint(message.payload)[1])
        proof = render_proof((FIRST, LAST, HOPS[hops], digest))
        return replace(message, headers=replace(message.headers, origin=(*origin,)), proof=proof)
