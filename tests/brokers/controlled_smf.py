"""The SMF broker as tests use it: its clients, queues and connections, seen from other threads."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from gateway.trial.brokers import smf
from gateway.trial.brokers.smf.consumer_flows import shut_queue
from gateway.trial.brokers.smf.queues import MessageQueue

T = TypeVar("T")


class SmfBroker(smf.SmfBroker):
    """A broker whose state other threads ask and change.

    Thread-safe: every method runs in the event loop.
    """

    def drop_connections(self) -> int:
        """Abort every connection, and return their number."""

        def abort() -> int:
            sessions = list(self._dispatcher.sessions)
            for session in sessions:
                session.transport.abort()
            return len(sessions)

        return self._in_loop(abort)

    def clients(self, vpn: str = "default") -> list[str]:
        """Return the names of the connected clients."""
        return self._in_loop(lambda: list(self.state.vpns[vpn].clients))

    def depth(self, queue: str, vpn: str = "default") -> int:
        """Return the number of messages in a queue, unsettled ones included; 0 without a queue."""

        return self._count(queue, vpn, lambda found: len(found._waiting) + _unsettled(found))  # noqa: SLF001  # no client can ask for it

    def unsettled(self, queue: str, vpn: str = "default") -> int:
        """Return the number of messages that consumers received and did not settle."""

        return self._count(queue, vpn, _unsettled)

    def shut_queue(self, queue: str, vpn: str = "default") -> None:
        """Unbind all consumers of a queue, and refuse further binds and messages."""

        def shut() -> None:
            shut_queue(self.state.vpns[vpn].queues[queue.encode()])
            self._dispatcher.flush()

        self._in_loop(shut)

    def remove_queue(self, queue: str, vpn: str = "default") -> None:
        """Remove a queue with its messages, and unbind its consumers."""

        def remove() -> None:
            found = self.state.vpns[vpn]
            shut_queue(found.queues[queue.encode()])
            found.remove_queue(found.queues[queue.encode()])
            self._dispatcher.flush()

        self._in_loop(remove)

    def _count(self, queue: str, vpn: str, number: Callable[[MessageQueue], int]) -> int:
        def count() -> int:
            found = self.state.vpns[vpn].queues.get(queue.encode())
            return number(found) if found else 0

        return self._in_loop(count)

    def _in_loop(self, call: Callable[[], T]) -> T:
        result: Future[T] = Future()

        def run() -> None:
            try:
                result.set_result(call())
            except Exception as error:  # noqa: BLE001  # raised again in the calling thread
                result.set_exception(error)

        self._loop.call_soon_threadsafe(run)
        return result.result(timeout=10)


def _unsettled(queue: MessageQueue) -> int:
    return sum(len(flow.unacked) for flow in queue.flows)
