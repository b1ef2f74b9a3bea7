"""Changes of the subscriptions of clients and queues."""

from __future__ import annotations

from gateway.trial.brokers.smf import responses
from gateway.trial.brokers.smf.client_session import ClientSession
from gateway.trial.brokers.smf.options import find_injected_refusal
from gateway.trial.brokers.smf.subscription_table import is_pattern
from gateway.trial.brokers.smf.vpn import ShareGroup, Vpn
from gateway.wire.smf.responses import OK, SmfResponse
from gateway.wire.smf.subscriptions import (
    SubscriptionChange,
    SubscriptionRequest,
    decode_subscription,
    encode_subscription_reply,
)

_SHARED = b"#share/"


def change_subscription(session: ClientSession, vpn: Vpn, frame: bytes) -> None:
    """Apply a subscription message, and answer it if it asks for that."""
    request = decode_subscription(frame)
    if request.change in {SubscriptionChange.ADD, SubscriptionChange.REMOVE}:
        response = _change_client(session, vpn, request)
    else:
        response = _change_queue(vpn, request)
    if request.answered:
        session.output.post(encode_subscription_reply(request, response))


def remove_all(session: ClientSession, vpn: Vpn) -> None:
    """Remove every subscription of a disconnected client."""
    for topic in list(session.subscriptions):
        _remove(session, vpn, topic)


def _change_client(session: ClientSession, vpn: Vpn, request: SubscriptionRequest) -> SmfResponse:
    topic = request.topic
    if request.change is SubscriptionChange.REMOVE:
        return OK if _remove(session, vpn, topic) else responses.SUBSCRIPTION_NOT_FOUND
    if topic in session.subscriptions:
        return responses.SUBSCRIPTION_EXISTS
    group, pattern = _split_shared(topic)
    refusal = _refuse(vpn, b"" if group == b"" else pattern, len(session.subscriptions))
    if refusal is not None:
        return refusal
    share = None if group is None else vpn.groups.setdefault((group, pattern), ShareGroup())
    if share is not None:
        share.members.append(session.output)
    session.subscriptions[topic] = share
    vpn.table.add(pattern, share or session.output)
    return OK


def _remove(session: ClientSession, vpn: Vpn, topic: bytes) -> bool:
    if topic not in session.subscriptions:
        return False
    share = session.subscriptions.pop(topic)
    group, pattern = _split_shared(topic)
    if share is None or group is None:
        vpn.table.remove(pattern, session.output)
        return True
    share.members.remove(session.output)
    if not share.members:
        vpn.table.remove(pattern, share)
        vpn.groups.pop((group, pattern), None)
    return True


def _change_queue(vpn: Vpn, request: SubscriptionRequest) -> SmfResponse:
    queue, topic = vpn.queues.get(request.queue), request.topic
    if queue is None:
        return responses.UNKNOWN_QUEUE
    if request.change is SubscriptionChange.REMOVE_FROM_QUEUE:
        if topic not in queue.topics:
            return responses.SUBSCRIPTION_NOT_FOUND
        vpn.unsubscribe_queue(queue, topic)
        return OK
    if topic in queue.topics:
        return responses.SUBSCRIPTION_EXISTS
    refusal = _refuse(vpn, topic, len(queue.topics))
    if refusal is None:
        vpn.subscribe_queue(queue, topic)
    return refusal or OK


def _refuse(vpn: Vpn, pattern: bytes, number: int) -> SmfResponse | None:
    if number >= vpn.options.max_subscriptions:
        return responses.SUBSCRIPTIONS_EXCEEDED
    if not is_pattern(pattern):
        return responses.SUBSCRIPTION_PARSE_ERROR
    return find_injected_refusal(vpn.faults.subscribe, pattern)


def _split_shared(topic: bytes) -> tuple[bytes | None, bytes]:
    """Return the group of a shared subscription, or None, and the pattern."""
    if not topic.startswith(_SHARED):
        return None, topic
    group, _, pattern = topic.removeprefix(_SHARED).partition(b"/")
    return group, pattern
