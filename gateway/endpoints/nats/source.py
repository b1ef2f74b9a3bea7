"""A NATS source: a durable pull consumer of JetStream, or subscriptions of core NATS.

Answers leave in the order of arrival. A consumer redelivers what its last reader left behind only
after `ack_wait`, and newer messages before it; so `open` returns all of that to the server, which
then delivers it first. It comes in the order of its last return, of which another reader may have
taken a part: so the source waits for all of it, and puts it in order.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from functools import partial
from hashlib import blake2b
from typing import Any, Final, TypeAlias

from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy, RetentionPolicy
from nats.js.errors import NotFoundError

from gateway.endpoints.base import Batch, Subscription
from gateway.endpoints.continuity import Continuity, Retention, SubscriptionStore
from gateway.endpoints.nats.connection import NatsConnection
from gateway.endpoints.nats.headers import read_headers
from gateway.endpoints.nats.place import StreamPlace
from gateway.endpoints.nats.subjects import selects
from gateway.endpoints.received_messages import ReceivedMessage, ReceivedMessages
from gateway.endpoints.settings.nats import NatsSettings
from gateway.errors import (
    EndpointError,
    GatewayError,
    NotConnectedError,
    SubjectError,
    SubscriptionRefusedError,
)
from gateway.model.message import Headers, Message

ACK, NAK, PROGRESS = b"+ACK", b"-NAK", b"+WPI"
PULL: Final = 500  # messages of one request
PULL_EXPIRES: Final = 5.0  # seconds
MAX_RETURNED: Final = 100_000  # messages; the server redelivers older ones after `ack_wait`
LONGEST_LINE: Final = 8_192  # bytes; a message counts with its subject and reply subject
PAUSE: Final = 0.02  # seconds between looks at a full queue
DROPPED: Final = "the stream's limits, or a purge, removed messages before they were read"
_STATUS_NONE: Final = {"404", "408"}  # nothing waits
_STATUS_GONE: Final = (
    "consumer deleted", "consumer is push", "no responders", "server shutdown",
    "exceeded maxrequest",
)  # fmt: skip
_SMALLER: Final = re.compile(r"exceeded maxrequestbatch of (\d+)")
_TOO_LARGE: Final = "message size exceeds maxbytes"
_NO_NAME: Final = re.compile(r"[.*>\s/\\\x00-\x1f\x7f]")
_MAX_NAME: Final = 200  # characters of a consumer's name before its digest


NatsMessage: TypeAlias = ReceivedMessage[str]  # its receipt is the reply subject, if any
Inbox: TypeAlias = ReceivedMessages[str]


class NatsSource:
    """Receives from one consumer, or from subscriptions.

    Thread-safe: arrivals are added in the connection's thread; the queue guards them.
    """

    def __init__(
        self, settings: NatsSettings, subscriptions: Sequence[Subscription], instance: str = ""
    ) -> None:
        self._settings = settings
        self._patterns = [each.pattern for each in subscriptions]
        self._consumer = consumer_name(settings, instance)
        retention = Retention.KEPT if settings.jetstream else Retention.NOTHING
        self.continuity = Continuity(retention)
        self._connection: NatsConnection | None = None
        self._place = StreamPlace(f"{settings.broker_key} {self._consumer}")
        self.subscription_store: SubscriptionStore | None = None
        self._live: list[Any] = []  # the library's subscriptions of core NATS
        self._stream = self._inbox = ""
        self._exact = False  # every message of the stream is ours
        self._keeps_unread = False  # the stream keeps only what its consumers have not read
        self._is_new = False  # the consumer was absent at this attempt, or at one that failed
        self._most = PULL  # messages of a request: the server may have a limit
        self._fits = True  # the next message is within the bytes of a request
        self._wanted = 0  # messages of the present request that have not come
        # messages returned that have not come; the number of the last
        self._returned = self._end = 0
        self._held: list[NatsMessage] = []  # of the returned ones, until all have come
        self._last_delivery = self._last_message = self._answered = 0
        self._queue = self._new_queue()
        self._queue.fail(NotConnectedError(f"{settings.name}: is closed; open it first"))

    @property
    def address(self) -> str:
        """HOST:PORT of the server; empty without a connection."""
        return "" if self._connection is None else self._connection.address

    def open(self) -> None:
        self.close()
        queue = self._queue = self._new_queue()
        connection = self._connection = NatsConnection(self._settings, partial(self._fail, queue))
        try:
            start = self._start if self._settings.jetstream else self._subscribe
            connection.call(start(connection, queue))
        except SubjectError as error:
            self.close()
            raise SubscriptionRefusedError(f"{self._settings.name}: {error}") from error
        except BaseException:
            self.close()
            raise

    def receive(self, timeout: float) -> Batch | None:
        return self._queue.receive(timeout)

    def close(self) -> None:
        connection, self._connection = self._connection, None
        closed = NotConnectedError(f"{self._settings.name}: is closed; open it first")
        self._fail(self._queue, closed)
        if connection is not None:
            self._place.keep_exactly()
            connection.close()

    def removes(self, address: str) -> bool:
        """Return whether a queue group divides messages, or the stream keeps unread ones only."""
        return self._keeps_unread or self._settings.removes(address)

    def end_intake(self) -> None:
        if self._live and self._connection is not None:
            self._connection.run(self._drain(self._live, self._queue))

    @property
    def intake_ended(self) -> bool:
        return not self._live or self._connection is None or self._queue.ended

    @staticmethod
    async def _drain(subscriptions: Sequence[Any], queue: Inbox) -> None:
        """Take in what the server has sent before its answers, and nothing more."""
        await asyncio.gather(*(each.drain() for each in subscriptions))
        queue.end()

    def _fail(self, queue: Inbox, failure: GatewayError) -> None:
        """End a queue; messages of core NATS can still be received: they do not come again."""
        queue.fail(failure, lambda _received: not self._settings.jetstream)

    def _new_queue(self) -> Inbox:
        return ReceivedMessages(self._settings.receive_window_bytes, self._confirm)

    def _confirm(self, settled: Sequence[NatsMessage]) -> None:
        """Answer for messages; the queue calls this in order."""
        connection = self._connection
        if connection is not None and self._settings.jetstream:
            self._answered = settled[-1].number
            connection.run(self._answer(connection, settled))

    async def _answer(self, connection: NatsConnection, settled: Sequence[NatsMessage]) -> None:
        """Acknowledge; the server takes answers in order, so it confirms the last for all.

        Dead letters, too: of a `+TERM` the server tells those who send such messages again.
        """
        sync = self._settings.ack_sync
        for each in settled[: len(settled) - sync]:
            await connection.client.publish(each.receipt, ACK)
        if sync:
            timeout = self._settings.answer_timeout
            await connection.client.request(settled[-1].receipt, ACK, timeout)

    async def _subscribe(self, connection: NatsConnection, queue: Inbox) -> None:
        """Subscribe in core NATS; of several patterns that select a message, the first takes it."""
        self._live = []
        for at, pattern in enumerate(self._patterns):
            subscription = await connection.client.subscribe(
                pattern,
                queue=self._settings.queue_group,
                cb=partial(self._take_live, queue, self._patterns[:at]),
                pending_bytes_limit=0,  # the library would drop the rest uncounted
                pending_msgs_limit=0,
            )
            self._live.append(subscription)
        await connection.client.flush(self._settings.answer_timeout)
        connection.refuse_denied()

    async def _take_live(self, queue: Inbox, earlier: Sequence[str], message: Any) -> None:  # noqa: ANN401
        if any(selects(each, message.subject) for each in earlier):
            return
        if queue.full:
            self.continuity.report_loss("the gateway dropped messages of core NATS", 1)
            return
        own = Headers(self._settings.mode, reply_to=message.reply or None)
        found = Message(message.subject, message.data, *read_headers(message.headers, own))
        self.continuity.heard = self.continuity.clock()
        queue.put([ReceivedMessage(found, "")])

    async def _start(self, connection: NatsConnection, queue: Inbox) -> None:
        client = connection.client
        await connection.make_stream()
        self._stream = self._settings.stream or await self._find_stream(connection)
        await self._find_consumer(connection)
        self._inbox, self._wanted, self._held = client.new_inbox(), 0, []
        self._fits = True
        take = partial(self._take, connection, queue)
        await client.subscribe(self._inbox, cb=take, pending_bytes_limit=0, pending_msgs_limit=0)
        self.continuity.retention = Retention.NEW if self._is_new else Retention.KEPT
        self._is_new = False
        connection.run(self._pull(connection, queue))
        connection.run(self._ask_for_time(connection, queue))

    async def _find_stream(self, connection: NatsConnection) -> str:
        """Return the stream of the patterns; of several ones a consumer would read one alone."""
        found: set[str] = set()
        for pattern in self._patterns:
            streams = await connection.find_streams(pattern)
            if not streams:
                reason = f"no stream has the subject {pattern!r}; set `stream`"
                raise EndpointError(f"{self._settings.name}: {reason}")
            found.update(streams)
        if len(found) > 1:
            reason = f"several streams have subjects of the pattern: {', '.join(sorted(found))}"
            hint = "set `stream`, at an endpoint for each"
            raise EndpointError(f"{self._settings.name}: {reason}; {hint}")
        return found.pop()

    async def _find_consumer(self, connection: NatsConnection) -> None:
        """Make the consumer, or return to the server what the last reader left behind."""
        jetstream, settings = connection.jetstream, self._settings
        try:
            await jetstream.consumer_info(self._stream, self._consumer)
        except NotFoundError:
            self._is_new, self._answered = True, 0
        only = self._patterns[0] if len(self._patterns) == 1 else None
        try:
            info = await jetstream.add_consumer(
                self._stream,
                ConsumerConfig(
                    durable_name=self._consumer,
                    ack_policy=AckPolicy.EXPLICIT,
                    deliver_policy=DeliverPolicy.ALL,
                    ack_wait=settings.ack_wait,
                    max_ack_pending=settings.receive_window,
                    filter_subject=only,  # 2.9 has no list of them; others are tested here
                ),
            )
        except NotFoundError as error:
            raise EndpointError(f"{settings.name}: no stream {self._stream!r}") from error
        stream = await jetstream.stream_info(self._stream)
        self._keeps_unread = stream.config.retention != RetentionPolicy.LIMITS
        self._exact = only is None or stream.config.subjects == [only]
        self._last_delivery = info.delivered.consumer_seq
        floor, end = info.ack_floor.stream_seq, info.delivered.stream_seq
        known = max(floor, self._answered)  # a killed server forgets answers
        is_new = self._is_new
        made = "" if stream.created is None else f"{stream.created.timestamp():.6f}"
        place = self._place
        place.find(self.subscription_store, made, stream.state.last_seq, is_new=is_new)
        gone = max(stream.state.first_seq - 1, 0)  # 0 is the first of an empty stream of 2.9
        if self._exact and not is_new and gone > known:
            self.continuity.report_loss(DROPPED, gone - known)
        self._last_message = max(end, gone, place.seen if is_new else place.highest)
        # A server that took back a delivery waits for messages behind the last: these come again.
        self._returned, self._end = info.num_ack_pending or 0 if end > floor else 0, end
        if self._returned:
            await self._return(connection, floor, end, info.delivered.consumer_seq)

    async def _return(
        self, connection: NatsConnection, floor: int, end: int, deliveries: int
    ) -> None:
        """Return the messages behind `floor` up to `end` that the last reader left unanswered.

        The server looks at the stream's number of a message that it waits for, and else at bounds
        of the consumer's number (processNak of server/consumer.go). It reads answers apart from
        requests for messages: so the last one asks for a confirmation, and requests come after it.
        """
        prefix = f"$JS.ACK.{self._stream}.{self._consumer}.1"
        for number in range(max(floor, end - MAX_RETURNED) + 1, end):
            await connection.client.publish(f"{prefix}.{number}.{deliveries}.0.0", NAK)
        timeout = self._settings.answer_timeout
        await connection.client.request(f"{prefix}.{end}.{deliveries}.0.0", NAK, timeout)

    async def _take(self, connection: NatsConnection, queue: Inbox, message: Any) -> None:  # noqa: ANN401  # the driver's
        if message.subject == self._inbox:
            self._read_status(connection, queue, message.headers or {})
            return
        self._wanted -= 1
        self._returned -= 1
        again, number, delivery, nanoseconds = _numbers_of(message.reply)
        if delivery != self._last_delivery + 1:
            connection.end("another reader took messages of the consumer")
            return
        self._last_delivery = delivery
        place = self._place
        if number > place.kept:
            place.keep_ahead(number)
        place.highest = max(place.highest, number)
        if again == 1:
            if self._exact and number > self._last_message + 1:
                self.continuity.report_loss(DROPPED, number - self._last_message - 1)
            self._last_message = max(number, self._last_message)
        identity = f"nats {self._stream} {nanoseconds} {number}"  # restored streams repeat numbers
        own = Headers(
            self._settings.mode,
            redelivered=again > 1 or number <= place.seen,
            time=nanoseconds // 1_000,
            source_id=identity,
        )
        found = Message(message.subject, message.data, *read_headers(message.headers, own))
        arrival = ReceivedMessage(found, message.reply, number, identity)
        self.continuity.heard = self.continuity.clock()
        patterns, subject = self._patterns, message.subject
        if len(patterns) == 1 or any(selects(each, subject) for each in patterns):
            self._held.append(arrival)
        else:
            connection.run(self._answer(connection, [arrival]))
        if self._returned <= 0 or number > self._end:
            self._put_held(queue)

    def _put_held(self, queue: Inbox) -> None:
        """Put what has come in order; of the returned messages the stream may have lost some."""
        self._returned = 0
        arrivals, self._held = sorted(self._held, key=lambda each: each.number), []
        queue.put(arrivals)

    def _read_status(
        self, connection: NatsConnection, queue: Inbox, headers: dict[str, str]
    ) -> None:
        """Read an answer to a request for messages: it ended, or the consumer is gone."""
        text = str(headers.get("Description", "")).lower()
        if (smaller := _SMALLER.search(text)) and int(smaller[1]):
            self._most, self._wanted = int(smaller[1]), 0
        elif headers.get("Status") == "503" or any(word in text for word in _STATUS_GONE):
            connection.end(f"consumer {self._consumer!r}: {text or 'no answer'}")
        elif headers.get("Status") != "100":
            # stored under a larger `max_payload`; the text also ends a request that is full
            self._fits = _TOO_LARGE not in text or self._wanted < self._most
            self._wanted = 0
            if headers.get("Status") in _STATUS_NONE:
                self._put_held(queue)

    async def _pull(self, connection: NatsConnection, queue: Inbox) -> None:
        """Keep a request for messages open while there is room."""
        loop = asyncio.get_running_loop()
        subject = f"$JS.API.CONSUMER.MSG.NEXT.{self._stream}.{self._consumer}"
        least = connection.client.max_payload + LONGEST_LINE  # else a large message never comes
        most = max(self._settings.receive_window_bytes, least)
        expires = int(PULL_EXPIRES * 1e9)
        late = 0.0
        while not connection.is_over:
            if (self._wanted <= 0 or loop.time() > late) and not queue.full:
                self._wanted = self._most if self._fits else 1
                wish = {"batch": self._wanted, "expires": expires}
                request = json.dumps(wish | ({"max_bytes": most} if self._fits else {})).encode()
                late = loop.time() + 2 * PULL_EXPIRES
                await connection.client.publish(subject, request, reply=self._inbox)
            await asyncio.sleep(PAUSE if self._wanted > 0 or queue.full else 0)

    async def _ask_for_time(self, connection: NatsConnection, queue: Inbox) -> None:
        """Tell the server, three times in `ack_wait`, that unanswered messages are in work."""
        while not connection.is_over:
            await asyncio.sleep(self._settings.ack_wait / 3)
            for each in tuple(queue.unanswered):
                await connection.client.publish(each.receipt, PROGRESS)


def consumer_name(settings: NatsSettings, instance: str) -> str:
    """Return the name of the durable consumer; a character that it cannot have is replaced."""
    template = settings.consumer or f"gateway-{settings.name}-{{instance}}"
    name = template.replace("{instance}", instance)
    plain = _NO_NAME.sub("_", name)[:_MAX_NAME]
    if plain == name:
        return name
    return f"{plain}-{blake2b(name.encode(), digest_size=4).hexdigest()}"


def _numbers_of(reply: str) -> tuple[int, ...]:
    """Return deliveries, numbers in the stream and of the delivery, and the time in nanoseconds.

    `$JS.ACK.[domain.account.]stream.consumer.deliveries.number.delivery.time.pending`
    """
    parts = reply.split(".")
    at = 4 if len(parts) < 11 else 6  # noqa: PLR2004  # with the domain, eleven tokens or more
    return tuple(map(int, parts[at : at + 4]))
