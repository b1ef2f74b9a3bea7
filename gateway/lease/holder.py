"""The thread that keeps an instance's lease, with the clock that no suspension stops."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Final

from gateway.clock import boot_seconds
from gateway.errors import GatewayError, LeaseNotHeldError
from gateway.lease.lease import Give, Lease, LeaseStore, Look, Pause, Renew, Role, Take

log = logging.getLogger(__name__)

GIVE_TIMEOUT: Final = 2.0  # seconds for the store to note that the lease was given away


class LeaseHolder:
    """Waits for the lease of one instance, then renews it until it is lost or given away.

    Thread-safe: one thread owns the lease and the store; the others ask for values.
    """

    def __init__(
        self,
        store: LeaseStore,
        instance: str,
        seconds: float,
        clock: Callable[[], float] = boot_seconds,
    ) -> None:
        self.instance = instance
        self.failure = ""  # why the store did not answer last; empty when it did
        self._store, self._clock = store, clock
        self._lease = Lease(instance, seconds, min(store.look_every, seconds / 10))
        self._wake = threading.Event()
        self._ended = threading.Event()
        self._since = clock()  # of the role
        self._held = False
        self._thread = threading.Thread(target=self._run, name="lease", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def holds(self) -> bool:
        """Return whether this instance may hand messages over now; asked at each hand-over."""
        return self._lease.holds(self._clock())

    def require(self) -> None:
        """Do nothing while this instance may hand messages over.

        Raises:
            LeaseNotHeldError: another instance of the pair may hold the lease.
        """
        if not self.holds():
            raise LeaseNotHeldError(self.instance)

    @property
    def ended(self) -> bool:
        """Whether this instance takes no lease any more: it lost its own, or gave it away."""
        return self._ended.is_set()

    @property
    def role(self) -> Role:
        return Role.HOLDER if self.holds() else Role.STANDBY

    @property
    def number(self) -> int:
        """The number of the lease that this instance holds, or held last; 0 before the first."""
        return self._lease.number

    @property
    def identity(self) -> str:
        """The digits that both instances have in common; empty before the first lease."""
        return self._lease.record.identity

    def read(self) -> str | None:
        """Return the text that the last holder kept beside the lease; None without one.

        Raises:
            LeaseError: the store did not answer, or the text is damaged.
        """
        return self._store.read_memory()

    def write(self, text: str) -> None:
        """Keep a text beside the lease for its next holder.

        Raises:
            LeaseError: the store did not answer.
        """
        self._store.write_memory(self.number, self.instance, text)

    def __str__(self) -> str:
        return f"the memory beside the lease of {self.instance}"

    @property
    def active(self) -> str:
        """The instance that the store named last as holder; empty when none is known."""
        record = self._lease.record
        return "" if record.given else record.holder

    @property
    def since(self) -> float:
        """Seconds for which this instance has had its role."""
        return self._clock() - self._since

    @property
    def standby(self) -> list[str]:
        """The instances that wait."""
        return self._lease.standby(self._clock())

    @property
    def wanted(self) -> bool:
        """Whether somebody asked this holder to give the lease away."""
        return self._lease.wanted

    def give(self) -> None:
        """Give the lease away, if it is held, and take none any more; the thread ends."""
        self._lease.give()
        self._wake.set()
        self._ended.wait(GIVE_TIMEOUT)

    def _run(self) -> None:
        while not self._ended.is_set():
            step = self._lease.next(self._clock())
            if isinstance(step, Pause):
                self._wake.wait(step.seconds)
                self._wake.clear()
            else:
                self._do(step)
            self._note_role()

    def _do(self, step: Look | Take | Renew | Give) -> None:
        lease, asked, name = self._lease, self._clock(), self.instance
        try:
            match step:
                case Look():
                    record = self._store.look(name)
                    lease.looked(self._clock(), record)
                case Take(seen):
                    lease.taken(asked, self._store.take(seen, name))
                case Renew(number):
                    record = self._store.renew(number, name)
                    lease.renewed(asked, self._clock(), record)
                case Give(number):
                    self._store.give(number, name)
                    lease.gave()
            self.failure = ""
        except GatewayError as error:
            if str(error) != self.failure:
                log.warning("%s", error)
            self.failure = str(error)
            lease.failed(self._clock())

    def _note_role(self) -> None:
        if self._lease.left:
            self._ended.set()
        if (holds := self.holds()) != self._held:
            self._held, self._since = holds, self._clock()
            text = "holds the lease" if holds else "holds the lease no more"
            log.info(
                "%s %s", self.instance, text, extra={"lease": self.number, "active": self.active}
            )
