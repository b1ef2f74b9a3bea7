"""Binding to queues: create, bind, window, settle, unbind, and who becomes active next."""

from __future__ import annotations

from typing import Final

from gateway.brokers.smf.options import (
    ALREADY_EXISTS,
    INVALID_SELECTOR,
    MAX_BINDS,
    NO_SPACE,
    NOT_ALLOWED,
    QUEUE_SHUTDOWN,
    UNKNOWN_QUEUE,
)
from gateway.brokers.smf.queues import Flow, Queue
from gateway.brokers.smf.session import Session
from gateway.brokers.smf.vpn import Vpn
from gateway.wire.smf.assured import Control, Field, Kind, encode_answer, encode_control, field
from gateway.wire.smf.frames import DMQ_ELIGIBLE
from gateway.wire.smf.parameters import OK, Response

MAX_NAME: Final = 200  # bytes of a queue's name
_TEMPORARY, _NON_EXCLUSIVE, _BROWSER = 2, 2, 2
_ALL_PERMISSIONS: Final = 0x0F
_MEGABYTE: Final = 1 << 20


def create_queue(session: Session, vpn: Vpn, request: Control) -> None:
    name = request.text(Field.QUEUE)
    response = vpn.faults.create.get(name.decode("utf-8", "replace"), OK)
    if response == OK:
        if name in vpn.queues:
            response = ALREADY_EXISTS
        elif not name or len(name) > MAX_NAME:
            response = NOT_ALLOWED
        elif len(vpn.queues) >= vpn.options.max_queues:
            response = NO_SPACE
    if response != OK:
        session.outbox.post(encode_answer(request, response))
        return
    vpn.add_queue(name, exclusive=request.number(Field.ACCESS) != _NON_EXCLUSIVE)
    session.outbox.post(
        encode_answer(request, OK, (field(Field.QUEUE, name), field(Field.DURABILITY, 1)))
    )


def delete_queue(session: Session, vpn: Vpn, request: Control) -> None:
    queue = vpn.queues.get(request.text(Field.QUEUE))
    if queue is None:
        session.outbox.post(encode_answer(request, UNKNOWN_QUEUE))
        return
    shut_queue(queue)
    vpn.remove_queue(queue)
    session.outbox.post(encode_answer(request, OK))


def bind(session: Session, vpn: Vpn, request: Control, flow_id: int) -> None:
    """Attach a flow to a queue; the answer says whether it is the active one."""
    name = request.text(Field.QUEUE)
    queue = _find_or_make(vpn, request, name)
    refusal = vpn.faults.bind.get(name.decode("utf-8", "replace"))
    refusal = refusal or _refuse(queue, request, vpn.options.max_flows)
    if refusal is not None or queue is None:
        session.outbox.post(encode_answer(request, refusal or UNKNOWN_QUEUE))
        return
    flow = Flow(flow_id, session.name, queue, session.outbox)
    flow.window = request.number(Field.WINDOW)
    flow.wants_changes = bool(request.number(Field.WANTS_CHANGES))
    queue.flows.append(flow)
    session.flows[flow_id] = flow
    if last := request.number(Field.LAST_RECEIVED):
        queue.reclaim(flow, last)
    session.outbox.post(encode_answer(request, OK, _describe(queue, flow, vpn.options.max_message)))
    queue.pump()


def acknowledge(session: Session, vpn: Vpn, request: Control) -> None:
    """Take over window, transport acknowledgement and settlements of one flow."""
    flow = session.flows.get(request.number(Field.FLOW_ID))
    if flow is None:
        return
    flow.window = request.number(Field.WINDOW)
    flow.acknowledge_transport(request.number(Field.LAST_ACKED))
    for ack in request.app_acks():
        for entry in flow.settle(ack.low, ack.high, ack.outcome):
            if entry.message.flags & DMQ_ELIGIBLE:
                vpn.set_aside(entry.message)
    flow.queue.pump()


def unbind(session: Session, vpn: Vpn, request: Control) -> None:
    flow_id = request.number(Field.FLOW_ID)
    flow = session.flows.pop(flow_id, None)
    if flow is not None:
        release(flow)
        if not flow.queue.durable and not flow.queue.flows:
            vpn.remove_queue(flow.queue)
    session.outbox.post(encode_answer(request, OK, (field(Field.FLOW_ID, flow_id),)))


def release(flow: Flow) -> None:
    """Give back what a flow held, and tell the one that is active now."""
    successor = flow.queue.release(flow)
    if successor is not None and successor.wants_changes:
        fields = (field(Field.FLOW_ID, successor.flow_id), field(Field.ACTIVE, 1))
        successor.outbox.post(encode_control(Control(Kind.FLOW_CHANGE, 2, fields)))
    flow.queue.pump()


def shut_queue(queue: Queue) -> None:
    """Refuse messages and binds from now on, and unbind every consumer."""
    queue.is_shut = True
    for flow in list(queue.flows):
        queue.release(flow)
        fields = (field(Field.FLOW_ID, flow.flow_id),)
        unasked = Control(Kind.UNBIND, 2, fields, response=QUEUE_SHUTDOWN)
        flow.outbox.post(encode_control(unasked))


def _find_or_make(vpn: Vpn, request: Control, name: bytes) -> Queue | None:
    queue = vpn.queues.get(name)
    if queue is not None or request.number(Field.DURABILITY) != _TEMPORARY:
        return queue
    if not name or len(vpn.queues) >= vpn.options.max_queues:
        return None
    return vpn.add_queue(name, durable=False)


def _refuse(queue: Queue | None, request: Control, max_flows: int) -> Response | None:
    if queue is None:
        return UNKNOWN_QUEUE
    if queue.is_shut:
        return QUEUE_SHUTDOWN
    if request.text(Field.SELECTOR):
        return INVALID_SELECTOR
    if request.number(Field.FLOW_TYPE) == _BROWSER:
        return NOT_ALLOWED
    return MAX_BINDS if len(queue.flows) >= max_flows else None


def _describe(queue: Queue, flow: Flow, max_message: int) -> tuple[tuple[int, bytes], ...]:
    return (
        field(Field.FLOW_ID, flow.flow_id),
        field(Field.LAST_ACKED, 0),
        field(Field.WINDOW, flow.window),
        field(Field.QUEUE, queue.name),
        field(Field.DURABILITY, 1 if queue.durable else _TEMPORARY),
        field(Field.ACCESS, 1 if queue.exclusive else _NON_EXCLUSIVE),
        field(Field.PERMISSIONS, _ALL_PERMISSIONS),
        field(Field.OTHERS_PERMISSIONS, _ALL_PERMISSIONS),
        field(Field.QUOTA, max(1, queue.quota // _MEGABYTE)),
        field(Field.MAX_MESSAGE, max_message),
        field(Field.RESPECTS_TTL, 0),
        field(Field.ENDPOINT_ID, flow.flow_id),
        field(Field.MAX_UNACKED, queue.max_unacked),
        field(Field.ACTIVE, int(queue.is_active(flow))),
    )
