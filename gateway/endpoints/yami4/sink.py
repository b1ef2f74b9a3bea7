"""A YAMI4 sink: `publish` and `publish_confirm` with a window; it never waits for one answer.

A message that asks for at least once is confirmed by the broker. For the others nobody answers;
they count as taken once the system has their last byte, and a question for statistics every few
of them keeps the broker from being flooded.
"""

from __future__ import annotations

from collections.abc import Sequence

from gateway.endpoints.base import Settle
from gateway.endpoints.settings.yami4 import Yami4Settings
from gateway.endpoints.yami4.link import connect
from gateway.endpoints.yami4.outgoing import Delivery
from gateway.endpoints.yami4.outlet import Outlet
from gateway.errors import NotConnectedError
from gateway.model.message import Message


class Yami4Sink:
    """Mutable: it is open or closed."""

    def __init__(self, settings: Yami4Settings) -> None:
        self._settings = settings
        self._outlet: Outlet | None = None

    def open(self) -> None:
        self.close()
        self._outlet = Outlet(self._settings, connect(self._settings))

    def send(self, messages: Sequence[Message], settled: Settle) -> None:
        outlet = self._outlet
        if outlet is None:
            raise NotConnectedError(f"{self._settings.name}: not connected")
        outlet.check()
        if messages:
            outlet.send(messages, Delivery(len(messages), settled))
        else:
            settled(())

    def close(self) -> None:
        if self._outlet is not None:  # it stays, closed: another thread may open anew meanwhile
            self._outlet.close()
