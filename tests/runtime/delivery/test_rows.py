"""The hash of a delivered row is that of the payload as it was handed to the sink."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.archive.journal.records import Rows
from gateway.archive.schema import Leg
from gateway.config.load import load
from gateway.model.message import GATEWAY_ID, Headers, Message, Payload, Value
from gateway.model.outcome import ACCEPTED, REPEATED, RETRY
from gateway.routing.route import WhenFull
from gateway.routing.router import RouteMatch, Router
from gateway.runtime.delivery.outbound_batch import OutboundBatch, SpoolRow
from gateway.runtime.delivery.received_batch import ReceivedBatch
from gateway.runtime.delivery.rows import MAX_NESTING, fingerprint
from gateway.runtime.outbound.spool_codec import pack_message, unpack_message
from gateway.runtime.record.batch_recorder import BatchRecorder
from tests.runtime.one_route import ONE_ROUTE
from tests.runtime.outbound_batches import Asker
from tests.runtime.received_batches import received_batch

VALUES: st.SearchStrategy[Value] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=3), inner, max_size=3).map(MappingProxyType)
    ),
    max_leaves=8,
)


@pytest.fixture
def match(tmp_path: Path) -> RouteMatch:
    file = tmp_path / "gateway.yaml"
    file.write_text(ONE_ROUTE)
    (route,) = load(file).routes
    return Router(route.dialect, [route])["a/1"][0]


def delivered(record: ReceivedBatch, match: RouteMatch, payloads: Sequence[Payload]) -> Rows:
    """The delivered rows of a batch whose copies have these payloads."""
    sent = [Message("b/1", payload) for payload in payloads]
    every, deliveries = range(len(sent)), list(match.deliveries) * len(sent)
    batch = OutboundBatch(Asker(), WhenFull.SLOW, sent, every, deliveries)
    return record.delivered_rows(batch, every, attempts=1, at=5)


def test_a_copy_with_another_payload_has_another_hash(match: RouteMatch) -> None:
    payloads: list[Payload] = [b"first", "second", b"third"]
    record = received_batch([Message("a/1", payload) for payload in payloads])
    received = record.received_rows(range(3), [match] * 3)

    same = delivered(record, match, payloads)
    other = delivered(record, match, [b"first", "altered", b"third"])

    assert same.columns["hash"] is received.columns["hash"]
    assert other.columns["hash"] == [fingerprint(b"first")[1], fingerprint("altered")[1],
                                     fingerprint(b"third")[1]]  # fmt: skip
    assert other.columns["size"] == [5, 7, 5]
    assert other.common["outcome"] == "accepted"  # so that the hashes are compared


def test_the_hash_of_a_map_does_not_depend_on_the_order_of_its_keys() -> None:
    one: Payload = {"b": {"y": 1, "x": 2}, "a": [1, {"d": b"", "c": None}]}
    other: Payload = {"a": [1, {"c": None, "d": b""}], "b": {"x": 2, "y": 1}}
    swapped: Payload = {"a": [{"c": None, "d": b""}, 1], "b": {"x": 2, "y": 1}}

    assert fingerprint(one) == fingerprint(other) != fingerprint(swapped)


@pytest.mark.parametrize("levels", [MAX_NESTING - 1, MAX_NESTING])
def test_a_deep_map_has_a_hash(levels: int) -> None:
    deep: Value = {"a": 1}
    for _ in range(levels):
        deep = {"a": deep}
    assert isinstance(deep, dict)

    assert fingerprint(deep) == fingerprint({**deep}) != fingerprint({"a": deep})


def test_a_map_that_a_sink_changes_has_another_hash(match: RouteMatch) -> None:
    payload: dict[str, Value] = {"quantity": 1}
    before = fingerprint(payload)
    record = received_batch([Message("a/1", payload)])

    payload["quantity"] = 2  # by a driver, before any row is made
    received = record.received_rows([0], [match])
    sent = delivered(record, match, [payload])

    assert received.columns["hash"] == [before[1]]
    assert sent.columns["hash"] == [fingerprint({"quantity": 2})[1]]


@given(st.binary() | st.text() | st.dictionaries(st.text(max_size=3), VALUES, max_size=3))
def test_the_spool_keeps_the_hash_of_every_payload(payload: Payload) -> None:
    returned = unpack_message(pack_message(Message("a", payload)))

    assert fingerprint(returned.payload) == fingerprint(payload)


BOTH_WAYS = """\
endpoints:
  near: {{kind: memory, dialect: smf}}
  far: {{{far}}}
