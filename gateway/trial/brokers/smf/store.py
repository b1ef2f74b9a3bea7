"""The state of a broker as journal records, and its restoration from them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from gateway.trial.brokers.smf.journal import MAX_JOURNAL_BYTES, BrokerJournal, Record, RecordType
from gateway.trial.brokers.smf.queues import MessageQueue, values_of
from gateway.trial.brokers.smf.vpn import PublisherFlow, Vpn
from gateway.wire.smf.relayed_message import PublishedMessage


def open_store(folder: Path, vpns: Mapping[str, Vpn]) -> BrokerJournal:
    """Restore `vpns` from `folder`, and record their further changes there.

    Raises:
        EndpointError: the folder cannot be used.
    """
    journal = BrokerJournal(folder)
    restore(vpns, journal.records())
    journal.rewrite(snapshot(vpns))
    for name, vpn in vpns.items():
        vpn.record = partial(_record, journal, name)
        for queue in vpn.queues.values():
            queue.record = vpn.record
    return journal


def compact(journal: BrokerJournal, vpns: Mapping[str, Vpn]) -> None:
    """Rewrite the file when most of its records are about settled messages."""
    live = sum(queue.size for vpn in vpns.values() for queue in vpn.queues.values())
    if journal.size > max(MAX_JOURNAL_BYTES, 2 * live):
        journal.rewrite(snapshot(vpns))


def snapshot(vpns: Mapping[str, Vpn]) -> Iterator[Record]:
    """Yield the records that recreate `vpns`."""
    for name, vpn in vpns.items():
        for publisher in vpn.publishers.values():
            yield RecordType.PUBLISHER, name, publisher.name, publisher.last_id
        for queue in vpn.queues.values():
            if queue.durable:
                yield from _records_of(name, queue)


def restore(vpns: Mapping[str, Vpn], records: Iterable[Record]) -> None:
    """Apply `records` in order, except records of VPNs that are no longer configured."""
    for kind, name, *values in records:
        vpn = vpns.get(name)
        if vpn is not None:
            _apply(vpn, RecordType(kind), values)
    for vpn in vpns.values():
        for queue in vpn.queues.values():
            queue.mark_redelivered(queue.last_delivered)


def _record(journal: BrokerJournal, vpn: str, kind: RecordType, *values: object) -> None:
    journal.append(kind, vpn, *values)


def _records_of(vpn: str, queue: MessageQueue) -> Iterator[Record]:
    yield RecordType.QUEUE, vpn, queue.name, queue.exclusive
    for topic in queue.topics:
        yield RecordType.TOPIC, vpn, queue.name, topic
    for number, message in queue.contents():
        yield RecordType.MESSAGE, vpn, queue.name, number, *values_of(message)
    yield RecordType.DELIVERED, vpn, queue.name, queue.last_delivered


def _apply(vpn: Vpn, kind: RecordType, values: list[Any]) -> None:
    name = values[0]
    queue = vpn.queues.get(name)
    if kind is RecordType.PUBLISHER:
        vpn.remember(PublisherFlow(name, values[1]))
    elif kind is RecordType.QUEUE:
        if queue is None:
            vpn.add_queue(name, exclusive=values[1])
    elif queue is not None:  # else a later record removes the queue
        _apply_to(vpn, queue, kind, values[1:])


def _apply_to(vpn: Vpn, queue: MessageQueue, kind: RecordType, values: list[Any]) -> None:
    match kind:
        case RecordType.QUEUE_REMOVED:
            vpn.remove_queue(queue)
        case RecordType.TOPIC:
            vpn.subscribe_queue(queue, values[0])
        case RecordType.TOPIC_REMOVED:
            vpn.unsubscribe_queue(queue, values[0])
        case RecordType.MESSAGE:
            number, topic, flags, parameters, body = values
            queue.restore(number, PublishedMessage(topic, 0, 0, 0, flags, parameters, body))
        case RecordType.SETTLED:
            queue.remove(values[0])
        case RecordType.DELIVERED:
            queue.last_delivered = values[0]
        case RecordType.QUEUE | RecordType.PUBLISHER:  # handled in `_apply`
            raise AssertionError(kind)
