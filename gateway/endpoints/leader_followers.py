"""The leader/followers pattern for connections: one thread at a time waits for each socket.

The leader of a connection waits for its socket and handles what arrives. Waking another thread is
a large part of the cost and of the latency of a message that arrives alone, so a thread that has
to wait anyway becomes the leader:

- A thread that waits for messages leads the connection that brings them, and follows every
  connection that it has sent over: it also handles the answers on those.
- A thread that waits for an answer leads the connection that brings the answer.
- Each connection has a thread of its own. It leads when no other thread has done so for a while,
  and when the connection asks for it (heavy traffic, a full socket, the end of the connection).

Figures, in turns with own threads that always lead, on a busy machine with two cores: a relay of
MQTT at 1,000 messages/s takes 269 to 312 µs of processor time a message instead of 338 to 434, and
waits 1.8 to 2.9 times a message instead of 3.0 to 5.8. At full rate it is 1.2 times as fast with 20
messages in flight (docs/decisions/leader-followers.md); large batches make no difference.
"""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable
from contextlib import suppress
from time import monotonic, sleep
from typing import Protocol

CHECK_INTERVAL = 0.25  # seconds between checks of a connection
FOLLOWED_CHECK_INTERVAL = 0.05  # the same while its follower is busy with another connection


class LedConnection(Protocol):
    """A connection whose socket is waited for by its current leader."""

    def serve(self, timeout: float) -> None:
        """Wait at most `timeout` seconds for an event, and handle it."""

    def poll(self, *, readable: bool) -> None:
        """Handle what there is to handle without waiting; `readable` is the socket's state."""

    def needs_own_thread(self) -> bool:
        """Return whether only the connection's own thread may lead now."""

    def is_over(self) -> bool:
        """Return whether nothing is left to handle."""

    def finish(self) -> None:
        """Release everything; the own thread calls it once, when the connection is over."""


class Leadership:
    """Chooses the thread that leads one connection.

    Mutable: `leader_lock` is held by the current leader; any thread may call any method.
    """

    def __init__(self, connection: LedConnection) -> None:
        self._connection = connection
        self._fileno = self._wake_read = self._wake_write = -1
        self._wake_lock = threading.Lock()
        self.leader_lock = threading.Lock()
        self._own_thread_called = threading.Event()
        self.answer_awaited = False  # a thread waits for one
        self._led_elsewhere = False  # another thread than our own has led recently
        self._leader = _current.poller  # of that thread
        self._leader_follows = False  # that thread leads another connection and follows this one
        self._thread: threading.Thread | None = None

    def attach(self, fileno: int) -> None:
        """Use this socket in every later `wait`."""
        self._fileno = fileno
        self._wake_read, self._wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def detach(self) -> None:
        """Close the wake-up pipe; no thread waits any more."""
        with self._wake_lock:
            os.close(self._wake_read)
            os.close(self._wake_write)
            self._wake_read = self._wake_write = -1

    def start(self, name: str) -> None:
        """Start the connection's own thread."""
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def join(self, timeout: float) -> None:
        """Wake the own thread, and wait for its end unless it is the calling thread."""
        thread = self._thread
        if thread is not None and thread.is_alive():
            self.wake()
            if thread is not threading.current_thread():
                thread.join(timeout)

    def lead(self, timeout: float) -> bool:
        """Lead until something happens on the socket, at most for `timeout` seconds.

        For a thread that waits for messages. It also handles the connections that it follows, and
        may return sooner. Return False when the own thread leads; its owner then wakes the caller.
        """
        poller = _current.poller
        poller.receives = True
        if self._take_over(poller, timeout):
            return True
        poller.release_followed()
        return False

    def await_answer(
        self, changed: threading.Condition, is_done: Callable[[], bool], timeout: float
    ) -> None:
        """Lead until something happens, or wait until `is_done`, which `changed` guards.

        Only a thread that waits for messages at other times leads here. With any other thread,
        the own thread would have to be called back each time, and both would race for the answers.
        """
        poller = _current.poller
        self.answer_awaited = True
        led = poller.receives and self._take_over(poller, timeout)
        self.follow()
        if not led:
            with changed:
                changed.wait_for(is_done, timeout)
        self.answer_awaited = False

    def follow(self) -> None:
        """Have the calling thread handle answers here while it waits for messages elsewhere.

        It has no effect in a thread that never waits for messages.
        """
        if _current.poller.receives:
            _current.poller.followed[self] = self._fileno

    def appoint(self, poller: ThreadPoller, *, follows: bool) -> bool:
        """Make another thread than our own the leader.

        Return False when another thread leads already, or when only our own may lead.
        """
        if self._connection.needs_own_thread():
            self.call_own_thread()
            return False
        before = self._leader
        if before is not poller and before.waits_for(self):
            return False
        self._leader, self._leader_follows, self._led_elsewhere = poller, follows, True
        if self.leader_lock.locked():
            self._write_wake_byte()  # our own thread is to step aside
        return True

    def poll_followed(self, *, readable: bool) -> bool:
        """Handle what there is to handle, for a follower; return whether it may go on following."""
        if not self.leader_lock.acquire(blocking=False):
            self._led_elsewhere = False  # our own thread leads, and continues
            return False
        try:
            if not self._connection.needs_own_thread():
                self._connection.poll(readable=readable)
        finally:
            self.leader_lock.release()
        if self._connection.needs_own_thread():
            self.call_own_thread()
            return False
        return True

    def call_own_thread(self) -> None:
        """Make the connection's own thread the leader."""
        self._own_thread_called.set()

    def wake(self) -> None:
        """Make the leader return from `wait`, and the own thread lead next."""
        self.call_own_thread()
        self._write_wake_byte()

    def wait(self, mask: int, timeout: float, *, pause: float = 0.0) -> int:
        """Return the events on the socket, at most `timeout` seconds from now or when woken.

        When an event is there already, wait `pause` seconds first, so that more data arrives,
        unless a thread waits for an answer that this one would read.
        """
        sockets = {self._fileno: mask, self._wake_read: select.POLLIN}
        events = _current.poller.wait(sockets, timeout, pause)
        if self._wake_read in events:
            os.read(self._wake_read, 4096)
        return events.get(self._fileno, 0)

    def _take_over(self, poller: ThreadPoller, timeout: float) -> bool:
        """Lead this connection and poll the followed ones; return False when that is refused."""
        poller.followed.pop(self, None)
        if not self.appoint(poller, follows=False):
            return False
        poller.renew_followed()
        if self._serve_as_leader(poller, timeout):
            poller.poll_followed()
        return True

    def _serve_as_leader(self, poller: ThreadPoller, timeout: float) -> bool:
        """Return False when our own thread has led in the meantime."""
        if not self.leader_lock.acquire(blocking=False):
            if self.leader_lock.acquire(timeout=timeout):
                self.leader_lock.release()
            return False
        poller.waiting, poller.led = True, self
        try:
            if not self._connection.needs_own_thread():
                self._connection.serve(timeout)
        finally:
            poller.waiting, poller.led = False, None
            self.leader_lock.release()
        if self._connection.needs_own_thread():
            self.call_own_thread()
        return True

    def _run(self) -> None:
        try:
            while not self._connection.is_over():
                with self.leader_lock:
                    if not self._connection.is_over():  # it may have ended under another leader
                        self._connection.serve(CHECK_INTERVAL)
                self._step_aside()
        finally:
            self._connection.finish()

    def _step_aside(self) -> None:
        """Return when no other thread has led for a while, or when the own thread is called."""
        while self._led_elsewhere:
            self._led_elsewhere = waits = self._leader.waits_for(self)
            busy = self._leader_follows and not waits
            if self._own_thread_called.wait(FOLLOWED_CHECK_INTERVAL if busy else CHECK_INTERVAL):
                self._led_elsewhere = False
        self._own_thread_called.clear()

    def _write_wake_byte(self) -> None:
        with self._wake_lock:
            if self._wake_write >= 0:
                with suppress(BlockingIOError):  # the pipe is full, so the leader wakes anyway
                    os.write(self._wake_write, b"\0")


