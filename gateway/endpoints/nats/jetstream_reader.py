"""A consumer of JetStream, read over one connection.

Answers leave in the order of arrival. A consumer redelivers what its last reader left behind only
after `ack_wait`, and newer messages before it; so `start` returns all of that to the server, which
then delivers it first. It comes in the order of its last return, of which another reader may have
taken a part: so the reader waits for all of it, and puts it in order.

    held          messages of the return that have come, until all have, or a first delivery does
    position      in the memory: the number up to which messages may have been received, which a
                  killed server and a new consumer do not know
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from typing import Final

from gateway.endpoints.continuity import Continuity, Retention
from gateway.endpoints.nats.connection import NatsConnection
from gateway.endpoints.nats.consumer import (
    Consumer,
    find_consumer,
    look_again,
    numbers_of,
    return_left,
    told_as_new,
)
from gateway.endpoints.nats.headers import HeaderBlockReader
from gateway.endpoints.nats.intake import Inbox, NatsMessage
from gateway.endpoints.nats.removed_messages import RemovedMessages
from gateway.endpoints.nats.subjects import selects
from gateway.endpoints.receipts import OVERHEAD, ReceivedMessage
from gateway.endpoints.settings.nats import NatsSettings
from gateway.endpoints.source_memory import Position, SourceMemory
from gateway.model.message import Message
from gateway.untyped import Untyped

ACK, PROGRESS = b"+ACK", b"+WPI"
AHEAD: Final = 10_000  # messages that may be received before the memory of them is written again
PULL: Final = 500  # messages of one request
PULL_EXPIRES: Final = 5.0  # seconds
LONGEST_LINE: Final = 8_192  # bytes; a message counts with its subject and reply subject
REMOVAL_LOOK: Final = 30.0  # seconds between looks at what the stream has removed
PAUSE: Final = 0.02  # seconds between looks at a full queue
MADE_AGAIN: Final = (
    "somebody deleted the stream, and made it and its consumer again: what waited in it is gone"
)
DROPPED: Final = "the stream's limits, or a purge, removed messages before they were read"
_STATUS_NONE: Final = {"404", "408"}  # nothing waits
_STATUS_GONE: Final = (
    "consumer deleted",
    "consumer is push",
    "no responders",
    "server shutdown",
    "exceeded maxrequest",
)
_SMALLER: Final = re.compile(r"exceeded maxrequestbatch of (\d{1,9})")
_TOO_LARGE: Final = "message size exceeds maxbytes"


class JetStreamReader:
    """Reads one consumer. Owned by the connection's thread; the queue is thread-safe."""

    def __init__(
        self,
        settings: NatsSettings,
        patterns: Sequence[str],
        name: str,
        memory: SourceMemory,
        continuity: Continuity,
    ) -> None:
        self._settings, self._patterns, self._name = settings, patterns, name
        self._memory, self._continuity = memory, continuity
        self._headers = HeaderBlockReader()
        self.queue: Inbox = Inbox(settings.receive_window_bytes, self._confirm)
        self._removed = RemovedMessages(memory, continuity)
        self._connection: NatsConnection
        self._consumer: Consumer
        self._position: Position
        self._inbox = ""
        self._most = PULL  # messages of a request: the server may have a limit
        self._most_bytes = settings.receive_window_bytes  # of a request
        self._fits = True  # the next message is within the bytes of a request
        self._wanted = 0  # messages of the present request that have not come
        self._late = 0.0  # the time of the loop at which the present request is given up
        self._returned = 0  # messages returned that have not come
        self._held: list[NatsMessage] = []
        self._held_bytes = 0
        self._puts = False  # what is held, as soon as nothing more is to be read
        self._last_delivery = self._last_message = 0

    async def start(self, connection: NatsConnection) -> None:
        settings, client = self._settings, connection.client
        self._connection = connection
        least = client.max_payload + LONGEST_LINE  # else a large message never comes
        self._most_bytes = max(settings.receive_window_bytes, least)
        found = self._consumer = await find_consumer(
            connection, settings, self._patterns, self._name, self._memory
        )
        self._last_delivery = found.deliveries
        end = self._find_place(found)
        if found.unanswered and end > found.floor:
            self._returned = min(found.unanswered, end - found.floor)
            await return_left(connection, settings, found, end)
        self._inbox = client.new_inbox()
        subscription = await client.subscribe(
            self._inbox, cb=self._take, pending_bytes_limit=0, pending_msgs_limit=0
        )
        client.limit(subscription, settings.max_message_in)
        self._continuity.retention = Retention.NEW if found.is_new else Retention.KEPT
        told_as_new(self._memory, found)
        connection.run(self._pull())
        connection.run(self._ask_for_time())
        if not (found.is_exact or found.keeps_unread):
            connection.run(self._look_at_removals())

    def end(self) -> None:
        """The stream keeps what is not read."""

    def _find_place(self, found: Consumer) -> int:
        """Find what may have been received, and report what was lost before it was.

        Return the end of what the last reader may have left: the server of 2.9 names a lower one
        while it delivers old messages again.
        """
        place = self._position = self._memory.position(f"place {found.stream}", AHEAD)
        reached = max(found.delivered, found.floor + found.unanswered)
        answered, seen = 0, found.last  # without a memory everything that waits is in doubt
        most = found.last  # that may have been received
        if found.made and place.proof == found.made:
            most = max(place.seen, place.highest)
            reached = max(reached, min(place.highest, found.last))
            answered = place.settled
            seen = min(found.last, max(most, found.gone))
        elif found.is_new and place.is_new:
            seen = 0
        elif place.proof and found.made and not found.is_new:
            self._continuity.report_loss(MADE_AGAIN)
        place.begin_anew(found.made, seen)
        known = 0 if found.is_new else max(found.floor, answered)  # a killed server forgets answers
        known = min(known, most)  # a purge moves the floor past what nobody read
        place.settle(min(known, found.last))
        if found.is_exact and not found.is_new and found.gone > known:
            self._continuity.report_loss(DROPPED, found.gone - known)
        if not (found.is_exact or found.keeps_unread):  # what is unanswered may also be gone
            delivered = found.floor if found.unanswered else reached
            self._removed.look(found, min(delivered, most))
        self._last_message = max(reached, found.gone, seen if found.is_new else 0)
        return max(reached, seen)

    def _confirm(self, settled: Sequence[NatsMessage]) -> None:
        """Answer for messages; the queue calls this in order."""
        self._position.settle(settled[-1].number)
        self._connection.run(self._answer(settled))

    async def _answer(self, settled: Sequence[NatsMessage]) -> None:
        """Acknowledge; the server takes answers in order, so it confirms the last for all.

        Also dead letters: of a `+TERM` the server tells those who send such messages again.
        """
        client, sync = self._connection.client, self._settings.ack_sync
        for each in settled[: len(settled) - sync]:
            await client.publish(each.receipt, ACK)
        if sync:
            await client.request(settled[-1].receipt, ACK, self._settings.answer_timeout)

    async def _take(self, message: Untyped) -> None:
        if message.subject == self._inbox:
            self._read_status(message.headers or {})
            return
        self._wanted -= 1
        self._returned -= 1
        try:
            again, number, delivery, nanoseconds = numbers_of(message.reply)
        except ValueError as error:
            self._connection.end(f"the server sent {error}")
            return
        if fault := self._fault_of(delivery):
            self._connection.end(fault)
            return
        self._last_delivery = delivery
        if again == 1 and await self._is_taken_back(number, message.reply):
            return
        arrival = self._arrival(message, again, number, nanoseconds)
        patterns, subject = self._patterns, message.subject
        if len(patterns) == 1 or any(selects(each, subject) for each in patterns):
            self._held.append(arrival)
            self._held_bytes += len(message.data) + OVERHEAD
        else:
            self._connection.run(self._answer([arrival]))
        # Returned messages come before new ones, and are not more than a server may have sent.
        if self._returned <= 0 or again == 1 or self._held_bytes > 2 * self._most_bytes:
            self._put_soon()
        if self._wanted <= 0:
            await self._ask_for_more()

    def _fault_of(self, delivery: int) -> str:
        """Return why the connection ends at this delivery; "" when it does not."""
        if delivery != self._last_delivery + 1:
            return "another reader took messages of the consumer"
        # one request may have been given up while the server still had it
        if self._wanted < -self._most or self.queue.held > 4 * self._most_bytes:
            return "the server sends messages that nobody asked for"
        return ""

    def _arrival(self, message: Untyped, again: int, number: int, nanoseconds: int) -> NatsMessage:
        was_seen = self._position.received(number)
        missing = number - self._last_message - 1
        if again == 1 and missing > 0 and self._consumer.is_exact:
            self._continuity.report_loss(DROPPED, missing)
        self._last_message = max(number, self._last_message)
        # restored streams repeat numbers
        identity = f"nats {self._consumer.stream} {nanoseconds} {number}"
        headers, proof = self._headers.read(
            message.headers,
            {
                "mode": self._settings.mode,
                "redelivered": again > 1 or was_seen,
                "time": nanoseconds // 1_000,
                "source_id": identity,
            },
        )
        found = Message(message.subject, message.data, headers, proof)
        self._continuity.heard = self._continuity.clock()
        return ReceivedMessage(found, message.reply, number, identity)

    async def _is_taken_back(self, number: int, receipt: str) -> bool:
        """Return whether a first delivery is one of a message that came and is not lost.

        A server of 2.9 may take back a delivery, and not its wait for the answer: it delivers the
        message as one that waits, and as a new one.
        """
        if number > self._position.highest:
            return False
        if number <= self._position.settled:
            await self._connection.client.publish(receipt, ACK)
            return True
        return any(each.number == number for each in (*self._held, *tuple(self.queue.unanswered)))

    def _put_soon(self) -> None:
        """Put what has come once all of it is read: the queue is locked, and wakes, once."""
        self._returned = 0
        if not self._puts:
            self._puts = True
            asyncio.get_running_loop().call_soon(self._put_held)

    def _put_held(self) -> None:
        """Put what has come in order; of the returned messages the stream may have lost some."""
        self._puts = False
        self._returned = self._held_bytes = 0
        arrivals, self._held = sorted(self._held, key=lambda each: each.number), []
        self.queue.put(arrivals)

    def _read_status(self, headers: dict[str, str]) -> None:
        """Read an answer to a request for messages: it ended, or the consumer is gone."""
        text = str(headers.get("Description", "")).lower()
        if (smaller := _SMALLER.search(text)) and int(smaller[1]):
            self._most, self._wanted = int(smaller[1]), 0
        elif headers.get("Status") == "503" or any(word in text for word in _STATUS_GONE):
            self._connection.end(f"consumer {self._name!r}: {text or 'no answer'}")
        elif headers.get("Status") != "100":
            # stored under a larger `max_payload`; the text also ends a request that is full
            self._fits = _TOO_LARGE not in text or self._wanted < self._most
            self._wanted = 0
            if headers.get("Status") in _STATUS_NONE:
                self._put_held()

    async def _pull(self) -> None:
        """Ask again where nothing that comes leads to the next request."""
        while not self._connection.is_over:
            await self._ask_for_more()
            await asyncio.sleep(PAUSE)

    async def _ask_for_more(self) -> None:
        """Keep one request for messages open while there is room."""
        now = asyncio.get_running_loop().time()
        held = self.queue.held + self._held_bytes
        full = self.queue.full or held >= self._most_bytes
        if full or (self._wanted > 0 and now <= self._late):
            return
        self._wanted = self._most if self._fits else 1
        wish = {"batch": self._wanted, "expires": int(PULL_EXPIRES * 1e9)}
        request = json.dumps(
            wish | ({"max_bytes": self._most_bytes} if self._fits else {})
        ).encode()
        self._late = now + 2 * PULL_EXPIRES
        subject = f"$JS.API.CONSUMER.MSG.NEXT.{self._consumer.stream}.{self._name}"
        await self._connection.client.publish(subject, request, reply=self._inbox)

    async def _look_at_removals(self) -> None:
        while not self._connection.is_over:
            await asyncio.sleep(REMOVAL_LOOK)
            found = await look_again(self._connection, self._consumer)
            self._removed.look(found, self._last_message)

    async def _ask_for_time(self) -> None:
        """Tell the server, three times in `ack_wait`, that unanswered messages are in work."""
        while not self._connection.is_over:
            await asyncio.sleep(self._settings.ack_wait / 3)
            for each in tuple(self.queue.unanswered):
                await self._connection.client.publish(each.receipt, PROGRESS)
