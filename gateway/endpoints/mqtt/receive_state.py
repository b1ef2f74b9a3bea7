"""The unacknowledged messages of one MQTT connection.

A message is acknowledged (PUBACK, or PUBREC for QoS 2) after it is settled, in the order of
arrival (MQTT 5.0, 4.6). A retried message stays unacknowledged and is redelivered from memory,
since a broker delivers again only over a new connection.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from itertools import compress, filterfalse

from gateway.endpoints.base import Subscription
from gateway.endpoints.mqtt.connection import ConnectionOwner, MqttConnection
from gateway.endpoints.mqtt.kept_session import KeptSession
from gateway.endpoints.received_queue import mark_redelivered, message_queue
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.errors import GatewayError, NotConnectedError
from gateway.model.message import DeliveryMode, Message, Payload
from gateway.wire.mqtt.packets import PUBREL, DecodedPackets, encode_acks, encode_pubcomp
from gateway.wire.mqtt.topic_filters import any_selects, inner_filter
from gateway.wire.mqtt.user_properties import parse_whole_number

PACKET_ID = 0xFFFF  # the bits of the packet id in an acknowledgement
QOS_2 = 0x5002  # the upper half of a PUBREC


class ReceiveState(ConnectionOwner):
    """Messages received over one connection, until they are acknowledged.

    `kept` outlives the connection. A PUBLISH of QoS 2 with DUP and an unreleased packet id was
    received before (MQTT 5.0, 4.3.3). A broker that restarts with an older copy of its database can
    use such an id for another message, and repeat that one too: a repeat has the same content. It
    repeats what has no answer before it sends a new message (4.4 and 4.6), so the ids that are not
    repeated by then are forgotten.
    Mutable: filled by the connection's leader; any thread may settle. Its owner sets `connection`
    before that opens.
    """

    connection: MqttConnection

    def __init__(
        self, settings: MqttSettings, subscriptions: Sequence[Subscription], kept: KeptSession
    ) -> None:
        self._persistent = settings.session_expiry > 0
        self._dropped_topic = settings.dropped_topic
        filters = [inner_filter(each.pattern) for each in subscriptions]
        self._relays_count = any_selects(filters, settings.dropped_topic)
        self.count_dropped: Callable[[int], None] = lambda _: None
        # of 3.1.1: brokers of 5.0 leave out retained messages themselves
        excludes = settings.version != "5" and any(each.exclude_retained for each in subscriptions)
        wanting = [inner_filter(s.pattern) for s in subscriptions if not s.exclude_retained]
        self._retained_filters = wanting if excludes else None
        self._kept, self._unreleased = kept, kept.unreleased
        self._unrepeated = set(kept.unreleased)  # ids of an earlier connection
        self._contents: dict[int, int] = {}  # hashes of unconfirmed messages of QoS 2, by id
        self._repeats_retained = settings.version != "5" and self._persistent
        self._acks: deque[int] = deque()  # of the unconfirmed messages, oldest first
        self.leaves = False  # for another address: nothing more is read
        self.queue = message_queue(
            settings.receive_window_bytes, self._confirm, self._wake, awaited=settings.qos > 0
        )
        self._pongs = self._last_ping = 0

    def packets_received(self, packets: DecodedPackets) -> None:
        messages, acks = packets.messages, packets.acks
        if self._kept.left and self.connection.session.connected:
            self._put(self._kept.left, [0] * len(self._kept.left))
            self._kept.left = []
        if self._dropped_topic:
            messages, acks = self._take_counts(messages, acks)
        if packets.has_special:
            messages, acks = self._drop_unwanted(messages, acks)
        if messages:
            self._kept.has_qos_0 = self._kept.has_qos_0 or 0 in acks
            self._put(messages, acks)
        if packets.responses:
            self._write(self._release(packets.responses))
        if packets.pongs:
            self._pongs += packets.pongs
            self.end_after(self._last_ping)

    def _put(self, messages: Sequence[Message], acks: Sequence[int]) -> None:
        self._acks.extend(acks)
        self.queue.put(messages)

    def end_after(self, ping: int) -> None:
        """Take in nothing that comes after the answer to a ping; 0 for no ping."""
        self._last_ping = ping
        if 0 < ping <= self._pongs:
            self.queue.end()

    def wants_more(self) -> bool:
        return not self.queue.full and not self.leaves

    def connection_lost(self, failure: GatewayError) -> None:
        """Keep only the messages that the broker does not deliver again."""
        if self._repeats_retained:
            self._kept.forget_retained(self.queue.unsettled())
        self.queue.fail(failure, self._is_never_redelivered)

    def connection_failed(self) -> None:
        """Keep what the broker does not send again: nobody receives from a failed attempt."""
        received = self.queue.unsettled()
        self._kept.left += filter(self._is_never_redelivered, received)
        self._kept.forget_retained(filterfalse(self._is_never_redelivered, received))

    def _is_never_redelivered(self, message: Message) -> bool:
        return not self._persistent or message.headers.mode is DeliveryMode.AT_MOST_ONCE

    def _take_counts(
        self, messages: list[Message], acks: list[int]
    ) -> tuple[list[Message], list[int]]:
        """Note the broker's counts of dropped messages, and return what the routes select."""
        topic = self._dropped_topic
        wanted = [message.address != topic for message in messages]
        if all(wanted):
            return messages, acks
        for message in messages:
            if message.address == topic and (count := _count(message.payload)) is not None:
                self.count_dropped(count)
        return (messages, acks) if self._relays_count else self._select(messages, acks, wanted)

    def _drop_unwanted(
        self, messages: list[Message], acks: list[int]
    ) -> tuple[list[Message], list[int]]:
        """Return what is new and wanted, with its marks; acknowledge the rest at once."""
        marked: list[Message] = []
        wanted: list[bool] = []
        for message, ack in zip(messages, acks, strict=True):
            marked.append(self._mark(message))
            wanted.append(not (self._was_received(ack, message) or self._is_excluded(message)))
        return self._select(marked, acks, wanted)

    def _select(
        self, messages: list[Message], acks: list[int], wanted: list[bool]
    ) -> tuple[list[Message], list[int]]:
        """Return the messages that are `wanted`, and acknowledge the others."""
        self._acknowledge([ack for ack, kept in zip(acks, wanted, strict=True) if not kept])
        return list(compress(messages, wanted)), list(compress(acks, wanted))

    def _mark(self, message: Message) -> Message:
        """Mark a retained message that an earlier run may have received."""
        headers = message.headers
        repeats = self._repeats_retained or self._kept.was_lost
        may_repeat = repeats and headers.retained and not headers.redelivered
        if may_repeat and self._kept.may_be_sent_again(message):
            return mark_redelivered(message)
        return message

    def _was_received(self, ack: int, message: Message) -> bool:
        """Return whether it is a repeat of a settled message; forget ids that are not repeats."""
        if ack >> 16 != QOS_2:
            return False
        packet_id = ack & PACKET_ID
        content = hash((message.address, message.payload))
        if message.headers.redelivered:
            self._unrepeated.discard(packet_id)
            if self._unreleased.get(packet_id) == content:
                return True
        elif self._unrepeated:
            self._forget(self._unrepeated)
            self._unrepeated.clear()
        self._unreleased.pop(packet_id, None)
        self._contents[packet_id] = content
        return False

    def _is_excluded(self, message: Message) -> bool:
        """Return whether it is a retained one that is not wanted, or not wanted again."""
        headers = message.headers
        if not headers.retained:
            return False
        wanted = self._retained_filters
        if wanted is not None and not any_selects(wanted, message.address):
            return True
        if headers.redelivered or not (self._repeats_retained or self._kept.was_lost):
            return False
        is_equal = self._kept.is_sent_again(message)
        return is_equal and self._repeats_retained  # else it may be a live one

    def _release(self, responses: list[tuple[int, int, int]]) -> bytes:
        """Return a PUBCOMP for each PUBREL, also for an unknown id (MQTT 5.0, 4.3.3)."""
        released = [packet_id for kind, packet_id, _ in responses if kind == PUBREL]
        self._forget(released)
        self._unrepeated.difference_update(released)
        return b"".join(map(encode_pubcomp, released))

    def _forget(self, packet_ids: Iterable[int]) -> None:
        for each in packet_ids:
            self._unreleased.pop(each, None)

    def _confirm(self, count: int) -> None:
        acks = self._acks
        self._acknowledge([acks.popleft() for _ in range(count)])
        self.connection.resume_reading()

    def _wake(self) -> None:
        self.connection.wake()

    def _acknowledge(self, acks: list[int]) -> None:
        for ack in acks if self._contents else ():
            if ack >> 16 == QOS_2 and (packet_id := ack & PACKET_ID) in self._contents:
                self._unreleased[packet_id] = self._contents.pop(packet_id)
        self._write(encode_acks(acks))

    def _write(self, data: bytes) -> None:
        if data:
            with suppress(NotConnectedError):  # `connection_lost` follows; the broker sends again
                self.connection.answer(data)


def _count(payload: Payload) -> int | None:
    """Return the number in a payload; None for any other content."""
    if isinstance(payload, bytes):
        payload = payload.decode("latin-1")
    return parse_whole_number(payload) if isinstance(payload, str) else None
