"""The memory and the counts of a JMS source that loses its connection; with a scripted library."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from gateway.endpoints.base import Batch, Subscription
from gateway.endpoints.jms import intake as intake_module
from gateway.endpoints.jms import property_names as names
from gateway.endpoints.jms.intake import JmsIntake
from gateway.endpoints.jms.message_reader import BYTES, MAP
from gateway.endpoints.jms.source import JmsSource
from gateway.endpoints.settings.jms import JmsSettings
from gateway.errors import NotConnectedError
from gateway.model.message import Message, Value
from gateway.model.outcome import ACCEPTED
from tests.endpoints.jms.test_message_reader import nested, packed
from tests.waiting import PATIENCE, until

WINDOW, BATCH = 2, 3
SETTINGS = JmsSettings(receive_window=WINDOW, batch=BATCH)


class LostError(Exception):
    """Stands for an exception of Java, which needs no virtual machine."""


class Receiver:
    """Receiver.java, with the batches that the next drains return."""

    def __init__(self) -> None:
        self.batches: list[bytes] = []
        self.discards = True
        self.finishes = 0  # calls
        self.may_finish = threading.Event()
        self.may_finish.set()

    def drain(self, _most: int, _size: int, _millis: int) -> bytes | None:
        return self.batches.pop(0) if self.batches else None

    def discard(self, _positions: Sequence[int], _count: int) -> None:
        if not self.discards:
            raise LostError

    def settled(self, total: int) -> None:
        """Ignore the answer."""

    def finish(self, _millis: int) -> bool:
        self.finishes += 1
        return self.may_finish.wait(PATIENCE)

    def release(self) -> None:
        """Do nothing: no thread waits."""

    def largest(self) -> int:
        return 0

    def acknowledged(self) -> int:
        return 0


@pytest.fixture
def receiver() -> Receiver:
    return Receiver()


@pytest.fixture
def source(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> Iterator[JmsSource]:
    connection: Any = SimpleNamespace(
        received=0,
        address="",
        monitor=SimpleNamespace(failure=lambda: None),
        close=lambda _timeout: None,
        set_up=lambda call, _: JmsIntake(call.args[0], connection, receiver, together=True),
    )
    monkeypatch.setattr(intake_module, "open_library", lambda _settings: None)
    monkeypatch.setattr(intake_module, "connect", lambda *_: connection)
    monkeypatch.setattr(intake_module, "JavaError", LostError)
    source = JmsSource(SETTINGS, [Subscription("*")])
    source.open()
    yield source
    source.close()


def drain_of(*ids: str) -> bytes:
    properties: list[dict[str, Value]] = [{names.SOURCE_ID: each} for each in ids]
    return packed(*((BYTES, b"", each) for each in properties))


def receive(source: JmsSource, receiver: Receiver, data: bytes) -> Sequence[Message]:
    receiver.batches.append(data)
    batch = source.receive(0)
    assert isinstance(batch, Batch)
    batch.settle([ACCEPTED] * len(batch.messages))
    return batch.messages


def test_all_ids_of_the_drain_that_reaches_into_two_windows_are_remembered(
    source: JmsSource, receiver: Receiver
) -> None:
    first = ("a", "b", "c")
    receive(source, receiver, drain_of(*first))
    for number in range(2 * (WINDOW + BATCH) // BATCH):
        receive(source, receiver, drain_of(*(f"{number}.{each}" for each in range(BATCH))))
    source.open()

    again = receive(source, receiver, drain_of(*first))

    assert [each.headers.redelivered for each in again] == [True] * BATCH


def test_an_empty_id_is_remembered(source: JmsSource, receiver: Receiver) -> None:
    receive(source, receiver, drain_of(""))
    source.open()

    (again,) = receive(source, receiver, drain_of(""))

    assert again.headers.redelivered


def test_a_batch_that_is_lost_with_its_connection_is_counted_when_it_comes_again(
    source: JmsSource, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    both = packed((MAP, nested(100), {}), (BYTES, b"", {}))
    batch = both.removesuffix(b"t") + b"$"  # a name that `*` does not select
    receiver.batches, receiver.discards = [batch], False
    with pytest.raises(NotConnectedError):
        source.receive(0)
    receiver.discards = True
    source.open()

    with caplog.at_level(logging.WARNING):
        receive(source, receiver, batch)

    assert (source.counts["unreadable"], source.counts["unwanted"]) == (1, 1)
    assert "1 bodies could not be read" in caplog.text


def test_a_connection_that_is_lost_is_closed_once(source: JmsSource, receiver: Receiver) -> None:
    unwanted = packed((BYTES, b"", {})).removesuffix(b"t") + b"$"
    receiver.batches, receiver.discards = [unwanted], False
    with pytest.raises(NotConnectedError):
        source.receive(0)

    source.close()
    with pytest.raises(NotConnectedError, match="open it first"):
        source.receive(0)

    assert receiver.finishes == 1


def test_nothing_is_awaited_while_the_last_messages_are_acknowledged(
    source: JmsSource, receiver: Receiver
) -> None:
    receiver.may_finish.clear()
    closing = threading.Thread(target=source.close)
    closing.start()
    until(lambda: receiver.finishes == 1)

    with pytest.raises(NotConnectedError, match="open it first"):
        source.receive(0.2)

    receiver.may_finish.set()
    closing.join(PATIENCE)
