"""The product's sinks of JMS, Solace and YAMI4, over simulated connections.

Their queues, encoders and rules are the real ones. Java, the library of Solace and the socket of
YAMI4 are stand-ins; `tests.simulation.brokers` has the broker's side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from struct import Struct
from types import SimpleNamespace
from typing import Any, Final, Protocol

from gateway.endpoints import leader_followers
from gateway.endpoints.jms import connection as jms_connection
from gateway.endpoints.jms import jvm
from gateway.endpoints.jms.message_writer import MessageWriter
from gateway.endpoints.jms.sink import JmsSink
from gateway.endpoints.sent_messages import SentBatch
from gateway.endpoints.settings.base import EndpointSettings
from gateway.endpoints.solace.native_library import NativeLibrary, native_topic
from gateway.endpoints.solace.publisher_session import PublisherSession
from gateway.endpoints.solace.sink import SolaceSink
from gateway.endpoints.yami4 import connection as yami4_connection
from gateway.endpoints.yami4.bodies import BodyWriter
from gateway.endpoints.yami4.sink import Yami4Sink
from gateway.errors import NotConnectedError
from gateway.model.message import Headers, Message, Payload
from gateway.model.outcome import ACCEPTED, RETRY, Outcome, Settlement
from gateway.wire.yami4.frames import Packet
from tests.simulation import stand_ins
from tests.simulation.connections import Connection

SINKS: Final[dict[str, Callable[[Any], JmsSink | SolaceSink | Yami4Sink]]] = {
    "jms": JmsSink, "solace": SolaceSink, "yami4": Yami4Sink,
}  # fmt: skip
CHECK_INTERVAL: Final = 0.25  # seconds
_WINDOW: Final = 50  # messages of Solace without a receipt
_HEAP: Final = 1 << 30  # bytes
_SIZE: Final = Struct(">i")
_RECORD_HEAD: Final = 12  # bytes before the name of a record (MessageWriter)


class Connect(Protocol):
    """Connects the sink with these settings to its broker.

    `accepts` says that a load balancer without a broker behind it is enough.
    """

    def __call__(
        self,
        settings: EndpointSettings,
        received: Callable[[object], None],
        lost: Callable[[], None],
        *,
        accepts: bool = False,
    ) -> Connection: ...


def replacements(connect: Connect, payloads: Sequence[bytes]) -> dict[int, object]:
    """The stand-ins of a run by the id of what they replace.

    The encoders have an error that they do not foresee for messages with one of the `payloads`.
    """

    def check(payload: Payload) -> None:
        if isinstance(payload, bytes) and any(each in payload for each in payloads):
            raise ValueError("a value that no rule foresees")

    class FailingMessageWriter(MessageWriter):
        def write(self, message: Message) -> tuple[bytes, bool]:
            check(message.payload)
            return super().write(message)

    class FailingBodyWriter(BodyWriter):
        def write(self, payload: Payload, headers: Headers, proof: str = "") -> bytes:
            check(payload)
            return super().write(payload, headers, proof)

    def write_native(message: Message) -> Message:
        check(message.payload)
        return message

    return {
        id(jvm): SimpleNamespace(byte_array=bytes, max_heap=lambda: _HEAP),
        id(jvm.open_library): lambda _settings: None,
        id(jms_connection.connect): lambda settings, _library, _instance: JmsLink(
            settings, connect
        ),
        id(MessageWriter): FailingMessageWriter,
        id(NativeLibrary): lambda: None,
        id(native_topic): str,
        id(PublisherSession): lambda settings, _native: SolaceLink(settings, connect, write_native),
        id(yami4_connection.connect): lambda settings: Yami4Link(settings, connect),
        id(BodyWriter): FailingBodyWriter,
        id(leader_followers.Leadership): Leadership,
    }


class JmsLink:
    """A connection of Java, its monitor and its sender. Mutable: lost once."""

    def __init__(self, settings: EndpointSettings, connect: Connect) -> None:
        self._answers: Sequence[Settlement] = ()
        self._done = stand_ins.Event()
        self._calls = 0
        self.monitor = self
        self._connection = connect(settings, self._received, self._done.set)

    def _received(self, item: object) -> None:
        assert isinstance(item, tuple)
        self._answers = item[2]
        self._done.set()

    def set_up(self, start: object) -> JmsLink:
        """Return the sender."""
        del start
        return self

    def failure(self) -> str | None:
        return self._connection.reason if self._connection.broken else None

    def send(self, data: bytes, count: int, transacted: bool) -> list[str | None]:
        """Send records as Sender.java does; return a fault or None for each."""
        del transacted
        stand_ins.scheduler().point()
        self._answers = ()
        if not self._connection.broken:
            self._done.clear()
            self._calls += 1
            self._connection.up.put(("publish", self._calls, [*_messages(data)]))
            self._done.wait()
        return [_fault(each) for each in [*self._answers, *[RETRY] * count][:count]]

    def close(self, timeout: float) -> None:
        del timeout
        self._connection.leave()


def _messages(data: bytes) -> Iterator[Message]:
    """The messages of records that `MessageWriter` packed."""
    end = 0
    while end < len(data):
        name_at = end + 4 + _RECORD_HEAD
        end += _SIZE.unpack_from(data, end)[0]
        body_at = name_at + 4 + _SIZE.unpack_from(data, name_at)[0]
        body_end = body_at + 4 + _SIZE.unpack_from(data, body_at)[0]
        yield Message(data[name_at + 4 : body_at].decode(), data[body_at + 4 : body_end])


def _fault(answer: Settlement) -> str | None:
    if answer is ACCEPTED:
        return None
    rule = "retry" if answer.outcome is Outcome.RETRY else answer.rule
    return f"{rule}\n{answer.reason}"


class SolaceLink:
    """A session of a Solace publisher. Mutable: lost once."""

    def __init__(
        self, settings: EndpointSettings, connect: Connect, write: Callable[[Message], Message]
    ) -> None:
        self._name = settings.name
        self.writer = SimpleNamespace(write=write)
        self._sent = 0
        self._pending: dict[int, tuple[SentBatch, int]] = {}
        self._room = stand_ins.Event()
        self._connection = connect(settings, self._received, self._lost)

    def _received(self, item: object) -> None:
        assert isinstance(item, tuple)
        _, number, answers = item
        found = self._pending.pop(number, None)
        self._room.set()
        if found is not None and found[0].settle((found[1],), answers[0] if answers else RETRY):
            found[0].answer()

    def _lost(self) -> None:
        self._room.set()
        pending, self._pending = self._pending, {}
        for batch in dict.fromkeys(batch for batch, _ in pending.values()):
            batch.settle_rest(RETRY)

    @property
    def is_over(self) -> bool:
        return self._connection.broken

    def publish_guaranteed(
        self, message: Message, topic: str, batch: SentBatch, position: int
    ) -> None:
        """Publish; the receipt settles the message at `position` of `batch`."""
        while len(self._pending) >= _WINDOW and not self.is_over:
            self._room.clear()
            self._room.wait(CHECK_INTERVAL)
        self.publish_direct(message, topic)
        self._pending[self._sent] = batch, position

    def publish_direct(self, message: Message, topic: str) -> Settlement:
        stand_ins.scheduler().point()
        if self.is_over:
            raise NotConnectedError(f"{self._name}: {self._connection.reason}")
        self._sent += 1
        wire = Message(topic, message.payload, Headers(mode=message.headers.mode))
        self._connection.up.put(("publish", self._sent, [wire]))
        return ACCEPTED

    def connection_number(self) -> int:
        """The simulated library restores no connection."""
        return 1

    def confirm(self, batch: SentBatch, positions: Sequence[int], _connection: int) -> None:
        """The simulated broker has read what was sent."""
        if batch.settle(positions, ACCEPTED):
            batch.answer()

    def close(self) -> None:
        self._connection.leave()
        self._lost()


class Yami4Link:
    """A connected socket, which reads whole messages. Mutable: lost once."""

    def __init__(self, settings: EndpointSettings, connect: Connect) -> None:
        self._name = settings.name
        self._packets: list[Packet] = []
        self.event = stand_ins.Event()  # something arrived, or the connection is lost
        self._connection = connect(settings, self._received, self.event.set, accepts=True)

    def _received(self, item: object) -> None:
        assert isinstance(item, tuple)
        self._packets += item[2]
        self.event.set()

    @property
    def fileno(self) -> Yami4Link:
        """The socket that `Leadership` waits for."""
        return self

    def read(self, timeout: float) -> list[Packet] | None:
        del timeout
        if self._packets:
            found, self._packets = self._packets, []
            return found
        if self._connection.broken:
            raise NotConnectedError(f"{self._name}: {self._connection.reason}")
        return None

    def write(self, data: bytes, timeout: float) -> int:
        del timeout
        stand_ins.scheduler().point()
        if self._connection.broken:
            return 0
        self._connection.up.put(("yami4", 0, data))
        return len(data)

    def close(self) -> None:
        self._connection.leave()


class Leadership:
    """Lets the own thread of a connection lead always. Mutable: `attach` gives its socket."""

    def __init__(self, led: leader_followers.LedConnection) -> None:
        self._led = led
        self.leader_lock = stand_ins.Lock()
        self._event = stand_ins.Event()
        self._thread = stand_ins.Thread()

    def attach(self, link: Yami4Link) -> None:
        self._event = link.event

    def detach(self) -> None:
        """Nothing is open."""

    def start(self, name: str) -> None:
        self._thread = stand_ins.Thread(target=self._run, name=name)
        self._thread.start()

    def _run(self) -> None:
        try:
            while not self._led.is_over():
                with self.leader_lock:
                    self._led.serve(CHECK_INTERVAL)
        finally:
            self._led.finish()

    def join(self, timeout: float) -> None:
        self.call_own_thread()
        if self._thread is not stand_ins.current_thread():
            self._thread.join(timeout)

    def call_own_thread(self) -> None:
        self._event.set()

    def follow(self) -> None:
        """No other thread leads."""

    def await_answer(
        self, changed: stand_ins.Condition, is_done: Callable[[], bool], timeout: float
    ) -> None:
        with changed:
            changed.wait_for(is_done, timeout)

    def wait(self, mask: int, timeout: float) -> int:
        woken = self._event.wait(timeout)
        self._event.clear()
        return mask if woken else 0
