from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest

from gateway.archive.lookup.reader import read_rows
from gateway.config.load import load
from gateway.endpoints.base import Batch, Sink, Source, Subscription
from gateway.endpoints.memory import MemorySource
from gateway.endpoints.registry import make_sink, make_source
from gateway.endpoints.settings.memory import MemorySettings
from gateway.errors import WireError
from gateway.model.message import Headers, Message
from gateway.model.outcome import ACCEPTED
from gateway.runtime.gateway import Gateway
from tests.endpoints.exchange import collect, send
from tests.waiting import PATIENCE, until

CONFIG = """\
gateway: {{name: test}}
endpoints:
  plant: {{kind: memory, dialect: mqtt, broker: plant-{run}}}
  ems: {{kind: memory, dialect: ems, broker: ems-{run}}}
routes:
  orders:
    from: {{endpoint: plant, pattern: "orders/{{region}}/{{rest...}}"}}
    to: {{endpoint: ems, template: "ORDERS.{{region}}.{{rest...}}"}}
archive: {{path: {archive}}}
"""


class Bench:
    """A running gateway with a way in and a way out."""

    def __init__(self, folder: Path, text: str) -> None:
        run = uuid4().hex
        file = folder / "gateway.yaml"
        self.archive = folder / "archive"
        file.write_text(text.format(run=run, archive=self.archive))
        self.gateway = Gateway(load(file))
        self.into = make_sink(MemorySettings(name="in", dialect="mqtt", broker=f"plant-{run}"))
        self.out = make_source(
            MemorySettings(name="out", dialect="ems", broker=f"ems-{run}"), [Subscription(">")]
        )

    def rows(self) -> list[dict[str, object]]:
        return list(read_rows(self.archive, datetime.now(tz=UTC).date()))


@contextmanager
def running(folder: Path, text: str = CONFIG) -> Iterator[Bench]:
    bench = Bench(folder, text)
    ends: list[Sink | Source] = [bench.into, bench.out]
    for end in ends:
        end.open()
    bench.gateway.start()
    until(lambda: all(s.connection.value == "connected" for s in bench.gateway.states))
    try:
        yield bench
    finally:
        bench.gateway.stop(PATIENCE)
        for end in ends:
            end.close()


def test_a_message_crosses_under_its_new_name_and_is_archived(tmp_path: Path) -> None:
    with running(tmp_path) as bench:
        send(bench.into, Message("orders/emea/fx/1", b"buy"))
        (message,) = collect(bench.out, 1)

    assert (message.address, message.payload) == ("ORDERS.emea.fx.1", b"buy")
    rows = {str(row["leg"]): row for row in bench.rows()}
    assert rows.keys() == {"received", "delivered"}
    assert rows["received"]["name"] == "orders/emea/fx/1"
    assert rows["delivered"]["name"] == "ORDERS.emea.fx.1"
    assert rows["received"]["id"] == rows["delivered"]["id"]
    assert rows["received"]["hash"] == rows["delivered"]["hash"]


def test_order_is_kept_and_nothing_is_lost(tmp_path: Path) -> None:
    payloads = [str(number).encode() for number in range(5_000)]
    with running(tmp_path) as bench:
        for start in range(0, len(payloads), 500):
            send(
                bench.into,
                *(Message("orders/emea/x", each) for each in payloads[start : start + 500]),
            )
        taken = collect(bench.out, len(payloads))

    assert [message.payload for message in taken] == payloads
    assert len(bench.rows()) == 2 * len(payloads)


def test_a_name_that_cannot_cross_is_a_dead_letter_and_its_neighbours_go_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    too_long = "orders/emea/" + "x" * 300
    with running(tmp_path) as bench:
        send(
            bench.into,
            Message("orders/emea/a", b"1"),
            Message(too_long, b"2"),
            Message("orders/b/c", b"3"),
        )
        taken = collect(bench.out, 2)
        until(lambda: bench.gateway.counters["orders"].dead == 1)

    assert [message.payload for message in taken] == [b"1", b"3"]
    assert "first dead letter, kept in the archive" in caplog.text
    (dead,) = [row for row in bench.rows() if row["leg"] == "dead"]
    assert (dead["name"], dead["payload"], dead["outcome"]) == (too_long, b"2", "rejected")
    assert dead["rule"]
    assert "limit" in str(dead["reason"])