class ThreadPoller:
    """The sockets that one thread waits for.

    Mutable: owned by that thread; other threads only call `waits_for`.
    """

    def __init__(self) -> None:
        self.receives = False  # the thread waits for messages again and again
        self.waiting = False  # the thread waits now
        self.led: Leadership | None = None
        self.followed: dict[Leadership, int] = {}  # with their sockets
        self._ready: list[Leadership] = []  # the followed ones with an event
        self._polled_all = 0.0  # time when all followed ones were polled
        self._poll = select.poll()
        self._registered: dict[int, int] = {}  # socket -> mask, in `_poll`

    def waits_for(self, leadership: Leadership) -> bool:
        """Return whether the thread waits now for what happens on that connection."""
        return self.waiting and (self.led is leadership or leadership in self.followed)

    def wait(self, sockets: dict[int, int], timeout: float, pause: float = 0.0) -> dict[int, int]:
        """Return the events on `sockets` (with masks), and note those on the followed ones."""
        if self.waiting:
            sockets |= dict.fromkeys(self.followed.values(), select.POLLIN)
        if sockets != self._registered:
            poll = select.poll()
            for fileno, mask in sockets.items():
                poll.register(fileno, mask)
            self._poll, self._registered = poll, sockets
        if pause and not any(each.answer_awaited for each in self.followed) and self._poll.poll(0):
            sleep(pause)
            timeout = 0.0
        events = dict(self._poll.poll(timeout * 1000))
        self._ready = [each for each, fileno in self.followed.items() if fileno in events]
        return events

    def renew_followed(self) -> None:
        """Drop the followed connections that another thread leads by now."""
        for each in [*self.followed]:
            if not each.appoint(self, follows=True):
                del self.followed[each]

    def poll_followed(self) -> None:
        """Poll the followed connections with an event; every `CHECK_INTERVAL` all of them."""
        due = self._ready
        if (now := monotonic()) - self._polled_all >= CHECK_INTERVAL:
            self._polled_all, due = now, [*self.followed]
        for each in due:
            if not each.poll_followed(readable=each in self._ready):
                self.followed.pop(each, None)

    def release_followed(self) -> None:
        """Stop following; the own threads of those connections lead again."""
        for each in self.followed:
            each.call_own_thread()
        self.followed.clear()
        self._ready.clear()


class _CurrentThread(threading.local):
    """The poller of the calling thread."""

    def __init__(self) -> None:
        self.poller = ThreadPoller()


_current = _CurrentThread()


def release_followed() -> None:
    """Let the own threads lead what the calling thread follows: it waits for something else."""
    _current.poller.release_followed()


def wait_readable(fileno: int, timeout: float) -> bool:
    """Wait for messages on a socket that only the calling thread reads, and on what it follows.

    Return whether the socket is readable; False after `timeout` seconds, or sooner.

    Raises:
        ValueError: the socket is closed.
    """
    poller = _current.poller
    poller.receives = True
    poller.renew_followed()
    poller.waiting = True
    try:
        events = poller.wait({fileno: select.POLLIN}, timeout)
    finally:
        poller.waiting = False
    poller.poll_followed()
    return fileno in events
