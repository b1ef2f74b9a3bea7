"""MQTT and guaranteed Solace messages with an archive, through killed brokers and connections."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from gateway.endpoints.base import Sink
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.endpoints.settings.solace import SolaceSettings
from gateway.errors import NotConnectedError
from gateway.model.message import DeliveryMode, Headers, Message
from gateway.model.outcome import ACCEPTED, RETRY, Settlement
from gateway.wire.smf.assured_control import ControlField, ControlType, encode_field
from gateway.wire.smf.frames import Protocol, encode_frame
from gateway.wire.smf.parameters import encode_parameter
from gateway.wire.smf.subscriptions import SubscriptionChange
from tests.archived import archived
from tests.brokers.controlled_smf import SmfBroker
from tests.brokers.mosquitto import Mosquitto, StartMosquitto
from tests.brokers.running import Process
from tests.brokers.smf_client import SmfClient, direct
from tests.brokers.solace_bridge import (
    QUICK,
    StoredBroker,
    gateway,
    open_sink,
    open_source,
    receive_all,
)
from tests.brokers.wire import Wire
from tests.endpoints.exchange import Answer, reopen
from tests.waiting import until

pytestmark = pytest.mark.broker

PERSISTENT = Headers(mode=DeliveryMode.AT_LEAST_ONCE)
TOTAL = 1_200
ROUTES = """\
  there:
    from: {endpoint: plant, pattern: "src/{rest...}"}
    to: {endpoint: office, template: "X/{rest...}"}
  back:
    from: {endpoint: office, pattern: "Y/{rest...}"}
    to: {endpoint: plant, template: "dst/{rest...}"}
