"""Adding and removing subscriptions, of clients and of queues."""

from __future__ import annotations

from gateway.brokers.smf.matching import compile_pattern, is_pattern
from gateway.brokers.smf.options import (
    SUBSCRIPTION_EXISTS,
    SUBSCRIPTION_NOT_FOUND,
    SUBSCRIPTION_PARSE_ERROR,
    SUBSCRIPTIONS_EXCEEDED,
    UNKNOWN_QUEUE,
)
from gateway.brokers.smf.session import Session
from gateway.brokers.smf.vpn import Group, Vpn
from gateway.wire.smf.parameters import OK, Response
from gateway.wire.smf.subscriptions import (
    Change,
    SubscriptionRequest,
    decode_subscription,
    encode_answer,
)

_SHARED = b"#share/"


def change_subscription(session: Session, vpn: Vpn, frame: bytes) -> None:
    """Do what a subscription message asks for, and answer when it wants an answer."""
    request = decode_subscription(frame)
    if request.change in {Change.ADD, Change.REMOVE}:
        response = _change_client(session, vpn, request)
    else:
        response = _change_queue(vpn, request)
    if request.answered:
        session.outbox.post(encode_answer(request, response))


def find_fault(faults: dict[str, Response], topic: bytes) -> Response | None:
    """The refusal on demand whose pattern matches `topic`, which may be a pattern itself."""
    for pattern, response in faults.items():
        matches = compile_pattern(pattern.encode())
        if pattern.encode() == topic or (matches is not None and matches(topic)):
            return response
    return None


def remove_all(session: Session, vpn: Vpn) -> None:
    """Forget every subscription of a client that is gone."""
    for topic in list(session.subscriptions):
        _remove(session, vpn, topic)


def _change_client(session: Session, vpn: Vpn, request: SubscriptionRequest) -> Response:
    topic = request.topic
    if request.change is Change.REMOVE:
        return OK if _remove(session, vpn, topic) else SUBSCRIPTION_NOT_FOUND
    if topic in session.subscriptions:
        return SUBSCRIPTION_EXISTS
    group, pattern = _split_shared(topic)
    refusal = _refuse(vpn, b"" if group == b"" else pattern, len(session.subscriptions))
    if refusal is not None:
        return refusal
    if group is None:
        session.subscriptions[topic] = None
        vpn.table.add(pattern, session.outbox)
    else:
        members = vpn.groups.setdefault((group, pattern), Group())
        members.members.append(session.outbox)
        session.subscriptions[topic] = members
        vpn.table.add(pattern, members)
    return OK


def _remove(session: Session, vpn: Vpn, topic: bytes) -> bool:
    if topic not in session.subscriptions:
        return False
    shared = session.subscriptions.pop(topic)
    group, pattern = _split_shared(topic)
    if shared is None or group is None:
        vpn.table.remove(pattern, session.outbox)
        return True
    shared.members.remove(session.outbox)
    if not shared.members:
        vpn.table.remove(pattern, shared)
        vpn.groups.pop((group, pattern), None)
    return True


def _change_queue(vpn: Vpn, request: SubscriptionRequest) -> Response:
    queue, topic = vpn.queues.get(request.queue), request.topic
    if queue is None:
        return UNKNOWN_QUEUE
    if request.change is Change.REMOVE_FROM_QUEUE:
        if topic not in queue.topics:
            return SUBSCRIPTION_NOT_FOUND
        vpn.unsubscribe_queue(queue, topic)
        return OK
    if topic in queue.topics:
        return SUBSCRIPTION_EXISTS
    refusal = _refuse(vpn, topic, len(queue.topics))
    if refusal is None:
        vpn.subscribe_queue(queue, topic)
    return refusal or OK


def _refuse(vpn: Vpn, pattern: bytes, number: int) -> Response | None:
    if number >= vpn.options.max_subscriptions:
        return SUBSCRIPTIONS_EXCEEDED
    if not is_pattern(pattern):
        return SUBSCRIPTION_PARSE_ERROR
    return find_fault(vpn.faults.subscribe, pattern)


def _split_shared(topic: bytes) -> tuple[bytes | None, bytes]:
    """The group of a shared subscription, or None, and the pattern."""
    if not topic.startswith(_SHARED):
        return None, topic
    group, _, pattern = topic.removeprefix(_SHARED).partition(b"/")
    return group, pattern
