"""Flows of consumers and their queues."""

from __future__ import annotations

from typing import Final

from gateway.trial.brokers.smf import responses
from gateway.trial.brokers.smf.client_session import ClientSession, notify
from gateway.trial.brokers.smf.queues import ConsumerFlow, MessageQueue
from gateway.trial.brokers.smf.vpn import Vpn
from gateway.wire.smf.assured_control import AssuredControl, ControlField, ControlType
from gateway.wire.smf.frames import DMQ_ELIGIBLE
from gateway.wire.smf.relayed_message import PublishedMessage
from gateway.wire.smf.responses import OK, SmfResponse

DEAD_MESSAGES: Final = b"#DEAD_MSG_QUEUE"
MAX_QUEUE_NAME: Final = 200  # bytes
_TEMPORARY, _NON_EXCLUSIVE, _BROWSER = 2, 2, 2
_ALL_PERMISSIONS: Final = 0x0F
_MEGABYTE: Final = 1 << 20


def create_queue(session: ClientSession, vpn: Vpn, request: AssuredControl) -> None:
    name = request.get_text(ControlField.QUEUE)
    if name in vpn.queues:
        session.answer(request, responses.ALREADY_EXISTS)
    elif not name or len(name) > MAX_QUEUE_NAME:
        session.answer(request, responses.NOT_ALLOWED)
    elif len(vpn.queues) >= vpn.options.max_queues:
        session.answer(request, responses.NO_SPACE)
    else:
        vpn.add_queue(name, exclusive=request.get_int(ControlField.ACCESS) != _NON_EXCLUSIVE)
        session.answer(request, OK, (ControlField.QUEUE, name), (ControlField.DURABILITY, 1))


def delete_queue(session: ClientSession, vpn: Vpn, request: AssuredControl) -> None:
    queue = vpn.queues.get(request.get_text(ControlField.QUEUE))
    if queue is None:
        session.answer(request, responses.UNKNOWN_QUEUE)
        return
    shut_queue(queue)
    vpn.remove_queue(queue)
    session.answer(request, OK)


def bind(session: ClientSession, vpn: Vpn, request: AssuredControl, flow_id: int) -> None:
    """Bind a flow to a queue; the answer states whether it is the active one."""
    queue = _queue_to_bind(vpn, request)
    if isinstance(queue, SmfResponse):
        session.answer(request, queue)
        return
    flow = ConsumerFlow(flow_id, session.name, queue, session.output)
    flow.window = request.get_int(ControlField.WINDOW)
    flow.reports_activity = bool(request.get_int(ControlField.WANTS_CHANGES))
    queue.flows.append(flow)
    session.flows[flow_id] = flow
    if last := request.get_int(ControlField.LAST_RECEIVED):
        queue.reclaim(flow, last)
    session.answer(request, OK, *_describe(queue, flow, vpn))
    queue.deliver_waiting()


def acknowledge(session: ClientSession, vpn: Vpn, request: AssuredControl) -> None:
    """Update the window of a flow, and apply its transport acknowledgement and settlements."""
    flow = session.flows.get(request.get_int(ControlField.FLOW_ID))
    if flow is None:
        return
    flow.window = request.get_int(ControlField.WINDOW)
    flow.acknowledge_transport(request.get_int(ControlField.LAST_ACKED))
    for ack in request.ack_ranges():
        for queued in flow.settle(ack.low, ack.high, ack.outcome):
            if queued.message.flags & DMQ_ELIGIBLE:
                _keep_rejected(vpn, queued.message)
    flow.queue.deliver_waiting()


def _keep_rejected(vpn: Vpn, message: PublishedMessage) -> None:
    """Put a rejected message into the dead message queue, if there is one."""
    queue = vpn.queues.get(DEAD_MESSAGES)
    if queue is not None and vpn.has_room(queue, message.size):
        queue.put(message)


def unbind(session: ClientSession, vpn: Vpn, request: AssuredControl) -> None:
    flow_id = request.get_int(ControlField.FLOW_ID)
    flow = session.flows.pop(flow_id, None)
    if flow is not None:
        release(flow)
        vpn.remove_unused(flow.queue)
    session.answer(request, OK, (ControlField.FLOW_ID, flow_id))


def release(flow: ConsumerFlow) -> None:
    """Return the messages of a flow to its queue, and notify the flow that becomes active."""
    successor = flow.queue.release(flow)
    if successor is not None and successor.reports_activity:
        active = (ControlField.ACTIVE, 1)
        notify(successor.output, ControlType.FLOW_CHANGE, successor.flow_id, active)
    flow.queue.deliver_waiting()


def shut_queue(queue: MessageQueue) -> None:
    """Refuse further messages and binds, and unbind every consumer."""
    queue.is_shut = True
    for flow in list(queue.flows):
        queue.release(flow)
        notify(flow.output, ControlType.UNBIND, flow.flow_id, response=responses.QUEUE_SHUTDOWN)


def _queue_to_bind(vpn: Vpn, request: AssuredControl) -> MessageQueue | SmfResponse:
    """Return the queue, a temporary one made if it is absent; or why a flow cannot have it."""
    name, limits = request.get_text(ControlField.QUEUE), vpn.options
    queue = vpn.queues.get(name)
    if queue is None:
        is_temporary = request.get_int(ControlField.DURABILITY) == _TEMPORARY
        if not is_temporary or not name or len(vpn.queues) >= limits.max_queues:
            return responses.UNKNOWN_QUEUE
        queue = vpn.add_queue(name, durable=False)
    if queue.is_shut:
        return responses.QUEUE_SHUTDOWN
    if request.get_text(ControlField.SELECTOR):
        return responses.INVALID_SELECTOR
    if request.get_int(ControlField.FLOW_TYPE) == _BROWSER:
        return responses.NOT_ALLOWED
    return responses.MAX_BINDS if len(queue.flows) >= limits.max_flows else queue


def _describe(
    queue: MessageQueue, flow: ConsumerFlow, vpn: Vpn
) -> tuple[tuple[ControlField, int | bytes], ...]:
    return (
        (ControlField.FLOW_ID, flow.flow_id),
        (ControlField.LAST_ACKED, 0),
        (ControlField.WINDOW, flow.window),
        (ControlField.QUEUE, queue.name),
        (ControlField.DURABILITY, 1 if queue.durable else _TEMPORARY),
        (ControlField.ACCESS, 1 if queue.exclusive else _NON_EXCLUSIVE),
        (ControlField.PERMISSIONS, _ALL_PERMISSIONS),
        (ControlField.OTHERS_PERMISSIONS, _ALL_PERMISSIONS),
        (ControlField.QUOTA, max(1, vpn.options.queue_bytes // _MEGABYTE)),
        (ControlField.MAX_MESSAGE, vpn.options.max_message),
        (ControlField.RESPECTS_TTL, 0),
        (ControlField.ENDPOINT_ID, flow.flow_id),
        (ControlField.MAX_UNACKED, vpn.options.max_unacked),
        (ControlField.ACTIVE, int(queue.is_active(flow))),
        *([(ControlField.SPOOL_ID, vpn.spool_id)] if vpn.spool_id else []),
    )
