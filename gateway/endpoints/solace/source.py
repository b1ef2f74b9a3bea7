"""A Solace source: a queue read with settlements, or direct subscriptions; no loss is silent.

The library hands over one message at a time in a thread of its own and swallows what a handler
raises; ours only copies the bytes and ends the connection when even that fails.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import partial
from threading import Lock
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
from solace.messaging.utils.life_cycle_control import TerminationNotificationListener

from gateway.clock import now
from gateway.endpoints.base import Batch, Subscription
from gateway.endpoints.settings.solace import SolaceSettings
from gateway.endpoints.solace.inbound import Reader, mark_redelivered, undecoded
from gateway.endpoints.solace.inbox import Arrival, Inbox
from gateway.endpoints.solace.link import Link, let_go
from gateway.endpoints.solace.names import find_pattern_fault, find_queue_fault
from gateway.endpoints.solace.native import Answer, Native
from gateway.endpoints.solace.refusals import connect_error
from gateway.errors import EndpointError, NotConnectedError
from gateway.model.outcome import Outcome, Settlement
from gateway.wire.smf.content import lost_before

log = logging.getLogger(__name__)

BATCH: Final = 1_000  # messages a receive returns at most
_ANSWERS: Final = {
    Outcome.ACCEPTED: Answer.ACCEPTED,
    Outcome.RETRY: Answer.FAILED,
    Outcome.REJECTED: Answer.REJECTED,
}


class SolaceSource:
    """Mutable: it is open or closed, and counts what went wrong since it was made.

    `lost` counts places where direct messages were dropped, `undecoded` malformed messages.
    """

    def __init__(
        self, settings: SolaceSettings, subscriptions: Sequence[Subscription], instance: str
    ) -> None:
        """Raises: EndpointError: a pattern or the queue's name would do damage in the library."""
        self._settings = settings
        self._patterns = [each.pattern for each in subscriptions]
        for pattern in self._patterns:
            rule, reason = find_pattern_fault(pattern)
            if rule:
                raise EndpointError(f"{settings.name}: subscription {pattern[:300]!r}: {reason}")
        self._queue = _queue_name(settings, instance) if settings.guaranteed else ""
        self._native = Native()
        self._reader = Reader()
        self._link: Link | None = None
        self._receiver: Any = None
        self._settling = Lock()
        self._inbox = Inbox(settings.queue_bytes)
        self._inbox.fail(NotConnectedError(f"{settings.name}: is closed; open it first"))
        self.lost = self.undecoded = 0

    @property
    def counts(self) -> Mapping[str, int]:
        return {"lost": self.lost, "undecoded": self.undecoded}

    def open(self) -> None:
        self.close()
        inbox = Inbox(self._settings.queue_bytes)
        link = Link(self._settings, "source", inbox.fail)
        self._link, self._inbox = link, inbox
        try:
            self._start(link, inbox)
        except BaseException:
            self.close()
            raise

    def receive(self, timeout: float) -> Batch | None:
        inbox = self._inbox
        arrivals = inbox.take(BATCH, timeout)
        if not arrivals:
            return None
        read = self._reader.read
        messages = [read(each.frame, each.at) for each in arrivals]
        for place, arrival in enumerate(arrivals):
            if arrival.again:
                messages[place] = mark_redelivered(messages[place])
            elif not messages[place].address:
                self.undecoded += 1
                fault = undecoded(messages[place])
                log.warning("%s: a message cannot be read: %s", self._settings.name, fault)
        settle = _Once(partial(self._settle, inbox, self._receiver, arrivals))
        return Batch(messages, settle, [_identity(arrival) for arrival in arrivals])

    def close(self) -> None:
        link, receiver = self._link, self._receiver
        self._link = self._receiver = None
        self._inbox.fail(NotConnectedError(f"{self._settings.name}: is closed; open it first"))
        if receiver is not None:
            try:
                with self._settling:
                    receiver.terminate(grace_period=0)
            except PubSubPlusClientError as error:  # it counts what it has not delivered
                log.debug("%s: %s", self._settings.name, error)
        if link is not None:
            link.close()
        if receiver is not None:
            let_go(receiver)

    def _start(self, link: Link, inbox: Inbox) -> None:
        make, taken = self._make_direct, self._take_direct
        if self._queue:
            make, taken = self._make_guaranteed, self._take_guaranteed
        try:
            receiver = self._receiver = make(link)
            receiver.start()
            receiver.receive_async(_Handler(partial(taken, inbox), link, self._settings.name))
            receiver.set_termination_notification_listener(_Ended(link, self._settings.name))
        except (PubSubPlusClientError, ValueError) as error:
            raise connect_error(self._settings, error) from error

    def _make_guaranteed(self, link: Link) -> Any:  # noqa: ANN401  # the driver's receiver
        settings = self._settings
        builder = link.service.create_persistent_message_receiver_builder()
        builder = builder.with_required_message_outcome_support(Required.FAILED, Required.REJECTED)
        if settings.create_queue:
            builder = builder.with_missing_resources_creation_strategy(Creation.CREATE_ON_START)
        if settings.subscribe_queue:
            builder = builder.with_subscriptions(_topics(self._patterns))
        if settings.exclusive_queue:
            return builder.build(Queue.durable_exclusive_queue(self._queue))
        return builder.build(Queue.durable_non_exclusive_queue(self._queue))

    def _make_direct(self, link: Link) -> Any:  # noqa: ANN401
        builder = link.service.create_direct_message_receiver_builder()
        builder = builder.with_subscriptions(_topics(self._patterns))
        builder = builder.on_back_pressure_drop_latest(self._settings.direct_buffer)
        if self._settings.share:
            return builder.build(ShareName.of(self._settings.share))
        return builder.build()

    def _take_guaranteed(self, inbox: Inbox, message: Any) -> None:  # noqa: ANN401
        native = self._native
        arrival = Arrival(native.read(message), native.read_id(message), now())
        native.release(message)
        inbox.put(arrival)

    def _take_direct(self, inbox: Inbox, message: Any) -> None:  # noqa: ANN401
        frame = self._native.read(message)
        dropped = message.get_message_discard_notification().has_internal_discard_indication()
        self._native.release(message)
        if dropped or lost_before(frame):
            self.lost += 1
            where = "here; raise direct_buffer" if dropped else "by the broker"
            log.warning("%s: direct messages were dropped %s", self._settings.name, where)
        inbox.put(Arrival(frame, 0, now()))

    def _settle(
        self,
        inbox: Inbox,
        receiver: Any,  # noqa: ANN401
        arrivals: Sequence[Arrival],
        settlements: Sequence[Settlement],
    ) -> None:
        """Tell the broker; what is to be tried again stays here unless it is told, too."""
        again: list[Arrival] = []
        done: list[Arrival] = []
        told: list[tuple[int, Answer]] = []
        for arrival, settlement in zip(arrivals, settlements, strict=True):
            if settlement.outcome is Outcome.RETRY and not (
                self._settings.retry_at_broker and arrival.message_id
            ):
                again.append(arrival)
                continue
            done.append(arrival)
            if arrival.message_id:
                told.append((arrival.message_id, _ANSWERS[settlement.outcome]))
        if self._tell(inbox, receiver, told):
            inbox.release(done)
            inbox.give_back(again)

    def _tell(self, inbox: Inbox, receiver: Any, told: Sequence[tuple[int, Answer]]) -> bool:  # noqa: ANN401
        """False when the connection went meanwhile: the broker delivers again what it must."""
        settle = self._native.settle
        with self._settling:  # `close` takes the flow away, or waits
            if inbox.failure is not None:
                return False
            for message_id, answer in told:
                if not settle(receiver.flow_p, message_id, answer):
                    log.debug("%s: settling: %s", self._settings.name, self._native.last_error())
                    return False
        return True


