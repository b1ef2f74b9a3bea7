"""The consumers of a JMS source: checks of its subscriptions, and the calls that make consumers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from gateway.endpoints.base import Subscription
from gateway.endpoints.jms import jvm
from gateway.endpoints.jms.addresses import (
    DESTINATION_KINDS,
    QUEUE,
    TOPIC,
    find_name_error,
    split_address,
)
from gateway.endpoints.jms.jvm import Java
from gateway.endpoints.jms.subscription_filter import has_wildcard
from gateway.endpoints.settings.jms import JmsSettings
from gateway.errors import EndpointError, quoted

PATTERN_PLACEHOLDER = "{pattern}"
MAX_CONSUMERS = 255  # a packed record numbers its consumer in one byte
_UNSAFE = re.compile(r"[^A-Za-z0-9.-]")


@dataclass(frozen=True, slots=True)
class ConsumerSpec:
    """One consumer: its destination, and the names of a durable or shared subscription.

    `selector` is empty when it takes all messages.
    """

    kind: int
    name: str
    durable: str = ""
    shared: str = ""
    selector: str = ""

    @property
    def definition(self) -> str:
        """The name of a durable subscription, and all by which a server compares it."""
        return f"{self.durable}\n{self.name}\n{self.selector}"


def read_subscriptions(
    settings: JmsSettings, subscriptions: Sequence[Subscription]
) -> tuple[ConsumerSpec, ...]:
    """Return one consumer for each different pattern.

    Raises:
        EndpointError: EMS would refuse a subscription, or the settings give two the same name.
    """
    if not 0 < len(subscriptions) <= MAX_CONSUMERS:
        raise EndpointError(
            f"{settings.name}: {len(subscriptions)} subscriptions, outside 1..{MAX_CONSUMERS}"
        )
    default = DESTINATION_KINDS[settings.destination]
    selectors = {each.pattern: each.selector for each in subscriptions}
    patterns = [split_address(pattern, default) for pattern in selectors]
    topics = sum(kind == TOPIC for kind, _ in patterns)
    for setting in ("durable", "shared"):
        text = getattr(settings, setting)
        if text and topics > 1 and PATTERN_PLACEHOLDER not in text:
            raise EndpointError(
                f"{settings.name}: `{setting}` names {topics} subscriptions {text!r}; put"
                f" {PATTERN_PLACEHOLDER} into it"
            )
    if settings.durable and not settings.shared and topics and not settings.client_id:
        raise EndpointError(f"{settings.name}: a durable subscription needs `client_id`")
    return tuple(
        _read_one(settings, kind, name, selector)
        for (kind, name), selector in zip(patterns, selectors.values(), strict=True)
    )


def _read_one(settings: JmsSettings, kind: int, name: str, selector: str) -> ConsumerSpec:
    where = f"{settings.name}: {quoted(name)}"
    if kind not in (TOPIC, QUEUE):
        raise EndpointError(f"{where}: only its creator can receive from a temporary destination")
    error = find_name_error(name, ems=settings.is_ems, pattern=True, joined=settings.joined)
    if error is not None:
        raise EndpointError(f"{where}: {error[1]}")
    selector = " AND ".join(f"({text})" for text in (settings.selector, selector) if text)
    if kind == QUEUE:
        if has_wildcard(name):
            raise EndpointError(f"{where}: no wildcards in a queue's name; use its full name")
        return ConsumerSpec(kind, name, selector=selector)
    safe_name = _UNSAFE.sub(lambda found: f"_{ord(found[0]):x}_", name)
    durable, shared = (
        text.replace(PATTERN_PLACEHOLDER, safe_name) for text in (settings.durable, settings.shared)
    )
    return ConsumerSpec(kind, name, durable, shared, selector)


def make_consumer(settings: JmsSettings, session: Java, spec: ConsumerSpec) -> Java:
    """Return a new consumer on `session`.

    Raises:
        EndpointError: the subscription is shared and the library older than JMS 2.0.
    """
    selector = jvm.text(spec.selector or None)
    if spec.kind == QUEUE:
        return session.createConsumer(session.createQueue(spec.name), selector)
    topic = session.createTopic(spec.name)
    if spec.shared or (spec.durable and settings.shared):
        method = "createSharedDurableConsumer" if spec.durable else "createSharedConsumer"
        if not hasattr(session, method):
            raise EndpointError(
                f"{settings.name}: a shared subscription needs JMS 2.0, and this library is older"
            )
        return getattr(session, method)(topic, spec.durable or spec.shared, selector)
    if spec.durable:
        return session.createDurableSubscriber(topic, spec.durable, selector, False)
    return session.createConsumer(topic, selector)
