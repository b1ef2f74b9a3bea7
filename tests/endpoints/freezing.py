"""A broker of this process that a test holds up, as a signal does one of its own process."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event

from gateway.trial.brokers.serving import ServedBroker
from tests.waiting import PATIENCE


def freeze(broker: ServedBroker) -> Callable[[], None]:
    """Hold up the thread of a broker; its connections stay open and silent. Return its awakening.

    The system takes new connections for it, and nobody answers there.
    """
    is_held, awake = Event(), Event()

    def hold() -> None:
        is_held.set()
        awake.wait()

    broker._loop.call_soon_threadsafe(hold)  # noqa: SLF001  # no client can hold it up
    assert is_held.wait(PATIENCE)
    return awake.set
