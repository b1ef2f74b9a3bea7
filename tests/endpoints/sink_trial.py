"""A sink at its broker as a lane has it, with all that it answers and all that arrives.

messages    numbered; each third one has the same name
call        of `send`: it raises, or it is answered once, with a settlement for each message
settled     as by a lane: what is to be tried again goes again, in order, over a new connection
source      of the same names, open beside the sink in a connection of its own
"""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Final
from weakref import ref

from gateway.endpoints.base import Sink
from gateway.endpoints.leader_followers import release_followed
from gateway.endpoints.registry import make_sink
from gateway.errors import NotConnectedError
from gateway.model.message import DeliveryMode, Headers, Message
from gateway.model.outcome import ACCEPTED, Outcome, Settlement
from tests.endpoints.connections import connections, cut
from tests.endpoints.exchange import QUIET, Answer, reopen
from tests.endpoints.systems import System
from tests.waiting import PATIENCE, until

NAMES: Final = 3
SOME: Final = 30  # messages
LARGE: Final = 20_000  # bytes of a message
WAITS: Final = {"wait", "wait_for", "await_answer"}  # functions of a thread that waits
MOST_SECONDS: Final = 15.0  # for an `open` that nobody answers
OF_BROKERS: Final = {"Yami4Broker", "SmfBroker"}  # threads of this process


