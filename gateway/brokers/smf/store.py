"""A broker's state as records and back; it reads and writes no file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from gateway.brokers.smf.journal import ROOM, Journal, Record, Step
from gateway.brokers.smf.queues import Queue
from gateway.brokers.smf.vpn import Publisher, Vpn
from gateway.wire.smf.messages import Published


def open_store(folder: Path, vpns: Mapping[str, Vpn]) -> Journal:
    """Give `vpns` what was kept in `folder`, and keep what happens to them from now on.

    Raises:
        EndpointError: the folder cannot be used.
    """
    journal = Journal(folder)
    restore(vpns, journal.records())
    journal.rewrite(snapshot(vpns))
    for name, vpn in vpns.items():
        vpn.note = partial(_note, journal, name)
        for queue in vpn.queues.values():
            queue.note = vpn.note
    return journal


def tidy(journal: Journal, vpns: Mapping[str, Vpn]) -> None:
    """Write the file anew when most of it is about messages that are settled."""
    live = sum(queue.size for vpn in vpns.values() for queue in vpn.queues.values())
    if journal.size > max(ROOM, 2 * live):
        journal.rewrite(snapshot(vpns))


def snapshot(vpns: Mapping[str, Vpn]) -> Iterator[Record]:
    """The records that make `vpns` from nothing."""
    for name, vpn in vpns.items():
        for publisher in vpn.publishers.values():
            yield Step.PUBLISHER, name, publisher.name, publisher.last_id
        for queue in vpn.queues.values():
            if queue.durable:
                yield from _records_of(name, queue)


def restore(vpns: Mapping[str, Vpn], records: Iterable[Record]) -> None:
    """Apply `records` in order; those of a VPN that is not configured any more are left out."""
    for step, name, *facts in records:
        vpn = vpns.get(name)
        if vpn is not None:
            _apply(vpn, Step(step), facts)
    for vpn in vpns.values():
        for queue in vpn.queues.values():
            queue.mark_redelivered(queue.handed_out)


def _note(journal: Journal, vpn: str, step: Step, *facts: object) -> None:
    journal.note(step, vpn, *facts)


def _records_of(vpn: str, queue: Queue) -> Iterator[Record]:
    yield Step.QUEUE, vpn, queue.name, queue.exclusive
    for topic in queue.topics:
        yield Step.TOPIC, vpn, queue.name, topic
    for number, message in queue.contents():
        yield Step.MESSAGE, vpn, queue.name, number, *_facts_of(message)
    yield Step.HANDED_OUT, vpn, queue.name, queue.handed_out


def _facts_of(message: Published) -> tuple[object, ...]:
    return message.topic, message.flags, message.kept, message.body


def _apply(vpn: Vpn, step: Step, facts: list[Any]) -> None:
    name = facts[0]
    queue = vpn.queues.get(name)
    if step is Step.PUBLISHER:
        vpn.remember(Publisher(name, facts[1]))
    elif step is Step.QUEUE:
        if queue is None:
            vpn.add_queue(name, exclusive=facts[1])
    elif queue is not None:  # or it was removed later
        _apply_to(vpn, queue, step, facts[1:])


def _apply_to(vpn: Vpn, queue: Queue, step: Step, facts: list[Any]) -> None:
    match step:
        case Step.QUEUE_GONE:
            vpn.remove_queue(queue)
        case Step.TOPIC:
            vpn.subscribe_queue(queue, facts[0])
        case Step.TOPIC_GONE:
            vpn.unsubscribe_queue(queue, facts[0])
        case Step.MESSAGE:
            number, topic, flags, kept, body = facts
            queue.restore(number, Published(topic, 0, 0, 0, flags, kept, body))
        case Step.SETTLED:
            queue.remove(facts[0])
        case Step.HANDED_OUT:
            queue.handed_out = facts[0]
        case Step.QUEUE | Step.PUBLISHER:  # `_apply` has done them
            raise AssertionError(step)
