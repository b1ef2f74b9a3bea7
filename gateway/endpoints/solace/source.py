"""A Solace source: a queue with settlements, or direct subscriptions; losses are counted.

The library calls a handler for each message in its own thread and swallows exceptions. The handler
copies and decodes the bytes, and ends the connection if that fails.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from threading import Thread
from typing import Any, Final, TypeAlias

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
from gateway.endpoints.base import Batch, Subscription
from gateway.endpoints.continuity import Continuity, Retention
from gateway.endpoints.received_messages import ReceivedMessage, ReceivedMessages
from gateway.endpoints.settings.solace import SolaceSettings
from gateway.endpoints.solace.connection import SolaceConnection, detach_finalizers
from gateway.endpoints.solace.error_codes import connect_error
from gateway.endpoints.solace.message_reader import SolaceMessageReader, decoding_error
from gateway.endpoints.solace.native_library import NativeLibrary
from gateway.endpoints.solace.received_objects import EndOfIntake, install, set_receive_window
from gateway.endpoints.solace.topic_rules import find_pattern_error, find_queue_error
from gateway.endpoints.source_memory import NO_TEXTS, SourceMemory, read_texts
from gateway.errors import EndpointError, GatewayError, NotConnectedError, SubscriptionRefusedError
from gateway.model.outcome import ACCEPTED, Outcome, Settlement
from gateway.wire.smf.received_message import has_discard_flag

ArrivalQueue: TypeAlias = ReceivedMessages[int]  # the receipt of a direct message is 0

log = logging.getLogger(__name__)

_UNANSWERED: Final = 4  # intervals of keepalive before the library gives a connection up


class SolaceSource:
    """Receives from a queue or from direct subscriptions.

    In `counts`, `lost` are the gaps at which direct messages were dropped, `undecoded` malformed
    messages.
    Thread-safe: guarded by the queue; one thread receives.
    """

    def __init__(
        self, settings: SolaceSettings, subscriptions: Sequence[Subscription], instance: str = ""
    ) -> None:
        """Check the names.

        Raises:
            EndpointError: the library would misread a pattern or the name of the queue.
        """
        self._settings = settings
        self._patterns = [each.pattern for each in subscriptions]
        for pattern in self._patterns:
            if found := find_pattern_error(pattern):
                raise EndpointError(f"{settings.name}: subscription {pattern[:300]!r}: {found[1]}")
        self._queue = _queue_name(settings, instance) if settings.guaranteed else ""
        self.continuity = Continuity(Retention.KEPT if self._queue else Retention.NOTHING)
        self.memory = SourceMemory()
        self._fact = f"subscriptions {self._queue}"
        self._silent_since = 0  # microseconds; set when the library loses the connection
        self._queue_is_new = False  # made since the last successful `open`
        self._native = NativeLibrary()
        install()
        self._reader = SolaceMessageReader()  # used by the library's thread
        self._connection: SolaceConnection | None = None
        self._receiver: Any = None
        self._arrivals: ArrivalQueue = ReceivedMessages(settings.receive_window_bytes)
        self._arrivals.fail(NotConnectedError(f"{settings.name}: is closed; open it first"))
        self.counts = {"lost": 0, "undecoded": 0}

    def open(self) -> None:
        self.close()
        window = self._settings.receive_window_bytes
        queue: ArrivalQueue = ReceivedMessages(window, answer_each=self._answer)
        connection = SolaceConnection(self._settings, "source", partial(self._fail, queue))
        connection.on_interrupted = self._note_interruption
        connection.on_restored = self._report_interruption
        self._connection, self._arrivals = connection, queue
        self._reader = SolaceMessageReader()  # the last thread may still use the old one
        try:
            self._start(connection, queue)
        except BaseException:
            self.close()
            raise
        if self._queue:
            self.continuity.retention = Retention.NEW if self._queue_is_new else Retention.KEPT
            self._queue_is_new = False

    def receive(self, timeout: float) -> Batch | None:
        return self._arrivals.receive(timeout)

    def close(self) -> None:
        # after a settlement that uses the receiver
        closed = NotConnectedError(f"{self._settings.name}: is closed; open it first")
        self._arrivals.fail(closed, self._survives)
        connection, receiver = self._connection, self._receiver
        self._connection = self._receiver = None
        if receiver is not None:
            try:
                receiver.terminate(grace_period=0)
            except PubSubPlusClientError as error:  # undelivered messages come again
                log.debug("%s: %s", self._settings.name, error)
        if connection is not None:
            connection.close()
        if receiver is not None:
            detach_finalizers(receiver)

    def end_intake(self) -> None:
        connection, receiver = self._connection, self._receiver
        if connection is not None and connection.interrupted:
            self._report_interruption()
        if receiver is not None and not self._queue:
            args = (connection, receiver, self._arrivals)
            name = f"{self._settings.name}-end"
            Thread(target=self._end_after_answer, args=args, daemon=True, name=name).start()

    @property
    def intake_ended(self) -> bool:
        return bool(self._queue) or self._receiver is None or self._arrivals.ended

    def _end_after_answer(
        self,
        connection: SolaceConnection,
        receiver: Any,  # noqa: ANN401  # the driver's
        arrivals: ArrivalQueue,
    ) -> None:
        """Ask the broker, and mark the library's queue behind what it sent before its answer."""
        # the library has ended the receiver or its queue: nothing comes
        with suppress(RuntimeError, QueueShutdown):
            if self._native.ask(connection.service.session.session_pointer):
                receiver.receiver_queue.put(EndOfIntake(arrivals.end))
            for topic in _topics(self._patterns):
                receiver.remove_subscription_async(topic)

    def _fail(self, queue: ArrivalQueue, failure: GatewayError) -> None:
        """End a queue; the library may have tried for long to restore the connection."""
        if not (self._queue or self.continuity.heard):
            self.continuity.heard = self._silent_since or self._last_answer()
        queue.fail(failure, self._survives)

    def _survives(self, _received: object) -> bool:
        """Return whether messages can still be received: direct ones do not come again."""
        return not self._queue

    def _start(self, connection: SolaceConnection, queue: ArrivalQueue) -> None:
        make, put = self._make_direct, self._put_direct
        if self._queue:
            make, put = self._make_guaranteed, self._put_guaranteed
        try:
            unwanted = self._remember_subscriptions()
            receiver = self._receiver = make(connection)
            # before the start: the library tells of the end of a flow once
            receiver.set_termination_notification_listener(connection)
            receiver.start()
            self._remove(receiver, unwanted)
            receiver.receive_async(_ArrivalHandler(partial(put, queue), connection))
        except (PubSubPlusClientError, ValueError) as error:
            failure = connect_error(self._settings, error)
            if failure.retryable:
                raise failure from error
            raise SubscriptionRefusedError(str(failure)) from error

    def _remember_subscriptions(self) -> list[str]:
        """Note what the queue is about to have of us; return what we no longer want there.

        Another gateway may want it on a queue that several read.
        """
        settings = self._settings
        if not (self._queue and settings.subscribe_queue):
            return []
        known = {*(self.memory.get(self._fact, read_texts, NO_TEXTS) or NO_TEXTS)}
        wanted = {*self._patterns}
        self.memory.put(self._fact, sorted(known | wanted))
        return sorted(known - wanted) if settings.exclusive_queue else []

    def _remove(self, receiver: Any, patterns: Sequence[str]) -> None:  # noqa: ANN401
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
            self.memory.put(self._fact, sorted({*self._patterns, *left}))

    def _note_interruption(self) -> None:
        self._silent_since = self.continuity.heard or self._last_answer()

    def _last_answer(self) -> int:
        """Return when a keepalive can have been answered last, in microseconds."""
        silence = int(_UNANSWERED * self._settings.keepalive * 1_000_000)
        return self.continuity.clock() - silence

    def _report_interruption(self) -> None:
        """Report the direct messages that were sent while the library connected again."""
        if not self._queue:
            reason = "the library had to restore the connection"
            self.continuity.report_loss(reason, since=self._silent_since)
            self._silent_since = 0

    def _make_guaranteed(self, connection: SolaceConnection) -> Any:  # noqa: ANN401  # the driver's receiver
        settings, exclusive = self._settings, self._settings.exclusive_queue
        builder = connection.service.create_persistent_message_receiver_builder()
        builder = builder.with_required_message_outcome_support(Required.FAILED)
        if settings.create_queue:
            session = connection.service.session.session_pointer
            if self._native.create_queue(session, self._queue, exclusive=exclusive):
                self._queue_is_new = True
            builder = builder.with_missing_resources_creation_strategy(Creation.CREATE_ON_START)
        if settings.subscribe_queue:
            builder = builder.with_subscriptions(_topics(self._patterns))
        name = Queue.durable_exclusive_queue if exclusive else Queue.durable_non_exclusive_queue
        receiver = builder.build(name(self._queue))
        set_receive_window(receiver, settings.receive_window)
        return receiver

    def _make_direct(self, connection: SolaceConnection) -> Any:  # noqa: ANN401
        builder = connection.service.create_direct_message_receiver_builder()
        builder = builder.with_subscriptions(_topics(self._patterns))
        builder = builder.on_back_pressure_drop_latest(self._settings.direct_buffer)
        share = self._settings.share
        return builder.build(ShareName.of(share) if share else None)

    def _put_guaranteed(self, queue: ArrivalQueue, message: Any) -> None:  # noqa: ANN401
        native = self._native
        frame, message_id = native.read(message), native.read_id(message)
        group_id = native.read_group_id(message)
        native.release(message)
        if not message_id:  # the broker delivers it again; it cannot be settled here
            raise EndpointError("the library has no id of a received message")
        # a broker that lost its spool counts from the start again: it has another group id then
        identity = f"smf {group_id.hex() or message_id}"
        queue.put_when_room([self._decode(frame, message_id, identity, now())])

    def _put_direct(self, queue: ArrivalQueue, message: Any) -> None:  # noqa: ANN401
        frame = self._native.read(message)
        dropped = message.get_message_discard_notification().has_internal_discard_indication()
        self._native.release(message)
        if dropped or has_discard_flag(frame):
            self.counts["lost"] += 1
            where = "here; raise direct_buffer" if dropped else "by the broker"
            log.warning("%s: direct messages were dropped %s", self._settings.name, where)
            self.continuity.report_loss(f"direct messages were dropped {where}")
        self.continuity.heard = self.continuity.clock()
        queue.put_when_room([self._decode(frame, 0, "", now())])

    def _decode(
        self, frame: bytes, message_id: int, identity: str, at: int
    ) -> ReceivedMessage[int]:
        """Decode a message that arrived at `at` (microseconds); count and log a malformed one."""
        message = self._reader.read(frame, at)
        if not message.address:
            self.counts["undecoded"] += 1
            error = decoding_error(message)
            log.warning("%s: a message cannot be read: %s", self._settings.name, error)
        # the application message id is no identity: senders may use one for many messages
        return ReceivedMessage(message, message_id, identity=identity)

    def _answer(
        self, received: Sequence[ReceivedMessage[int]], settlements: Sequence[Settlement]
    ) -> Sequence[Settlement]:
        """Answer the broker; return what becomes of the messages in the queue.

        A retried message stays there. With `retry_at_broker` it is finished, and the broker
        delivers it again.
        """
        settled, settle, receiver = list(settlements), self._native.settle, self._receiver
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

    def on_message(self, message: Any) -> None:  # noqa: ANN401
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


def _queue_name(settings: SolaceSettings, instance: str) -> str:
    name = settings.queue.replace("{instance}", instance) or f"gateway/{settings.name}/{instance}"
    if found := find_queue_error(name):
        raise EndpointError(f"{settings.name}: queue {name[:300]!r}: {found[1]}")
    return name