MANY = """\
gateway: {{name: test}}
endpoints:
  plant: {{kind: memory, dialect: mqtt, broker: plant-{run}}}
  ems: {{kind: memory, dialect: ems, broker: ems-{run}}}
routes:
  fx: {{from: {{endpoint: plant, pattern: fx/#}}, to: {{endpoint: ems, template: "FX.{{1...}}"}}}}
  all:
    from: {{endpoint: plant, pattern: "{{kind}}/{{number}}"}}
    to:
      - {{endpoint: ems, template: "ALL.{{kind}}.{{number}}"}}
      - {{endpoint: ems, template: "TEXT.{{kind}}.{{number}}", payload: text}}
  kept:
    from: {{endpoint: plant, pattern: "bonds/{{rest...}}"}}
    to: {{endpoint: ems, template: "BONDS.{{rest...}}"}}
    archive_payload: true
archive: {{path: {archive}}}
"""


def test_each_row_of_a_batch_over_many_routes_says_its_own(tmp_path: Path) -> None:
    """A message may be in it more often than once, and another not at all."""
    names = ["fx/1", "alone", "bonds/2", "fx/3", "equities/4"]
    with running(tmp_path, MANY) as bench:
        send(bench.into, *(Message(name, name[-1].encode()) for name in names))
        sent = collect(bench.out, 11)
        counted = {name: (c.received, c.delivered) for name, c in bench.gateway.counters.items()}

    expected: list[tuple[object, ...]]
    expected = [("received", name, name, "all", None, None) for name in names if "/" in name]
    for name in names:
        kind, _, rest = name.partition("/")
        if rest:
            expected.append(("delivered", name, f"ALL.{kind}.{rest}", "all", "ems", None))
            expected.append(("delivered", name, f"TEXT.{kind}.{rest}", "all", "ems:2", None))
    for name in ("fx/1", "fx/3"):
        expected.append(("received", name, name, "fx", None, None))
        expected.append(("delivered", name, f"FX.{name[-1]}", "fx", "ems", None))
    expected.append(("received", "bonds/2", "bonds/2", "kept", None, b"2"))
    expected.append(("delivered", "bonds/2", "BONDS.2", "kept", "ems", None))
    rows = bench.rows()
    told = [
        (r["leg"], r["source_name"] or r["name"], r["name"], r["route"], r["target"], r["payload"])
        for r in rows
    ]
    assert sorted(told, key=repr) == sorted(expected, key=repr)
    assert len({row["id"] for row in rows}) == len([name for name in names if "/" in name])
    converted = [str(row["name"]) for row in rows if row["outcome"] == "converted"]
    assert sorted(converted) == sorted(m.address for m in sent if m.address.startswith("TEXT."))
    assert counted == {"fx": (2, 2), "all": (4, 8), "kept": (1, 1)}


def test_names_no_route_takes_are_settled_and_leave_no_row(tmp_path: Path) -> None:
    with running(tmp_path) as bench:
        assert (
            send(bench.into, Message("other/x", b"1"), Message("orders/a/b", b"2"))
            == [ACCEPTED] * 2
        )
        assert [message.payload for message in collect(bench.out, 1)] == [b"2"]

    assert {row["name"] for row in bench.rows()} == {"orders/a/b", "ORDERS.a.b"}


def test_a_stop_settles_what_is_in_hand(tmp_path: Path) -> None:
    with running(tmp_path) as bench:
        send(bench.into, *(Message("orders/emea/x", b"%d" % n) for n in range(1_000)))
        until(lambda: bench.gateway.counters["orders"].received > 0)
        assert bench.gateway.stop(PATIENCE)

    legs = [row["leg"] for row in bench.rows()]
    assert legs.count("received") == legs.count("delivered") > 0


@pytest.mark.parametrize(
    "payload", [b"", "text", {"price": 1.5, "side": "buy"}], ids=["empty", "text", "map"]
)
def test_every_kind_of_payload_crosses(
    tmp_path: Path, payload: bytes | str | dict[str, object]
) -> None:
    with running(tmp_path) as bench:
        send(bench.into, Message("orders/a/b", payload))  # type: ignore[arg-type]  # a dict is a map
        (message,) = collect(bench.out, 1)

    assert message.payload == payload


