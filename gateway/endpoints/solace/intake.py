"""One connection of a Solace source: a queue with settlements, or direct subscriptions.

The library calls a handler for each message in its own thread and swallows exceptions. The handler
copies and decodes the bytes, and ends the connection if that fails.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Thread
from typing import Any, Final

from solace.messaging.config.message_acknowledgement_configuration import Outcome as Required
from solace.messaging.config.missing_resources_creation_configuration import (
    MissingResourcesCreationStrategy as Creation,
)
from solace.messaging.errors.pubsubplus_client_error import PubSubPlusClientError
from solace.messaging.receiver.message_receiver import MessageHandler
from solace.messaging.resources.queue import Queue
from solace.messaging.resources.share_name import ShareName
from solace.messaging.resources.topic_subscription import TopicSubscription
from solace.messaging.utils._solace_utilities import QueueShutdown

from gateway.clock import now
from gateway.endpoints.base import Batch
from gateway.endpoints.continuity import Retention
from gateway.endpoints.made import Made
from gateway.endpoints.receipts import ReceiptQueue, ReceivedMessage
from gateway.endpoints.solace.connection import SolaceConnection, detach_finalizers
from gateway.endpoints.solace.error_codes import connect_error
from gateway.endpoints.solace.message_reader import SolaceMessageReader, decoding_error
from gateway.endpoints.solace.native_library import NativeLibrary
from gateway.endpoints.solace.received_objects import EndOfIntake, set_receive_window
from gateway.endpoints.solace.wanted import WantedTopics
from gateway.endpoints.source_shell import not_open
from gateway.errors import EndpointError, GatewayError, NotConnectedError, SubscriptionRefusedError
from gateway.model.outcome import ACCEPTED, Outcome, Settlement
from gateway.untyped import Untyped
from gateway.wire.smf.received_message import has_discard_flag

log = logging.getLogger(__name__)

_UNANSWERED: Final = 4  # intervals of keepalive before the library gives a connection up


class SolaceIntake:
    """An intake (`endpoints.source_shell`) of the topics `wanted`.

    Thread-safe: guarded by the queue; one thread receives.
    """

    address = ""  # the settings have it

    def __init__(self, wanted: WantedTopics, native: NativeLibrary) -> None:
        self._wanted, self._settings, self._native = wanted, wanted.settings, native
        self._continuity = wanted.continuity
        self._silent_since = 0  # microseconds; set when the library loses the connection
        self._reader = SolaceMessageReader()  # used by the library's thread
        self.connection: SolaceConnection | None = None
        self.receiver: Any = None
        self.queue: ReceiptQueue[int]  # the receipt of a direct message is 0
        self.queue = ReceiptQueue(self._settings.receive_window_bytes, answer_each=self._answer)

    def open(self) -> None:
        connection = self.connection = SolaceConnection(self._settings, "source", self._fail)
        connection.on_interrupted = self._note_interruption
        connection.on_restored = self._report_interruption
        self._start(connection)
        if self._wanted.queue:
            is_new, self._wanted.queue_is_new = self._wanted.queue_is_new, False
            self._continuity.retention = Retention.NEW if is_new else Retention.KEPT

    def receive(self, timeout: float) -> Batch | None:
        return self.queue.receive(timeout)

    def close(self) -> None:
        # after a settlement that uses the receiver
        self.queue.fail(not_open(self._settings.name), self._survives)
        connection, receiver = self.connection, self.receiver
        self.connection = self.receiver = None
        if connection is not None:
            connection.disconnect()  # the receiver would wait for answers about its subscriptions
        if receiver is not None:
            try:
                receiver.terminate(grace_period=0)
            except PubSubPlusClientError as error:  # undelivered messages come again
                log.debug("%s: %s", self._settings.name, error)
        if connection is not None:
            connection.close()
        if receiver is not None:
            detach_finalizers(receiver)

    def end(self) -> None:
        connection, receiver = self.connection, self.receiver
        if connection is not None and connection.interrupted:
            self._report_interruption()
        if receiver is not None and not self._wanted.queue:
            args = (connection, receiver)
            name = f"{self._settings.name}-end"
            Thread(target=self._end_after_answer, args=args, daemon=True, name=name).start()

    @property
    def ended(self) -> bool:
        return bool(self._wanted.queue) or self.receiver is None or self.queue.ended

    def _end_after_answer(
        self,
        connection: SolaceConnection,
        receiver: Untyped,
    ) -> None:
        """Ask the broker, and mark the library's queue behind what it sent before its answer."""
        # the library has ended the receiver or its queue: nothing comes
        with suppress(RuntimeError, QueueShutdown):
            if connection.ask(self._native):
                receiver.receiver_queue.put(EndOfIntake(self.queue.end))
            for topic in _topics(self._wanted.patterns):
                receiver.remove_subscription_async(topic)

    def _fail(self, failure: GatewayError) -> None:
        """End the queue; the library may have tried for long to restore the connection."""
        if not (self._wanted.queue or self._continuity.heard):
            self._continuity.heard = self._silent_since or self._last_answer()
        self.queue.fail(failure, self._survives)

    def _survives(self, _received: object) -> bool:
        """Return whether messages can still be received: direct ones do not come again."""
        return not self._wanted.queue

    def _start(self, connection: SolaceConnection) -> None:
        make, put = self._make_direct, self._put_direct
        if self._wanted.queue:
            make, put = self._make_guaranteed, self._put_guaranteed
        try:
            unwanted = self._wanted.begin()
            receiver = self.receiver = make(connection)
            # before the start: the library tells of the end of a flow once
            receiver.set_termination_notification_listener(connection)
            receiver.start()
            self._remove(receiver, unwanted)
            receiver.receive_async(_ArrivalHandler(put, connection))
        except (PubSubPlusClientError, ValueError) as error:
            failure = connect_error(self._settings, error)
            if failure.retryable:
                raise failure from error
            raise SubscriptionRefusedError(str(failure)) from error

    def _remove(self, receiver: Untyped, patterns: Sequence[str]) -> None:
        """Remove subscriptions from the queue; what cannot be removed is tried again next time."""
        left: list[str] = []
        for topic in _topics(patterns):
            try:
                receiver.add_subscription(topic)  # the library removes only what it has added
                receiver.remove_subscription(topic)
            except PubSubPlusClientError as error:
                left.append(topic.get_name())
                log.warning("%s: a subscription stays: %s", self._settings.name, error)
        if patterns:
            self._wanted.keep(left)

    def _note_interruption(self) -> None:
        self._silent_since = self._continuity.heard or self._last_answer()

    def _last_answer(self) -> int:
        """Return when a keepalive can have been answered last, in microseconds."""
        silence = int(_UNANSWERED * self._settings.keepalive * 1_000_000)
        return self._continuity.clock() - silence

    def _report_interruption(self) -> None:
        """Report the direct messages that were sent while the library connected again."""
        if not self._wanted.queue:
            reason = "the library had to restore the connection"
            self._continuity.report_loss(reason, since=self._silent_since)
            self._silent_since = 0

    def _make_guaranteed(self, connection: SolaceConnection) -> Untyped:
        settings, exclusive = self._settings, self._settings.exclusive_queue
        builder = connection.service.create_persistent_message_receiver_builder()
        builder = builder.with_required_message_outcome_support(Required.FAILED)
        if settings.create_queue:
            session = connection.service.session.session_pointer
            if self._native.create_queue(session, self._wanted.queue, exclusive=exclusive):
                self._wanted.queue_is_new = True
                made = Made("queue", self._wanted.queue, settings.broker_key)
                self._wanted.memory.note_made(made)  # the broker tells only now that it was absent
            builder = builder.with_missing_resources_creation_strategy(Creation.CREATE_ON_START)
        if settings.subscribe_queue:
            builder = builder.with_subscriptions(_topics(self._wanted.patterns))
        name = Queue.durable_exclusive_queue if exclusive else Queue.durable_non_exclusive_queue
        receiver = builder.build(name(self._wanted.queue))
        set_receive_window(receiver, settings.receive_window)
        return receiver

    def _make_direct(self, connection: SolaceConnection) -> Untyped:
        builder = connection.service.create_direct_message_receiver_builder()
        builder = builder.with_subscriptions(_topics(self._wanted.patterns))
        builder = builder.on_back_pressure_drop_latest(self._settings.direct_buffer)
        share = self._settings.share
        return builder.build(ShareName.of(share) if share else None)

    def _put_guaranteed(self, message: Untyped) -> None:
        native = self._native
        frame, message_id = native.read(message), native.read_id(message)
        group_id = native.read_group_id(message)
        native.release(message)
        if not message_id:  # the broker delivers it again; it cannot be settled here
            raise EndpointError("the library has no id of a received message")
        # a broker that lost its spool counts from the start again: it has another group id then
        identity = f"smf {group_id.hex() or message_id}"
        self.queue.put_when_room([self._decode(frame, message_id, identity, now())])

    def _put_direct(self, message: Untyped) -> None:
        frame = self._native.read(message)
        dropped = message.get_message_discard_notification().has_internal_discard_indication()
        self._native.release(message)
        if dropped or has_discard_flag(frame):
            self._wanted.counts["lost"] += 1
            where = "here; raise direct_buffer" if dropped else "by the broker"
            log.warning("%s: direct messages were dropped %s", self._settings.name, where)
            self._continuity.report_loss(f"direct messages were dropped {where}")
        self._continuity.heard = self._continuity.clock()
        self.queue.put_when_room([self._decode(frame, 0, "", now())])

    def _decode(
        self, frame: bytes, message_id: int, identity: str, at: int
    ) -> ReceivedMessage[int]:
        """Decode a message that arrived at `at` (microseconds); count and log a malformed one."""
        message = self._reader.read(frame, at)
        if not message.address:
            self._wanted.counts["undecoded"] += 1
            error = decoding_error(message)
            log.warning("%s: a message cannot be read: %s", self._settings.name, error)
        # the application message id is not an identity: senders may use one for many messages
        return ReceivedMessage(message, message_id, identity=identity)

    def _answer(
        self, received: Sequence[ReceivedMessage[int]], settlements: Sequence[Settlement]
    ) -> Sequence[Settlement]:
        """Answer the broker; return what becomes of the messages in the queue.

        A retried message stays there. With `retry_at_broker` it is finished, and the broker
        delivers it again.
        """
        settled, settle, receiver = list(settlements), self._native.settle, self.receiver
        for position, (each, settlement) in enumerate(zip(received, settlements, strict=True)):
            if settlement.outcome is Outcome.RETRY:
                if not (self._settings.retry_at_broker and each.receipt):
                    continue
                settled[position] = ACCEPTED
            if each.receipt and not settle(receiver.flow_p, each.receipt, settlement.outcome):
                log.debug("%s: settling: %s", self._settings.name, self._native.last_error())
                break  # the connection broke: the broker redelivers unsettled messages
        return settled


class _ArrivalHandler(MessageHandler):  # type: ignore[misc]  # the driver has no types
    def __init__(self, put: Callable[[Any], None], connection: SolaceConnection) -> None:
        self._put, self._connection = put, connection

    def on_message(self, message: Untyped) -> None:
        if isinstance(message, EndOfIntake):
            message.end()
            return
        try:
            self._put(message)
        except Exception as error:  # the library swallows exceptions
            name = self._connection.name
            failure = NotConnectedError(f"{name}: cannot queue a received message: {error}")
            if self._connection.end(failure):
                log.exception("%s: a received message could not be queued", name)


def _topics(patterns: Sequence[str]) -> list[Any]:
    return [TopicSubscription.of(pattern) for pattern in patterns]
