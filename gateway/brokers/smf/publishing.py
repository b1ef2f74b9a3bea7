"""Publisher flows: guaranteed messages in, acknowledgements and refusals out."""

from __future__ import annotations

from gateway.brokers.smf.journal import Step
from gateway.brokers.smf.options import UNKNOWN_FLOW
from gateway.brokers.smf.session import Session
from gateway.brokers.smf.subscribing import find_fault
from gateway.brokers.smf.vpn import Publisher, Vpn
from gateway.wire.smf.assured import Control, Field, Kind, encode_answer, encode_control, field
from gateway.wire.smf.messages import decode_published
from gateway.wire.smf.parameters import OK, Response

WINDOW = 255  # messages a publisher may have under way


def open_publisher(session: Session, vpn: Vpn, request: Control, flow_id: int) -> None:
    """Grant a new flow, or the one of that name with what it has acknowledged."""
    name = request.text(Field.FLOW_NAME)
    publisher = vpn.open_publisher(name)
    if publisher is None:
        session.outbox.post(encode_answer(request, UNKNOWN_FLOW))
        return
    session.publishers[flow_id] = publisher
    fields = (
        field(Field.FLOW_ID, flow_id),
        field(Field.WINDOW, min(request.number(Field.WINDOW, WINDOW), WINDOW)),
        field(Field.LAST_ACKED, publisher.last_id),
        field(Field.LAST_SENT, publisher.last_id),
        field(Field.FLOW_NAME, publisher.name),
        field(Field.PUBLISHER_ID, flow_id),
    )
    session.outbox.post(encode_answer(request, OK, fields))


def close_publisher(session: Session, vpn: Vpn, request: Control) -> None:
    del vpn  # it remembers the name
    flow_id = request.number(Field.FLOW_ID)
    session.publishers.pop(flow_id, None)
    session.acks.pop(flow_id, None)
    session.outbox.post(encode_answer(request, OK, (field(Field.FLOW_ID, flow_id),)))


def take_message(session: Session, vpn: Vpn, frame: bytes) -> None:
    """Spool a message, once however often it comes, and note what to acknowledge."""
    message = decode_published(frame)
    publisher = session.publishers.get(message.flow_id)
    if publisher is None or message.previous_id > publisher.last_id:
        return  # something before it is missing: the client sends both again
    if message.message_id > publisher.last_id:
        refusal = find_fault(vpn.faults.publish, message.topic)
        response = refusal or vpn.publish(message)
        publisher.last_id = message.message_id
        if response != OK:
            session.acks.pop(message.flow_id, None)  # a refusal acknowledges all before it
            vpn.note(Step.PUBLISHER, publisher.name, publisher.last_id)
            _acknowledge(session, message.flow_id, publisher, response)
            return
    session.acks[message.flow_id] = publisher


def acknowledge_all(session: Session, vpn: Vpn) -> None:
    """Answer for everything taken since the last call."""
    for flow_id, publisher in session.acks.items():
        vpn.note(Step.PUBLISHER, publisher.name, publisher.last_id)
        if not vpn.faults.mute_acks:
            _acknowledge(session, flow_id, publisher, OK)
    session.acks.clear()


def _acknowledge(session: Session, flow_id: int, publisher: Publisher, response: Response) -> None:
    """Positive ones carry 200 OK too, or the client reports its last error for them."""
    fields = (
        field(Field.FLOW_ID, flow_id),
        field(Field.LAST_ACKED, publisher.last_id),
        field(Field.WINDOW, WINDOW),
    )
    session.outbox.post(encode_control(Control(Kind.ACK, 2, fields, response=response)))