def test_a_shortened_name_finds_its_way_back_after_a_restart(tmp_path: Path) -> None:
    run = uuid4().hex
    file = tmp_path / "gateway.yaml"
    text = CONFIG.format(run=run, archive=tmp_path / "archive")
    back = """\
  back:
    from: {endpoint: ems, pattern: "ORDERS.{rest...}"}
    to: {endpoint: plant, template: "back/{rest...}"}
archive:"""
    text = text.replace('{rest...}"}\narchive:', '{rest...}", length: shorten}\n' + back)
    file.write_text(text)
    deep = "/".join(f"a-long-level-of-a-name-{n}" for n in range(14))
    into = make_sink(MemorySettings(name="in", dialect="mqtt", broker=f"plant-{run}"))
    out = make_source(
        MemorySettings(name="out", dialect="mqtt", broker=f"plant-{run}"), [Subscription("back/#")]
    )
    into.open()
    out.open()
    arrived: list[str] = []
    for _ in range(2):
        gateway = Gateway(load(file))
        gateway.start()
        into.send([Message(f"orders/emea/{deep}", b"x")], lambda _: None)
        arrived += [message.address for message in collect(out, 1)]
        gateway.stop(PATIENCE)

    assert arrived == [f"back/emea/{deep}"] * 2
    assert (tmp_path / "archive" / "_names" / "test.jsonl").read_text().count("digest") == 1


def test_both_directions_do_not_echo(tmp_path: Path) -> None:
    run = uuid4().hex
    file = tmp_path / "gateway.yaml"
    text = CONFIG.format(run=run, archive=tmp_path / "archive")
    file.write_text(text.replace("orders:\n", "orders:\n    direction: both\n"))
    left = MemorySettings(name="left", dialect="mqtt", broker=f"plant-{run}")
    right = MemorySettings(name="right", dialect="ems", broker=f"ems-{run}")
    ends = [
        (make_sink(left), make_source(left, [Subscription("#")])),
        (make_sink(right), make_source(right, [Subscription(">")])),
    ]
    for sink, source in ends:
        sink.open()
        source.open()
    gateway = Gateway(load(file))
    gateway.start()
    ends[0][0].send([Message("orders/emea/a", b"there")], lambda _: None)
    ends[1][0].send([Message("ORDERS.emea.b", b"back")], lambda _: None)
    until(lambda: sum(counters.loops for counters in gateway.counters.values()) == 2)
    gateway.stop(PATIENCE)
    seen = [[m.address for m in drain(source)] for _, source in ends]

    assert [sorted(names) for names in seen] == [
        ["orders/emea/a", "orders/emea/b"],
        ["ORDERS.emea.a", "ORDERS.emea.b"],
    ]


def drain(source: Source) -> list[Message]:
    messages: list[Message] = []
    while (batch := source.receive(0.1)) is not None:
        messages += batch.messages
        batch.settle([ACCEPTED] * len(batch.messages))
    return messages


def crossed(folder: Path, route: str, *messages: Message) -> tuple[list[Message], Gateway]:
    """What arrives at `to` of messages that were sent to `from`, by one route between them."""
    run = uuid4().hex
    file = folder / "gateway.yaml"
    ends = {"from": "yami4", "to": "mqtt"}
    lines = [f"  {e}: {{kind: memory, dialect: {d}, broker: {e}-{run}}}" for e, d in ends.items()]
    archive = f"archive: {{path: {folder / 'archive'}}}"
    file.write_text("\n".join(["endpoints:", *lines, "routes:", route, archive]))
    into = make_sink(MemorySettings(name="in", dialect="yami4", broker=f"from-{run}"))
    out = make_source(
        MemorySettings(name="out", dialect="mqtt", broker=f"to-{run}"), [Subscription("#")]
    )
    into.open()
    out.open()
    gateway = Gateway(load(file))
    gateway.start()
    until(lambda: all(s.connection.value == "connected" for s in gateway.states))
    into.send(messages, lambda _: None)
    until(lambda: sum(c.received + c.unselected for c in gateway.counters.values()) > 0)
    gateway.stop(PATIENCE)
    return drain(out), gateway


