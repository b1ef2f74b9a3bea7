"""Bytes of a stranger in a topic, or in a commit of the group, that clients do not write."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count

import pytest

from gateway.endpoints.source_shell import SourceShell
from gateway.model.message import Message
from tests.brokers.hostile_servers import serving
from tests.brokers.kafka_server import required
from tests.endpoints.exchange import opened
from tests.endpoints.kafka.records import receive, source_of
from tests.hostile import kafka_servers as script

pytestmark = pytest.mark.broker
END_OF_TIME = (1 << 63) - 1


@contextmanager
def reading(changed: Mapping[int, script.Answer]) -> Iterator[SourceShell]:
    """Read the topic `t` of a server with these answers."""
    required()
    with serving(script.script(changed)) as port:
        source = source_of(script.settings_at(port), "t:>")
        with opened(source):
            yield source


def batches(*found: bytes) -> script.Answer:
    """Answer each request for messages with the next batch, then with honest ones."""
    numbers = count(1)

    def answer(port: int) -> Iterator[bytes]:
        number = next(numbers)
        if number <= len(found):
            yield script.fetched(found[number - 1], end=number)
        else:
            yield from script.HONEST[script.FETCH](port) or ()

    return answer


def messages(source: SourceShell, most: int) -> list[Message]:
    found = [each for batch in receive(source, most) for each in batch.messages]
    return found[:most]


@pytest.mark.parametrize(
    ("name", "properties"),
    [
        (b"\xff\xfe", {"kafka_malformed": "the name of a header is not UTF-8"}),
        (b"", {"": "x"}),
        (b"a\0b", {"a": "x"}),  # the library ends a name there
    ],
)
def test_a_name_of_a_header_that_is_no_text_stops_nothing(
    name: bytes, properties: dict[str, str]
) -> None:
    strange = script.batch(script.record(b"strange", names=[b"plain", name]))
    with reading({script.FETCH: batches(strange)}) as source:
        first, second = messages(source, 2)

    assert (first.payload, second.payload) == (b"strange", b"honest")
    assert first.headers.properties.items() >= properties.items()


@pytest.mark.parametrize(
    ("milliseconds", "time"),
    [
        (0, 0),
        (253_402_300_799_999, 253_402_300_799_999_000),  # the end of the year 9999
        (253_402_300_800_000, None),
        (END_OF_TIME, None),
        (-1, None),
        (-END_OF_TIME, None),
    ],
)
def test_a_time_that_is_none_is_left_out(milliseconds: int, time: int | None) -> None:
    with reading({script.FETCH: batches(script.batch(time=milliseconds))}) as source:
        [message] = messages(source, 1)

    assert message.headers.time == time


def test_a_commit_with_metadata_that_are_no_text_is_that_of_a_stranger() -> None:
    """The source goes on behind it, and marks all that the stranger may have read."""
    begin, end = script.listed(0), script.listed(6)
    asked = count()
    changed: dict[int, script.Answer] = {
        script.COMMITTED: lambda _: [script.committed(5, note=b"\xff\xfe")],
        script.LIST: lambda _: [end if next(asked) else begin],
        script.FETCH: batches(script.batch(base=5), script.batch(base=6)),
    }
    with reading(changed) as source:
        found = [each.headers for each in messages(source, 2)]
        losses = source.continuity.take_losses()

    assert [(each.source_id, each.redelivered) for each in found] == [
        ("kafka c t 0 5 0", True), ("kafka c t 0 6 0", False),
    ]  # fmt: skip
    assert [*losses] == []
