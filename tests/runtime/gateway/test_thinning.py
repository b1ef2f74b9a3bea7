"""Less of what a target gets: one message a name and interval, or changes only."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import pytest

from gateway.endpoints.base import Settle
from gateway.endpoints.memory import MemorySink
from gateway.model.message import Headers, Message
from gateway.runtime.record.counters import RouteCounters
from tests.runtime.gateway.running import (
    BrokerClient,
    Row,
    archive_rows,
    configured,
    running,
)
from tests.waiting import until

ENDPOINTS = """\
gateway: {name: test}
endpoints:
  plant: {kind: memory, dialect: mqtt, broker: plant}
  ems: {kind: memory, dialect: ems, broker: ems}
archive: {path: archive}
"""
SPOOL = "spool: {path: spool}\n"
ROUTE = """\
routes:
  telemetry:
    from: {endpoint: plant, pattern: "{rest...}"}
    to: {endpoint: ems, thin: {THIN}}
"""
FOR_LONG = "seconds: 3600"


def config(thin: str, start: str = ENDPOINTS + SPOOL) -> str:
    return start + ROUTE.replace("{THIN}", "{" + thin + "}")


def payloads(client: BrokerClient) -> list[object]:
    return [message.payload for message in client.receive_available()]


def ids_of(rows: list[Row], *legs: str) -> list[str]:
    return [bytes(row["id"]).hex() for row in rows if row["leg"] in legs]  # type: ignore[call-overload]


def wait_for_one_more(counters: RouteCounters, before: int) -> None:
    until(lambda: counters.delivered + counters.thinned == before + 1)


def test_the_first_of_an_interval_is_sent_at_once_and_the_latest_at_its_end(
    plant: BrokerClient, ems: BrokerClient
) -> None:
    with running(config("seconds: 0.3")) as gateway:
        plant.publish(*[Message("a/b", payload) for payload in (b"1", b"2", b"3", b"4")])
        until(lambda: gateway.counters["telemetry"].delivered == 2)
        assert gateway.counters["telemetry"].thinned == 2

    assert payloads(ems) == [b"1", b"4"]
    rows = archive_rows()
    cuts = [row for row in rows if row["leg"] == "cut"]
    received = ids_of(rows, "received")
    assert [row["rule"] for row in cuts] == ["thinned", "thinned"]
    stands = {bytes(row["id"]).hex(): row["reason"] for row in cuts}  # type: ignore[call-overload]
    assert stands == {received[1]: received[2], received[2]: received[3]}
    assert {row["target_name"] for row in cuts} == {"a.b"}


def test_newer_messages_replace_the_held_ones_and_a_restart_sends_the_last_two(
    plant: BrokerClient, ems: BrokerClient
) -> None:
    with running(config(FOR_LONG)) as gateway:
        counters = gateway.counters["telemetry"]
        plant.publish(Message("a/b", b"1"))
        until(lambda: counters.delivered == 1)
        plant.publish(Message("a/b", b"2"), Message("c", b"other"))
        until(lambda: counters.spooled == 1)
        for number, payload in enumerate((b"3", b"4"), start=2):
            plant.publish(Message("a/b", payload))
            until(lambda: counters.spooled == number)  # noqa: B023  # called here
        until(lambda: counters.thinned == 1)
    assert payloads(ems) == [b"1", b"other"]

    with running(config(FOR_LONG)) as gateway:
        until(lambda: gateway.counters["telemetry"].delivered == 2)
    assert payloads(ems) == [b"3", b"4"]
    rows = archive_rows()
    (cut,) = [row for row in rows if row["leg"] == "cut"]
    assert cut["reason"] == ids_of(rows, "delivered")[-2]
    assert (cut["name"], cut["endpoint"], cut["system"]) == ("a/b", "plant", "mqtt")
    assert [row["attempt"] for row in rows if row["leg"] == "delivered"] == [1, 1, 1, 1]


def test_no_older_message_follows_one_that_may_have_been_sent_before_a_kill(
    plant: BrokerClient, ems: BrokerClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The target has `3` when the gateway ends without its answer; a stream knows it by its id."""
    send = MemorySink.send

    def answer_no_three(sink: MemorySink, messages: Sequence[Message], settled: Settle) -> None:
        is_held = "a" in {each.address for each in messages if each.payload == b"3"}
        is_lost = is_held and sink._settings.dialect == "ems"  # noqa: SLF001
        send(sink, messages, (lambda _: None) if is_lost else settled)

    with monkeypatch.context() as patch, running(config("seconds: 0.5")) as gateway:
        patch.setattr(MemorySink, "send", answer_no_three)
        counters = gateway.counters["telemetry"]
        plant.publish(Message("a", b"1"))
        until(lambda: counters.delivered == 1)
        plant.publish(Message("a", b"2"), Message("a", b"3"))
        found: list[object] = []

        def is_there() -> bool:
            found.extend(payloads(ems))
            return found == [b"1", b"3"]

        until(is_there)
        gateway.lanes["ems"].stop()
        gateway.lanes["ems"]._lane._unanswered.clear()  # noqa: SLF001  # as if it were killed
    with running(config(FOR_LONG)) as gateway:
        until(lambda: gateway.counters["telemetry"].delivered == 1)

    assert payloads(ems) == [b"3"]
    rows = archive_rows()
    (cut,) = [row for row in rows if row["leg"] == "cut"]
    received = sorted(ids_of(rows, "received"))
    assert (bytes(cut["id"]).hex(), cut["reason"]) == (received[1], received[2])  # type: ignore[call-overload]


