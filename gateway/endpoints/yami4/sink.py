"""A YAMI4 sink: `publish` and `publish_confirm` with a window of messages in flight.

The broker confirms a message that asks for at least once. It does not answer for the others: they
count as accepted when it has answered something that was asked after them. A question for
statistics follows them, and every few messages one keeps the broker from being flooded.
"""

from __future__ import annotations

from collections.abc import Sequence

from gateway.endpoints.base import Settle
from gateway.endpoints.sent_messages import SentBatch
from gateway.endpoints.settings.yami4 import Yami4Settings
from gateway.endpoints.yami4.connection import connect
from gateway.endpoints.yami4.request_state import RequestState
from gateway.errors import NotConnectedError
from gateway.model.message import Message


class Yami4Sink:
    """Publishes to one broker.

    Mutable: open or closed; any thread may call any method.
    """

    def __init__(self, settings: Yami4Settings, instance: str = "") -> None:
        del instance  # its connection has no name
        self._settings = settings
        self._state: RequestState | None = None

    def open(self) -> None:
        self.close()
        self._state = state = RequestState(self._settings, connect(self._settings))
        state.await_broker()

    def send(self, messages: Sequence[Message], settled: Settle) -> None:
        state = self._state
        if state is None:
            raise NotConnectedError(f"{self._settings.name}: not connected")
        state.check()
        if messages:
            state.send(messages, SentBatch(len(messages), settled))
        else:
            settled(())

    def close(self) -> None:
        if self._state is not None:  # it stays, closed: another thread may open meanwhile
            self._state.close()
