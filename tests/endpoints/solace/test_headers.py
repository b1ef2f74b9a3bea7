from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gateway.endpoints.base import Sink, Source
from gateway.model.message import DeliveryMode, Headers, Message, Payload, Value
from gateway.model.outcome import ACCEPTED, Outcome
from gateway.wire.smf.frames import Protocol, encode_frame
from gateway.wire.smf.parameters import SUMMARY, TIME_TO_LIVE, TOPIC, encode_parameter
from gateway.wire.smf.sdt import MAP, STREAM
from tests.copy_proofs import OTHER_PROOF, PROOF, PROOFS, WHOLE_PROOFS
from tests.endpoints.exchange import collect, opened, send
from tests.endpoints.solace.restartable import GUARANTEED, RestartableBroker, restartable
from tests.wire.smf_dumps import dump
from tests.wire.smf_requests import encode_value

from gateway.endpoints.solace.message_reader import SolaceMessageReader  # isort: skip  # needs the library
from gateway.endpoints.solace.property_names import UNDECODED  # isort: skip

NOW = 1_795_000_000_000_000


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[Source, Sink]]:
    with restartable() as system:
        source, sink = system.source("a/>"), system.sink()
        with opened(source, sink):
            yield source, sink


def crossed(pair: tuple[Source, Sink], *messages: Message) -> list[Message]:
    """Send `messages` through a sink, and return the messages of a source."""
    source, sink = pair
    assert send(sink, *messages) == [ACCEPTED] * len(messages)
    return collect(source, len(messages))


@pytest.fixture
def system() -> Iterator[RestartableBroker]:
    with restartable() as system:
        yield system


def over_the_wire(
    system: RestartableBroker, *messages: Message, **changes: object
) -> list[Message]:
    source, sink = system.source("a/>"), system.sink(**changes)
    with opened(source, sink):
        assert send(sink, *messages) == [ACCEPTED] * len(messages)
        return collect(source, len(messages))


FULL = Headers(
    mode=DeliveryMode.AT_LEAST_ONCE,
    retained=True,
    priority=7,
    expiry=4_102_444_800_000_123,
    time=1_700_000_000_000_456,
    content_type="text/plain",
    correlation_id="c-1",
    reply_to="answers/here",
    source_id="id-1",
    origin=("one", "two"),
    properties=MappingProxyType(
        {
            "text": "é", "int": -5, "big": 2**64 - 1, "float": 1.5, "yes": True, "none": None,
            "bytes": b"\0\1", "list": [1, "a", None], "map": {"x": {"y": b"\0"}},
            "JMSXGroupID": "k", "solace.messaging.message.priority": 3, "gateway-time": "mine",
        }
    ),
)  # fmt: skip


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param(GUARANTEED, id="plain"),
        pytest.param(FULL, id="everything"),
        pytest.param(Headers(), id="direct"),
        pytest.param(replace(GUARANTEED, correlation_id=b"\0\xff"), id="correlation-bytes"),
        pytest.param(replace(GUARANTEED, priority=4), id="explicit-default-priority"),
        pytest.param(replace(GUARANTEED, priority=0), id="lowest-priority"),
        pytest.param(replace(GUARANTEED, time=1_700_000_000_000_000), id="whole-milliseconds"),
        pytest.param(replace(GUARANTEED, reply_to="x" * 300), id="reply-to-that-is-no-topic"),
        pytest.param(Headers(mode=DeliveryMode.EXACTLY_ONCE), id="exactly-once"),
    ],
)
def test_headers_cross_the_wire(system: RestartableBroker, headers: Headers) -> None:
    (got,) = over_the_wire(system, Message("a/b", b"x", headers))

    assert got.headers == headers


PAYLOADS: list[Payload] = [
    b"", b"\0" * 10, bytes(range(256)), "", "é", "with\0nul", "x" * 100_000,
    {}, {"a": 1, "b": {"c": [1.5, None, True, b"\0", "t"]}},
]  # fmt: skip


