"""The messages in flight of one MQTT connection.

Nothing is sent again here: when the connection is lost, every message without an answer is settled
`RETRY`, and the broker may get it twice. The answer to a message of QoS 0 is that to a later ping.
The state of a connection is one more message, for which one packet id is kept free.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from itertools import chain, filterfalse, islice

from gateway import clock
from gateway.endpoints.base import Settle, unwritable
from gateway.endpoints.mqtt.connection import ConnectionOwner, MqttConnection
from gateway.endpoints.mqtt.publish_batch import PublishBatch, UnconfirmedMessages
from gateway.endpoints.mqtt.publish_encoder import PublishEncoder
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.errors import GatewayError, NotConnectedError
from gateway.model.message import Message
from gateway.model.outcome import ACCEPTED, RETRY, Outcome, Settlement
from gateway.wire.mqtt.packets import PUBCOMP, PUBREC, DecodedPackets, encode_pubrel
from gateway.wire.mqtt.reasons import FAILURE, publish_settlement
from gateway.wire.mqtt.session_packets import encode_retained

log = logging.getLogger(__name__)

MAX_PACKET_ID = 65_535
MAX_BACKLOG = 4_194_304  # bytes that the socket has not taken; above it `send` waits
WRITE_SIZE = 262_144  # bytes written at once
CHECK_INTERVAL = 0.1  # seconds between checks of the connection while `send` waits


class PublishState(ConnectionOwner):
    """Messages sent over one connection that have no answer yet.

    Its owner sets `connection` before that opens.
    Thread-safe: guarded by self._changed; self._sending serialises batches.
    """

    connection: MqttConnection

    def __init__(self, settings: MqttSettings, *, tells: bool = False) -> None:
        self._settings, self._tells = settings, tells
        self._sending = threading.Lock()
        self._changed = threading.Condition()
        self._owners: dict[int, PublishBatch] = {}  # by packet id
        self._in_flight: dict[PublishBatch, None] = {}  # oldest first
        self._last_id = 0
        self._unconfirmed = UnconfirmedMessages()  # of QoS 0
        self._lost: GatewayError | None = None
        self._progress: tuple[PublishBatch | None, int, int] = (None, 0, 0)
        self._progress_since = 0.0
        self._telling: PublishBatch | None = None  # the state that has no answer yet
        self._to_tell: tuple[str, bytes] | None = None  # the next one

    def apply_limits(self) -> None:
        """Apply the limits of the broker, once the connection is open."""
        limits = self.connection.session.limits
        if limits.qos < self._settings.qos:
            log.warning(
                "%s: the broker accepts QoS %d at most, %d was requested",
                self._settings.name,
                limits.qos,
                self._settings.qos,
            )
        self._window = min(self._settings.send_window, limits.receive_maximum)
        self._tells &= limits.qos > 0 and self._window > 1
        self._window -= self._tells
        self._encoder = PublishEncoder(self._settings, limits)

    def send(self, messages: Sequence[Message], settled: Settle) -> None:
        """Send as `Sink.send` does."""
        batch = PublishBatch(len(messages), settled)
        with self._changed:
            self._in_flight[batch] = None
        try:
            with self._sending:
                self._write_all(batch, messages)
        except NotConnectedError:
            with self._changed:
                self._in_flight.pop(batch, None)
                for packet_id in [i for i, owner in self._owners.items() if owner is batch]:
                    del self._owners[packet_id]
                self._unconfirmed.remove(batch)
            raise
        with self._changed:
            if finished := batch.settle(1):
                self._in_flight.pop(batch, None)
        if finished:
            settled(batch.settlements)

    def tell(self, name: str, payload: bytes, *, last: bool = False) -> None:
        """Publish a retained state; one that follows before the answer is published after it.

        It has QoS 1, so that the broker keeps it for a session that is away, as it keeps the will.
        It has QoS 0 where the broker accepts no more, and as the `last` one before the log-out, if
        the one before has no answer yet.

        Raises:
            NotConnectedError: the connection is over; the broker publishes the will.
        """
        packet_id = 0
        with self._changed:
            if self._lost is not None:
                raise self._lost
            if self._telling is not None and not last:
                self._to_tell = name, payload
                return
            if self._tells and self._telling is None:
                (packet_id,) = self._free_ids(1)
                self._last_id = packet_id
                batch = self._telling = PublishBatch(1, partial(self._told, name))
                batch.positions[packet_id] = 0
                batch.settle(1)  # it is written as a whole
                self._owners[packet_id] = batch
                self._in_flight[batch] = None
        five = self._settings.version == "5"
        self.connection.write(encode_retained(name, payload, packet_id, five=five))

    def _told(self, name: str, settlements: Sequence[Settlement]) -> None:
        """Note the answer for a state, and publish the next one."""
        with self._changed:
            self._telling, following, self._to_tell = None, self._to_tell, None
        if settlements[0].outcome is Outcome.REJECTED:
            reason = settlements[0].reason
            log.warning(
                "%s: the broker refuses the state %r: %s", self._settings.name, name, reason
            )
        if following is not None:
            with suppress(NotConnectedError):
                self.tell(*following)

    def _write_all(self, batch: PublishBatch, messages: Sequence[Message]) -> None:
        encoder = self._encoder
        encoder.now = clock.now()
        refused = 0
        ids: list[int] = []
        unconfirmed: list[int] = []  # positions of messages of QoS 0
        for position, message in enumerate(messages):
            if not ids and encoder.needs_id(message):
                self._flush()
                ids = self._reserve_ids(batch, len(messages) - position)
            try:
                packet_id = encoder.add(message, ids[-1] if ids else 0)
            except Exception as error:  # noqa: BLE001  # of this message; the others are written
                batch.settlements[position] = unwritable(self._settings.name, error)
                refused += 1
            else:
                if packet_id:
                    batch.positions[ids.pop()] = position
                else:
                    unconfirmed.append(position)
            if encoder.size >= WRITE_SIZE:
                self._flush()
                self._wait_for_socket()
        if unconfirmed:
            self._confirm(batch, unconfirmed)
        else:
            self._flush()
        with self._changed:
            for packet_id in ids:
                self._owners.pop(packet_id, None)
            batch.settle(refused)

    def _flush(self) -> None:
        if self._encoder.size:
            self.connection.write(*self._encoder.take())

    def _confirm(self, batch: PublishBatch, positions: Sequence[int]) -> None:
        """Write what is left; the answer to a ping after it settles the messages of QoS 0."""
        connection = self.connection
        connection.follow()
        number = 0
        if self._unconfirmed.is_asking(connection.pings):
            self._flush()
        else:
            number = connection.ping(*(self._encoder.take() if self._encoder.size else ()))
        with self._changed:
            if self._lost is not None:
                raise self._lost
            self._unconfirmed.add(number or connection.pings + 1, batch, positions)
            asks = self._unconfirmed.must_ask(connection.pings)
        if asks:
            connection.ping()

    def _wait_for_socket(self) -> None:
        connection = self.connection
        with self._changed:
            while connection.socket.backlog > MAX_BACKLOG and connection.failure is None:
                self._changed.wait(CHECK_INTERVAL)

    def _reserve_ids(self, batch: PublishBatch, wanted: int) -> list[int]:
        """Return free packet ids, at least one and as many as the window allows, last one first."""
        connection = self.connection
        connection.follow()
        while self._is_full():
            if connection.failure is not None:
                raise connection.failure
            connection.await_answer(self._changed, lambda: not self._is_full(), CHECK_INTERVAL)
        with self._changed:
            ids = self._free_ids(min(wanted, self._window - len(self._owners)))
            self._owners.update(dict.fromkeys(ids, batch))
            self._last_id = ids[-1]
            for packet_id in ids if batch.positions else ():
                batch.positions.pop(packet_id, None)  # that message has its answer
        ids.reverse()
        return ids

    def _is_full(self) -> bool:
        return len(self._owners) >= self._window

    def all_answered(self) -> bool:
        """Return whether every sent message has its answer; wait a moment for one."""
        connection = self.connection
        if self._in_flight and connection.failure is None:
            connection.await_answer(self._changed, lambda: not self._in_flight, CHECK_INTERVAL)
        return not self._in_flight

    def _free_ids(self, count: int) -> list[int]:
        """Return `count` packet ids that are not in flight, the least recently used ones."""
        owners, packet_id = self._owners, self._last_id
        run = range(packet_id + 1, packet_id + 1 + count)
        if run.stop <= MAX_PACKET_ID + 1 and owners.keys().isdisjoint(run):
            return list(run)
        ids = chain(range(packet_id + 1, MAX_PACKET_ID + 1), range(1, packet_id + 1))
        return [*islice(filterfalse(owners.__contains__, ids), count)]

    def packets_received(self, packets: DecodedPackets) -> None:
        finished: list[PublishBatch] = []
        pubrels: list[bytes] = []
        with self._changed:
            owners = self._owners
            acked = Counter([owners.pop(packet_id, None) for packet_id in packets.acked_ids])
            for batch, count in acked.items():
                if batch is not None and batch.settle(count):
                    finished.append(batch)
            for kind, packet_id, reason in packets.responses:
                if kind == PUBREC and reason < FAILURE:
                    pubrels.append(encode_pubrel(packet_id))
                elif (batch := owners.pop(packet_id, None)) is not None:
                    # at the PUBCOMP, the broker has had the message since its PUBREC
                    settlement = ACCEPTED if kind == PUBCOMP else publish_settlement(reason)
                    if batch.settle_id(packet_id, settlement):
                        finished.append(batch)
            finished += self._unconfirmed.answered(packets.pongs)
            for batch in finished:
                del self._in_flight[batch]
            self._changed.notify_all()
        with suppress(GatewayError):  # `connection_lost` follows
            self._respond(b"".join(pubrels))
        for batch in finished:
            batch.settled(batch.settlements)

    def _respond(self, pubrels: bytes) -> None:
        """Send the PUBRELs, and the ping that messages of QoS 0 wait for."""
        if pubrels:
            self.connection.answer(pubrels)
        if self._unconfirmed.must_ask(self.connection.pings):
            self.connection.ping()

    def tick(self, now: float) -> GatewayError | None:
        """Return an error when the oldest batch has made no progress for `answer_timeout`.

        Bytes that the socket takes are progress too: a large batch over a slow connection.
        """
        with self._changed:
            self._changed.notify_all()
            batch = next(iter(self._in_flight), None)
            socket = self.connection.socket
            moved = socket.written if socket.backlog else 0
            progress = (batch, batch.unsettled if batch else 0, moved)
            if batch is None or progress != self._progress:
                self._progress, self._progress_since = progress, now
                return None
        timeout = self._settings.answer_timeout
        if now - self._progress_since < timeout:
            return None
        return NotConnectedError(
            f"{self._settings.name}: a publish has no answer for {timeout:g} s;"
            " the connection is treated as stuck"
        )

    def connection_lost(self, failure: GatewayError) -> None:
        """Settle every message without an answer as `RETRY`."""
        with self._changed:
            self._lost = failure
            finished = self._unconfirmed.lose()
            for packet_id, batch in self._owners.items():
                if batch.settle_id(packet_id, RETRY):
                    finished.append(batch)
            self._owners.clear()
            for batch in finished:
                self._in_flight.pop(batch, None)
            self._changed.notify_all()
        for batch in finished:
            batch.settled(batch.settlements)