"""
SIDES = [(name, side) for name in ("plant", "office") for side in ("source", "sink")]


def endpoints(mosquitto: Mosquitto, port: int, more: str = "") -> str:
    return (
        f"  plant: {{kind: mqtt, host: 127.0.0.1, port: {mosquitto.port}, {QUICK}}}\n"
        f"  office: {{kind: solace, url: 'tcp://127.0.0.1:{port}', {QUICK}{more}}}\n"
    )


@pytest.fixture
def stored(tmp_path: Path) -> Iterator[StoredBroker]:
    broker = StoredBroker(tmp_path / "spool")
    yield broker
    broker.kill()


class PublisherThread(threading.Thread):
    """Sends `TOTAL` messages, each until it is accepted.

    `repeated` holds the numbers of messages sent more than once: a break may lose an answer.
    Mutable: owned by its thread.
    """

    def __init__(self, sink: Sink, prefix: str) -> None:
        super().__init__(daemon=True)
        self._sink, self._prefix = sink, prefix
        self.accepted = 0
        self.repeated: set[int] = set()

    def run(self) -> None:
        for start in range(0, TOTAL, 50):
            left = [
                Message(f"{self._prefix}/{n}", b"%d" % n, PERSISTENT)
                for n in range(start, start + 50)
            ]
            while left:
                answers = self._send(left)
                left = [
                    m for m, answer in zip(left, answers, strict=True) if answer is not ACCEPTED
                ]
                self.repeated.update(int(bytes(m.payload)) for m in left)  # type: ignore[arg-type]  # bytes were sent
            self.accepted = start + 50

    def _send(self, messages: list[Message]) -> list[Settlement]:
        answer = Answer()
        try:
            self._sink.send(messages, answer)
            answers = answer.wait()
        except NotConnectedError:
            answers = [RETRY] * len(messages)
        if RETRY in answers:
            reopen(self._sink)
        return answers


def cross(
    folder: Path,
    stored: StoredBroker,
    mosquitto: Mosquitto,
    via: int,
    interrupt: Callable[[Process], None],
) -> tuple[list[Message], list[Message]]:
    """Return the messages that arrive at Solace and at MQTT while `interrupt` is called twice.

    Messages sent more than once are left out: nothing marks them as equal.
    """
    plant = MqttSettings(name="test", host="127.0.0.1", port=mosquitto.port)
    office = stored.settings()
    wanted = [{f"{prefix}/{n}" for n in range(TOTAL)} for prefix in ("X", "dst")]
    with open_source(office, "X/>"):
        pass  # creates its queue
    with (
        open_source(plant, "dst/#") as at_plant,
        gateway(folder, endpoints(mosquitto, via), ROUTES, SIDES) as process,
        open_sink(plant) as from_plant,
        open_sink(office) as from_office,
    ):
        publishers = [PublisherThread(from_plant, "src"), PublisherThread(from_office, "Y")]
        for speaker in publishers:
            speaker.start()
        for part in (1, 2):
            until(
                lambda part=part: min(s.accepted for s in publishers) >= part * TOTAL // 4,  # type: ignore[misc]  # a default binds it now
                "a part is on its way",
            )
            interrupt(process)
        back = receive_all(at_plant, wanted[1])
        for speaker in publishers:
            speaker.join()
        with open_source(office, "X/>") as at_office:
            there = receive_all(at_office, wanted[0])
        assert process.end() == 0
    arrived = []
    for messages, speaker in zip((there, back), publishers, strict=True):
        repeated = {b"%d" % number for number in speaker.repeated}
        arrived.append([each for each in messages if each.payload not in repeated])
    return arrived[0], arrived[1]


def check(folder: Path, there: list[Message], back: list[Message]) -> None:
    """Check that nothing is lost, repetitions are marked, and every row has its counterpart."""
    rows = archived(folder)
    for route, arrived in (("there", there), ("back", back)):
        own = [row for row in rows if row["route"] == route]
        ids = {
            leg: {row["id"] for row in own if row["leg"] == leg}
            for leg in ("received", "delivered")
        }
        assert ids["received"] == ids["delivered"]
        marked = {row["id"] for row in own if row["redelivered"] or (row["attempt"] or 0) > 1}
        names = {row["name"] for row in own if row["leg"] == "delivered" and row["id"] in marked}
        copies = Counter(message.address for message in arrived)
        seen = {message.address for message in arrived if message.headers.redelivered}
        assert {name for name, times in copies.items() if times > 1} <= names | seen


@pytest.mark.nightly
def test_nothing_is_lost_when_the_solace_broker_is_killed(
    tmp_path: Path, stored: StoredBroker, start_mosquitto: StartMosquitto
) -> None:
    def kill(process: Process) -> None:
        before = len(process.lines)
        stored.kill()
        stored.start()
        for side in ("source", "sink"):
            until(lambda side=side: _is_back(process, before, side), "it is connected again")  # type: ignore[misc]  # a default binds it now

    there, back = cross(tmp_path, stored, start_mosquitto(), stored.port, kill)

    check(tmp_path, there, back)


@pytest.mark.nightly
def test_nothing_is_lost_when_connections_are_cut(
    tmp_path: Path, stored: StoredBroker, start_mosquitto: StartMosquitto
) -> None:
    with closing(Wire(stored.port)) as wire:

        def cut(process: Process) -> None:
            before = len(process.lines)
            assert wire.cut()
            for side in ("source", "sink"):
                until(lambda side=side: _is_back(process, before, side), "it is connected again")  # type: ignore[misc]  # a default binds it now

        there, back = cross(tmp_path, stored, start_mosquitto(), wire.port, cut)

    check(tmp_path, there, back)


def _is_back(process: Process, before: int, side: str) -> bool:
    return any(
        str(line["message"]).startswith("connected")
        and (line.get("endpoint"), line.get("side")) == ("office", side)
        for line in process.lines[before:]
    )


@pytest.mark.nightly
def test_an_unreachable_target_leaves_the_messages_in_the_queue(
    tmp_path: Path, start_mosquitto: StartMosquitto
) -> None:
    """Memory is bounded by the receive window, however deep the queue is."""
    mosquitto, payload, total = start_mosquitto(), b"x" * 20_000, 3_000
    away = '  back: {from: {endpoint: office, pattern: "Y/{rest...}"}, to: {endpoint: plant}}\n'
    plant = MqttSettings(name="test", host="127.0.0.1", port=mosquitto.port)
    with SmfBroker() as broker:
        office = SolaceSettings(url=broker.url)
        queue = "gateway/office/back"
        with SmfClient(broker.port, "maker") as client:
            _make_queue(client, queue, "Y/>")
        with open_sink(office) as sink, open_source(plant, "Y/#"):
            answers = [Answer() for _ in range(total // 200)]
            for part, answer in enumerate(answers):
                names = (f"Y/{n}" for n in range(part * 200, part * 200 + 200))
                sink.send([Message(name, payload, PERSISTENT) for name in names], answer)
            assert all(answer.wait() for answer in answers)
        mosquitto.freeze()
        more = ", queue: gateway/office/back, receive_window_bytes: 1000000"
        yaml = endpoints(mosquitto, broker.port, more)
        with gateway(tmp_path, yaml, away, [("office", "source")]) as process:
            held = _settled_at(broker, queue)
            memory = _resident(process.process.pid)
            # the receive window; the library's buffer and window
            assert 25 <= held <= 1_000_000 // len(payload) + 400
            assert broker.depth(queue) == total
            mosquitto.thaw()
            with open_source(plant, "Y/#") as at_plant:
                got = receive_all(at_plant, {f"Y/{n}" for n in range(total)})
            assert process.end() == 0

    assert [message.address for message in got] == [f"Y/{n}" for n in range(total)]
    assert memory < 200 << 20  # without the 60 MB of the queue


def _settled_at(broker: SmfBroker, queue: str) -> int:
    """Return the number of unsettled messages once it stops growing."""
    seen: list[int] = []

    def is_still() -> bool:
        seen.append(broker.unsettled(queue))
        return len(seen) > 100 and seen[-1] > 0 and len(set(seen[-100:])) == 1

    until(is_still, "the flow is paused")
    return seen[-1]


def _resident(pid: int) -> int:
    """Return the resident memory of a process in bytes."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) << 10
    raise AssertionError("no such process")


