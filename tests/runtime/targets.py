"""A sink whose behaviour a test decides, to stand at the driver's edge of a lane."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from gateway.endpoints.base import Settle
from gateway.errors import NotConnectedError
from gateway.model.message import Message
from gateway.model.outcome import ACCEPTED, RETRY, Settlement


class ScriptedSink:
    """Accepts what `accepts` says; mutable, a test breaks and mends it.

    `up` False refuses to open. `mute` keeps the answers back. A message for which `kills` is true
    breaks the connection, as some payloads do with some brokers.
    """

    def __init__(self) -> None:
        self.up = True
        self.mute = False
        self.kills: Callable[[Message], bool] = lambda _: False
        self.answer: Callable[[Message], Settlement] = lambda _: ACCEPTED
        self.got: list[Message] = []
        self.opened = 0
        self._open = False
        self._owed: list[tuple[int, Settle]] = []
        self._lock = threading.RLock()

    def open(self) -> None:
        with self._lock:
            if not self.up:
                raise NotConnectedError("scripted: away")
            self._open = True
            self.opened += 1

    def send(self, messages: Sequence[Message], settled: Settle) -> None:
        with self._lock:
            if not self._open:
                raise NotConnectedError("scripted: closed")
            if not messages:
                return
            for at, message in enumerate(messages):
                if self.kills(message):
                    self.got += messages[:at]
                    self._open = False
                    answers = [ACCEPTED] * at + [RETRY] * (len(messages) - at)
                    break
            else:
                self.got += messages
                answers = [self.answer(message) for message in messages]
            if self.mute:
                self._owed.append((len(messages), settled))
                return
        settled(answers)

    def close(self) -> None:
        with self._lock:
            self._open = False
            owed, self._owed = self._owed, []
        for number, settled in owed:
            settled([RETRY] * number)

    def speak(self) -> None:
        """Give the answers that were kept back: all accepted."""
        self.mute = False
        with self._lock:
            owed, self._owed = self._owed, []
        for number, settled in owed:
            settled([ACCEPTED] * number)

    def drop(self) -> None:
        """Lose the connection, and be away until `up` is set."""
        self.up = False
        self.close()
