"""Who looks after a connection: a thread of its own, or one that has to wait anyhow.

Waking another thread is a large part of what a message costs that comes alone, and of its latency.
So whoever waits for messages looks after the connection they come over, and follows those that it
has sent over: it takes their answers as well. Whoever waits for an answer looks for it. The
connections' own threads step aside. They take over when nobody has been there for a while, and
when they are wanted.
"""

from __future__ import annotations

import os
import select
import threading
from contextlib import suppress
from time import monotonic, sleep
from typing import Protocol

TICK = 0.25  # seconds between looks at a connection
BESIDE = 0.05  # the same of one whose follower is busy: something else may hold it up


class Tended(Protocol):
    """A connection, as its attention knows it."""

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

    def __init__(self, tended: Tended) -> None:
        self._tended = tended
        self._fileno = self._bell = self._ring = -1
        self._ring_lock = threading.Lock()
        self.turn = threading.Lock()  # held by who looks after the socket
        self._called = threading.Event()  # our own thread is wanted
        self._visited = False  # not long ago, by another thread than our own
        self._visitor = _here.watch  # what that thread waits for
        self._followed = False  # it does so by the way, and may be busy elsewhere
        self._thread: threading.Thread | None = None

    def attach(self, fileno: int) -> None:
        """From now on `wait` waits for this socket."""
        self._fileno = fileno
        self._bell, self._ring = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def detach(self) -> None:
        """Give up the bell; nobody waits any more."""
        with self._ring_lock:
            os.close(self._bell)
            os.close(self._ring)
            self._bell = self._ring = -1

    def start(self, name: str) -> None:
        """From now on the connection's own thread looks after it, too."""
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def finish(self, seconds: float) -> None:
        """Have the own thread see that it is over, and wait for it unless it is this one."""
        thread = self._thread
        if thread is not None and thread.is_alive():
            self.wake()
            if thread is not threading.current_thread():
                thread.join(seconds)

    def drive(self, timeout: float) -> bool:
        """Look after the socket until something happens there, at most for `timeout` seconds.

        For a thread that has nothing to do before messages come; it looks after what it follows,
        too, and may return sooner. False: the own thread does it, and tells its owner.
        """
        watch = _here.watch
        watch.leads = True
        if self._take_over(watch, timeout):
            return True
        watch.leave()
        return False

    def help(self, timeout: float) -> bool:
        """As `drive`, for a thread that waits for an answer; it has to drive at other times.

        Another would have to call our own thread back each time, and race it for the answers.
        """
        watch = _here.watch
        helped = watch.leads and self._take_over(watch, timeout)
        self.follow()
        return helped

    def follow(self) -> None:
        """Have the calling thread look for answers here while it waits for messages elsewhere.

        A thread that never does so is not asked.
        """
        if _here.watch.leads:
            _here.watch.followed[self] = self._fileno

    def entrust(self, watch: Watch, *, followed: bool) -> bool:
        """Have another thread look after this; not when one does, or when only our own can."""
        if self._tended.needs_own_thread():
            self.call()
            return False
        before = self._visitor
        if before is not watch and before.minds(self):
            return False
        self._visitor, self._followed, self._visited = watch, followed, True
        if self.turn.locked():
            self._ring_bell()  # our own thread is to step aside
        return True

    def visit(self, *, readable: bool) -> bool:
        """What a follower does; whether it may go on doing so."""
        if not self.turn.acquire(blocking=False):
            self._visited = False  # by our own thread, which is to go on
            return False
        try:
            if not self._tended.needs_own_thread():
                self._tended.look(readable=readable)
        finally:
            self.turn.release()
        if self._tended.needs_own_thread():
            self.call()
            return False
        return True

    def call(self) -> None:
        """Make the own thread look after the connection; any thread."""
        self._called.set()

    def wake(self) -> None:
        """Make the own thread look around, and who does it instead; any thread."""
        self.call()
        self._ring_bell()

    def wait(self, mask: int, timeout: float, *, pause: float = 0.0) -> int:
        """What happened on the socket, after `timeout` seconds at the latest, sooner when woken.

        When something has happened already more of it may gather for a `pause` of so many seconds.
        """
        sockets = {self._fileno: mask, self._bell: select.POLLIN}
        events = _here.watch.wait(sockets, timeout, pause)
        if self._bell in events:
            os.read(self._bell, 4096)
        return events.get(self._fileno, 0)

    def _take_over(self, watch: Watch, timeout: float) -> bool:
        """Look after this socket and what the calling thread follows; False when we may not."""
        watch.followed.pop(self, None)
        if not self.entrust(watch, followed=False):
            return False
        watch.renew()
        if self._look_after(watch, timeout):
            watch.look_around()
        return True

    def _look_after(self, watch: Watch, timeout: float) -> bool:
        """False when our own thread has done so meanwhile."""
        if not self.turn.acquire(blocking=False):
            if self.turn.acquire(timeout=timeout):
                self.turn.release()
            return False
        watch.waiting, watch.driven = True, self
        try:
            if not self._tended.needs_own_thread():
                self._tended.look_after(timeout)
        finally:
            watch.waiting, watch.driven = False, None
            self.turn.release()
        if self._tended.needs_own_thread():
            self.call()
        return True

    def _run(self) -> None:
        try:
            while not self._tended.is_over():
                with self.turn:
                    if not self._tended.is_over():  # who drove meanwhile may have met the end
                        self._tended.look_after(TICK)
                self._step_aside()
        finally:
            self._tended.end()

    def _step_aside(self) -> None:
        """Return when nobody has been here for a while, or when something is to be looked at."""
        while self._visited:
            self._visited = waits = self._visitor.minds(self)
            if self._called.wait(BESIDE if self._followed and not waits else TICK):
                self._visited = False
        self._called.clear()

    def _ring_bell(self) -> None:
        with self._ring_lock:
            if self._ring >= 0:
                with suppress(BlockingIOError):  # full, so it wakes anyhow
                    os.write(self._ring, b"\0")


