"""Thinned targets at each kind of endpoint, as target and as source, through a running gateway."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.config.load import load
from gateway.endpoints.settings.nats import NatsSettings
from gateway.model.message import Headers, Message
from tests.conformance.bridged import Bridged
from tests.conformance.test_endpoints import systems
from tests.endpoints.nats.stream import ask
from tests.endpoints.systems import SYSTEMS, System
from tests.waiting import until

pytestmark = pytest.mark.usefixtures("journals_stay")


THIN = ", thin: {seconds: 3600}"
ROUTES = """\
  out:
    from: {endpoint: here, pattern: "t/{rest...}"}
    to: {endpoint: there, template: "THERE", thin: {seconds: 3600}}
  in:
    from: {endpoint: there, pattern: "THERE"}
    to: {endpoint: audit, template: "t/{rest...}", thin: {on_change: true}}
spool: {path: SPOOL}
"""


@pytest.fixture(params=systems())
def system(request: pytest.FixtureRequest) -> System:
    return SYSTEMS[request.param](request)


def test_a_target_gets_the_first_the_latest_and_changes(system: System, tmp_path: Path) -> None:
    """A reload without the rule ends the interval, as its time would.

    The latest message has expired by then, so the one before it is sent.
    """
    routes = ROUTES.replace("THERE", system.address("t", "{rest...}"))
    routes = routes.replace("SPOOL", str(tmp_path / "spool"))
    bridge = Bridged(tmp_path, system.settings, routes, system.rest(("t",)))
    with bridge.running(bridge.audit) as gateway:
        sent, taken = gateway.counters["out"], gateway.counters["in"]
        bridge.here.publish(Message("t/a", b"1"))
        bridge.audit.wait_for(b"1")
        expired = Message("t/a", b"refused", Headers(expiry=1))
        bridge.here.publish(Message("t/a", b"2"), Message("t/a", b"3"), expired)
        until(lambda: sent.thinned + sent.spooled == 3)
        file = tmp_path / "gateway.yaml"
        file.write_text(file.read_text().replace(THIN, ""))
        gateway.reload(load(file))
        bridge.audit.wait_for(b"3")
        until(lambda: taken.delivered == 2)
        bridge.here.publish(Message("t/a", b"3"))
        until(lambda: taken.thinned == 1)
        bridge.here.publish(Message("t/a", b"4"))
        bridge.audit.wait_for(b"4")

    assert bridge.audit.payloads() == [b"1", b"3", b"4"]
    cuts = bridge.rows("cut", "route", "rule", "reason")
    ids = {str(row[0]): row[1].hex() for row in bridge.rows("delivered", "time", "id")}
    assert [each[:2] for each in cuts] == [("in", "thinned"), ("out", "thinned")]
    assert {each[2] for each in cuts} <= {*ids.values()}


def test_a_held_message_goes_where_the_broker_refuses_the_newer_one(
    request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """A stream refuses a message past its size, and no other one of the name."""
    system = SYSTEMS["nats"](request)
    assert isinstance(system.settings, NatsSettings)
    made = {"name": "T", "subjects": ["t.>"], "max_msg_size": 5_000}
    ask(system.settings, lambda jetstream: jetstream.add_stream(**made))
    routes = ROUTES.replace("THERE", system.address("t", "{rest...}"))
    routes = routes.replace("SPOOL", str(tmp_path / "spool"))
    bridge = Bridged(tmp_path, system.settings, routes, system.rest(("t",)))
    with bridge.running(bridge.audit) as gateway:
        sent = gateway.counters["out"]
        bridge.here.publish(Message("t/a", b"1"))
        bridge.audit.wait_for(b"1")
        bridge.here.publish(Message("t/a", b"2"), Message("t/a", bytes(6_000)))
        until(lambda: sent.spooled == 2)
        file = tmp_path / "gateway.yaml"
        file.write_text(file.read_text().replace(THIN, ""))
        gateway.reload(load(file))
        bridge.audit.wait_for(b"2")

    assert bridge.audit.payloads() == [b"1", b"2"]
    assert [row[0] for row in bridge.rows("dead", "rule")] == ["stream"]
    assert not bridge.rows("cut", "rule")
