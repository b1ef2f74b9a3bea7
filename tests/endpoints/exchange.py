"""Steps that many endpoint tests share, with deadlines: send and wait, receive and settle."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from time import monotonic

from gateway.endpoints.base import Batch, Sink, Source
from gateway.errors import NotConnectedError
from gateway.model.message import DeliveryMode, Headers, Message
from gateway.model.outcome import ACCEPTED, RETRY, Settlement
from tests.brokers.wire import Wire
from tests.waiting import PATIENCE

QUIET = 0.3  # seconds without a message after which no more is expected


class Answer:
    """The settlements of one `send`; a second call fails the test. Mutable."""

    def __init__(self) -> None:
        self._come = threading.Event()
        self._settlements: list[Settlement] = []
        self.calls = 0

    def __call__(self, settlements: Sequence[Settlement]) -> None:
        self.calls += 1
        self._settlements = list(settlements)
        self._come.set()

    @property
    def has_come(self) -> bool:
        return self._come.is_set()

    def comes_within(self, seconds: float) -> bool:
        return self._come.wait(seconds)

    def wait(self) -> list[Settlement]:
        assert self._come.wait(PATIENCE), "the sink does not answer"
        assert self.calls == 1
        return self._settlements


@contextmanager
def opened(*endpoints: Source | Sink) -> Iterator[None]:
    try:
        for endpoint in endpoints:
            endpoint.open()
        yield
    finally:
        for endpoint in endpoints:
            endpoint.close()


def send(sink: Sink, *messages: Message) -> list[Settlement]:
    answer = Answer()
    sink.send(messages, answer)
    return answer.wait()


def receive(source: Source) -> Batch:
    """Return the next batch; fail without one."""
    until = monotonic() + PATIENCE
    while monotonic() < until:
        batch = source.receive(1.0)
        if batch is not None:
            return batch
    raise AssertionError("nothing comes")


def collect(source: Source, count: int, settlement: Settlement = ACCEPTED) -> list[Message]:
    """Receive and settle `count` messages or more."""
    messages: list[Message] = []
    while len(messages) < count:
        batch = receive(source)
        messages.extend(batch.messages)
        batch.settle([settlement] * len(batch.messages))
    return messages


def hold(source: Source, count: int) -> list[Batch]:
    """Receive batches of `count` messages or more without settling them."""
    batches: list[Batch] = []
    while sum(len(batch.messages) for batch in batches) < count:
        batches.append(receive(source))
    return batches


def wait_for_loss(source: Source) -> list[Message]:
    """Receive until the connection is lost; return the messages that still arrived."""
    left: list[Message] = []
    until = monotonic() + PATIENCE
    while monotonic() < until:
        try:
            batch = source.receive(1.0)
        except NotConnectedError:
            return left
        if batch is not None:
            left.extend(batch.messages)
    raise AssertionError("the loss of the broker goes unnoticed")


def reopen(endpoint: Source | Sink) -> None:
    """Open repeatedly until the broker is back, as the runtime does."""
    until = monotonic() + PATIENCE
    pause = threading.Event()
    while True:
        try:
            endpoint.open()
        except NotConnectedError:
            assert monotonic() < until, "the broker does not come back"
            pause.wait(0.05)
        else:
            return


def send_all(sink: Sink, messages: Sequence[Message]) -> None:
    """Send until each is accepted, as a lane does: what has no answer goes again, in its order."""
    while messages:
        answer = Answer()
        try:
            sink.send(messages, answer)
        except NotConnectedError:
            reopen(sink)
            continue
        outcomes = [each.outcome for each in answer.wait()]
        assert {*outcomes} <= {ACCEPTED.outcome, RETRY.outcome}, outcomes
        messages = messages[(*outcomes, RETRY.outcome).index(RETRY.outcome) :]


def numbers_of(source: Source, end: int) -> list[int]:
    """Receive numbers until `end` is seen, through losses; return each at its first receipt."""
    seen: dict[int, None] = {}
    while end not in seen:
        try:
            batch = source.receive(1.0)
        except NotConnectedError:
            reopen(source)
            continue
        if batch is not None:
            seen |= dict.fromkeys(int(bytes(each.payload)) for each in batch.messages)  # type: ignore[arg-type]  # bytes were sent
            batch.settle([ACCEPTED] * len(batch.messages))
    return list(seen)


def say(number: int) -> Message:
    """Return the message of a number."""
    headers = Headers(mode=DeliveryMode.AT_LEAST_ONCE, source_id=f"m{number}")
    return Message("t.x", str(number).encode(), headers)


def cross_cuts(wire: Wire, source: Source, sink: Sink) -> list[int]:
    """Send the numbers up to 899 while the wire is cut three times; return those received."""
    with opened(sink, source):
        for begin in range(0, 900, 300):
            answer = Answer()
            messages = [say(number) for number in range(begin, begin + 300)]
            sink.send(messages, answer)
            assert wire.cut() > 0
            answer.wait()
            send_all(sink, messages)
        return numbers_of(source, 899)