def test_payloads_cross_the_wire(system: RestartableBroker) -> None:
    messages = [Message("a/b", payload, GUARANTEED) for payload in PAYLOADS]
    got = over_the_wire(system, *messages)

    assert [message.payload for message in got] == PAYLOADS
    assert [type(message.payload) for message in got] == [type(each) for each in PAYLOADS]
    assert all(not message.headers.properties for message in got if message.payload != "with\0nul")


def test_the_partition_key_comes_from_a_level_of_the_topic(system: RestartableBroker) -> None:
    topics = ["a/emea/1", "a/apac/2", "a/x"]
    messages = [Message(topic, b"", GUARANTEED) for topic in topics]
    got = over_the_wire(system, *messages, partition_level=2)

    assert [m.headers.properties["JMSXGroupID"] for m in got] == ["emea", "apac", "x"]


def test_a_time_to_live_ends_at_the_expiry(system: RestartableBroker) -> None:
    source = system.source("a/>")
    with opened(source, sink := system.sink()):
        send(sink, Message("a/b", b"x", replace(GUARANTEED, expiry=4_102_444_800_000_000)))
        batch = source.receive(5)
        assert batch is not None

    assert batch.messages[0].headers.expiry == 4_102_444_800_000_000


def test_an_expired_message_is_rejected(system: RestartableBroker) -> None:
    with opened(sink := system.sink()):
        (answer,) = send(sink, Message("a/b", b"x", replace(GUARANTEED, expiry=1_000_000)))

    assert (answer.outcome, answer.rule) == (Outcome.REJECTED, "expired")


def test_a_number_past_64_bits_is_rejected(system: RestartableBroker) -> None:
    with opened(sink := system.sink()):
        headers = replace(GUARANTEED, properties={"n": 2**64})
        (answer,) = send(sink, Message("a/b", b"x", headers))

    assert (answer.outcome, answer.rule) == (Outcome.REJECTED, "integer-range")


def test_a_payload_past_the_limit_is_rejected(system: RestartableBroker) -> None:
    with opened(sink := system.sink(max_message=1_024)):
        answers = send(sink, Message("a", b"x" * 1_025), Message("a", b"x" * 1_024))

    assert [answer.rule for answer in answers] == ["message-bytes", ""]


def test_undecodable_bytes_are_received_as_payload() -> None:
    got = SolaceMessageReader().read(b"\x0b\x8d\0\xff\0\0\0\x0c\0\0\0\x0c", NOW)

    assert got.payload == b"\x0b\x8d\0\xff\0\0\0\x0c\0\0\0\x0c"
    assert got.address == ""
    assert got.headers.properties == {UNDECODED: "smf: a message has no topic"}


MAP_WITH_ALL = dump(18)


@settings(max_examples=300)
@given(
    st.lists(st.tuples(st.integers(12, len(MAP_WITH_ALL) - 1), st.integers(0, 255)), max_size=6),
    st.integers(0, len(MAP_WITH_ALL)),
)
def test_corrupted_bytes_do_not_stop_the_reader(changes: list[tuple[int, int]], size: int) -> None:
    frame = bytearray(MAP_WITH_ALL)
    for place, value in changes:
        frame[place] = value
    for data in (bytes(frame), bytes(frame[:size])):
        got = SolaceMessageReader().read(data, NOW)

        assert got.address or got.payload == data
        assert (UNDECODED in got.headers.properties) is not bool(got.address)


def frame_with(
    header: Mapping[str, Value], properties: Mapping[str, Value], more: bytes = b""
) -> bytes:
    """Return a frame for `a/b` with this header map, these properties and `more` parameters."""
    return frame_of(encode_value([b"\x80\0", {"h": header, "p": properties}]), more)


def frame_of(stream: bytes, more: bytes = b"") -> bytes:
    """Return a frame for `a/b` with this encoded metadata and `more` parameters."""
    metadata = b"\1" + len(stream).to_bytes(4, "big") + stream
    summary = bytes((0x22, 2, 0x43)) + len(metadata).to_bytes(2, "big")
    parameters = encode_parameter(TOPIC, b"a/b\0") + encode_parameter(SUMMARY, summary) + more
    return encode_frame(Protocol.MESSAGE, parameters, b"ok" + metadata)


