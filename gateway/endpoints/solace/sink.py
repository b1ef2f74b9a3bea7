"""A Solace sink: guaranteed messages settled by the broker's receipts, direct ones when they left.

It publishes without the library's buffer: with one, a topic the library misjudges ends the thread
that sends for everybody, and direct messages wait behind an outage and vanish.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import Final

from gateway.endpoints.base import Settle
from gateway.endpoints.settings.solace import SolaceSettings
from gateway.endpoints.solace.names import refuse_topic
from gateway.endpoints.solace.native import Destination, Native, topic_of
from gateway.endpoints.solace.pending import Delivery
from gateway.endpoints.solace.session import Session
from gateway.errors import EndpointError, NotConnectedError, TranslationError
from gateway.model.message import DeliveryMode, Message
from gateway.model.outcome import ACCEPTED, RETRY, Settlement, rejected

_TOPICS_KEPT: Final = 65_536


class SolaceSink:
    """Mutable: it is open or closed; one thread sends at a time."""

    def __init__(self, settings: SolaceSettings) -> None:
        self._settings = settings
        self._guaranteed = settings.guaranteed
        self._native = Native()
        self._topics: dict[str, Destination | Settlement] = {}  # the latter refuses it
        self._sending = Lock()
        self._session: Session | None = None

    def open(self) -> None:
        self.close()
        self._session = Session(self._settings, self._native)

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
        self, session: Session, delivery: Delivery, messages: Sequence[Message]
    ) -> None:
        """Hand over every message; those that no receipt will settle are settled here."""
        done: list[int] = []
        hand_over = self._hand_over
        complete = False
        try:
            for place, message in enumerate(messages):
                settlement = hand_over(session, delivery, place, message)
                if settlement is ACCEPTED:
                    done.append(place)
                elif settlement is not None:
                    complete = delivery.settle((place,), settlement)
        finally:
            if (done and delivery.settle(done, ACCEPTED)) or complete:
                delivery.answer()

    def _hand_over(
        self, session: Session, delivery: Delivery, place: int, message: Message
    ) -> Settlement | None:
        """Publish one message; None when its receipt will settle it."""
        topic = self._topics.get(message.address) or self._learn(message.address)
        if isinstance(topic, Settlement):
            return topic
        if len(message.payload) > self._settings.max_message:
            return self._too_long(message)
        try:
            prepared = session.writer.write(message)
            if self._guaranteed and message.headers.mode is not DeliveryMode.AT_MOST_ONCE:
                return session.publish_guaranteed(prepared, topic, delivery, place)
            return session.publish_direct(prepared, topic)
        except TranslationError as error:
            return rejected(error.rule, str(error))
        except NotConnectedError:
            raise
        except EndpointError as error:  # the library refuses a part of it; it would do so again
            return rejected("library", str(error))

    def _learn(self, address: str) -> Destination | Settlement:
        if len(self._topics) >= _TOPICS_KEPT:
            self._topics.clear()
        topic = self._topics[address] = refuse_topic(address) or topic_of(address)
        return topic

    def _too_long(self, message: Message) -> Settlement:
        size, limit = len(message.payload), self._settings.max_message
        return rejected("message-bytes", f"solace: payload is {size} bytes, limit {limit}")
