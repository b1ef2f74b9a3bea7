"""A Solace sink: receipts settle guaranteed messages, the answer to a question direct ones.

It publishes without the library's buffer. With the buffer, a topic that the library misjudges
would end the sending thread, and direct messages would be lost after an interruption.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import Final

from gateway.endpoints.base import Settle, unwritable
from gateway.endpoints.sent_messages import SentBatch
from gateway.endpoints.settings.solace import SolaceSettings
from gateway.endpoints.solace.native_library import NativeLibrary, NativeTopic, native_topic
from gateway.endpoints.solace.publisher_session import PublisherSession
from gateway.endpoints.solace.topic_rules import refuse_topic
from gateway.errors import EndpointError, NotConnectedError
from gateway.model.dead_letter_rule import LIBRARY, MESSAGE_BYTES
from gateway.model.limited_cache import LimitedCache
from gateway.model.memory_size import text_size
from gateway.model.message import DeliveryMode, Message
from gateway.model.outcome import ACCEPTED, RETRY, Settlement, rejected

_MAX_REMEMBERED_SIZE: Final = 32 << 20  # bytes of topics


class SolaceSink:
    """Sends messages.

    Thread-safe: guarded by self._send_lock.
    """

    def __init__(self, settings: SolaceSettings, instance: str = "") -> None:
        del instance  # its connection has no name
        self._settings = settings
        self._guaranteed = settings.guaranteed
        self._native = NativeLibrary()
        # a settlement: the refusal of the topic
        self._topics: LimitedCache[str, NativeTopic | Settlement] = LimitedCache(
            _MAX_REMEMBERED_SIZE
        )
        self._send_lock = Lock()
        self._session: PublisherSession | None = None

    def open(self) -> None:
        self.close()
        self._session = PublisherSession(self._settings, self._native)

    def send(self, messages: Sequence[Message], settled: Settle) -> None:
        session = self._session
        if session is None or session.is_over:
            raise NotConnectedError(f"{self._settings.name}: not connected")
        if not messages:
            settled(())
            return
        batch = SentBatch(len(messages), settled)
        with self._send_lock:
            try:
                self._publish_all(session, batch, messages)
            except NotConnectedError:
                if batch.abandon():
                    raise
                batch.settle_rest(RETRY)

    def close(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.close()

    def _publish_all(
        self, session: PublisherSession, batch: SentBatch, messages: Sequence[Message]
    ) -> None:
        """Publish every message, and settle those that are not sent."""
        sent: list[int] = []
        publish, connection = self._publish, session.connection_number()
        complete = False
        try:
            for position, message in enumerate(messages):
                settlement = publish(session, batch, position, message)
                if settlement is ACCEPTED:
                    sent.append(position)
                elif settlement is not None:
                    complete = batch.settle((position,), settlement)
        finally:
            if complete:
                batch.answer()
            if sent:
                session.confirm(batch, sent, connection)

    def _publish(
        self, session: PublisherSession, batch: SentBatch, position: int, message: Message
    ) -> Settlement | None:
        """Publish one message; return its refusal, ACCEPTED if it is direct, None for a receipt."""
        topic = self._topics.get(message.address) or self._read_topic(message.address)
        if isinstance(topic, Settlement):
            return topic
        size, limit = len(message.payload), self._settings.max_message
        if size > limit:
            return rejected(MESSAGE_BYTES, f"solace: payload is {size} bytes, limit {limit}")
        try:
            prepared = session.writer.write(message)
        except Exception as error:  # noqa: BLE001  # of this message; the others are sent
            return unwritable(self._settings.name, error)
        try:
            if self._guaranteed and message.headers.mode is not DeliveryMode.AT_MOST_ONCE:
                return session.publish_guaranteed(prepared, topic, batch, position)
            return session.publish_direct(prepared, topic)
        except NotConnectedError:
            raise
        except EndpointError as error:  # the library refuses a field, and would again
            return rejected(LIBRARY, str(error))

    def _read_topic(self, address: str) -> NativeTopic | Settlement:
        topic = refuse_topic(address) or native_topic(address)
        self._topics.add(address, topic, 2 * text_size(address))
        return topic