@pytest.mark.parametrize("value", [2**63 - 1, -(2**63), 2**64 - 1, "soon", True, 0, 1.5])
def test_a_time_outside_64_bits_is_dropped(value: Value) -> None:
    """An archive stores microseconds in 64 bits."""
    own: dict[str, Value] = {"gateway-time": value if value in {0, 1.5, "soon", True} else 2**63}
    got = SolaceMessageReader().read(frame_with({"ts": value, "ex": value}, own), NOW)

    assert got.address == "a/b"
    assert (got.headers.time, got.headers.expiry) == (None, None)


def test_a_time_to_live_concerns_its_own_message_alone() -> None:
    """It stands outside the metadata, which is the same for messages without one."""
    reader = SolaceMessageReader()
    second = encode_parameter(TIME_TO_LIVE, (1_000).to_bytes(8, "big"))
    frames = [frame_with({}, {}, more) for more in (b"", second, b"", second, b"")]

    expiries = [reader.read(frame, NOW).headers.expiry for frame in frames]

    assert expiries == [None, NOW + 1_000_000, None, NOW + 1_000_000, None]


def test_equal_headers_share_a_prepared_message(
    pair: tuple[Source, Sink],
) -> None:
    """A route makes new headers for each name, most of them with equal content."""
    messages = [
        Message(f"a/{n}", b"%d" % n, replace(GUARANTEED, origin=("g/r",), properties={"n": n % 3}))
        for n in range(1_000)
    ]

    assert crossed(pair, *messages) == messages


def test_a_shared_prepared_message_carries_the_ids_of_each_message(
    pair: tuple[Source, Sink],
) -> None:
    """Ids and times are replaced like payloads; a refused message leaves no trace."""
    source, sink = pair
    times = [None, 0, 1, 1_000, 1_001, 2_000, -1]
    own = [
        replace(GUARANTEED, correlation_id=f"c{n}" if n % 3 else None, time=times[n % 7])
        for n in range(21)
    ]
    named = [replace(each, source_id=f"id{n}") for n, each in enumerate(own)]
    messages = [
        Message("a/x", payload, headers)
        for headers in (*own, *named, *own)
        for payload in (b"x", "x", b"y")
    ]
    wrong = [
        Message("a/x", b"", replace(headers, correlation_id="wrong", source_id="\0"))
        for headers in own
    ]
    mixed = [each for two in zip(messages, wrong * 9, strict=True) for each in two]
    answers = send(sink, *mixed)
    got = collect(source, len(messages))

    assert answers[::2] == [ACCEPTED] * len(messages)
    assert {answer.rule for answer in answers[1::2]} == {"nul"}
    assert [replace(m, headers=replace(m.headers, time=None)) for m in got] == [
        replace(m, headers=replace(m.headers, time=None)) for m in messages
    ]
    assert [m.headers.time or 0 for m in got] == [m.headers.time or 0 for m in messages]


NAMES = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)
VALUES: st.SearchStrategy[Value] = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-(2**63), 2**64 - 1), NAMES, st.binary(max_size=9),
        st.floats(allow_nan=False),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(NAMES.filter(bool), inner, max_size=3),
    ),
    max_leaves=6,
)  # fmt: skip


@settings(max_examples=60)
@given(payload=st.one_of(st.binary(), NAMES, st.dictionaries(NAMES.filter(bool), VALUES)))
def test_every_payload_is_received_unchanged(pair: tuple[Source, Sink], payload: Payload) -> None:
    assert crossed(pair, Message("a/x", payload, GUARANTEED))[0].payload == payload


@settings(max_examples=60)
@given(properties=st.dictionaries(NAMES, VALUES, max_size=4))
def test_all_properties_are_received_unchanged(
    pair: tuple[Source, Sink], properties: Mapping[str, Value]
) -> None:
    headers = replace(GUARANTEED, properties=properties)

    assert crossed(pair, Message("a/x", b"", headers))[0].headers.properties == properties


def test_prepared_messages_are_not_confused(pair: tuple[Source, Sink]) -> None:
    one, two = replace(GUARANTEED, correlation_id="1"), replace(GUARANTEED, correlation_id="2")
    messages = [
        Message("a/x", payload, headers)
        for payload in (b"bytes", "text", b"", "", b"longer than before")
        for headers in (one, two, one)
    ]

    assert crossed(pair, *messages) == messages


