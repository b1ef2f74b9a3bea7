"""What a source listens to: kinds, names and the names of durable subscriptions, and consumers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from gateway.endpoints.base import Subscription
from gateway.endpoints.jms import jvm, names
from gateway.endpoints.jms.jvm import Java
from gateway.endpoints.jms.patterns import has_wildcard
from gateway.endpoints.settings.jms import JmsSettings
from gateway.errors import EndpointError, shown

PLACE = "{pattern}"
_UNSAFE = re.compile(r"[^A-Za-z0-9.-]")


@dataclass(frozen=True, slots=True)
class Wanted:
    """One consumer: `kind` and `name` of its destination, and the subscriptions' names if any."""

    kind: int
    name: str
    durable: str = ""
    shared: str = ""
    selector: str = ""


def read_subscriptions(
    settings: JmsSettings, subscriptions: Sequence[Subscription]
) -> tuple[Wanted, ...]:
    """The consumers to make.

    Raises:
        EndpointError: EMS would refuse one, or the settings do not name it apart from another.
    """
    if not 0 < len(subscriptions) <= 255:  # noqa: PLR2004  # a consumer's number is a byte
        raise EndpointError(f"{settings.name}: {len(subscriptions)} subscriptions, 1..255 will do")
    default = names.KINDS[settings.destination]
    patterns = [
        names.split_address(pattern, default)
        for pattern in dict.fromkeys(each.pattern for each in subscriptions)
    ]
    topics = sum(kind == names.TOPIC for kind, _ in patterns)
    for setting in ("durable", "shared"):
        text = getattr(settings, setting)
        if text and topics > 1 and PLACE not in text:
            raise EndpointError(
                f"{settings.name}: `{setting}` names {topics} subscriptions {text!r}; put {PLACE}"
                " into it"
            )
    if settings.durable and not settings.shared and topics and not settings.client_id:
        raise EndpointError(f"{settings.name}: a durable subscription needs `client_id`")
    selectors = {each.pattern: each.selector for each in subscriptions}
    return tuple(
        replace(_read_one(settings, kind, name), selector=selector)
        for (kind, name), selector in zip(patterns, selectors.values(), strict=True)
    )


def _read_one(settings: JmsSettings, kind: int, name: str) -> Wanted:
    where = f"{settings.name}: {shown(name)}"
    if kind not in (names.TOPIC, names.QUEUE):
        raise EndpointError(f"{where}: nobody but its maker receives from a temporary destination")
    fault = names.find_name_fault(name, ems=settings.is_ems, pattern=True, joined=settings.joined)
    if fault is not None:
        raise EndpointError(f"{where}: {fault[1]}")
    if kind == names.QUEUE:
        if has_wildcard(name):
            raise EndpointError(f"{where}: no wildcards in a queue's name; use its full name")
        return Wanted(kind, name)
    marks = _UNSAFE.sub(lambda found: f"_{ord(found[0]):x}_", name)
    durable, shared = (text.replace(PLACE, marks) for text in (settings.durable, settings.shared))
    return Wanted(kind, name, durable, shared)


def make_consumer(settings: JmsSettings, session: Java, wanted: Wanted) -> Java:
    """The consumer on `session`.

    Raises:
        EndpointError: the library is older than JMS 2.0 and the subscription shared.
    """
    both = [text for text in (settings.selector, wanted.selector) if text]
    selector = jvm.text(" AND ".join(f"({text})" for text in both) or None)
    if wanted.kind == names.QUEUE:
        return session.createConsumer(session.createQueue(wanted.name), selector)
    topic = session.createTopic(wanted.name)
    if wanted.shared or (wanted.durable and settings.shared):
        make = "createSharedDurableConsumer" if wanted.durable else "createSharedConsumer"
        if not hasattr(session, make):
            raise EndpointError(
                f"{settings.name}: a shared subscription needs JMS 2.0, and this library is older"
            )
        return getattr(session, make)(topic, wanted.durable or wanted.shared, selector)
    if wanted.durable:
        return session.createDurableSubscriber(topic, wanted.durable, selector, False)
    return session.createConsumer(topic, selector)
