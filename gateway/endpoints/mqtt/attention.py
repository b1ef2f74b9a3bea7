"""Who looks after a link's socket: a thread of its own, or one that has to wait anyhow.

Waking another thread is a large part of what a message costs that comes alone, and of its latency.
So whoever waits for messages drives the link they come over, and follows those that it has sent
over: it looks for their answers as well. Their own threads step aside. They take over when nobody
has been there for a while, and when they are wanted.
"""

from __future__ import annotations

import os
import select
import threading
from contextlib import suppress
from time import monotonic, sleep
from typing import Protocol

from gateway.endpoints.mqtt.pace import GATHER

TICK = 0.25  # seconds between looks at a link
BESIDE = 0.05  # the same of one whose follower is busy: something else may hold it up


class Tended(Protocol):
    """A link, as its attention knows it."""

    def look_after(self, timeout: float) -> None:
        """Wait until something happens, so many seconds at most, and do it."""

    def look(self, *, readable: bool) -> None:
        """Do what there is to do, and wait for nothing."""

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
        self._called = threading.Event()  # our own thread is wanted
        self._tended = False  # not long ago, by another thread than our own
        self._leader = self  # what that thread drives; another link's when it follows this one
        self.driving = False  # somebody does so now
        self._followed: dict[Attention, int] = {}  # whose sockets `wait` waits for beside ours
        self._ready: list[Attention] = []  # of those, where something happened
        self._toured = 0.0  # when all of them had a look at the clock
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

    def finish(self, seconds: float) -> None:
        """Have the link's own thread see that it is over, and wait for it unless it is this one."""
        thread = self._thread
        if thread is not None and thread.is_alive():
            self.wake()
            if thread is not threading.current_thread():
                thread.join(seconds)

    def drive(self, timeout: float) -> bool:
        """As `Link.drive`, with all links that this thread follows."""
        followed = _here.followed
        if followed is None:
            followed = _here.followed = {}
        if not self.entrust(self):
            for each in followed:
                each.call()
            followed.clear()
            return False
        for each in [*followed]:
            if not each.entrust(self):
                del followed[each]
        self.driving = True
        try:
            waited = self._wait_here(followed, timeout)
        finally:
            self.driving = False
        for each in self._due(followed) if waited else ():
            if not each.visit(readable=each in self._ready):
                del followed[each]
        return True

    def follow(self) -> None:
        """Have the calling thread look for answers here while it drives another link.

        A thread that never drives one is not asked.
        """
        if _here.followed is not None:
            _here.followed[self] = self._fileno

    def unfollow(self) -> None:
        """Have our own thread look for answers, and not the calling one."""
        if _here.followed is not None:
            _here.followed.pop(self, None)
        self.call()

    def entrust(self, leader: Attention) -> bool:
        """Have who drives `leader` look after this; not when another does, or nobody but we can."""
        if self._link.needs_own_thread():
            self.call()
            return False
        before = self._leader
        if before is not leader and before.driving:
            return False
        self._leader, self._tended = leader, True
        if self.turn.locked():
            self._ring_bell()  # our own thread is to step aside
        return True

    def visit(self, *, readable: bool) -> bool:
        """What a follower does; whether it may go on doing so."""
        if not self.turn.acquire(blocking=False):
            self._tended = False  # by our own thread, which is to go on
            return False
        try:
            if not self._link.needs_own_thread():
                self._link.look(readable=readable)
        finally:
            self.turn.release()
        if self._link.needs_own_thread():
            self.call()
            return False
        return True

    def call(self) -> None:
        """Make the link's own thread look after it; any thread."""
        self._called.set()

    def wake(self) -> None:
        """Make the link's own thread look around, and who drives it instead; any thread."""
        self.call()
        self._ring_bell()

    def wait(self, mask: int, timeout: float, *, gather: bool = False) -> int:
        """What happened on the socket, after `timeout` seconds at the latest, sooner when woken.

        `gather` adds a pause when something has happened already.
        """
        self._expect(mask)
        if gather and self._poll.poll(0):
            sleep(GATHER)  # more of them come meanwhile
            timeout = 0.0
        events = dict(self._poll.poll(timeout * 1000))
        if self._bell in events:
            os.read(self._bell, 4096)
        self._ready = [each for each, fileno in self._followed.items() if fileno in events]
        return events.get(self._fileno, 0)

    def _run(self) -> None:
        try:
            while not self._link.is_over():
                with self.turn:
                    if not self._link.is_over():  # who drove meanwhile may have met the end
                        self._join({})
                        self._link.look_after(TICK)
                self._step_aside()
        finally:
            self._link.end()

    def _step_aside(self) -> None:
        """Return when nobody has been here for a while, or when something is to be looked at."""
        while self._tended:
            leader = self._leader
            self._tended = waits = leader.driving
            if self._called.wait(TICK if waits or leader is self else BESIDE):
                self._tended = False
        self._called.clear()

    def _wait_here(self, followed: dict[Attention, int], timeout: float) -> bool:
        """Wait for our socket and those; False when our own thread has done so meanwhile."""
        if not self.turn.acquire(blocking=False):
            if self.turn.acquire(timeout=timeout):
                self.turn.release()
            return False
        try:
            if not self._link.needs_own_thread():
                self._join(followed)
                self._link.look_after(timeout)
        finally:
            self.turn.release()
        if self._link.needs_own_thread():
            self.call()
        return True

    def _due(self, followed: dict[Attention, int]) -> list[Attention]:
        """Those of `followed` where something happened; a few times a second all of them."""
        if (now := monotonic()) - self._toured < TICK:
            return self._ready
        self._toured = now
        return [*followed]

    def _join(self, followed: dict[Attention, int]) -> None:
        """From now on `wait` waits for these sockets, too."""
        if followed != self._followed:
            for fileno in self._followed.values():
                self._poll.unregister(fileno)
            for fileno in followed.values():
                self._poll.register(fileno, select.POLLIN)
            self._followed = dict(followed)

    def _expect(self, mask: int) -> None:
        if mask != self._mask:
            self._poll.modify(self._fileno, mask)
            self._mask = mask

    def _ring_bell(self) -> None:
        with self._ring_lock:
            if self._ring >= 0:
                with suppress(BlockingIOError):  # full, so it wakes anyhow
                    os.write(self._ring, b"\0")


class _Here(threading.local):
    """What the calling thread follows, with its sockets; None while it never drove."""

    followed: dict[Attention, int] | None = None


_here = _Here()