def test_each_tag_of_a_message_becomes_a_copy_once(tmp_path: Path) -> None:
    route = """\
  tags:
    from: {endpoint: from, pattern: "temperature.{room}"}
    to: {endpoint: to, template: "rooms/{room}"}
"""
    tags = "temperature.a,pressure,temperature.b,temperature.a"

    arrived, _ = crossed(tmp_path, route, Message(tags, b"21"))

    assert sorted(message.address for message in arrived) == ["rooms/a", "rooms/b"]
    rows = list(read_rows(tmp_path / "archive", datetime.now(tz=UTC).date()))
    (received,) = [row for row in rows if row["leg"] == "received"]
    assert received["targets"] == ["to", "to#2"]
    assert sorted(row["target"] for row in rows if row["leg"] == "delivered") == ["to", "to#2"]


def test_one_tag_is_chosen_and_the_others_become_a_property(tmp_path: Path) -> None:
    route = """\
  tags:
    from:
      endpoint: from
      pattern: "{kind}.{room}"
      tags: {mode: first, prefer: ["pressure.*"], others: tags}
    to: {endpoint: to, template: "rooms/{room}/{kind}"}
"""
    (arrived,), _ = crossed(tmp_path, route, Message("temperature.a,pressure.a", b"21"))

    assert arrived.address == "rooms/a/pressure"
    assert arrived.headers.properties == {"tags": "temperature.a"}


def test_selector_headers_and_payload_rules_apply(tmp_path: Path) -> None:
    route = """\
  rules:
    from: {endpoint: from, pattern: "{room}", selector: "urgency IN ('high', 'medium')"}
    to:
      endpoint: to
      template: "rooms/{room|upper}"
      payload: map
      headers: {drop: [urgency], set: {room: "{room}", priority: 7}}
"""
    urgent = Headers(properties={"urgency": "high"})
    arrived, gateway = crossed(
        tmp_path,
        route,
        Message("a", b'{"t": 21}', urgent),
        Message("b", b'{"t": 22}', Headers(properties={"urgency": "low"})),
        Message("c", b"no JSON", urgent),
    )

    (message,) = arrived
    assert (message.address, message.payload) == ("rooms/A", {"t": 21})
    assert (message.headers.properties, message.headers.priority) == ({"room": "a"}, 7)
    assert gateway.counters["rules"].rules == {"payload": 1}
    assert gateway.counters["rules"].unselected == 1


def test_fields_that_cannot_cross_are_counted_for_every_message(tmp_path: Path) -> None:
    file = tmp_path / "gateway.yaml"
    run = uuid4().hex
    file.write_text(
        f"""\
endpoints:
  from: {{kind: memory, dialect: mqtt, broker: from-{run}}}
  to: {{kind: mqtt, host: 127.0.0.1, port: 1, version: "3.1.1", backoff_max: 0.5}}
routes:
  narrow: {{from: {{endpoint: from, pattern: "#"}}, to: {{endpoint: to}}}}
"""
    )
    into = make_sink(MemorySettings(name="in", dialect="mqtt", broker=f"from-{run}"))
    into.open()
    gateway = Gateway(load(file))
    gateway.start()
    until(lambda: any(s.connection.value == "connected" for s in gateway.states))
    headers = Headers(properties={"urgency": "high"}, priority=7)
    into.send([Message("a", b"%d" % n, headers) for n in range(20)], lambda _: None)
    until(lambda: sum(gateway.counters["narrow"].lost_fields.values()) >= 40)
    gateway.stop(2)

    assert gateway.counters["narrow"].received == 20
    assert gateway.counters["narrow"].lost_fields == {"properties": 20, "priority": 20}


