"""A scripted sink for tests of lanes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from gateway.endpoints.base import Settle
from gateway.errors import NotConnectedError
from gateway.model.message import Message
from gateway.model.outcome import ACCEPTED, RETRY, Settlement


class ScriptedSink:
    """A sink with the behaviour that a test sets.

    `up` False refuses to open. `mute` withholds the answers. A message for which `kills` is true
    breaks the connection, as some payloads do with some brokers. `answer` gives the settlement of
    a message.
    Thread-safe: guarded by self._lock.
    """

    def __init__(self) -> None:
        self.up = True
        self.mute = False
        self.kills: Callable[[Message], bool] = lambda _: False
        self.answer: Callable[[Message], Settlement] = lambda _: ACCEPTED
        self.received: list[Message] = []
        self.opened = 0
        self._open = False
        self._unanswered: list[tuple[int, Settle]] = []
        self._lock = threading.RLock()

    def open(self) -> None:
        with self._lock:
            if not self.up:
                raise NotConnectedError("scripted: unreachable")
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
                    self.received += messages[:at]
                    self._open = False
                    answers = [ACCEPTED] * at + [RETRY] * (len(messages) - at)
                    break
            else:
                self.received += messages
                answers = [self.answer(message) for message in messages]
            if self.mute:
                self._unanswered.append((len(messages), settled))
                return
        settled(answers)

    def close(self) -> None:
        with self._lock:
            self._open = False
            unanswered, self._unanswered = self._unanswered, []
        for number, settled in unanswered:
            settled([RETRY] * number)

    def answer_all(self) -> None:
        """Give the withheld answers: all accepted."""
        self.mute = False
        with self._lock:
            unanswered, self._unanswered = self._unanswered, []
        for number, settled in unanswered:
            settled([ACCEPTED] * number)

    def drop(self) -> None:
        """Lose the connection, and refuse a new one until `up` is set."""
        self.up = False
        self.close()