def _make_queue(client: SmfClient, queue: str, topic: str) -> None:
    client.control(ControlType.CREATE, encode_field(ControlField.QUEUE, queue.encode()))
    client.subscribe(topic, SubscriptionChange.ADD_TO_QUEUE, queue)


def _metadata(form: int, *entries: bytes) -> bytes:
    content = b"".join(entries)
    content = b"\x2b" + (len(content) + 5).to_bytes(4, "big") + content
    stream = b"\x18\4" + bytes((form, 0)) + content
    size = (len(stream) + 5).to_bytes(4, "big")
    return b"\1" + size + b"\x2f" + size + stream


_HUGE_INTEGER = b"\x1c\4n\0" + b"\x0b\0\0\x07\xd5" + b"\x7f" * 2_000
_HUGE_MAP = b"\x2b\0\0\x07\xde" + _HUGE_INTEGER
UNDECODABLE = {  # payload and metadata by topic
    "Y/declared-as-a-map": (b"junk", _metadata(0x0A)),
    "Y/integer-of-2000-bytes": (_HUGE_MAP, _metadata(0x0A)),
    "Y/property-of-2000-bytes": (b"x", _metadata(0x80, b"\x1c\4p\0" + _HUGE_MAP)),
    "Y/content-type-not-utf-8": (
        b"x",
        _metadata(0x80, b"\x1c\4h\0", b"\x2b\0\0\0\x0f", b"\x1c\5ct\0\x1c\5\xff\xfe\0"),
    ),
}


def _undecodable_frame(topic: str) -> bytes:
    payload, metadata = UNDECODABLE[topic]
    sizes = (len(payload).to_bytes(4, "big"), len(metadata).to_bytes(4, "big"))
    summary = b"\x25" + sizes[0] + b"\x45" + sizes[1]
    return encode_frame(
        Protocol.MESSAGE | 0x80,
        encode_parameter(0x18, topic.encode() + b"\0", handling=2)
        + encode_parameter(0x16, summary, handling=2),
        payload + metadata,
        time_to_live=255,
    )


def test_an_undecodable_message_becomes_a_dead_letter_with_its_bytes(
    tmp_path: Path, start_mosquitto: StartMosquitto
) -> None:
    """Later messages pass."""
    mosquitto = start_mosquitto()
    plant = MqttSettings(name="test", host="127.0.0.1", port=mosquitto.port)
    with (
        SmfBroker() as broker,
        open_source(plant, "dst/#") as at_plant,
        gateway(tmp_path, endpoints(mosquitto, broker.port), ROUTES, SIDES) as process,
        SmfClient(broker.port, "hostile") as client,
    ):
        for topic in UNDECODABLE:
            client.send(_undecodable_frame(topic) + direct(f"{topic}/good"))
        receive_all(at_plant, {f"dst{topic.removeprefix('Y')}/good" for topic in UNDECODABLE})
        until(lambda: broker.depth("gateway/office/back") == 0, "all are settled")
        assert process.end() == 0

    letters = [row for row in archived(tmp_path) if row["leg"] == "dead"]
    assert len(letters) == len(UNDECODABLE)
    for topic, dead in zip(UNDECODABLE, letters, strict=True):
        assert dead["rule"] == "empty-name"
        assert bytes(dead["payload"]).endswith(b"".join(UNDECODABLE[topic]))
        said = dict(dead["headers"])
        assert said["property.solace.topic"] == topic
        assert said["property.solace.undecoded"].startswith("smf: ")
    assert any("cannot be read" in str(line["message"]) for line in process.lines)


@pytest.mark.parametrize(("ends", "expected"), [(False, ACCEPTED), (True, RETRY)])
def test_a_direct_message_is_accepted_when_the_broker_answers_after_it(
    stored: StoredBroker, ends: bool, expected: Settlement
) -> None:
    first, second = Answer(), Answer()
    with closing(Wire(stored.port)) as wire, open_sink(stored.settings(wire.port)) as sink:
        sink.send([Message("x", b"0")], first)
        assert first.wait() == [ACCEPTED]
        wire.stall()  # the socket takes what follows, and no broker reads it
        sink.send([Message("x", b"%d" % number) for number in range(5)], second)
        assert not second.has_come
        if ends:
            sink.close()
        else:
            wire.flow()
        assert second.wait() == [expected] * 5
