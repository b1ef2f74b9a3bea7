"""A Solace sink: guaranteed messages settled by the broker's receipts, direct ones when they left.

It publishes without the library's buffer: with one, a topic the library misjudges ends the thread
that sends for everybody, and direct messages wait behind an outage and vanish.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from threading import Event, Lock, Thread
from typing import Any, Final

from solace.messaging.errors.pubsubplus_client_error import (
    IllegalStateError,
    PublisherOverflowError,
    PubSubPlusClientError,
)
from solace.messaging.publisher.persistent_message_publisher import MessagePublishReceiptListener
from solace.messaging.publisher.publisher_health_check import PublisherReadinessListener
from solace.messaging.resources.topic import Topic

from gateway.endpoints.base import Settle
from gateway.endpoints.solace.link import Link
from gateway.endpoints.solace.names import refuse_topic
from gateway.endpoints.solace.native import Native
from gateway.endpoints.solace.outbound import Writer
from gateway.endpoints.solace.pending import Delivery, Receipts
from gateway.endpoints.solace.refusals import connect_error, explain, publish_refusal
from gateway.endpoints.solace_settings import SolaceSettings
from gateway.errors import GatewayError, NotConnectedError, TranslationError
from gateway.model.message import DeliveryMode, Message
from gateway.model.outcome import ACCEPTED, RETRY, Settlement, rejected

log = logging.getLogger(__name__)

_GLANCE: Final = 0.05  # seconds between looks at a publisher that never says it is ready
_WATCH: Final = 0.25  # seconds between looks at outstanding receipts, at most
_TOPICS_KEPT: Final = 65_536


class SolaceSink:
    """Mutable: it is open or closed; one thread sends at a time."""

    def __init__(self, settings: SolaceSettings) -> None:
        self._settings = settings
        self._native = Native()
        self._topics: dict[str, Any] = {}  # the driver's, or a settlement that refuses
        self._sending = Lock()
        self._session: _Session | None = None

    def open(self) -> None:
        self.close()
        session = _Session(self._settings, self._native)
        self._session = session
        session.start()

    def send(self, messages: Sequence[Message], settled: Settle) -> None:
        session = self._session
        if session is None or session.is_over:
            raise NotConnectedError(f"{self._settings.name}: not connected")
        if not messages:
            settled(())
            return
        delivery = Delivery(len(messages), settled)
        with self._sending:
            try:
                self._publish_all(session, delivery, messages)
            except NotConnectedError:
                if delivery.abandon():
                    raise
                delivery.settle_rest(RETRY)

    def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def _publish_all(
        self, session: _Session, delivery: Delivery, messages: Sequence[Message]
    ) -> None:
        """Hand over every message; those that no receipt will settle are settled here."""
        done: list[int] = []
        topics, longest = self._topics, self._settings.max_message
        guaranteed = self._settings.guaranteed
        write, publish = session.writer.write, session.publish_direct
        try:
            for place, message in enumerate(messages):
                topic = topics.get(message.address) or self._learn(message.address)
                if topic.__class__ is Settlement or len(message.payload) > longest:
                    delivery.settle((place,), self._refuse(topic, message))
                    continue
                try:
                    prepared = write(message)
                except TranslationError as error:
                    delivery.settle((place,), rejected(error.rule, str(error)))
                    continue
                if guaranteed and message.headers.mode is not DeliveryMode.AT_MOST_ONCE:
                    session.publish_guaranteed(prepared, topic, delivery, place)
                else:
                    publish(prepared, topic)
                    done.append(place)
        finally:
            if done:
                delivery.settle(done, ACCEPTED)

    def _learn(self, address: str) -> Any:  # noqa: ANN401  # the driver's topic, or a refusal
        if len(self._topics) >= _TOPICS_KEPT:
            self._topics.clear()
        topic = self._topics[address] = refuse_topic(address) or Topic.of(address)
        return topic

    def _refuse(self, topic: Any, message: Message) -> Settlement:  # noqa: ANN401
        if isinstance(topic, Settlement):
            return topic
        size, limit = len(message.payload), self._settings.max_message
        return rejected("message-bytes", f"solace: payload is {size} bytes, limit {limit}")


class _Session:
    """One connection with its publishers. Mutable: it ends once, with an answer for everything."""

    def __init__(self, settings: SolaceSettings, native: Native) -> None:
        self._settings = settings
        self._receipts = Receipts()
        self._failure: GatewayError | None = None
        self._room = Event()
        self._link = Link(settings, "sink", self._end)
        builder = self._link.service.message_builder()
        self.writer = Writer(
            builder, native, lambda: time.time_ns() // 1_000, settings.partition_level
        )
        self._stopped = Event()
        self._thread: Thread | None = None

    @property
    def is_over(self) -> bool:
        return self._failure is not None

    def start(self) -> None:
        """Raises: NotConnectedError or EndpointError: the publishers could not be started."""
        service = self._link.service
        try:
            self._direct = (
                service.create_direct_message_publisher_builder()
                .on_back_pressure_reject(0)
                .build()
                .start()
            )
            self._direct.set_publisher_readiness_listener(_Ready(self._room))
            if self._settings.guaranteed:
                self._persistent = (
                    service.create_persistent_message_publisher_builder()
                    .on_back_pressure_reject(0)
                    .build()
                    .start()
                )
                self._persistent.set_publisher_readiness_listener(_Ready(self._room))
                self._persistent.set_message_publish_receipt_listener(
                    _Receipt(self._receipts, self._settings.name)
                )
        except (PubSubPlusClientError, ValueError) as error:
            self.close()
            raise connect_error(self._settings, error) from error
        self._thread = Thread(
            target=self._watch, name=f"{self._settings.name}-receipts", daemon=True
        )
        self._thread.start()

    def publish_guaranteed(self, message: Any, topic: Any, delivery: Delivery, place: int) -> None:  # noqa: ANN401
        """Publish; `delivery` hears of it from the receipt.

        Raises:
            NotConnectedError: it may not have left.
        """
        self._receipts.expect(delivery, time.monotonic())
        try:
            self._publish(self._persistent.publish, message, topic, (delivery, place))
        except NotConnectedError:
            self._receipts.arrived(delivery, time.monotonic())
            raise

    def publish_direct(self, message: Any, topic: Any) -> None:  # noqa: ANN401
        """Raises: NotConnectedError: the connection is away; nothing keeps a direct message."""
        if self._link.away:
            raise NotConnectedError(f"{self._settings.name}: the connection is away")
        try:
            self._direct.publish(message, topic)
        except (PubSubPlusClientError, IllegalStateError):
            self._publish(self._direct.publish, message, topic)

    def close(self) -> None:
        self._end(NotConnectedError(f"{self._settings.name}: is closed; open it first"))
        self._stopped.set()
        self._link.close()
        if self._thread is not None:
            self._thread.join()

    def _publish(self, publish: Any, *what: Any) -> None:  # noqa: ANN401
        """Publish as soon as there is room, and no later than the answers may take."""
        deadline = 0.0
        while True:
            if self._failure is not None:
                raise NotConnectedError(str(self._failure))
            try:
                publish(*what)
            except PublisherOverflowError:
                now = time.monotonic()
                deadline = deadline or now + self._settings.answer_timeout
                if now >= deadline:
                    self._end(self._stuck())
                self._room.wait(_GLANCE)
                self._room.clear()  # before the next attempt, so that no call is missed
            except (PubSubPlusClientError, IllegalStateError) as error:
                text = f"{self._settings.name}: cannot publish: {explain(error)}"
                raise NotConnectedError(text) from error
            else:
                return

    def _watch(self) -> None:
        """Declare a broker stuck that does not answer."""
        patience = self._settings.answer_timeout
        while not self._stopped.wait(min(_WATCH, patience)):
            if self._receipts.silent_for(time.monotonic()) > patience:
                self._end(self._stuck())
                return

    def _stuck(self) -> NotConnectedError:
        patience = self._settings.answer_timeout
        return NotConnectedError(f"{self._settings.name}: no receipt for {patience} s")

    def _end(self, failure: GatewayError) -> None:
        """Nothing goes out any more; all that has no answer is to be tried again."""
        if self._failure is None:
            self._failure = failure
        self._room.set()
        for delivery in self._receipts.take_all():
            delivery.settle_rest(RETRY)


class _Ready(PublisherReadinessListener):  # type: ignore[misc]  # the driver has no types
    def __init__(self, room: Event) -> None:
        self._room = room

    def ready(self) -> None:
        self._room.set()


class _Receipt(MessagePublishReceiptListener):  # type: ignore[misc]  # the driver has no types
    def __init__(self, receipts: Receipts, name: str) -> None:
        self._receipts, self._name = receipts, name

    def on_publish_receipt(self, publish_receipt: Any) -> None:  # noqa: ANN401
        delivery, place = publish_receipt.user_context
        error = publish_receipt.exception
        if error is None and publish_receipt.is_persisted:
            settlement = ACCEPTED
        else:
            settlement = publish_refusal(error) if error is not None else RETRY
        self._receipts.arrived(delivery, time.monotonic())
        try:
            delivery.settle((place,), settlement)
        except Exception:  # the library would swallow what a `settled` raises
            log.exception("%s: an answer could not be passed on", self._name)