EXPIRED = Headers(expiry=1)


@pytest.mark.parametrize("batches", [1, 2], ids=["together", "apart"])
def test_a_held_message_goes_where_the_newer_one_is_refused(
    batches: int, plant: BrokerClient, ems: BrokerClient
) -> None:
    """It stood for a message that the target never got."""
    messages = [Message("a", b"2"), Message("a", b"3", EXPIRED)]
    with running(config(FOR_LONG)) as gateway:
        counters = gateway.counters["telemetry"]
        plant.publish(Message("a", b"1"))
        until(lambda: counters.delivered == 1)
        for at in range(batches):
            plant.publish(*messages[at::batches])
        until(lambda: counters.spooled + counters.thinned == 2)
        gateway.reload(configured(config(FOR_LONG).replace("telemetry", "renamed")))
        until(lambda: counters.dead == 1)
        until(lambda: not gateway.lanes["ems"].thinning.intervals)

    assert payloads(ems) == [b"1", b"2"]
    rows = archive_rows()
    assert [row["rule"] for row in rows if row["leg"] == "dead"] == ["expired"]
    assert not [row for row in rows if row["leg"] == "cut"]
    assert ids_of(rows, "delivered") == sorted(ids_of(rows, "received"))[:2]


TWO_ROUTES = """\
  other:
    from: {endpoint: last, pattern: "{rest...}"}
    to: {endpoint: ems{OTHER}}
"""


@pytest.mark.usefixtures("journals_stay")
@pytest.mark.parametrize("other", ["", ", thin: {on_change: true}", ", thin: {seconds: 7200}"])
def test_no_held_message_comes_after_a_newer_one_of_another_route(
    other: str, plant: BrokerClient, ems: BrokerClient, last: BrokerClient
) -> None:
    """A route that does not hold its message sends the older one before it."""
    text = config(FOR_LONG) + TWO_ROUTES.replace("{OTHER}", other)
    text = text.replace("archive:", "  last: {kind: memory, dialect: ems, broker: ems2}\narchive:")
    with running(text) as gateway:
        counters, others = gateway.counters["telemetry"], gateway.counters["other"]
        plant.publish(Message("a", b"1"))
        until(lambda: counters.delivered == 1)
        plant.publish(Message("a", b"2"))
        until(lambda: counters.spooled == 1)
        last.publish(Message("a", b"newer"))
        until(lambda: others.delivered + others.spooled == 1)
        gateway.reload(configured(re.sub(", thin: {.*?}", "", text)))
        until(lambda: not gateway.lanes["ems"].thinning.intervals)

    held = "seconds" in other
    assert payloads(ems) == ([b"1", b"newer"] if held else [b"1", b"2", b"newer"])
    assert (counters.thinned, others.thinned) == (int(held), 0)


