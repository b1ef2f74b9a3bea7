"""Flows of publishers: guaranteed messages, spooled once and acknowledged."""

from __future__ import annotations

from typing import Final

from gateway.trial.brokers.smf import responses
from gateway.trial.brokers.smf.client_session import ClientSession, notify
from gateway.trial.brokers.smf.options import find_injected_refusal
from gateway.trial.brokers.smf.queues import MessageQueue
from gateway.trial.brokers.smf.store import StoreChange
from gateway.trial.brokers.smf.subscription_table import is_topic
from gateway.trial.brokers.smf.vpn import PublisherFlow, Receiver, Vpn
from gateway.wire.smf.assured_control import AssuredControl, ControlField, ControlType
from gateway.wire.smf.relayed_message import PublishedMessage, decode_published, encode_direct
from gateway.wire.smf.responses import OK, SmfResponse

MAX_WINDOW: Final = 255  # unacknowledged messages of a publisher
_QUEUE_PREFIX: Final = b"#P2P/QUE/"


def open_publisher(session: ClientSession, vpn: Vpn, request: AssuredControl, flow_id: int) -> None:
    """Open a new flow, or resume the named one at its last acknowledged message."""
    name = request.get_text(ControlField.FLOW_NAME)
    publisher = vpn.open_publisher(name)
    if publisher is None:
        session.answer(request, responses.UNKNOWN_FLOW)
        return
    session.publishers[flow_id] = publisher
    session.answer(
        request,
        OK,
        (ControlField.FLOW_ID, flow_id),
        (ControlField.WINDOW, min(request.get_int(ControlField.WINDOW, MAX_WINDOW), MAX_WINDOW)),
        (ControlField.LAST_ACKED, publisher.last_id),
        (ControlField.LAST_SENT, publisher.last_id),
        (ControlField.FLOW_NAME, publisher.name),
        (ControlField.PUBLISHER_ID, flow_id),
    )


def close_publisher(session: ClientSession, vpn: Vpn, request: AssuredControl) -> None:
    del vpn  # keeps the name
    flow_id = request.get_int(ControlField.FLOW_ID)
    session.publishers.pop(flow_id, None)
    session.acks.pop(flow_id, None)
    session.answer(request, OK, (ControlField.FLOW_ID, flow_id))


def spool_message(session: ClientSession, vpn: Vpn, frame: bytes) -> None:
    """Spool a message once, however often it is sent, and note its acknowledgement."""
    message = decode_published(frame)
    publisher = session.publishers.get(message.flow_id)
    if publisher is None or message.previous_id > publisher.last_id:
        return  # an earlier message is missing: the client repeats both
    if message.message_id > publisher.last_id:
        refusal = find_injected_refusal(vpn.faults.publish, message.topic)
        response = refusal or _spool(vpn, message)
        publisher.last_id = message.message_id
        if response != OK:
            session.acks.pop(message.flow_id, None)  # a refusal acknowledges all earlier ones
            vpn.record(StoreChange.PUBLISHER, publisher.name, publisher.last_id)
            _acknowledge(session, message.flow_id, publisher, response)
            return
    session.acks[message.flow_id] = publisher


def _spool(vpn: Vpn, message: PublishedMessage) -> SmfResponse:
    """Spool a guaranteed message in every subscribed queue, or refuse it for all of them."""
    if not is_topic(message.topic):
        return responses.TOPIC_PARSE_ERROR
    if len(message.body) > vpn.options.max_message:
        return responses.TOO_LONG
    receivers = vpn.table.find(message.topic)
    queues = [receiver for receiver in receivers if isinstance(receiver, MessageQueue)]
    if message.topic.startswith(_QUEUE_PREFIX):
        named = vpn.queues.get(message.topic.removeprefix(_QUEUE_PREFIX))
        if named is None:
            return responses.QUEUE_NOT_FOUND
        queues.append(named)
    for queue in queues:
        if queue.is_shut or not vpn.has_room(queue, message.size):
            return responses.QUEUE_SHUTDOWN if queue.is_shut else responses.OVER_QUOTA
    for queue in queues:
        queue.put(message)
    _relay(message, receivers)
    if not receivers and not queues and vpn.options.reject_unmatched:
        return responses.NO_MATCH
    return OK


def _relay(message: PublishedMessage, receivers: tuple[Receiver, ...]) -> None:
    """Relay a guaranteed message as a direct one to the clients among `receivers`."""
    clients = [each for each in receivers if not isinstance(each, MessageQueue)]
    if clients:
        frame = encode_direct(message)
        for client in clients:
            client.relay(frame)


def acknowledge_all(session: ClientSession, vpn: Vpn) -> None:
    """Acknowledge all messages received since the last call."""
    for flow_id, publisher in session.acks.items():
        vpn.record(StoreChange.PUBLISHER, publisher.name, publisher.last_id)
        if not vpn.faults.suppress_acks:
            _acknowledge(session, flow_id, publisher, OK)
    session.acks.clear()


def _acknowledge(
    session: ClientSession, flow_id: int, publisher: PublisherFlow, response: SmfResponse
) -> None:
    """Send an acknowledgement; without 200 OK the client would report its last error again."""
    acked = (ControlField.LAST_ACKED, publisher.last_id)
    window = (ControlField.WINDOW, MAX_WINDOW)
    notify(session.output, ControlType.ACK, flow_id, acked, window, response=response)