def test_a_prepared_message_is_repeated_unchanged(pair: tuple[Source, Sink]) -> None:
    """The library keeps messages without a receipt; the next payload must not change them."""
    messages = [Message("a/x", b"%d" % number, GUARANTEED) for number in range(200)]

    assert crossed(pair, *messages) == messages


def test_a_shared_prepared_message_carries_the_proof_of_each_message(
    pair: tuple[Source, Sink],
) -> None:
    with_properties = replace(GUARANTEED, properties={"a": 1})
    messages = [
        Message("a/x", payload, headers, proof)
        for headers in (GUARANTEED, with_properties, FULL)
        for payload in (b"x", "x", b"y", {"a": 1}, "nul\0")
        for proof in ("", PROOF, OTHER_PROOF, "", "a.")
    ]
    got = crossed(pair, *messages)

    assert got == [replace(m, headers=got[at].headers) for at, m in enumerate(messages)]
    assert [m.proof for m in got] == [m.proof for m in messages]
    assert all("gateway-proof" not in m.headers.properties for m in got)


def test_a_property_with_the_name_of_the_proof_is_one(pair: tuple[Source, Sink]) -> None:
    headers = replace(GUARANTEED, properties={"gateway-proof": "mine"})

    (got,) = crossed(pair, Message("a/x", b"", headers, PROOF))

    assert (got.headers.properties, got.proof) == ({"gateway-proof": "mine"}, PROOF)


def test_messages_with_other_proofs_share_their_headers() -> None:
    reader = SolaceMessageReader()
    frames = [frame_with({}, {"a": 1, "gateway-proof": each}) for each in (PROOF, OTHER_PROOF)]

    one, two = (reader.read(frame, NOW) for frame in frames)

    assert one.headers is two.headers
    assert (one.proof, two.proof) == (PROOF, OTHER_PROOF)


@pytest.mark.parametrize("value", [5, "!", b"a", "a" * 129, [PROOF], {"a": PROOF}, None, ""])
def test_a_property_that_is_no_proof_is_left_out(value: Value) -> None:
    got = SolaceMessageReader().read(frame_with({}, {"gateway-proof": value, "a": 1}), NOW)

    assert (got.headers.properties, got.proof) == ({"a": 1}, "")


def hidden(proof: str) -> Value:
    """Return a value of an application that holds what a gateway writes for a proof."""
    return encode_value("gateway-proof") + encode_value(proof)


def frame_of_pairs(pairs: Sequence[tuple[Value, Value]]) -> bytes:
    """Return a frame with these properties; a name may be repeated."""
    properties = encode_container(
        MAP, *(each for pair in pairs for each in map(encode_value, pair))
    )
    content = encode_container(MAP, encode_value("p"), properties)
    return frame_of(encode_container(STREAM, encode_value(b"\x80\0"), content))


def encode_container(kind: int, *elements: bytes) -> bytes:
    content = b"".join(elements)
    return bytes((kind << 2 | 3,)) + (len(content) + 5).to_bytes(4, "big") + content


KEYS = st.sampled_from(["gateway-proof", "a", "gateway-origin"])
ANY_VALUE = PROOFS | st.builds(hidden, WHOLE_PROOFS) | VALUES


@example([[("a", hidden(each)), ("gateway-proof", PROOF)] for each in (PROOF, OTHER_PROOF)])
@example([[("a", hidden(each))] for each in (PROOF, OTHER_PROOF)])
@given(messages=st.lists(st.lists(st.tuples(KEYS, ANY_VALUE), max_size=4), min_size=1, max_size=4))
def test_properties_are_read_alike_with_and_without_kept_ones(
    messages: list[list[tuple[Value, Value]]],
) -> None:
    reader = SolaceMessageReader()
    for pairs in (*messages, *messages):
        frame = frame_of_pairs(pairs)
        one, other = reader.read(frame, NOW), SolaceMessageReader().read(frame, NOW)
        assert (one, one.proof) == (other, other.proof)
        assert one.address