def test_without_a_spool_only_the_first_is_sent(plant: BrokerClient, ems: BrokerClient) -> None:
    with running(config(FOR_LONG, ENDPOINTS)) as gateway:
        plant.publish(*[Message("a", payload) for payload in (b"1", b"2")])
        until(lambda: gateway.counters["telemetry"].thinned == 1)

    assert payloads(ems) == [b"1"]
    rows = archive_rows()
    (cut,) = [row for row in rows if row["leg"] == "cut"]
    assert cut["reason"] == ids_of(rows, "delivered")[0]


def test_only_changes_are_sent(plant: BrokerClient, ems: BrokerClient) -> None:
    with running(config("on_change: true")) as gateway:
        counters = gateway.counters["telemetry"]
        for payload in (b"on", b"on", b"off", b"off", b"on"):
            before = counters.delivered + counters.thinned
            plant.publish(Message("a", payload))
            wait_for_one_more(counters, before)

    assert payloads(ems) == [b"on", b"off", b"on"]
    rows = archive_rows()
    sent = ids_of(rows, "delivered")
    assert [row["reason"] for row in rows if row["leg"] == "cut"] == sent[:2]


@pytest.mark.usefixtures("journals_stay")
def test_a_value_is_sent_again_over_the_next_connection(
    plant: BrokerClient, ems: BrokerClient
) -> None:
    """The target may have begun empty, and not every broker tells."""
    with running(config("on_change: true")) as gateway:
        counters, lane = gateway.counters["telemetry"], gateway.lanes["ems"]
        plant.publish(Message("a", b"on"))
        until(lambda: counters.delivered == 1)
        lane.reconnect("a test")
        until(lambda: lane.direct)
        plant.publish(Message("a", b"on"))
        until(lambda: counters.delivered == 2)

    assert payloads(ems) == [b"on", b"on"]


@pytest.mark.usefixtures("journals_stay")
def test_a_dead_letter_is_no_change(plant: BrokerClient, ems: BrokerClient) -> None:
    """The target accepted nothing else in between, so an equal message is none either."""
    thin = "on_change: true}, headers: {set: {priority: '{rest}'}"
    with running(config(thin).replace("{rest...}", "{rest}")) as gateway:
        counters = gateway.counters["telemetry"]
        plant.publish(Message("1", b"on"))
        until(lambda: counters.delivered == 1)
        plant.publish(Message("x", b"off"))
        until(lambda: counters.dead == 1)
        plant.publish(Message("1", b"on"))
        until(lambda: counters.thinned == 1)

    assert payloads(ems) == [b"on"]


@pytest.mark.usefixtures("journals_stay")
def test_a_heartbeat_is_never_held(ems: BrokerClient) -> None:
    text = config(FOR_LONG).replace("    to:", "    heartbeat: beat\n    to:")
    text = text.replace("{name: test}", "{name: test, heartbeat_seconds: 0.1}")
    with running(text) as gateway:
        until(lambda: gateway.counters["telemetry"].delivered > 2)
        assert gateway.counters["telemetry"].thinned == 0

    assert len(payloads(ems)) > 2


@pytest.mark.usefixtures("journals_stay")
def test_a_reload_without_the_rule_sends_what_is_held_before_newer_messages(
    plant: BrokerClient, ems: BrokerClient
) -> None:
    with running(config(FOR_LONG)) as gateway:
        counters = gateway.counters["telemetry"]
        plant.publish(Message("a", b"1"), Message("a", b"2"))
        until(lambda: counters.spooled == 1)
        gateway.reload(configured(config(FOR_LONG).replace(f", thin: {{{FOR_LONG}}}", "")))
        until(lambda: counters.delivered == 2)
        until(lambda: not gateway.lanes["ems"].thinning.intervals)
        plant.publish(Message("a", b"3"), Message("a", b"4"))
        until(lambda: counters.delivered == 4)

    assert payloads(ems) == [b"1", b"2", b"3", b"4"]


@pytest.mark.usefixtures("journals_stay")
@pytest.mark.parametrize("thin", [FOR_LONG, "on_change: true"])
def test_each_name_has_its_own_interval_and_value(
    thin: str, plant: BrokerClient, ems: BrokerClient
) -> None:
    messages = [Message(name, b"1") for name in ("a", "b", "c")]
    with running(config(thin)) as gateway:
        plant.publish(*messages)
        until(lambda: gateway.counters["telemetry"].delivered == 3)

    assert Counter(message.address for message in ems.receive_available()) == Counter("abc")
