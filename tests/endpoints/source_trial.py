"""A source at its broker, as several processes one after another have it, and all that came.

messages    numbered; each third one has the same name
process     ended by `stop` in good order, by `kill` without any, begun by `start`. A kill ends
            the connections of the source under it, and nothing of it is written any more
memory      beside the endpoint on disk, or beside the lease of a pair
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from time import monotonic
from typing import Final, NamedTuple

from gateway.clock import boot_seconds
from gateway.endpoints.base import Batch, EndsIntake, Source
from gateway.endpoints.continuity import ReportsContinuity, Retention
from gateway.endpoints.registry import find_kind
from gateway.endpoints.settings.base import EndpointSettings
from gateway.endpoints.source_memory import KeepsMemory
from gateway.errors import NotConnectedError, TakenOverError
from gateway.lease.holder import LeaseHolder
from gateway.model.message import Headers, Message, Payload
from gateway.model.outcome import ACCEPTED, RETRY, Settlement
from gateway.runtime.inbound.source_memories import MemoryFile, SourceMemories
from tests.endpoints.connections import connections, cut
from tests.endpoints.exchange import opened, reopen, send, send_all
from tests.endpoints.pair_storage import LEASE, Instance, PairStorage
from tests.endpoints.systems import System
from tests.waiting import PATIENCE, until

NAMES: Final = 3
SOME: Final = 30  # messages
FEW: Final = 10  # that any broker sends before one is settled
SILENCE: Final = 0.1  # seconds; `source_memory.WRITE_INTERVAL` of these tests is shorter


class Loss(Enum):
    """Whether an event loses messages at a broker that keeps them."""

    NONE = "none, and no gap is told"
    PERHAPS = "those that are lost are told"
    CERTAIN = "a gap is told"


class Arrival(NamedTuple):
    number: int
    again: bool  # marked as redelivered


@dataclass
class Trial:
    """The processes of one source; of a pair with a `storage`. Mutable; one thread owns it."""

    system: System
    folder: Path
    logged: Callable[[], str]
    storage: PairStorage | None = None
    sent: int = 0
    arrivals: list[Arrival] = field(default_factory=list)
    told: list[str] = field(default_factory=list)  # of lost messages
    held: list[Batch] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._sink = self.system.sink()
        self._file = self.folder / "memory"
        self._name = self.system.settings.name  # the first one
        self._renamed = False
        self._later = 0.0  # seconds that were passed over
        self._resent: set[Payload] = set()  # by the sink, which no message says
        self._sources: list[Source] = []
        self._instances: list[Instance] = []
        self._opens = 0
        self._unsent = 0  # the first number that was not sent when this process began
        self._others: set[int] = set()  # connections that are not of the source
        self.source: Source
        self.keeps = self.system.keeps

    @contextmanager
    def running(self) -> Iterator[None]:
        with opened(self._sink):
            if self.storage is not None:
                self.take_lease()
            self.start()
            try:
                yield
            finally:
                for source in self._sources:
                    source.close()
                for instance in self._instances:
                    instance.stop()

    def publish(self, count: int = SOME, expiry: int | None = None) -> None:
        send_all(self._sink, self._numbered(count, expiry))

    def publish_among(self, address: str) -> list[Settlement]:
        """Send messages, each third one followed by one to another address; return its answers."""
        headers = Headers(mode=self.system.mode)
        messages = self._numbered(SOME)
        for at in range(SOME - 1, 0, -NAMES):
            messages.insert(at, Message(address, b"-1", headers))
        answers: dict[int, Settlement] = {}
        while left := [at for at in range(len(messages)) if at not in answers]:
            try:
                found = send(self._sink, *(messages[at] for at in left))
            except NotConnectedError:
                reopen(self._sink)
                continue
            new = {
                at: e for at, e in zip(left, found, strict=True) if e.outcome is not RETRY.outcome
            }
            assert new, "no message has an answer"
            answers |= new
            self._resent |= {messages[at].payload for at in left if at not in new}
        return [answers[at] for at, each in enumerate(messages) if each.address == address]

    def _numbered(self, count: int, expiry: int | None = None) -> list[Message]:
        address, retained = self.system.address, self.system.retains
        headers = Headers(mode=self.system.mode, expiry=expiry, retained=retained)
        numbers = range(self.sent, self.sent + count)
        self.sent += count
        texts = [(address("t", str(each % NAMES)), b"%d" % each) for each in numbers]
        return [Message(name, text, headers) for name, text in texts]

    def start(self) -> None:
        """Begin a process: it knows what is kept, and nothing else."""
        self.system.forget()
        self.source = source = self.made()
        self._others = {*connections()}
        reopen(source)
        self._opened()
        self._unsent = self.sent

    def made(self) -> Source:
        source = self.system.source("t")
        self._sources.append(source)
        if isinstance(source, KeepsMemory):
            source.memory.keep_in(self._memories(), self.role)
        return source

    @property
    def role(self) -> str:
        return f"{find_kind(self.system.settings).name} {self._name}"

    def change(self, settings: EndpointSettings, was: str = "") -> None:
        """Give the endpoint other settings; `was` is its first name, where it has another now."""
        self.system, self._name = replace(self.system, settings=settings), was or settings.name
        self._renamed = bool(was)

    def take_lease(self) -> None:
        """Begin another instance of the pair; a holder that has not given its lease is silent."""

        def clock() -> float:
            return boot_seconds() + self._later

        assert self.storage is not None
        last = self._instances[-1].holder if self._instances else None
        name, lease = f"i{len(self._instances)}", self.storage.open_lease()
        holder = LeaseHolder(lease, name, LEASE, clock)
        holder.start()
        if last is not None and not last.ended:
            until(lambda: holder.active == last.instance)
            self._later += LEASE
        until(holder.holds)
        self._instances.append(Instance(self.storage, holder, self.folder))

    def give_lease(self) -> None:
        self._instances[-1].stop()

    def damage_memory(self) -> None:
        self._file.write_text("damaged")

    def _memories(self) -> SourceMemories:
        if self._instances:
            memories = self._instances[-1].memories
        else:
            memories = SourceMemories(MemoryFile(self._file))
        own = {self.role: f"{find_kind(self.system.settings).name} {self.system.settings.name}"}
        memories.use_roles([self.role], [self.role], own if self._renamed else {})
        return memories

    def stop(self) -> None:
        """End the process in good order; what it holds is not settled."""
        self._listen()
        self.source.close()
        self.held.clear()

    def stop_while_frozen(self) -> None:
        """End the process in good order, which waits for no broker that stands still."""
        broker = self.system.broker
        assert broker is not None
        broker.freeze()
        if isinstance(self.source, EndsIntake):
            self.source.end_intake()
        stopping = threading.Thread(target=self.stop, daemon=True)
        stopping.start()
        stopping.join(self.system.closes)
        was_quick = not stopping.is_alive()
        broker.thaw()
        stopping.join(PATIENCE)
        assert was_quick, "close waits for the broker"

    def kill(self) -> None:
        """End the process: nothing of it is written, and no protocol ends its connections."""
        if isinstance(self.source, KeepsMemory):
            self.source.memory.keep_in(None, "")
        with self.system.dying():
            self._cut()
            self.source.close()
        self.held.clear()

    def freeze(self) -> Callable[[], None]:
        """Let the process stand still for so long that its connections end; return its awakening.

        It settles what it holds, writes its memory and ends.
        """
        self._cut()
        source, held, self.held = self.source, self.held, []

        def wake() -> None:
            _settle(held)
            source.close()
            if isinstance(source, KeepsMemory):
                source.memory.put("frozen", len(held))
                source.memory.write_exactly()

        return wake

    def receive(self, timeout: float = 1.0) -> Batch | None:
        """Return what comes, noted and not settled; a lost connection is made again."""
        try:
            batch = self.source.receive(timeout)
        except (NotConnectedError, TakenOverError) as error:
            if isinstance(error, TakenOverError):  # the runtime has a gap for it
                self.told.append(str(error))
            self._listen()
            reopen(self.source)
            self._opened()
            return None
        if batch is not None:
            self.arrivals += [_arrival(each) for each in batch.messages]
        return batch

    def hold(self, count: int = FEW) -> None:
        """Receive until so many messages are unsettled, or more."""
        self._receive(lambda: sum(len(each.messages) for each in self.held) >= count)

    def settle(self) -> None:
        """Receive all that was sent, and settle it; without what was sent while none kept it."""
        wanted = {*range(0 if self.keeps else self._unsent, self.sent)}
        self._receive(lambda: wanted <= {*self.numbers}, settles=True)

    def settle_held(self) -> None:
        _settle(self.held)
        self.held.clear()

    def settle_part(self) -> None:
        """Settle the first of the messages that are held, and retry those behind them."""
        for place, each in enumerate(self.held):
            done = 0 if place else min(FEW // 2, len(each.messages))
            each.settle([ACCEPTED] * done + [RETRY] * (len(each.messages) - done))
        self.held.clear()

    def lose(self) -> None:
        """Receive until the connection is lost and made again."""
        opened = self._opens
        self._receive(lambda: self._opens > opened, settles=True)

    def fall_quiet(self) -> None:
        """Receive until nothing more comes, the memory of that is written, and the broker knows."""
        for _ in range(2):
            while (batch := self.receive(SILENCE)) is not None:
                _settle([batch])
        until(self.system.knows_settled)

    def finish(self, loss: Loss) -> None:
        """Send one more message of each name, behind which nothing comes, and receive them."""
        self.publish(NAMES)
        last = {*range(self.sent - NAMES, self.sent)}
        if self.keeps and loss is Loss.NONE:
            last = {*range(self.sent)}
        self._receive(lambda: last <= {*self.numbers}, settles=True)
        self._listen()

    @property
    def numbers(self) -> list[int]:
        return [each.number for each in self.arrivals]

    def check(self, loss: Loss, *, exact: bool) -> None:
        """Check what a source promises, whatever happens to it."""
        first: dict[int, Arrival] = {}
        repeats = [
            each
            for each in self.arrivals
            if first.setdefault(each.number, each) is not each
            and b"%d" % each.number not in self._resent
        ]
        unmarked = [each.number for each in repeats if not each.again]
        assert not unmarked, f"came twice without a mark: {unmarked}"
        for name in range(NAMES):
            numbers = [each for each in first if each % NAMES == name]
            assert numbers == sorted(numbers) or not self.system.in_order, "out of order"
        lost = {*range(self.sent)} - first.keys()
        assert self.told or not lost, f"{len(lost)} lost, and nobody tells it"
        assert self.told or loss is not Loss.CERTAIN, "nobody tells the gap"
        if self.keeps and loss is Loss.NONE:
            assert not lost, "lost"
            assert not self.told, "a gap is told, and there is none"
        if exact and self.keeps:
            assert self.system.retains or repeats == [], "came twice"
            doubted = [each.number for each in self.arrivals if each.again]
            assert max(doubted, default=-1) < self._unsent, "marked, and sent to this process"

    def _receive(self, done: Callable[[], bool], *, settles: bool = False) -> None:
        end = monotonic() + PATIENCE
        while not done():
            assert monotonic() < end, f"nothing more comes after {self.numbers[-1:]}"
            batch = self.receive()
            if batch is not None:
                self.held.append(batch)
            if settles:
                self.settle_held()

    def _cut(self) -> None:
        for inode, descriptor in connections().items():
            if inode not in self._others:
                cut(descriptor)

    def _opened(self) -> None:
        """Note the gap that the connection tells, as durably as a row."""
        if isinstance(self.source, ReportsContinuity):
            retention = self.source.continuity.retention
            if self._opens and retention is not Retention.KEPT:
                self.told.append(retention.value)
            self.source.continuity.on_told()
        self._opens += 1

    def _listen(self) -> None:
        """Note the losses that the source tells."""
        if isinstance(self.source, ReportsContinuity):
            self.told += [each.reason for each in self.source.continuity.take_losses()]


def _arrival(message: Message) -> Arrival:
    assert isinstance(message.payload, bytes)
    return Arrival(int(message.payload), message.headers.redelivered)


def _settle(batches: Iterable[Batch]) -> None:
    for each in batches:
        each.settle([ACCEPTED] * len(each.messages))
