"""What becomes of the path of a message at each kind of endpoint, through a running gateway.

An echo is cut, with a row for its target. What is no copy goes on: a message that an application
derives from one it received, and one whose path somebody made up. A message that went through too
many gateways is a dead letter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from gateway.config.load import load
from gateway.endpoints.base import Sink, Source, Subscription
from gateway.endpoints.registry import make_sink, make_source
from gateway.endpoints.settings.memory import MemorySettings
from gateway.model.copy_proof import content_digest, parse_proof, render_proof
from gateway.model.message import Headers, Message
from gateway.model.outcome import ACCEPTED
from gateway.routing.origin_path import BrokerName, GatewayIdentity, marked_name, wire_name
from gateway.runtime.delivery.rows import fingerprint
from gateway.runtime.gateway import Gateway
from gateway.runtime.identity import gateway_identity
from tests.archived import archived
from tests.conformance.test_endpoints import systems
from tests.copy_proofs import PROOF
from tests.endpoints.exchange import collect, opened, send
from tests.endpoints.systems import SYSTEMS, System
from tests.endpoints.written import written
from tests.waiting import until

MAX_HOPS = 3
FIRST, LAST = "f" * 32, "e" * 32
CONFIG = """\
gateway: {{name: plant, max_hops: {hops}}}
archive: {{path: {folder}/archive}}
endpoints:
  there: {there}
  here: {{kind: memory, broker: here-{number}}}
  audit: {{kind: memory, broker: audit-{number}, broker_id: audit}}
routes:
"""
BOTH_WAYS = """\
  out:
    from: {{endpoint: here, pattern: "t/{{rest...}}"}}
    to: {{endpoint: there, template: "{template}"}}
    direction: both
"""
TWO_TARGETS = """\
  in:
    from: {{endpoint: there, pattern: "{template}"}}
    to:
      - {{endpoint: here, template: "t/{{rest...}}"}}
      - {{endpoint: audit, template: "t/{{rest...}}"}}