class HeldAnswer(Answer):
    """An answer that holds the thread of its driver. Mutable."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.goes_on = threading.Event(), threading.Event()

    def __call__(self, settlements: Sequence[Settlement]) -> None:
        self.begun.set()
        self.goes_on.wait(PATIENCE)
        super().__call__(settlements)


@dataclass(eq=False)
class Call:
    """One call of `send`. Mutable: `has_raised` is known at its end."""

    messages: Sequence[Message]
    answer: Answer = field(default_factory=Answer)
    has_raised: bool = False


class SinkTrial:
    """The sink of a system, and a source beside it. Mutable; the test's thread owns it.

    `changes` are of the sink's settings, as far as its kind has them.
    """

    def __init__(self, system: System, changes: Mapping[str, object]) -> None:
        known = {key: each for key, each in changes.items() if hasattr(system.settings, key)}
        self.system, self.settings = system, replace(system.settings, **known)  # type: ignore[arg-type]  # as the row says
        self.sink: Sink = make_sink(self.settings, instance="one")
        self.source = system.source("t")
        self.sent = 0  # numbers
        self.rules: set[str] = set()  # of refusals
        self.repeated: set[int] = set()  # handed over more than once
        self._calls: list[Call] = []
        self._noted = 0  # calls whose answers are known
        self._open: list[Message] = []  # without a last outcome, in their order
        self._owed: set[int] = set()  # accepted, and kept for the source
        self._arrivals: list[int] = []
        self._doubled: list[int] = []  # came again without a reason
        self._forgets = False  # the broker has lost what it had
        self._others: set[int] = set()  # connections that are not the sink's

    @property
    def keeps(self) -> bool:
        """Whether messages wait for a source that has lost its connection."""
        return self.system.keeps and self.system.mode is not DeliveryMode.AT_MOST_ONCE

    @contextmanager
    def running(self) -> Iterator[None]:
        """Open both sides, close them at the end, and check that nothing stays."""
        before, threads = {*connections()}, {*threading.enumerate()}
        try:
            self.source.open()
            self._others = {*connections()}
            self.sink.open()
            yield
        finally:
            self.thaw()
            self.sink.close()
            self.source.close()
        self._check_answers()
        answers = [ref(each.answer) for each in self._calls]
        self._calls.clear()
        release_followed()  # this thread, which has received, would do so at its next receipt
        until(lambda: not self._left(before, threads), "a connection or a thread stays")
        gc.collect()
        assert not [each for each in answers if each() is not None], "the sink holds answers"

    # Events of the broker and of the connection

    def kill(self) -> None:
        assert self.system.broker is not None
        self.system.broker.kill()
        self._forgets = self._forgets or not self.system.keeps_killed
        self.lose()

    def stop(self) -> None:
        assert self.system.broker is not None
        self.system.broker.stop()
        self.lose()

    def start(self) -> None:
        assert self.system.broker is not None
        self.system.broker.start()
        self._bring_back()

    def wipe(self) -> None:
        """Let the broker come back without anything that it had."""
        assert self.system.wipe is not None
        self.system.wipe()
        self._forgets = True
        self._lose_source()
        self._bring_back()

    def freeze(self) -> None:
        assert self.system.broker is not None
        self.system.broker.freeze()

    def thaw(self) -> None:
        if self.system.broker is not None:
            self.system.broker.thaw()

    def cut(self) -> None:
        """Cut the connections of the sink."""
        for inode, descriptor in connections().items():
            if inode not in self._others:
                cut(descriptor)

    def lose(self) -> None:
        """Wait until both sides tell that their connections are lost."""
        until(self.is_lost, "the sink does not tell the loss")
        self._lose_source()

    def is_lost(self) -> bool:
        """Ask the sink as a lane does, without a message."""
        try:
            self.sink.send([], lambda _settlements: None)
        except NotConnectedError as error:
            self._check_loss(error)
            return True
        return False

    # Calls of the sink

    def hand_over(
        self,
        count: int = SOME,
        wrong: Message | None = None,
        answer: Answer | None = None,
        size: int = 0,
    ) -> Call:
        """Send so many messages of `size` bytes at least, and `wrong` ones; return the call."""
        headers = Headers(mode=self.system.mode)
        messages: list[Message] = []
        for each in range(self.sent, self.sent + count):
            name = self.system.address("t", str(each % NAMES))
            messages.append(Message(name, (b"%d" % each).ljust(size), headers))
            if wrong is not None and each % NAMES == NAMES - 1:
                messages.append(replace(wrong))
        self.sent += count
        self._open += messages
        return self._send(messages, answer)

    def wait_unanswered(self, *calls: Call) -> None:
        """Check that no answer comes for a while."""
        assert not calls[0].answer.comes_within(QUIET), "accepted, and the broker is frozen"
        assert not any(each.answer.has_come or each.has_raised for each in calls)

    def block(self) -> threading.Thread:
        """Hand over in another thread until it waits for room; return the thread."""

        def run() -> None:
            for _ in range(100):
                if self.hand_over(size=LARGE).has_raised:
                    return

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        until(lambda: _waits(thread), "the sink has no window")
        return thread

    def close(self) -> None:
        """Close the sink, which waits for no broker; each call has its answer then."""
        closing = threading.Thread(target=self.sink.close, daemon=True)
        closing.start()
        closing.join(self.system.closes)
        was_quick = not closing.is_alive()
        self.thaw()
        closing.join(PATIENCE)
        assert was_quick, "close waits for the broker"
        assert self.is_lost()

    def open_in_vain(self) -> None:
        """Try to open while no broker answers."""
        self.sink.close()
        begin = monotonic()
        try:
            self.sink.open()
        except NotConnectedError as error:
            self._check_loss(error)
        else:
            raise AssertionError("the sink is open, and no broker has answered")
        finally:
            self.thaw()
        assert monotonic() - begin < MOST_SECONDS
        assert self.is_lost()

    def settle(self) -> None:
        """Hand over again until each message has its last outcome."""
        while again := self._note_answers():
            self.sink.close()
            reopen(self.sink)
            self.repeated |= {number for each in again if (number := _number(each)) is not None}
            self._send(again)

    def finish(self) -> None:
        """Send one more message of each name, and receive all that the broker keeps."""
        self.settle()
        self.hand_over(NAMES)
        self.settle()
        assert {*range(self.sent - NAMES, self.sent)} <= self._owed
        end = monotonic() + PATIENCE
        while lost := self._owed - {*self._arrivals}:
            assert monotonic() < end, f"accepted, and lost: {sorted(lost)}"
            self._receive(1.0)
        self._receive(0.0)

    def check(self) -> None:
        """Check what nothing that happens may change."""
        assert not self._doubled, f"sent twice without a reason: {self._doubled}"
        first = dict.fromkeys(self._arrivals)
        for name in range(NAMES):
            numbers = [each for each in first if each % NAMES == name]
            assert numbers == sorted(numbers) or not self.system.in_order, "out of order"

    def _send(self, messages: Sequence[Message], answer: Answer | None = None) -> Call:
        self._calls.append(call := Call(messages, answer or Answer()))
        try:
            self.sink.send(messages, call.answer)
        except NotConnectedError as error:
            self._check_loss(error)
            call.has_raised = True
        return call

    def _note_answers(self) -> list[Message]:
        """Wait for the answers; return what is to be handed over again."""
        calls, self._noted = self._calls[self._noted :], len(self._calls)
        for call in calls:
            if call.has_raised:
                continue
            until(lambda call=call: self.is_lost() or call.answer.has_come, "no answer")  # type: ignore[misc]  # a default binds it now
            settlements = call.answer.wait()
            assert len(settlements) == len(call.messages)
            for message, settlement in zip(call.messages, settlements, strict=True):
                if settlement.outcome is not Outcome.RETRY:
                    self._end(message, settlement)
        return self._open[:]

    def _end(self, message: Message, settlement: Settlement) -> None:
        self._open = [each for each in self._open if each is not message]
        number = _number(message)
        if number is None:
            assert settlement.outcome is Outcome.REJECTED, settlement
            assert settlement.rule
            assert settlement.reason
            self.rules.add(settlement.rule)
        else:
            assert settlement.outcome is Outcome.ACCEPTED, settlement
            self._owed.add(number)

    def _check_loss(self, error: NotConnectedError) -> None:
        assert error.retryable
        assert str(error).startswith(f"{self.settings.name}: "), error

    def _check_answers(self) -> None:
        for call in self._calls:
            assert call.answer.calls == (not call.has_raised), "answered twice, or never"

    def _left(self, connected: set[int], threads: set[threading.Thread]) -> list[object]:
        """Return the connections and the threads that were not there before."""
        new = {*threading.enumerate()} - threads
        return [
            *({*connections()} - connected),
            *(each for each in new if each.name not in OF_BROKERS and each.name[:5] != "Dummy"),
        ]

    # The source

    def _lose_source(self) -> None:
        until(lambda: not self._receive(0.05, reopens=False), "the source tells no loss")

    def _bring_back(self) -> None:
        """Open the source again; without a memory of its broker, it misses what was sent."""
        reopen(self.source)
        if self._forgets or not self.keeps:
            self._forgets = False
            self._note_answers()
            self._owed.clear()

    def _receive(self, timeout: float, *, reopens: bool = True) -> bool:
        """Receive once; return False for a lost connection that is not to be made again."""
        try:
            batch = self.source.receive(timeout)
        except NotConnectedError:
            if reopens:
                self._bring_back()
            return reopens
        if batch is not None:
            for each in batch.messages:
                number = _number(each)
                assert number is not None, "a refused message arrives"
                is_known = number in self._arrivals and not each.headers.redelivered
                if is_known and number not in self.repeated:
                    self._doubled.append(number)
                self._arrivals.append(number)
            batch.settle([ACCEPTED] * len(batch.messages))
        return True


def _number(message: Message) -> int | None:
    """Return the number of a message; None for one that is refused."""
    payload = bytes(message.payload) if isinstance(message.payload, bytes) else b""
    return int(payload) if payload.strip().isdigit() else None


def _waits(thread: threading.Thread) -> bool:
    frame = sys._current_frames().get(thread.ident or 0)  # noqa: SLF001  # its documented name
    while frame is not None and frame.f_code.co_name not in WAITS:
        frame = frame.f_back
    return frame is not None