routes:
  r: {{direction: both, from: {{endpoint: {source}, pattern: "a/{{x}}"}},
      to: {{endpoint: {target}, template: "b/{{x}}"}}}}
"""


@pytest.mark.parametrize(
    ("far", "encoding"),
    [
        (
            "kind: solace, url: 'tcp://127.0.0.1:1'",
            "the Solace library encodes texts and maps (SDT)",
        ),
        (
            "kind: jms, urls: ['tcp://127.0.0.1:1'], dialect: smf",
            "the JMS library encodes texts and",
        ),
        ("kind: yami4, url: 'tcp://127.0.0.1:1', dialect: smf", "a YAMI4 message encodes every"),
        ("kind: mqtt, dialect: smf", None),
        ("kind: memory, dialect: smf", None),
    ],
)
@pytest.mark.parametrize(("source", "target"), [("near", "far"), ("far", "near")])
def test_a_row_says_what_encodes_the_payload_behind_its_hash(
    tmp_path: Path, far: str, encoding: str | None, source: str, target: str
) -> None:
    """The kind of the endpoint decides, and not its dialect, in both directions of a route."""
    path = tmp_path / "gateway.yaml"
    path.write_text(BOTH_WAYS.format(far=far, source=source, target=target))
    (route,) = (each for each in load(path).routes if each.targets[0].endpoint == "far")
    name = "a/1" if source == "near" else "b/1"
    (found,) = Router(route.dialect, [route])[name]
    rows = delivered(received_batch([Message(name, b"x")]), found, [b"x"])

    if encoding is None:
        assert "encoding" not in rows.common
    else:
        assert str(rows.common["encoding"]).startswith(encoding)


@pytest.mark.parametrize("on_disk", [False, True], ids=["memory", "spool"])
def test_each_row_of_a_batch_has_the_time_of_its_own_answer(
    match: RouteMatch, *, on_disk: bool
) -> None:
    """The target took the second and the fourth message, and the others when they came again."""
    messages = [Message("a/1", b"%d" % number) for number in range(4)]
    received = received_batch(messages)
    batch = OutboundBatch(Asker(), WhenFull.SLOW, messages, range(4), [match.deliveries[0]] * 4)
    pending = received.pending_rows(batch, 5)
    batch.settle(range(4), [RETRY, ACCEPTED, RETRY, ACCEPTED], 10.0)
    batch.settle([0, 2], [ACCEPTED, RETRY], 10.000_004)
    batch.settle([2], [ACCEPTED], 10.000_010)

    if on_disk:
        batch.rows, written = [SpoolRow(1, 5, 9, 4, messages, pending)], list[Rows]()
        recorder = BatchRecorder({}, lambda rows, _: written.extend(rows), clock=lambda: 1_000)
        recorder.record_spooled(batch, lambda: None)
        (rows,) = [each for each in written if each.common["leg"] == Leg.DELIVERED.value]
    else:
        received.answered(batch, 1_000)
        (rows,) = received.rows

    assert "time" not in rows.common
    assert rows.values("time") == [994, 990, 1_000, 990]
    settled = OutboundBatch(Asker(), WhenFull.SLOW, messages, range(4), batch.deliveries)
    settled.settle(range(4), [ACCEPTED] * 4, 10.0)
    assert not settled.times, "one integer for a batch that is answered at once"


def test_a_repeat_has_a_row_of_its_own(match: RouteMatch) -> None:
    messages = [Message("a/1", str(number).encode()) for number in range(4)]
    received = received_batch(messages)
    batch = OutboundBatch(Asker(), WhenFull.SLOW, messages, range(4), [match.deliveries[0]] * 4)
    batch.settle(range(4), [ACCEPTED, REPEATED, ACCEPTED, REPEATED])
    received.answered(batch, 5)

    rules = {rows.common.get("rule", ""): rows.count for rows in received.rows}
    assert rules == {"": 2, "repeat": 2}


def test_a_row_has_the_number_of_the_broker_unless_the_message_brings_it(match: RouteMatch) -> None:
    """Recovery and admission know a repeat by one identity."""
    headers = [
        Headers(),
        Headers(source_id="ID:1"),
        Headers(source_id="stream 3"),
        Headers(properties={GATEWAY_ID: "first"}),
    ]
    messages = [Message("a", b"1", each) for each in headers]
    numbers = [f"stream {number}" for number in range(1, 5)]
    record = received_batch(messages, identities=numbers)

    rows = record.received_rows(range(4), [match] * 4)

    assert rows.columns["origin_id"] == [None, "ID:1", "stream 3", "first"]
    assert rows.columns["identity"] == ["stream 1", "stream 2", None, None]
