"""The receiving side of MQTT: one connection with all its subscriptions, acknowledged by hand.

A message is acknowledged (PUBACK, or PUBREC for QoS 2) when it is settled and not before, in the
order of arrival (MQTT 5.0, 4.6). A retried one stays unacknowledged and is presented again from
here, since a broker delivers again only after a new connection.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from itertools import compress
from time import monotonic

from paho.mqtt.client import topic_matches_sub
from paho.mqtt.subscribeoptions import SubscribeOptions

from gateway.endpoints.base import Batch, Subscription
from gateway.endpoints.inbox import Inbox
from gateway.endpoints.mqtt.link import Link
from gateway.endpoints.mqtt.packets import PUBREL, Arrived, encode_answers, encode_pubcomp
from gateway.endpoints.mqtt.session import Wanted
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.errors import GatewayError, NotConnectedError
from gateway.model.message import DeliveryMode, Message

log = logging.getLogger(__name__)

BATCH = 1_000  # messages a receive returns at most
PACKET_ID = 0xFFFF
QOS_2 = 0x5002  # the upper half of a token of QoS 2
SHARED = "$share/"


class Intake:
    """What comes over one link; mutable, since it counts what is not acknowledged yet.

    `taken` outlives the link: the packet ids of QoS 2 whose PUBREC is sent and whose PUBREL has
    not come. A PUBLISH with such an id is one we have had (MQTT 5.0, 4.3.3).
    """

    def __init__(
        self, settings: MqttSettings, subscriptions: Sequence[Subscription], taken: set[int]
    ) -> None:
        self._persistent = settings.session_expiry > 0
        excluding = settings.version != "5" and any(s.exclude_retained for s in subscriptions)
        self._retained_for = (
            [_filter(s.pattern) for s in subscriptions if not s.exclude_retained]
            if excluding
            else None
        )
        self._taken = taken
        self._tokens: deque[int] = deque()
        self.inbox = Inbox(settings.queue_bytes, self._confirm, self._wake)
        self.link: Link | None = None

    def arrived(self, arrived: Arrived) -> None:
        messages, tokens = arrived.messages, arrived.tokens
        if arrived.special:
            messages, tokens = self._sift(messages, tokens)
        if messages:
            self._tokens.extend(tokens)
            self.inbox.put(messages)
        if arrived.answers:
            self._write(self._complete(arrived.answers))

    def wants_more(self) -> bool:
        return not self.inbox.full

    def tick(self, now: float) -> GatewayError | None:
        del now
        return None

    def lost(self, failure: GatewayError) -> None:
        """The broker sends again what it must; only what it will not is kept for receivers."""
        self.inbox.fail(failure, self._is_only_here)

    def _is_only_here(self, message: Message) -> bool:
        return not self._persistent or message.headers.mode is DeliveryMode.AT_MOST_ONCE

    def _sift(self, messages: list[Message], tokens: list[int]) -> tuple[list[Message], list[int]]:
        """Without what nobody wants or what we have had; those are acknowledged at once."""
        keep = [
            not self._had(token) and not self._unwanted(message)
            for message, token in zip(messages, tokens, strict=True)
        ]
        if all(keep):
            return messages, tokens
        self._answer([token for token, kept in zip(tokens, keep, strict=True) if not kept])
        return list(compress(messages, keep)), list(compress(tokens, keep))

    def _had(self, token: int) -> bool:
        return token >> 16 == QOS_2 and token & PACKET_ID in self._taken

    def _unwanted(self, message: Message) -> bool:
        """Retained, and only asked for by subscriptions that exclude it (5.0 brokers obey)."""
        return (
            self._retained_for is not None
            and message.headers.retained
            and not any(topic_matches_sub(f, message.address) for f in self._retained_for)
        )

    def _complete(self, answers: list[tuple[int, int, int]]) -> bytes:
        """A PUBREL ends a message of QoS 2, known to us or not (MQTT 5.0, 4.3.3)."""
        done = [packet_id for kind, packet_id, _ in answers if kind == PUBREL]
        self._taken.difference_update(done)
        return b"".join(map(encode_pubcomp, done))

    def _confirm(self, count: int) -> None:
        tokens = self._tokens
        self._answer([tokens.popleft() for _ in range(count)])
        if self.link is not None:
            self.link.nudge()

    def _wake(self) -> None:
        if self.link is not None:
            self.link.wake()

    def _answer(self, tokens: list[int]) -> None:
        self._taken.update(token & PACKET_ID for token in tokens if token >> 16 == QOS_2)
        self._write(encode_answers(tokens))

    def _write(self, data: bytes) -> None:
        if data and self.link is not None:
            with suppress(NotConnectedError):  # the link's thread tells; the broker sends again
                self.link.write(data)


class MqttSource:
    """Mutable: it is open or closed."""

    def __init__(
        self, settings: MqttSettings, subscriptions: Sequence[Subscription], client_id: str
    ) -> None:
        self._settings, self._subscriptions = settings, tuple(subscriptions)
        self._client_id = client_id
        self._subscribed = False  # in the session the broker keeps
        self._taken: set[int] = set()
        self._intake: Intake | None = None

    def open(self) -> None:
        if self._intake is not None and self._is_up(self._intake):
            return
        self.close()
        settings = self._settings
        intake = Intake(settings, self._subscriptions, self._taken)
        clean = settings.session_expiry == 0
        intake.link = Link(settings, self._client_id, clean=clean, traffic=intake)
        intake.link.open(self._wanted)
        self._warn(intake.link)
        self._subscribed = True
        self._intake = intake

    def receive(self, timeout: float) -> Batch | None:
        intake = self._intake
        if intake is None:
            raise NotConnectedError(f"{self._settings.name}: is closed; open it first")
        inbox, link = intake.inbox, intake.link
        deadline = monotonic() + timeout
        while (batch := inbox.take(BATCH, 0.0)) is None and (left := deadline - monotonic()) > 0:
            if link is None or not link.drive(left):
                return inbox.take(BATCH, left)
        return batch

    @property
    def held(self) -> int:
        """Bytes of messages that are here and not settled."""
        return self._intake.inbox.held if self._intake is not None else 0

    def close(self) -> None:
        intake, self._intake = self._intake, None
        if intake is not None and intake.link is not None:
            intake.link.close()

    def _warn(self, link: Link) -> None:
        settings = self._settings
        if self._subscribed and settings.session_expiry and not link.session.present:
            log.warning(
                "%s: the broker no longer has our session; what was sent meanwhile is lost",
                settings.name,
            )
        if link.session.granted < settings.qos:
            log.warning(
                "%s: the broker grants QoS %d, %d was asked for",
                settings.name, link.session.granted, settings.qos,
            )  # fmt: skip

    @staticmethod
    def _is_up(intake: Intake) -> bool:
        return intake.link is not None and intake.link.failure is None

    def _wanted(self, session_present: bool) -> Sequence[Wanted]:
        """What to subscribe to: nothing when the broker has kept all of it."""
        if not session_present:
            self._taken.clear()
        elif self._subscribed:
            return ()
        return [(s.pattern, subscribe_options(self._settings, s)) for s in self._subscriptions]


def subscribe_options(settings: MqttSettings, subscription: Subscription) -> SubscribeOptions | int:
    """What a SUBSCRIBE asks for beside the filter: in 3.1.1 only the QoS."""
    if settings.version != "5":
        return settings.qos
    return SubscribeOptions(
        qos=settings.qos,
        # MQTT 5.0, 3.8.3.1: a protocol error together with a shared subscription
        noLocal=settings.no_local and not subscription.pattern.startswith(SHARED),
        retainAsPublished=True,
        retainHandling=(
            SubscribeOptions.RETAIN_DO_NOT_SEND
            if subscription.exclude_retained
            else SubscribeOptions.RETAIN_SEND_IF_NEW_SUB
        ),
    )


def _filter(pattern: str) -> str:
    """The filter inside a shared subscription, which gets no retained messages but may overlap."""
    return pattern.split("/", 2)[2] if pattern.startswith(SHARED) else pattern
