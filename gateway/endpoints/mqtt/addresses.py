"""The addresses of a source or sink: the one to try next, and the way back to the first."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Final, TypeVar

from gateway.endpoints.mqtt.witness import Witness
from gateway.endpoints.settings.mqtt import MqttSettings
from gateway.errors import EndpointError, LeftError, NotConnectedError, SubscriptionRefusedError

log = logging.getLogger(__name__)
T = TypeVar("T")

ASK_INTERVAL: Final = 10.0  # seconds between questions to the first address
QUIET_TIMEOUT: Final = 5.0  # seconds for a moment without unsettled messages


class Addresses:
    """The addresses of one source or sink, which has one connection at a time.

    Mutable: owned by the source or sink; a thread of its own asks the first address.
    """

    def __init__(self, settings: MqttSettings, client_id: str) -> None:
        self._each = settings.each_address
        self._first = self._each[0]
        self.tried = self._first.address  # HOST:PORT of the connection, or of the last attempt
        self._fail_back = settings.fail_back
        self._client_id = client_id
        self._next = 0
        self._in_use: int | None = None
        self.moved = False  # the last connection is to another address than the one before it
        self.first_answers = False  # then its owner returns as soon as nothing is in flight
        self._stop = threading.Event()
        self._leave_by: float | None = None  # monotonic seconds; None while it does not leave

    @property
    def in_use(self) -> str:
        """HOST:PORT of the last connection; of the first address before there was one."""
        return self._each[self._in_use or 0].address

    def connect(self, attempt: Callable[[MqttSettings], T]) -> T:
        """Return what `attempt` makes of the first address, in turn, at which it raises nothing.

        Begin with the first address, and after a connection with the one behind it.

        Raises:
            NotConnectedError: no address takes the connection now.
            SubscriptionRefusedError: one of them refuses a subscription.
            EndpointError: all of them refuse it permanently.
        """
        failures: list[EndpointError] = []
        for at in (*range(self._next, len(self._each)), *range(self._next)):
            self.tried = self._each[at].address
            try:
                made = attempt(self._each[at])
            except EndpointError as error:
                failures.append(error)
                if len(self._each) > 1:
                    log.info("no connection: %s", error, extra={"endpoint": self._each[at].name})
                continue
            self._connected(at)
            return made
        if len(failures) > 1:
            raise _one_error(failures) from failures[0]
        raise failures[0]

    def return_to_first(self) -> LeftError:
        """Let the next `connect` begin with the first address; return why the connection ends."""
        self._next = 0
        return LeftError(f"{self._first.name}: {self._first.address} answers again")

    def leave_in_time(self) -> bool:
        """Return whether there is still time to wait for a quiet moment; if not, ask again."""
        now = monotonic()
        self._leave_by = self._leave_by or now + QUIET_TIMEOUT
        if now < self._leave_by:
            return True
        self._ask_first()
        return False

    def close(self) -> None:
        """Ask no longer."""
        self._stop.set()
        self.first_answers = False

    def _connected(self, at: int) -> None:
        before, self._in_use = self._in_use, at
        self.moved = before is not None and before != at
        self._next = (at + 1) % len(self._each)
        if len(self._each) > 1:
            log.info("connected to %s", self.in_use, extra={"endpoint": self._each[at].name})
        if at and self._fail_back:
            self._ask_first()

    def _ask_first(self) -> None:
        """Ask the first address from now on, in a thread: an absent host may take long."""
        self._stop.set()
        self.first_answers, self._leave_by = False, None
        stop = self._stop = threading.Event()
        name = f"mqtt {self._client_id} asks {self._first.address}"
        threading.Thread(target=self._ask, args=[stop], name=name, daemon=True).start()

    def _ask(self, stop: threading.Event) -> None:
        while not stop.wait(ASK_INTERVAL):
            witness = Witness.opened(self._first, self._client_id)
            if witness is not None:
                witness.close()
                self.first_answers = not stop.is_set()
                return


def _one_error(failures: Sequence[EndpointError]) -> EndpointError:
    """Return one error with the texts of all."""
    text = "; ".join(map(str, failures))
    retryable = any(each.retryable for each in failures)
    if any(isinstance(each, SubscriptionRefusedError) for each in failures):
        error = SubscriptionRefusedError(text)  # the session may be kept without it: a gap
        error.retryable = retryable
        return error
    return (NotConnectedError if retryable else EndpointError)(text)
