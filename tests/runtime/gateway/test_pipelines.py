"""Finite ways that pass one route, or one route's name, more than once: nothing of them is cut."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager

from gateway.model.message import Message
from tests.runtime.gateway.running import BrokerClient, configured, running, wait_until_connected

ENDPOINTS = """\
gateway: {name: line}
endpoints:
  a: {kind: memory, dialect: mqtt, broker: line-a}
  b: {kind: memory, dialect: mqtt, broker: line-b}
  hub: {kind: memory, dialect: mqtt, broker: line-hub}
"""
PIPELINE = f"""{ENDPOINTS}routes:
  collect:
    from:
      - {{endpoint: a, pattern: "raw/{{rest...}}"}}
      - {{endpoint: b, pattern: "clean/{{rest...}}"}}
    to: {{endpoint: hub, template: "{{@endpoint}}/{{rest...}}"}}
  clean:
    from: {{endpoint: hub, pattern: "a/{{rest...}}"}}
    to: {{endpoint: b, template: "clean/{{rest...}}"}}
"""
FIRST = f"""{ENDPOINTS}routes:
  NAME:
    from: {{endpoint: a, pattern: "x/{{rest...}}"}}
    to: {{endpoint: b, template: "x/{{rest...}}"}}
"""
SECOND = """\
  NAME:
    from: {endpoint: b, pattern: "x/{rest...}"}
    to: {endpoint: hub, template: "x/{rest...}"}
"""


@contextmanager
def clients() -> Iterator[list[BrokerClient]]:
    """Applications at the brokers a, b and hub."""
    with ExitStack() as stack:
        yield [
            stack.enter_context(closing(BrokerClient(f"line-{each}", "mqtt")))
            for each in ("a", "b", "hub")
        ]


def test_a_message_may_pass_one_route_from_two_brokers() -> None:
    """The hub has both messages, and b the clean one."""
    with clients() as (a, _, hub), running(PIPELINE):
        a.publish(Message("raw/1", b"m"))
        found = hub.receive(2)

    assert sorted(each.address for each in found) == ["a/1", "b/1"]


def test_a_route_that_takes_the_name_of_another_one_carries_what_that_one_sent() -> None:
    """A copy stays at b, as a retained message does, until a route of the same name reads there."""
    with clients() as (a, b, hub), running(FIRST.replace("NAME", "telemetry")) as gateway:
        a.publish(Message("x/1", b"m"))
        (copy,) = b.receive(1)
        routes = FIRST.replace("NAME", "plant") + SECOND.replace("NAME", "telemetry")
        gateway.reload(configured(routes))
        wait_until_connected(gateway)
        b.publish(copy)
        (again,) = hub.receive(1)

    assert again.payload == b"m"
