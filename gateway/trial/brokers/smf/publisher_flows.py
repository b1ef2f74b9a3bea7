"""Publisher flows: receive guaranteed messages, send acknowledgements and refusals."""

from __future__ import annotations

from gateway.trial.brokers.smf.client_session import ClientSession
from gateway.trial.brokers.smf.journal import RecordType
from gateway.trial.brokers.smf.responses import UNKNOWN_FLOW
from gateway.trial.brokers.smf.subscription_changes import find_injected_refusal
from gateway.trial.brokers.smf.vpn import PublisherFlow, Vpn
from gateway.wire.smf.assured_control import (
    AssuredControl,
    ControlField,
    ControlType,
    encode_control,
    encode_fields,
)
from gateway.wire.smf.parameters import OK, SmfResponse
from gateway.wire.smf.relayed_message import decode_published

MAX_WINDOW = 255  # unacknowledged messages of a publisher


def open_publisher(session: ClientSession, vpn: Vpn, request: AssuredControl, flow_id: int) -> None:
    """Open a new flow, or resume the named one at its last acknowledged message."""
    name = request.get_text(ControlField.FLOW_NAME)
    publisher = vpn.open_publisher(name)
    if publisher is None:
        session.answer(request, UNKNOWN_FLOW)
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
        response = refusal or vpn.publish(message)
        publisher.last_id = message.message_id
        if response != OK:
            session.acks.pop(message.flow_id, None)  # a refusal acknowledges all earlier ones
            vpn.record(RecordType.PUBLISHER, publisher.name, publisher.last_id)
            _acknowledge(session, message.flow_id, publisher, response)
            return
    session.acks[message.flow_id] = publisher


def acknowledge_all(session: ClientSession, vpn: Vpn) -> None:
    """Acknowledge all messages received since the last call."""
    for flow_id, publisher in session.acks.items():
        vpn.record(RecordType.PUBLISHER, publisher.name, publisher.last_id)
        if not vpn.faults.suppress_acks:
            _acknowledge(session, flow_id, publisher, OK)
    session.acks.clear()


def _acknowledge(
    session: ClientSession, flow_id: int, publisher: PublisherFlow, response: SmfResponse
) -> None:
    """Send an acknowledgement; without 200 OK the client would report its last error again."""
    fields = encode_fields(
        (ControlField.FLOW_ID, flow_id),
        (ControlField.LAST_ACKED, publisher.last_id),
        (ControlField.WINDOW, MAX_WINDOW),
    )
    notice = AssuredControl(ControlType.ACK, 2, fields, response=response)
    session.output.post(encode_control(notice))