"""
_numbers = count()


@dataclass
class Application:
    """A client that publishes at a broker, and reads what arrives there."""

    source: Source
    sink: Sink
    arrived: list[Message] = field(default_factory=list)

    def publish(self, *messages: Message) -> None:
        assert send(self.sink, *messages) == [ACCEPTED] * len(messages)

    def wait_for(self, payload: bytes) -> Message:
        """Return the message with this payload, which has arrived or arrives."""
        found = (each for each in self.arrived if each.payload == payload)
        while (message := next(found, None)) is None:
            self.arrived += collect(self.source, 1)
            found = (each for each in self.arrived if each.payload == payload)
        return message


@dataclass
class World:
    """A gateway between the broker of a system and brokers in memory, with an application at each.

    Mutable: its applications keep what arrives.
    """

    folder: Path
    system: System
    routes: str
    number: int = field(default_factory=lambda: next(_numbers))

    def __post_init__(self) -> None:
        settings = self.system.settings
        self.file = self.folder / "gateway.yaml"
        text = CONFIG + self.routes
        self.file.write_text(
            text.format(
                hops=MAX_HOPS, folder=self.folder, number=self.number,
                there=written(settings, self.folder, backoff_max=1),
                template=self.system.address("t", "{rest...}"),
            )
        )  # fmt: skip
        self.configuration = load(self.file)
        self.there = Application(self.system.source("t", instance="app"), self.system.sink("app"))
        self.here, self.audit = (self._in_memory(name) for name in ("here", "audit"))

    def _in_memory(self, name: str) -> Application:
        settings = MemorySettings(name=f"app-{name}", broker=f"{name}-{self.number}")
        return Application(make_source(settings, [Subscription("t/#")]), make_sink(settings))

    @contextmanager
    def running(self) -> Iterator[Gateway]:
        gateway = Gateway(self.configuration)
        applications = (self.there, self.here, self.audit)
        with ExitStack() as stack:
            gateway.start()
            stack.callback(gateway.stop, 10)
            for each in applications:
                stack.enter_context(opened(each.source, each.sink))
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

    def at(
        self, endpoint: str, name: str, payload: bytes, headers: Headers | None = None
    ) -> Message:
        """A message of an application at an endpoint."""
        there = endpoint == "there"
        address = self.system.address("t", name) if there else f"t/{name}"
        mode = self.system.mode if there else MemorySettings.mode
        return Message(address, payload, replace(headers or Headers(), mode=mode))

    def proven(self, message: Message, origin: Sequence[str], hops: int = 1) -> Message:
        """The message as a gateway, or a forger, sends it to the broker of the system."""
        dialect = self.configuration.endpoints["there"].dialect
        name = wire_name(message.address, dialect).encode()
        digest = content_digest(name, fingerprint(message.payload)[1])
        proof = render_proof(FIRST, LAST, hops, digest)
        return replace(message, headers=replace(message.headers, origin=(*origin,)), proof=proof)


@pytest.fixture(params=systems())
def system(request: pytest.FixtureRequest) -> System:
    return SYSTEMS[request.param](request)


@pytest.fixture
def carrying(system: System) -> System:
    if "origin" not in system.settings.carries:
        pytest.skip("its messages carry no path")
    return system


def payloads(application: Application) -> list[object]:
    return [each.payload for each in application.arrived if each.payload != b"end"]


def end(*applications: tuple[Application, Message]) -> None:
    """Publish a last message at each broker in turn, and wait for it at all of them.

    Routes keep the order, so nothing of before is still on its way.
    """
    for application, message in applications:
        application.publish(message)
        for other, _ in applications:
            other.wait_for(b"end")
            other.arrived = [each for each in other.arrived if each.payload != b"end"]


def test_a_message_arrives_once_at_each_side_and_its_echo_is_cut(
    tmp_path: Path, system: System
) -> None:
    world = World(tmp_path, system, BOTH_WAYS)
    with world.running() as gateway:
        world.here.publish(world.at("here", "1", b"from here"))
        world.there.publish(world.at("there", "2", b"from there"))
        until(lambda: gateway.counters["out"].loops == gateway.counters["out.back"].loops == 1)
        end(
            (world.here, world.at("here", "end", b"end")),
            (world.there, world.at("there", "end", b"end")),
        )

    assert {*payloads(world.here)} == {*payloads(world.there)} == {b"from here", b"from there"}
    assert len(world.here.arrived) == len(world.there.arrived) == 2
    cut = {*world.rows("cut", "route", "target", "rule", "name", "outcome")}
    assert {
        ("out", "there", "loop", "t/2", "cut"),
        ("out.back", "here", "loop", system.address("t", "1"), "cut"),
    } <= cut


def test_what_an_application_derives_from_a_copy_goes_on_and_its_hops_are_counted(
    tmp_path: Path, system: System
) -> None:
    """It publishes all that it received with its own payload, and what it received elsewhere."""
    world = World(tmp_path, system, BOTH_WAYS)
    with world.running() as gateway:
        world.here.publish(world.at("here", "1", b"21"))
        copy = world.there.wait_for(b"21")
        world.there.publish(
            replace(copy, payload=b"69.8"),
            replace(copy, address=system.address("t", "other"), payload=b"21"),
        )
        until(lambda: gateway.counters["out"].loops == 2)
        end(
            (world.here, world.at("here", "end", b"end")),
            (world.there, world.at("there", "end", b"end")),
        )
        identity = world.identity

    assert sorted((each.address, each.payload) for each in world.here.arrived) == [
        ("t/1", b"21"), ("t/1", b"69.8"), ("t/other", b"21"),
    ]  # fmt: skip
    derived = [each for each in world.here.arrived if each.proof]
    assert len(derived) == 2
    for message in derived:
        proof, before = parse_proof(message.proof), parse_proof(copy.proof)
        assert proof is not None
        carried = "origin" in system.settings.carries
        assert proof.hops == (2 if carried else 1)
        assert before is None or proof.first != before.first
        assert identity.entry("out") not in message.headers.origin
    assert world.rows("dead", "rule") == []


@pytest.mark.parametrize("proof", [PROOF, "x" * 101, ""], ids=["wrong", "garbage", "none"])
def test_a_path_without_a_proof_hides_a_message_from_nobody(
    tmp_path: Path, carrying: System, proof: str
) -> None:
    world = World(tmp_path, carrying, TWO_TARGETS)
    with world.running():
        names_all = (world.identity.entry("in"), audit_mark(world))
        message = world.proven(world.at("there", "1", b"seen"), names_all)
        world.there.publish(replace(message, proof=proof))
        found = [each.wait_for(b"seen") for each in (world.here, world.audit)]

    assert [each.headers.origin[-1] for each in found] == [world.identity.entry("in")] * 2
    assert all(len(each.headers.origin) == 2 for each in found)  # a new path
    assert world.rows("cut", "rule") == []


def test_a_path_that_equals_its_digest_has_a_row_for_each_target_that_it_hides(
    tmp_path: Path, carrying: System
) -> None:
    world = World(tmp_path, carrying, TWO_TARGETS)
    with world.running() as gateway:
        some, none = world.at("there", "1", b"one"), world.at("there", "2", b"two")
        world.there.publish(
            world.proven(some, [audit_mark(world)]),
            world.proven(none, [world.identity.entry("in")]),
            world.at("there", "end", b"end"),
        )
        for each in (world.here, world.audit):
            each.wait_for(b"end")
        assert gateway.counters["in"].loops == 2

    assert (payloads(world.here), payloads(world.audit)) == ([b"one"], [])
    assert world.rows("cut", "name", "route", "target", "rule") == [
        (some.address, "in", "audit", "loop"),
        (none.address, "in", "audit", "loop"),
        (none.address, "in", "here", "loop"),
    ]
    targets = dict(world.rows("received", "name", "targets"))
    assert targets[some.address] == ["here"]
    assert none.address not in targets


def audit_mark(world: World) -> str:
    """What anybody can compute: the mark of a broker with a `broker_id`, and a name there."""
    dialect = world.configuration.endpoints["audit"].dialect
    return world.identity.mark(BrokerName("audit"), marked_name("t/1", dialect))


@pytest.mark.parametrize("payload", [b"copy", b"derived"])
def test_a_message_that_too_many_gateways_sent_is_a_dead_letter(
    tmp_path: Path, carrying: System, payload: bytes
) -> None:
    world = World(tmp_path, carrying, TWO_TARGETS)
    with world.running():
        last = world.proven(world.at("there", "1", b"copy"), ["a~1/b"], MAX_HOPS)
        before = world.proven(world.at("there", "2", b"before"), ["a~1/b"], MAX_HOPS - 1)
        world.there.publish(replace(last, payload=payload), before)
        found = [each.wait_for(b"before") for each in (world.here, world.audit)]

    assert payloads(world.here) == payloads(world.audit) == [b"before"]
    assert {parse_proof(each.proof).hops for each in found} == {MAX_HOPS}  # type: ignore[union-attr]  # it has one
    dead = world.rows("dead", "rule", "target", "reason")
    assert [row[:2] for row in dead] == [("hops", "audit"), ("hops", "here")]
    assert all(f"`gateway.max_hops` is {MAX_HOPS}" in reason for _, _, reason in dead)
