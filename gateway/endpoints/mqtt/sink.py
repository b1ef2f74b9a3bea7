"""The sending side of MQTT: a batch is one write, and its answers are counted, not waited for.

Nothing is sent again by itself: when a link is lost, every message without an answer is settled
`RETRY`, and whoever sends it again knows that it may double.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress

from gateway import clock
from gateway.endpoints.base import Settle
from gateway.endpoints.mqtt.link import Link
from gateway.endpoints.mqtt.outgoing import Encoder
from gateway.endpoints.mqtt.packets import PUBCOMP, PUBREC, Arrived, encode_pubrel
from gateway.endpoints.mqtt.reasons import FAILURE, publish_settlement
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.errors import GatewayError, NotConnectedError, TranslationError
from gateway.model.message import Message
from gateway.model.outcome import ACCEPTED, RETRY, Settlement, rejected

log = logging.getLogger(__name__)

PACKET_IDS = 65_535
BACKLOG = 4_194_304  # bytes the socket has not taken; above it `send` waits
CHUNK = 262_144  # bytes written at once
PATIENCE = 0.1  # seconds between looks at a link while `send` waits
OK = 0


class Flight:
    """A batch under way; mutable while its answers come in."""

    __slots__ = ("open", "positions", "settled", "settlements")

    def __init__(self, size: int, settled: Settle) -> None:
        self.settlements: list[Settlement] = [ACCEPTED] * size
        self.open = size + 1  # one more, until `send` is through
        self.settled = settled
        self.positions: dict[int, int] = {}  # packet id -> the message that was sent under it last


class Outlet:
    """What goes over one link; mutable, since it knows what has no answer yet."""

    def __init__(self, settings: MqttSettings) -> None:
        self._settings = settings
        self._sending = threading.Lock()  # one batch after the other
        self._changed = threading.Condition()
        self._owners: dict[int, Flight] = {}  # packet id -> whose it is
        self._flights: dict[Flight, None] = {}
        self._last_id = 0
        self._watched: tuple[Flight | None, int, int] = (None, 0, 0)
        self._watched_since = 0.0
        self._window = settings.inflight
        self._encoder = Encoder(settings)
        self.link: Link | None = None

    def opened(self, link: Link) -> None:
        """Take over the broker's own limits (MQTT 5.0, 3.2.2.3); absent is no limit."""
        self.link = link
        broker = link.session.broker
        qos: int = getattr(broker, "MaximumQoS", 2)
        if qos < self._settings.qos:
            log.warning(
                "%s: the broker takes QoS %d at most, %d was asked for",
                self._settings.name, qos, self._settings.qos,
            )  # fmt: skip
        self._window = min(self._window, getattr(broker, "ReceiveMaximum", PACKET_IDS))
        self._encoder.obey(
            qos,
            getattr(broker, "MaximumPacketSize", self._settings.max_packet),
            retain=getattr(broker, "RetainAvailable", 1) == 1,
        )

    def send(self, link: Link, messages: Sequence[Message], settled: Settle) -> None:
        """As `Sink.send`."""
        flight = Flight(len(messages), settled)
        with self._changed:
            self._flights[flight] = None
        try:
            with self._sending:
                self._write_all(link, flight, messages)
        except NotConnectedError:
            with self._changed:
                self._forget(flight)
            raise
        with self._changed:
            finished = self._count(flight, 1)
        if finished:
            settled(flight.settlements)

    def _write_all(self, link: Link, flight: Flight, messages: Sequence[Message]) -> None:
        encoder, now = self._encoder, clock.now()
        encoder.start(now)
        answered = 0
        ids: list[int] = []
        for position, message in enumerate(messages):
            if not ids and encoder.needs_id(message):
                self._flush(link, encoder)
                ids = self._reserve(link, flight, len(messages) - position)
            try:
                packet_id = encoder.add(message, ids[-1] if ids else 0)
            except TranslationError as error:
                flight.settlements[position] = rejected(error.rule, error.reason)
                answered += 1
            else:
                if packet_id:
                    flight.positions[ids.pop()] = position
                else:
                    answered += 1
            if encoder.size >= CHUNK:
                self._flush(link, encoder)
                self._wait_for_socket(link)
        self._flush(link, encoder)
        with self._changed:
            for packet_id in ids:
                self._owners.pop(packet_id, None)
            if answered:
                self._count(flight, answered)

    def _flush(self, link: Link, encoder: Encoder) -> None:
        if encoder.size:
            link.write(*encoder.take())

    def _wait_for_socket(self, link: Link) -> None:
        with self._changed:
            while link.backlog > BACKLOG and link.failure is None:
                self._changed.wait(PATIENCE)

    def _reserve(self, link: Link, flight: Flight, wanted: int) -> list[int]:
        """Free packet ids, at least one, as many as the window has room for; last one first."""
        link.follow()
        if self._is_full():
            link.hurried = True
            self._wait_for_room(link)
            link.hurried = False
        with self._changed:
            ids = self._free_ids(min(wanted, self._window - len(self._owners)))
            self._owners.update(dict.fromkeys(ids, flight))
            self._last_id = ids[-1]
            for packet_id in ids if flight.positions else ():
                flight.positions.pop(packet_id, None)  # its message has its answer
        ids.reverse()
        return ids

    def _is_full(self) -> bool:
        return len(self._owners) >= self._window

    def _wait_for_room(self, link: Link) -> None:
        while self._is_full():
            if link.failure is not None:
                raise link.failure
            if not link.help(PATIENCE):
                with self._changed:
                    if self._is_full():
                        self._changed.wait(PATIENCE)

    def _free_ids(self, count: int) -> list[int]:
        """`count` packet ids that are not under way, the least used ones."""
        owners, packet_id = self._owners, self._last_id
        row = range(packet_id + 1, packet_id + 1 + count)
        if row.stop <= PACKET_IDS + 1 and owners.keys().isdisjoint(row):
            return list(row)
        ids: list[int] = []
        while len(ids) < count:
            packet_id = packet_id % PACKET_IDS + 1
            if packet_id not in owners:
                ids.append(packet_id)
        return ids

    def arrived(self, arrived: Arrived) -> None:
        finished: list[Flight] = []
        replies: list[bytes] = []
        with self._changed:
            owners = self._owners
            acked = Counter([owners.pop(packet_id, None) for packet_id in arrived.acked])
            for flight, count in acked.items():
                if flight is not None:
                    flight.open -= count
                    if not flight.open:
                        finished.append(flight)
            for kind, packet_id, reason in arrived.answers:
                if kind == PUBREC and reason < FAILURE:
                    replies.append(encode_pubrel(packet_id))
                else:
                    self._answered(packet_id, kind, reason, finished)
            for flight in finished:
                del self._flights[flight]
            self._changed.notify_all()
        if replies and self.link is not None:
            with suppress(NotConnectedError):  # the link's thread tells by `lost`
                self.link.write(b"".join(replies))
        for flight in finished:
            flight.settled(flight.settlements)

    def _answered(self, packet_id: int, kind: int, reason: int, finished: list[Flight]) -> None:
        flight = self._owners.pop(packet_id, None)
        if flight is None or packet_id not in flight.positions:
            return
        if kind == PUBCOMP:  # the broker has had it since its PUBREC
            reason = OK
        flight.settlements[flight.positions[packet_id]] = publish_settlement(reason)
        flight.open -= 1
        if not flight.open:
            finished.append(flight)

    def wants_more(self) -> bool:
        return True

    def tick(self, now: float) -> GatewayError | None:
        """The oldest batch must make progress, else the connection is stuck.

        Bytes that the socket still takes are progress too: a large batch on a slow line.
        """
        with self._changed:
            self._changed.notify_all()
            flight = next(iter(self._flights), None)
            seen = (flight, flight.open if flight else 0, self._bytes_moved())
            if flight is None or seen != self._watched:
                self._watched, self._watched_since = seen, now
                return None
        timeout = self._settings.answer_timeout
        if now - self._watched_since < timeout:
            return None
        return NotConnectedError(
            f"{self._settings.name}: a publish has no answer for {timeout:g} s;"
            " the connection is taken for stuck"
        )

    def _bytes_moved(self) -> int:
        """How much the socket has taken while more waits for it."""
        link = self.link
        return link.written if link is not None and link.backlog else 0

    def lost(self, failure: GatewayError) -> None:
        """Settle `RETRY` for all that has no answer."""
        del failure
        finished: list[Flight] = []
        with self._changed:
            for packet_id, flight in self._owners.items():
                position = flight.positions.get(packet_id)
                if position is not None:
                    flight.settlements[position] = RETRY
                    flight.open -= 1
                    if not flight.open:
                        finished.append(flight)
            self._owners.clear()
            for flight in finished:
                self._flights.pop(flight, None)
            self._changed.notify_all()
        for flight in finished:
            flight.settled(flight.settlements)

    def _count(self, flight: Flight, answered: int) -> bool:
        flight.open -= answered
        if flight.open:
            return False
        self._flights.pop(flight, None)
        return True

    def _forget(self, flight: Flight) -> None:
        self._flights.pop(flight, None)
        for packet_id in [i for i, owner in self._owners.items() if owner is flight]:
            del self._owners[packet_id]


class MqttSink:
    """Mutable: it is open or closed."""

    def __init__(self, settings: MqttSettings, client_id: str) -> None:
        self._settings, self._client_id = settings, client_id
        self._outlet: Outlet | None = None
        self._link: Link | None = None

    def open(self) -> None:
        if self._link is not None and self._link.failure is None:
            return
        self.close()
        outlet = Outlet(self._settings)
        link = Link(self._settings, self._client_id, clean=True, traffic=outlet)
        link.open(lambda _session_present: ())
        outlet.opened(link)
        self._outlet, self._link = outlet, link

    def send(self, messages: Sequence[Message], settled: Settle) -> None:
        outlet, link = self._outlet, self._link
        if outlet is None or link is None:
            raise NotConnectedError(f"{self._settings.name}: is closed; open it first")
        if link.failure is not None:
            raise link.failure
        outlet.send(link, messages, settled)

    def close(self) -> None:
        link, self._link, self._outlet = self._link, None, None
        if link is not None:
            link.close()