def test_a_broker_that_breaks_its_protocol_does_not_end_the_pump(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults = iter([WireError("the peer broke its protocol")])
    receive = MemorySource.receive

    def broken(source: MemorySource, timeout: float) -> Batch | None:
        for fault in faults:
            raise fault
        return receive(source, timeout)

    file = tmp_path / "gateway.yaml"
    run = uuid4().hex
    text = CONFIG.format(run=run, archive=tmp_path / "archive")
    file.write_text(text.replace("dialect: mqtt,", "dialect: mqtt, backoff_max: 0.02,"))
    monkeypatch.setattr(MemorySource, "receive", broken)
    into = make_sink(MemorySettings(name="in", dialect="mqtt", broker=f"plant-{run}"))
    into.open()
    gateway = Gateway(load(file))
    gateway.start()
    until(lambda: all(s.connection.value == "connected" for s in gateway.states))
    into.send([Message("orders/emea/a", b"x")], lambda _: None)
    until(lambda: gateway.counters["orders"].delivered >= 1)

    assert gateway.stop(PATIENCE)


def test_a_tap_archives_what_arrives_at_the_target_with_the_id_it_was_sent_with(
    tmp_path: Path,
) -> None:
    observed = CONFIG.replace('rest...}}"}}\narchive', 'rest...}}", observe: "ORDERS.>"}}\narchive')
    with running(tmp_path, observed) as bench:
        send(bench.into, Message("orders/emea/fx/1", b"buy"))
        collect(bench.out, 1)
        until(
            lambda: all(
                tap.state.connection.value == "connected" for tap in bench.gateway.taps.values()
            )
        )

    rows = {str(row["leg"]): row for row in bench.rows()}
    assert rows.keys() == {"received", "delivered", "observed"}
    seen = rows["observed"]
    assert (seen["route"], seen["target"], seen["name"]) == ("orders", "ems", "ORDERS.emea.fx.1")
    assert isinstance(identity := rows["received"]["id"], bytes)
    assert seen["origin_id"] == identity.hex()
    assert seen["hash"] == rows["delivered"]["hash"]


@pytest.mark.parametrize("policy", ["drop", "pass"])
def test_what_the_source_repeats_under_one_identity_is_dropped_or_marked(
    tmp_path: Path, policy: str
) -> None:
    text = CONFIG.replace("    from:", f"    duplicates: {policy}\n    from:")
    twice = Message("orders/emea/fx/1", b"buy", Headers(source_id="ID:1"))
    other = Message("orders/emea/fx/2", b"buy", Headers(source_id="ID:1"))  # another name
    with running(tmp_path, text) as bench:
        send(bench.into, twice, other, twice)
        send(bench.into, twice)
        send(bench.into, Message("orders/emea/fx/1", b"last"))
        taken = collect(bench.out, 3 if policy == "drop" else 5)
        assert bench.gateway.counters["orders"].duplicates == 2

    assert taken[-1].payload == b"last"
    marked = [message.headers.redelivered for message in taken]
    assert marked == ([False] * 3 if policy == "drop" else [False, False, True, True, False])


def test_what_was_delivered_before_a_crash_is_not_delivered_again(tmp_path: Path) -> None:
    message = Message("orders/emea/fx/1", b"buy", Headers(source_id="ID:1"))
    with running(tmp_path) as bench:
        send(bench.into, message)
        collect(bench.out, 1)
        until(lambda: bench.gateway.pumps["plant"].settled)
        journal = next((tmp_path / "archive" / ".journal").glob("*.open"))
        left = journal.read_bytes()
    journal.write_bytes(left)  # as a kill leaves it
    with running(tmp_path) as again:
        send(again.into, message, Message("orders/emea/fx/1", b"new", Headers(source_id="ID:2")))
        (taken,) = collect(again.out, 1)
        assert again.gateway.counters["orders"].duplicates == 1

    assert taken.payload == b"new"


def test_copies_of_dead_letters_are_published_with_what_happened(tmp_path: Path) -> None:
    text = CONFIG + (
        f"spool: {{{{path: {tmp_path}/spool}}}}\n"
        "dead_letters: {{endpoint: ems, name: GATEWAY.DEAD}}\n"
    )
    deep = "/".join(["x"] * 80)  # more elements than EMS takes
    with running(tmp_path, text) as bench:
        until(lambda: bench.gateway.lanes["ems"].direct)
        send(bench.into, Message(f"orders/emea/{deep}", b"buy"))
        (copy,) = collect(bench.out, 1)

    assert (copy.address, copy.payload) == ("GATEWAY.DEAD", b"buy")
    told = copy.headers.properties
    assert told["dead_route"] == "orders"
    assert told["dead_name"] == f"orders/emea/{deep}"
    assert told["dead_rule"]
