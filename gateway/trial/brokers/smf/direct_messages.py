"""Direct messages: relayed unchanged to clients, spooled in queues, without an answer."""

from __future__ import annotations

from dataclasses import replace

from gateway.trial.brokers.smf.queues import MessageQueue
from gateway.trial.brokers.smf.subscription_changes import find_injected_refusal
from gateway.trial.brokers.smf.vpn import Vpn
from gateway.wire.smf.frames import GUARANTEED
from gateway.wire.smf.relayed_message import decode_direct, read_topic


def relay_direct(vpn: Vpn, frame: bytes) -> None:
    """Relay a direct message unchanged; one without a receiver, or refused, is dropped silently."""
    topic = read_topic(frame)
    if vpn.faults.publish and find_injected_refusal(vpn.faults.publish, topic):
        return
    for receiver in vpn.table.find(topic):
        if isinstance(receiver, MessageQueue):
            _spool(vpn, receiver, frame)
        else:
            receiver.relay(frame)


def _spool(vpn: Vpn, queue: MessageQueue, frame: bytes) -> None:
    """Spool a direct message in a subscribed queue, or drop it past the quota."""
    message = decode_direct(frame)
    if not queue.is_shut and vpn.has_room(queue, message.size):
        queue.put(replace(message, flags=message.flags | GUARANTEED))
