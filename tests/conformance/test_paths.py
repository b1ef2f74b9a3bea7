"""The path of a message at each kind of endpoint, through a running gateway.

An echo is cut, with a row for its target. A message that is not a copy goes on: one that an
application derives from a bridged one, and one whose path somebody made up. A message that too many
gateways have sent on is a dead letter.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gateway.model.copy_proof import parse_proof
from gateway.model.message import Headers, Message
from gateway.routing.origin_path import BrokerName
from tests.conformance.bridged import MAX_HOPS, Application, Bridged
from tests.conformance.test_endpoints import systems
from tests.copy_proofs import PROOF
from tests.endpoints.systems import SYSTEMS, System
from tests.waiting import until

pytestmark = pytest.mark.usefixtures("journals_stay")


BOTH_WAYS = """\
  out:
    from: {{endpoint: here, pattern: "t/{{rest...}}"}}
    to: {{endpoint: there, template: "{there}"}}
    direction: both
"""
TWO_TARGETS = """\
  in:
    from: {{endpoint: there, pattern: "{there}"}}
    to:
      - {{endpoint: here, template: "t/{{rest...}}"}}
      - {{endpoint: audit, template: "t/{{rest...}}"}}
"""
RULES = """\
  out:
    from: {{endpoint: here, pattern: "t/{{rest...}}"}}
    to:
      - endpoint: there
        template: "{there}"
        headers: {{drop: ["*"], set: {{{property}: "changed"}}}}
    direction: both
    heartbeat: t/beat