class Watch:
    """What one thread waits for. Mutable; others only ask what it minds."""

    def __init__(self) -> None:
        self.leads = False  # it comes back to wait for messages
        self.waiting = False  # now, and looks after what it follows
        self.driven: Attention | None = None  # and after this
        self.followed: dict[Attention, int] = {}  # with their sockets
        self._ready: list[Attention] = []  # of those, where something happened
        self._toured = 0.0  # when all of them had a look at the clock
        self._poll = select.poll()
        self._sockets: dict[int, int] = {}  # what it has

    def minds(self, attention: Attention) -> bool:
        """Whether it waits for what happens there."""
        return self.waiting and (self.driven is attention or attention in self.followed)

    def wait(self, sockets: dict[int, int], timeout: float, pause: float = 0.0) -> dict[int, int]:
        """What happened on `sockets`, which come with masks; beside them on what is followed."""
        if self.waiting:
            sockets |= dict.fromkeys(self.followed.values(), select.POLLIN)
        if sockets != self._sockets:
            self._exchange(sockets)
        if pause and self._poll.poll(0):
            sleep(pause)
            timeout = 0.0
        events = dict(self._poll.poll(timeout * 1000))
        self._ready = [each for each, fileno in self.followed.items() if fileno in events]
        return events

    def renew(self) -> None:
        """Ask anew for all that is followed."""
        for each in [*self.followed]:
            if not each.entrust(self, followed=True):
                del self.followed[each]

    def look_around(self) -> None:
        """Look after what is followed where something happened; a few times a second all of it."""
        due = self._ready
        if (now := monotonic()) - self._toured >= TICK:
            self._toured, due = now, [*self.followed]
        for each in due:
            if not each.visit(readable=each in self._ready):
                self.followed.pop(each, None)

    def leave(self) -> None:
        """Follow nothing any more."""
        for each in self.followed:
            each.call()
        self.followed.clear()

    def _exchange(self, sockets: dict[int, int]) -> None:
        for fileno in self._sockets:
            self._poll.unregister(fileno)
        self._sockets = {}
        for fileno, mask in sockets.items():
            self._poll.register(fileno, mask)
            self._sockets[fileno] = mask


class _Here(threading.local):
    """The calling thread."""

    def __init__(self) -> None:
        self.watch = Watch()


_here = _Here()


def wait_readable(fileno: int, timeout: float) -> bool:
    """Wait for messages on a socket that only this thread looks after, and on what it follows.

    Whether there is something to read; False after `timeout` seconds, or sooner.

    Raises:
        ValueError: the socket is closed.
    """
    watch = _here.watch
    watch.leads = True
    watch.renew()
    watch.waiting = True
    try:
        events = watch.wait({fileno: select.POLLIN}, timeout)
    finally:
        watch.waiting = False
    watch.look_around()
    return fileno in events
