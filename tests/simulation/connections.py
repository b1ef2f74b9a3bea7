"""Simulated connections of clients to a broker: two pipes with latencies."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from gateway.wire.mqtt.packets import PacketDecoder
from gateway.wire.yami4.frames import FrameDecoder
from tests.simulation.scheduler import Process, Scheduler

if TYPE_CHECKING:  # the broker imports this module
    from tests.simulation.brokers import Broker


DEAF: Final = 0.05  # seconds between two looks of a blocked broker


class Pipe:
    """One direction of a connection: items in order, each with its latency.

    `handle` runs in a task of `process`.
    """

    def __init__(
        self,
        run: Scheduler,
        name: str,
        process: Process,
        handle: Callable[[object], None],
        latency: Callable[[], float],
    ) -> None:
        self._run, self._handle, self._latency = run, handle, latency
        self.items: deque[tuple[float, object]] = deque()
        self.closed = False
        self.dropping = False  # a cut that nobody notices yet
        self.last: Callable[[], None] = lambda: None
        self._idle = False
        self._task = run.spawn(name, process, self._work)

    def put(self, item: object) -> None:
        if not self.closed and not self.dropping:
            self.items.append((self._run.now + self._latency(), item))
            self._notify()

    def close(self) -> None:
        self.closed = True
        self._notify()

    def _notify(self) -> None:
        if self._idle:
            self._run.wake(self._task)

    def _work(self) -> None:
        run = self._run
        while not self.closed:
            if not self.items:
                self._idle = True
                run.wait()
                self._idle = False
                continue
            due = self.items[0][0]
            if due > run.now:
                self._idle = True
                run.wait(due)
                self._idle = False
                continue
            self._handle(self.items.popleft()[1])
        self.last()


class Connection:
    """A connection of a client to a broker; `broken` once the client may know that it is lost."""

    def __init__(
        self,
        broker: Broker,
        client: str,
        process: Process,
        received: Callable[[object], None],
        lost: Callable[[], None],
    ) -> None:
        self.broker, self.client = broker, client
        self.process = process
        self.broken = False
        self.reason = ""
        self.decoder = PacketDecoder("5", lambda: 0)  # of a sink of QoS 2
        self.frames = FrameDecoder()  # of a sink of YAMI4
        self.refusing = False  # everything after an answer RETRY gets the same answer
        run, latency = broker.run, broker.latency
        self.up = Pipe(run, f"up-{client}", broker.process, self._arrived, latency)
        self.down = Pipe(run, f"down-{client}", process, received, latency)
        self.down.last = lost
        old = broker.connections.get(client)
        if old is not None:
            old.lose("another connection of this client")
        broker.connections[client] = self

    def _arrived(self, item: object) -> None:
        broker = self.broker
        while broker.semantics.deaf and broker.blocked and self._publishes(item):
            broker.run.sleep(DEAF)
        if not self.up.closed:
            broker.arrived(self, item)

    @staticmethod
    def _publishes(item: object) -> bool:
        return isinstance(item, tuple) and item[0] == "publish"

    def lose(self, reason: str) -> None:
        """End the connection at once; what was on its way is lost."""
        if not self.broken:
            self.broken, self.reason = True, reason
        self.up.close()
        self.down.close()
        self.broker.forget(self)

    def leave(self) -> None:
        """Close as a client does: what it has sent may still arrive."""
        if not self.broken:
            self.broken, self.reason = True, "closed"
            self.down.close()
            self.up.put(("end", 0, ()))