"""
RESERVED = ("gateway-proof", "gateway_proof", "Gateway-Proof")
END = Message("t/end", b"end")


@pytest.fixture(params=systems())
def system(request: pytest.FixtureRequest) -> System:
    return SYSTEMS[request.param](request)


@pytest.fixture
def carrying(system: System) -> System:
    if "origin" not in system.settings.carries:
        pytest.skip("its messages carry no path")
    return system


def bridged(folder: Path, system: System, routes: str, **facts: str) -> Bridged:
    there = system.address("t", "{rest...}")
    routes = routes.format(there=there, **facts)
    return Bridged(folder, system.settings, routes, system.rest(("t",)))


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
    world = bridged(tmp_path, system, BOTH_WAYS)
    first, second, last = (system.address("t", each) for each in ("1", "2", "end"))
    with world.running(world.here, world.there) as gateway:
        world.here.publish(Message("t/1", b"from here"))
        world.there.publish(world.say(second, b"from there"))
        until(lambda: gateway.counters["out"].loops == gateway.counters["out.back"].loops == 1)
        end((world.here, END), (world.there, world.say(last, b"end")))

    assert {*world.here.payloads()} == {*world.there.payloads()} == {b"from here", b"from there"}
    assert len(world.here.arrived) == len(world.there.arrived) == 2
    assert {
        ("out", "there", "loop", "t/2", "cut"),
        ("out.back", "here", "loop", first, "cut"),
    } <= {*world.rows("cut", "route", "target", "rule", "name", "outcome")}


def test_what_an_application_derives_from_a_copy_goes_on_and_its_hops_are_counted(
    tmp_path: Path, system: System
) -> None:
    """It publishes all that it received with another payload, and under another name."""
    world = bridged(tmp_path, system, BOTH_WAYS)
    other, last = system.address("t", "other"), system.address("t", "end")
    with world.running(world.here, world.there) as gateway:
        world.here.publish(Message("t/1", b"21"))
        copy = world.there.wait_for(b"21")
        world.there.publish(replace(copy, payload=b"69.8"), replace(copy, address=other))
        until(lambda: gateway.counters["out"].loops == 2)
        end((world.here, END), (world.there, world.say(last, b"end")))

    assert sorted((each.address, each.payload) for each in world.here.arrived) == [
        ("t/1", b"21"), ("t/1", b"69.8"), ("t/other", b"21"),
    ]  # fmt: skip
    derived = [each for each in world.here.arrived if each.proof]
    proofs = [parse_proof(each.proof) for each in (copy, *derived)]
    assert len(derived) == 2
    assert len({each and each.first for each in proofs}) == 3
    hops = 2 if "origin" in system.settings.carries else 1
    assert [each and each.hops for each in proofs[1:]] == [hops, hops]
    assert not any(world.identity.entry("out") in each.headers.origin for each in derived)
    assert world.rows("dead", "rule") == []


@pytest.mark.parametrize("name", ["desk", *RESERVED])
def test_rules_for_headers_and_heartbeats_leave_an_echo_an_echo(
    tmp_path: Path, carrying: System, name: str
) -> None:
    """A rule cannot set the proof: its name is a property like others, or is refused."""
    world = bridged(tmp_path, carrying, RULES, property=name)
    with world.running(world.here, world.there) as gateway:
        world.here.publish(Message("t/1", b"x", Headers(properties={"other": "dropped"})))
        out, back = gateway.counters["out"], gateway.counters["out.back"]
        until(lambda: out.rules != {} or back.loops >= 2)  # of the message, and a heartbeat
        refused = dict(out.rules)
        found = None if refused else world.there.wait_for(b"x")
        assert not gateway.suspicions.current()
        assert out.loops == back.dead == 0

    if found is None:
        assert name in RESERVED
        assert {*refused} == {"property-name"}
    else:
        proof = parse_proof(found.proof)
        assert proof is not None
        assert proof.hops == 1
        assert "other" not in found.headers.properties
        assert {rule for (rule,) in world.rows("cut", "rule")} == {"loop"}


@pytest.mark.parametrize("proof", [PROOF, "x" * 101, ""], ids=["wrong", "garbage", "none"])
def test_a_path_without_a_proof_hides_a_message_from_nobody(
    tmp_path: Path, carrying: System, proof: str
) -> None:
    world = bridged(tmp_path, carrying, TWO_TARGETS)
    with world.running(world.here, world.audit):
        entry = world.identity.entry("in")
        message = world.say(carrying.address("t", "1"), b"seen")
        world.there.publish(replace(world.proven(message, (audit(world), entry)), proof=proof))
        found = [each.wait_for(b"seen") for each in (world.here, world.audit)]

    assert [each.headers.origin[1:] for each in found] == [(entry,)] * 2  # behind one mark
    assert world.rows("cut", "rule") == []


def test_a_path_that_equals_its_digest_has_a_row_for_each_target_that_it_hides(
    tmp_path: Path, carrying: System
) -> None:
    world = bridged(tmp_path, carrying, TWO_TARGETS)
    some, none, last = (carrying.address("t", each) for each in ("1", "2", "end"))
    with world.running(world.here, world.audit):
        world.there.publish(
            world.proven(world.say(some, b"some"), [audit(world)]),
            world.proven(world.say(none, b"none"), [place(world, none)]),
            world.say(last, b"end"),
        )
        for each in (world.here, world.audit):
            each.wait_for(b"end")

    assert (world.here.payloads(), world.audit.payloads()) == ([b"some", b"end"], [b"end"])
    assert world.rows("cut", "name", "route", "target", "rule") == [
        (some, "in", "audit", "loop"),
        (none, "in", "audit", "loop"),
        (none, "in", "here", "loop"),
    ]
    assert dict(world.rows("received", "name", "targets")) == {
        some: ["here"], last: ["here", "audit"],
    }  # fmt: skip


def place(world: Bridged, name: str) -> str:
    """The mark of the source's broker and a name, which the gateway itself wrote before."""
    end = world.configuration.endpoints["there"]
    return world.identity.mark(end.broker, name, end.dialect)


def audit(world: Bridged) -> str:
    """The mark of the broker `audit` and its name: anybody can compute it from a `broker_id`."""
    dialect = world.configuration.endpoints["audit"].dialect
    return world.identity.mark(BrokerName("audit"), "t/1", dialect)


@pytest.mark.parametrize("payload", [b"copy", b"derived"])
def test_a_message_that_too_many_gateways_sent_is_a_dead_letter(
    tmp_path: Path, carrying: System, payload: bytes
) -> None:
    world = bridged(tmp_path, carrying, TWO_TARGETS)
    first, second = (carrying.address("t", each) for each in ("1", "2"))
    with world.running(world.here, world.audit):
        last = world.proven(world.say(first, b"copy"), ["a~1/b"], MAX_HOPS)
        before = world.proven(world.say(second, b"before"), ["a~1/b"], MAX_HOPS - 1)
        world.there.publish(replace(last, payload=payload), before)
        found = [each.wait_for(b"before") for each in (world.here, world.audit)]

    assert world.here.payloads() == world.audit.payloads() == [b"before"]
    assert {parse_proof(each.proof).hops for each in found} == {MAX_HOPS}  # type: ignore[union-attr]  # it has one
    dead = world.rows("dead", "rule", "target", "reason")
    assert [row[:2] for row in dead] == [("hops", "audit"), ("hops", "here")]
    assert all(f"`gateway.max_hops` is {MAX_HOPS}" in reason for _, _, reason in dead)