class _Once:
    """Calls a function the first time only. Mutable."""

    def __init__(self, settle: Any) -> None:  # noqa: ANN401  # a partial
        self._settle = settle

    def __call__(self, settlements: Sequence[Settlement]) -> None:
        settle, self._settle = self._settle, None
        if settle is not None:
            settle(settlements)


class _Handler(MessageHandler):  # type: ignore[misc]  # the driver has no types
    def __init__(self, take: Any, link: Link, name: str) -> None:  # noqa: ANN401
        self._take, self._link, self._name = take, link, name

    def on_message(self, message: Any) -> None:  # noqa: ANN401
        try:
            self._take(message)
        except Exception as error:  # the library would swallow it
            log.exception("%s: a message could not be taken over", self._name)
            self._link.end(NotConnectedError(f"{self._name}: cannot take a message: {error}"))


class _Ended(TerminationNotificationListener):  # type: ignore[misc]  # the driver has no types
    """The broker has taken the queue away from us, while the connection stays."""

    def __init__(self, link: Link, name: str) -> None:
        self._link, self._name = link, name

    def on_termination(self, termination_notification_event: Any) -> None:  # noqa: ANN401
        cause = termination_notification_event.cause
        self._link.end(NotConnectedError(f"{self._name}: the broker ended the flow: {cause}"))


def _topics(patterns: Sequence[str]) -> list[Any]:
    return [TopicSubscription.of(pattern) for pattern in patterns]


def _queue_name(settings: SolaceSettings, instance: str) -> str:
    name = settings.queue.replace("{instance}", instance) or f"gateway/{settings.name}/{instance}"
    rule, reason = find_queue_fault(name)
    if rule:
        raise EndpointError(f"{settings.name}: queue {name[:300]!r}: {reason}")
    return name


def _identity(arrival: Arrival) -> str:
    """The broker's number of a guaranteed message; direct ones have none and never come again.

    The application message id is not taken: senders may give one to many messages.
    """
    return f"smf {arrival.message_id}" if arrival.message_id else ""
