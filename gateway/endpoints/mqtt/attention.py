"""Who looks after a link's socket: a thread of its own, or one that has to wait anyhow.

Waking another thread is a large part of what a message costs that comes alone, and of its latency.
So whoever waits for messages drives the link they come over, and its own thread steps aside. It
takes over when nobody has driven for a while, and when it is wanted.
"""

from __future__ import annotations

import os
import select
import threading
from contextlib import suppress
from time import sleep
from typing import Protocol

from gateway.endpoints.mqtt.pace import GATHER

TICK = 0.25  # seconds between looks at a link


class Tended(Protocol):
    """A link, as its attention knows it."""

    def look_after(self, timeout: float) -> None:
        """Wait until something happens, so many seconds at most, and do it."""

    def needs_own_thread(self) -> bool:
        """Whether nobody else should look after it now."""

    def is_over(self) -> bool:
        """Whether there is nothing more to look after."""

    def end(self) -> None:
        """Called once, when it is over, by its own thread."""


class Attention:
    """Mutable: it knows who looks after a socket now."""

    def __init__(self, link: Tended) -> None:
        self._link = link
        self._fileno = self._bell = self._ring = -1
        self._ring_lock = threading.Lock()
        self._poll = select.poll()
        self._mask = 0
        self.turn = threading.Lock()  # held by who looks after the socket
        self._driven = False  # not long ago, by another thread than our own
        self._called = threading.Event()  # our own thread is wanted
        self._thread: threading.Thread | None = None

    def attach(self, fileno: int) -> None:
        """From now on `wait` waits for this socket."""
        self._fileno, self._mask = fileno, select.POLLIN
        self._bell, self._ring = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._poll.register(self._bell, select.POLLIN)
        self._poll.register(fileno, self._mask)

    def detach(self) -> None:
        """Give up the bell; nobody waits any more."""
        with self._ring_lock:
            os.close(self._bell)
            os.close(self._ring)
            self._bell = self._ring = -1

    def start(self, name: str) -> None:
        """From now on the link's own thread looks after it, too."""
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def drive(self, timeout: float) -> bool:
        """As `Link.drive`."""
        self._driven = not self._link.needs_own_thread()  # if so, our own thread steps aside
        if not self._driven:
            self._called.set()
            return False
        if not self.turn.acquire(blocking=False):
            self._ring_bell()
            if self.turn.acquire(timeout=timeout):
                self.turn.release()
            return True  # messages may have come meanwhile
        try:
            if not self._link.needs_own_thread():
                self._link.look_after(timeout)
        finally:
            self.turn.release()
        if self._link.needs_own_thread():
            self._called.set()
        return True

    def wait(self, mask: int, timeout: float, *, gather: bool = False) -> int:
        """What happened on the socket, after `timeout` seconds at the latest, sooner when woken.

        `gather` adds a pause when something has happened already.
        """
        self._expect(mask)
        events = dict(self._poll.poll(0)) if gather else {}
        if self._fileno in events:
            sleep(GATHER)  # more of them come meanwhile
        elif not events:
            events = dict(self._poll.poll(timeout * 1000))
        if self._bell in events:
            os.read(self._bell, 4096)
        return events.get(self._fileno, 0)

    def wake(self) -> None:
        """Make the link's own thread look around, and who drives it instead; any thread."""
        self._called.set()
        self._ring_bell()

    def finish(self, seconds: float) -> None:
        """Have the link's own thread see that it is over, and wait for it unless it is this one."""
        thread = self._thread
        if thread is not None and thread.is_alive():
            self.wake()
            if thread is not threading.current_thread():
                thread.join(seconds)

    def _run(self) -> None:
        try:
            while not self._link.is_over():
                with self.turn:
                    if not self._link.is_over():  # who drove meanwhile may have met the end
                        self._link.look_after(TICK)
                self._step_aside()
        finally:
            self._link.end()

    def _step_aside(self) -> None:
        """Return when nobody has driven for a while, or when something is to be looked at."""
        while self._driven:
            self._driven = self.turn.locked()
            if self._called.wait(TICK):
                self._driven = False
        self._called.clear()

    def _expect(self, mask: int) -> None:
        if mask != self._mask:
            self._poll.modify(self._fileno, mask)
            self._mask = mask

    def _ring_bell(self) -> None:
        with self._ring_lock:
            if self._ring >= 0:
                with suppress(BlockingIOError):  # full, so it wakes anyhow
                    os.write(self._ring, b"\0")
