"""A producer of librdkafka: one connection of a sink to its cluster.

    made    by `open` of the sink; it waits until a server has answered
    polled  by a thread of its own, which hands over the answers for messages
    ended   at the first loss of the whole cluster, fatal error, or message without an answer for
            too long; what had no answer is dropped from its queues, and the sink sends it again

The library repeats what a lost connection to one server leaves without an answer. The producer is
idempotent: such a repetition makes no double, and no later message of a partition overtakes it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Condition, Thread, current_thread
from time import monotonic
from typing import Any, Final, NamedTuple, TypeAlias

from confluent_kafka import KafkaError, KafkaException, Producer

from gateway.endpoints.kafka.client import (
    ClientFaults,
    address_of,
    connect,
    producer_options,
    serve,
    split_error,
)
from gateway.endpoints.kafka.headers import KafkaHeaders
from gateway.endpoints.kafka.topics import TopicBook
from gateway.endpoints.sent_messages import CHECK_INTERVAL
from gateway.endpoints.settings.kafka import KafkaSettings
from gateway.errors import EndpointError, NotConnectedError

log = logging.getLogger(__name__)

POLL: Final = 0.1  # seconds
CLOSE_TIMEOUT: Final = 2.0  # seconds
ANY: Final = -1  # librdkafka, RD_KAFKA_PARTITION_UA


class SentRecord(NamedTuple):
    """A message as it is sent; `size` is the bytes that count for limits.

    The partition ANY is that of the key, and of a null key any.
    """

    topic: str
    key: bytes | None
    value: bytes | None
    headers: KafkaHeaders
    timestamp: int
    size: int
    partition: int = ANY


# The servers' answer for a message: its number, its size, and None where all in-sync replicas have
# it.
DeliveryReport: TypeAlias = tuple[int, int, KafkaError | None]


class KafkaProducer:
    """One client, and the thread that polls it. Mutable.

    `on_reports` gets the answers, and `on_look` is called from time to time, both in the thread;
    `on_end` is called once, in any thread, when the producer ends by itself.
    """

    def __init__(
        self,
        settings: KafkaSettings,
        instance: str,
        batch: int,
        on_end: Callable[[NotConnectedError], None],
    ) -> None:
        """Connect; a batch has at most about `batch` bytes.

        Raises:
            NotConnectedError: no server answers.
            EndpointError: the log-in is refused, or a file cannot be used.
        """
        self.settings, self._on_end = settings, on_end
        self.is_over, self._reason = False, ""
        self.on_reports: Callable[[list[DeliveryReport]], None] = lambda _reports: None
        self.on_look: Callable[[], None] = lambda: None
        self._reports: list[DeliveryReport] = []
        self._room = Condition()
        self._bytes = 0  # of messages without an answer
        self._faults = ClientFaults(settings.name, self._lost)
        options = producer_options(settings, instance, self._faults)
        try:
            self.client: Any = Producer(options | {"batch.size": min(batch, options["batch.size"])})
        except KafkaException as error:
            raise EndpointError(f"{settings.name}: {error.args[0].str()}") from error
        try:
            self.address = address_of(connect(self.client, settings, self._faults))
        except BaseException:
            self.client = None  # its threads and sockets end with it, and a callback leads here
            raise
        self.topics = TopicBook(settings, instance, self.client.list_topics)
        self._thread = Thread(target=self._run, name=f"{settings.name}-kafka", daemon=True)

    def start(self) -> None:
        """Begin to poll, once the callbacks are set."""
        self._thread.start()

    def check(self) -> None:
        """Raise NotConnectedError when the producer is over."""
        if self.is_over:
            raise NotConnectedError(f"{self.settings.name}: not connected: {self._reason}")

    def wait_for_room(self, size: int) -> None:
        """Wait until so many bytes fit beside what has no answer; more than fits goes alone.

        Raises:
            NotConnectedError: the producer is over.
        """
        with self._room:
            self.check()
            while self._bytes and self._bytes + size > self.settings.send_window_bytes:
                self._room.wait(CHECK_INTERVAL)
                self.check()
            self._bytes += size

    def send(self, numbers: Sequence[int], records: Sequence[SentRecord]) -> None:
        """Give records to the client; one that it does not take gets a report.

        After the first one for which its queue has no room, it takes none: their order counts.
        """
        produce, take, is_full = self.client.produce, self._reports.append, False
        for number, each in zip(numbers, records, strict=True):
            size = each.size
            if is_full:
                take((number, size, _QUEUE_FULL))
                continue
            try:
                produce(
                    each.topic,
                    each.value,
                    each.key,
                    each.partition,
                    on_delivery=lambda error, _, number=number, size=size: take(
                        (number, size, error)
                    ),
                    timestamp=each.timestamp,
                    headers=each.headers,
                )
            except BufferError:
                is_full = True
                take((number, size, _QUEUE_FULL))
            except KafkaException as error:
                take((number, size, error.args[0]))

    def end(self, reason: str) -> None:
        """End the producer for `reason`; the first reason counts."""
        if not self.is_over:
            self.is_over, self._reason = True, reason
            self._on_end(NotConnectedError(f"{self.settings.name}: {reason}"))

    def close(self) -> None:
        """Release everything without waiting for answers; never raises."""
        if not self.is_over:
            self.is_over, self._reason = True, "it is closed"
        if self._thread.is_alive() and self._thread is not current_thread():
            self._thread.join(CLOSE_TIMEOUT)

    def _run(self) -> None:
        try:
            self._serve()
        finally:
            self.end("its thread has ended")  # for a fault of the gateway or the library
            with suppress(KafkaException):
                self.client.purge(blocking=False)
            self.client = None
            self.topics.end()

    def _serve(self) -> None:
        next_look = monotonic() + CHECK_INTERVAL
        while not self.is_over:
            if (fatal := serve(self.client, POLL)) is not None:
                self._lost(fatal)
            if self._reports:
                self._hand_over()
            if monotonic() >= next_look:
                next_look = monotonic() + CHECK_INTERVAL
                self.on_look()

    def _hand_over(self) -> None:
        reports = self._reports[:]
        del self._reports[: len(reports)]  # `send` appends to the same list
        self.on_reports(reports)
        with self._room:
            self._bytes -= sum([size for _, size, _ in reports])
            self._room.notify_all()

    def _lost(self, error: KafkaError) -> None:
        self.end(": ".join(split_error(self.settings, error)))


_QUEUE_FULL: Final = KafkaError(KafkaError._QUEUE_FULL)  # noqa: SLF001  # the library's own error
