"""Sources of MQTT QoS 2, and sinks of any QoS: the product's packet states over simulated pipes.

The states of `gateway.endpoints.mqtt` run with their own packet ids and bytes; the connection and
the broker's side of the four packets (`tests.simulation.brokers`) are simulated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import cast

from gateway.endpoints.base import Batch, Settle, Subscription
from gateway.endpoints.continuity import Continuity, Retention
from gateway.endpoints.mqtt.connection import MqttConnection
from gateway.endpoints.mqtt.kept_session import KeptSession
from gateway.endpoints.mqtt.publish_encoder import PublishEncoder
from gateway.endpoints.mqtt.publish_state import PublishState
from gateway.endpoints.mqtt.receive_state import ReceiveState
from gateway.endpoints.mqtt.session import BrokerLimits
from gateway.endpoints.received_queue import ReceivedQueue
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.errors import GatewayError, NotConnectedError
from gateway.model.message import DeliveryMode, Message
from gateway.wire.mqtt.packets import (
    ACK_PREFIXES,
    PINGREQ,
    PUBACK,
    PUBCOMP,
    PUBREC,
    PUBREL,
    DecodedPackets,
)
from tests.simulation import stand_ins
from tests.simulation.brokers import Broker
from tests.simulation.connections import Connection
from tests.simulation.sessions import Entry


class _Session:
    """The part of an open session that the states read."""

    limits = BrokerLimits(receive_maximum=50)


class _Socket:
    """The bytes that wait, and those that were written."""

    backlog = written = 0


class SimulatedMqttConnection:
    """The methods of `MqttConnection` that the packet states call, over a simulated connection."""

    session = _Session()
    socket = _Socket()
    pings = 0

    def __init__(self, client: str, connection: Connection) -> None:
        self._client, self.connection = client, connection
        self.entries: dict[int, Entry] = {}  # by packet id
        self.released: set[int] = set()  # numbers of the entries whose PUBREC was sent

    @property
    def failure(self) -> GatewayError | None:
        lost = self.connection
        return NotConnectedError(f"{self._client}: {lost.reason}") if lost.broken else None

    def ping(self, *pieces: bytes) -> int:
        self.pings += 1
        self.write(*pieces, PINGREQ)
        return self.pings

    def answer(self, data: bytes) -> None:
        self.write(data)

    def write(self, *pieces: bytes) -> None:
        if self.failure is not None:
            raise self.failure
        data = b"".join(pieces)
        if data[0] >> 4 not in {PUBREC, PUBCOMP}:  # of a sink
            self.connection.up.put(("mqtt", 0, data))
            return
        words = [data[at : at + 4] for at in range(0, len(data), 4)]
        for kind, name in ((PUBREC, "pubrec"), (PUBCOMP, "pubcomp")):
            ids = [int.from_bytes(word[2:]) for word in words if word[0] >> 4 == kind]
            for each in ids if kind == PUBREC else ():
                entry = self.entries[each]
                if entry.number not in self.released:  # a repeated PUBREC settles nothing
                    self.released.add(entry.number)
                    self.connection.broker.on_confirmed(self._client, entry)
            if ids:
                self.connection.up.put((name, 0, ids))

    def wake(self) -> None:
        """Nothing waits for the socket."""

    def resume_reading(self) -> None:
        """The pipe waits for room itself."""

    def follow(self) -> None:
        """No thread leads."""

    def await_answer(
        self, changed: stand_ins.Condition, is_done: Callable[[], bool], timeout: float
    ) -> None:
        with changed:
            changed.wait_for(is_done, timeout)


class ExactlyOnceSource:
    """A source of QoS 2. Mutable: open or closed."""

    def __init__(
        self,
        broker: Broker,
        settings: MqttSettings,
        subscriptions: Sequence[Subscription],
        client: str,
        window: int,
        batch: int,
    ) -> None:
        self._broker, self._subscriptions = broker, subscriptions
        self._settings, self._window, self._batch = settings, window, batch
        self.client = client
        self._state: ReceiveState | None = None
        self._link: SimulatedMqttConnection | None = None
        self.continuity = Continuity(Retention.KEPT)

    @property
    def queue(self) -> ReceivedQueue[Message] | None:
        return self._state.queue if self._state is not None else None

    def open(self) -> None:
        run, broker = stand_ins.scheduler(), self._broker
        self.close()
        run.sleep(broker.latency())
        broker.check(self.client)
        process = stand_ins.running_process()
        kept = cast(KeptSession, process.kept.setdefault(self.client, KeptSession()))
        options = dict.fromkeys((each.pattern for each in self._subscriptions), 0)
        kept.subscribe(options, present=self.client in broker.sessions)
        state = ReceiveState(self._settings, self._subscriptions, kept)

        def received(item: object) -> None:
            assert isinstance(item, tuple)
            while state.queue.full and state.queue.failure is None:
                state.queue.wait_for_room(1.0)
            if item[0] == "messages":
                self._receive(state, link, item[1])
            else:
                state.packets_received(
                    DecodedPackets(responses=[(PUBREL, each, 0) for each in item[1]])
                )

        def lost() -> None:
            state.connection_lost(NotConnectedError(f"{self.client}: {link.connection.reason}"))

        connection = Connection(broker, self.client, process, received, lost)
        link = SimulatedMqttConnection(self.client, connection)
        state.connection = cast(MqttConnection, link)
        self.continuity.retention = broker.subscribe(
            connection, list(options), kept=True, window=self._window, exactly_once=True
        )
        old, self._state, self._link = self._link, state, link
        if old is not None and self.continuity.retention is Retention.KEPT:
            link.released |= old.released
        broker.log("connected", f"{self.client} to {broker.name}")

    def _receive(
        self, state: ReceiveState, link: SimulatedMqttConnection, entries: Sequence[Entry]
    ) -> None:
        """Hand packets to the state, and check that it leaves out what it has released."""
        for entry in entries:
            link.entries[entry.packet_id] = entry
            before = state.queue.held
            headers = replace(
                entry.message.headers, redelivered=entry.redelivered, source_id=None,
                mode=DeliveryMode.EXACTLY_ONCE,
            )  # fmt: skip
            packets = DecodedPackets(
                [replace(entry.message, headers=headers)],
                [ACK_PREFIXES[2] | entry.packet_id],
                has_special=True,
            )
            session = self._broker.sessions.get(self.client)
            if session is not None and entry.number in session.in_flight:
                session.in_flight[entry.number].received = True
            was_released = entry.number in link.released
            state.packets_received(packets)
            if was_released and state.queue.held > before:
                self._broker.on_repeated(self.client, entry)

    def receive(self, timeout: float) -> Batch | None:
        state = self._state
        if state is None:
            raise NotConnectedError(f"{self.client}: is closed; open it first")
        return state.queue.take(self._batch, timeout)

    def close(self) -> None:
        state, self._state = self._state, None
        if state is not None and self._link is not None:
            self._link.connection.leave()
            state.connection_lost(NotConnectedError(f"{self.client}: closed"))


class PacketSink:
    """A sink of MQTT 5.0 with packets, of any QoS. Mutable: open or closed."""

    def __init__(self, broker: Broker, settings: MqttSettings, client: str) -> None:
        self._broker, self._settings, self.client = broker, settings, client
        self._state: PublishState | None = None
        self._link: SimulatedMqttConnection | None = None

    def open(self) -> None:
        run, broker = stand_ins.scheduler(), self._broker
        self.close()
        run.sleep(broker.latency())
        broker.check(self.client)
        state = PublishState(self._settings)

        def received(item: object) -> None:
            assert isinstance(item, tuple)
            answers = item[2]
            acked = [each for kind, each, reason in answers if kind == PUBACK and not reason]
            others = [each for each in answers if each[0] != PUBACK or each[2]]
            state.packets_received(DecodedPackets(acked_ids=acked, responses=others, pongs=item[1]))

        def lost() -> None:
            state.connection_lost(NotConnectedError(f"{self.client}: {link.connection.reason}"))

        connection = Connection(broker, self.client, stand_ins.running_process(), received, lost)
        link = SimulatedMqttConnection(self.client, connection)
        state.connection = cast(MqttConnection, link)
        state.apply_limits()
        self._state, self._link = state, link
        broker.log("connected", f"{self.client} to {broker.name}")

    def send(self, messages: Sequence[Message], settled: Settle) -> None:
        broker, state, link = self._broker, self._state, self._link
        stand_ins.scheduler().point()
        if state is None or link is None:
            raise NotConnectedError(f"{self.client}: is closed; open it first")
        if link.failure is not None:
            raise link.failure
        if messages and broker.failing:
            broker.failing -= 1
            raise ValueError(f"{self.client}: a fault of the driver")
        while messages and broker.blocked:
            stand_ins.sleep(0.5)
            if link.failure is not None:
                raise link.failure
        broker.senders.add(self.client)
        state.send(messages, settled)

    def close(self) -> None:
        state, self._state = self._state, None
        if state is not None and self._link is not None:
            self._link.connection.leave()
            state.connection_lost(NotConnectedError(f"{self.client}: closed"))


def failing_encoder(payloads: Sequence[bytes]) -> type[PublishEncoder]:
    """The encoder of packets, with an error that it does not foresee for some messages."""

    class FailingEncoder(PublishEncoder):
        def add(self, message: Message, packet_id: int) -> int:
            if isinstance(message.payload, bytes) and any(p in message.payload for p in payloads):
                raise ValueError("a value that no rule foresees")
            return super().add(message, packet_id)

    return FailingEncoder
