"""A durable consumer of JetStream: its name, its making, and the return of what it left behind."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Final

from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy, RetentionPolicy
from nats.js.errors import NotFoundError

from gateway.endpoints.made import Made
from gateway.endpoints.nats.connection import NatsConnection
from gateway.endpoints.settings.nats import NatsSettings
from gateway.endpoints.source_memory import SourceMemory
from gateway.endpoints.untold_gap import UNTOLD
from gateway.errors import EndpointError
from gateway.untyped import Untyped

NAK: Final = b"-NAK"
KEEPS_UNREAD: Final = "keeps unread"  # a fact: the stream keeps what its consumers have not read
MAX_RETURNED: Final = 100_000  # messages; the server redelivers later ones after `ack_wait`
MAX_NUMBER: Final = 1 << 63  # of a message; rows of the archive hold no more
_NO_NAME: Final = re.compile(r"[.*>\s/\\\x00-\x1f\x7f]")
_MAX_NAME: Final = 200  # characters of a consumer's name before its digest


@dataclass(frozen=True, slots=True)
class Consumer:
    """A consumer as the server has it when a connection begins; numbers are those of messages."""

    stream: str
    name: str
    made: str  # the time of the stream: a later one of its name begins at 1 again
    gone: int  # the stream has lost the messages up to this one
    last: int  # of the stream
    is_new: bool
    is_exact: bool  # every message of the stream is selected
    keeps_unread: bool  # the stream removes what its consumers have answered
    floor: int  # the messages up to it are answered
    delivered: int  # the last delivery, also if it is one of an old message again
    deliveries: int
    unanswered: int
    unread: int  # selected messages that were not delivered


def consumer_name(settings: NatsSettings, instance: str) -> str:
    """Return the name of the durable consumer; a character that it cannot have is replaced."""
    template = settings.consumer or f"gateway-{settings.name}-{{instance}}"
    name = template.replace("{instance}", instance)
    plain = _NO_NAME.sub("_", name)[:_MAX_NAME]
    if plain == name:
        return name
    return f"{plain}-{blake2b(name.encode(), digest_size=4).hexdigest()}"


async def find_stream(
    connection: NatsConnection, settings: NatsSettings, patterns: Sequence[str]
) -> str:
    """Return the stream of the patterns; of several ones a consumer would read one alone."""
    found: set[str] = set()
    for pattern in patterns:
        streams = await connection.find_streams(pattern)
        if not streams:
            reason = f"no stream has the subject {pattern!r}; set `stream`"
            raise EndpointError(f"{settings.name}: {reason}")
        found.update(streams)
    if len(found) > 1:
        reason = f"several streams have subjects of the pattern: {', '.join(sorted(found))}"
        hint = "set `stream`, at an endpoint for each"
        raise EndpointError(f"{settings.name}: {reason}; {hint}")
    return found.pop()


async def find_consumer(
    connection: NatsConnection,
    settings: NatsSettings,
    patterns: Sequence[str],
    name: str,
    memory: SourceMemory,
) -> Consumer:
    """Find the consumer, or make it; one of an attempt that failed is still new."""
    jetstream = connection.jetstream
    await connection.make_stream()
    stream = settings.stream or await find_stream(connection, settings, patterns)
    made_by_us = f"new consumer {stream} {name}"
    try:
        await jetstream.consumer_info(stream, name)
    except NotFoundError:
        memory.put(made_by_us, True)  # a value of JSON
        memory.note_made(Made("consumer", name, settings.broker_key, stream))
    wanted = ConsumerConfig(
        durable_name=name,
        ack_policy=AckPolicy.EXPLICIT,
        deliver_policy=DeliverPolicy.ALL,
        ack_wait=settings.ack_wait,
        max_ack_pending=settings.receive_window,
        # 2.9 has no list of them; others are tested here
        filter_subject=patterns[0] if len(patterns) == 1 else None,
    )
    try:
        held = await jetstream.stream_info(stream)  # before the count of what is unread of it
        info = await jetstream.add_consumer(stream, wanted)
    except NotFoundError as error:
        raise EndpointError(f"{settings.name}: no stream {stream!r}") from error
    found = _read(stream, name, held, info)
    memory.put(KEEPS_UNREAD, found.keeps_unread)
    return replace(found, is_new=bool(memory.get(made_by_us, bool, False)))


async def look_again(connection: NatsConnection, consumer: Consumer) -> Consumer:
    """Return the present state of a consumer."""
    held = await connection.jetstream.stream_info(consumer.stream)
    info = await connection.jetstream.consumer_info(consumer.stream, consumer.name)
    return _read(consumer.stream, consumer.name, held, info)


def _read(stream: str, name: str, held: Untyped, info: Untyped) -> Consumer:
    only = info.config.filter_subject
    return Consumer(
        stream=stream,
        name=name,
        made="" if held.created is None else f"{held.created.timestamp():.6f}",
        gone=max(checked(held.state.first_seq) - 1, 0),  # 0 is the first of an empty one of 2.9
        last=checked(held.state.last_seq),
        is_new=False,
        is_exact=not only or held.config.subjects == [only],
        keeps_unread=held.config.retention != RetentionPolicy.LIMITS,
        floor=checked(info.ack_floor.stream_seq),
        delivered=checked(info.delivered.stream_seq),
        deliveries=checked(info.delivered.consumer_seq),
        unanswered=checked(info.num_ack_pending or 0),
        unread=checked(info.num_pending or 0),
    )


def told_as_new(memory: SourceMemory, consumer: Consumer) -> None:
    """Note that the start with a new consumer is complete, and that no row tells its gap yet."""
    if consumer.is_new:
        with memory.written_together():
            memory.put(UNTOLD, True)  # a value of JSON
            memory.put(f"new consumer {consumer.stream} {consumer.name}", False)


async def return_left(
    connection: NatsConnection, settings: NatsSettings, consumer: Consumer, end: int
) -> None:
    """Return the messages behind the floor up to `end` that the last reader left unanswered.

    The server looks at the stream's number of a message that it waits for, and else at bounds
    of the consumer's number (processNak of server/consumer.go). It reads answers apart from
    requests for messages: so the last one asks for a confirmation, and requests come after it.
    """
    prefix = f"$JS.ACK.{consumer.stream}.{consumer.name}.1"
    end = min(end, consumer.floor + MAX_RETURNED)
    for number in range(consumer.floor + 1, end):
        await connection.client.publish(f"{prefix}.{number}.{consumer.deliveries}.0.0", NAK)
    await connection.client.request(
        f"{prefix}.{end}.{consumer.deliveries}.0.0", NAK, settings.answer_timeout
    )


def numbers_of(reply: str) -> tuple[int, ...]:
    """Return deliveries, numbers in the stream and of the delivery, and the time in nanoseconds.

    `$JS.ACK.[domain.account.]stream.consumer.deliveries.number.delivery.time.pending`

    Raises:
        ValueError: it is not such a subject, or a number is beyond those of JetStream.
    """
    parts = reply.split(".")
    at = 4 if len(parts) < 11 else 6  # with the domain, eleven tokens or more
    found = tuple(map(int, parts[at : at + 4]))
    if len(found) < 4 or not (min(found) >= 0 and max(found) < MAX_NUMBER):
        raise ValueError(f"a delivery without numbers: {reply!r:.80}")
    return found


def checked(number: Untyped) -> int:
    """Return a number of the server. Raises ValueError, TypeError when it is none of JetStream."""
    found = int(number)
    if not 0 <= found < MAX_NUMBER:
        raise ValueError(f"{number!r:.40} is no number of a message")
    return found
