"""The echoes that all targets note and all sources look for."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import partial
from time import monotonic

from gateway.endpoints.leader_followers import release_followed
from gateway.model.message import Message
from gateway.model.outcome import Outcome, Settlement
from gateway.runtime.delivery.echoes import Echoes, EchoKey, SentCopy
from gateway.runtime.delivery.rows import fingerprint
from gateway.runtime.outbound.sink_binding import AfterSend


class EchoCache:
    """The copies sent to echo brokers that have not come back.

    Thread-safe: guarded by the lock of self._answers.
    """

    def __init__(self) -> None:
        self._answers = threading.Condition(threading.Lock())
        self._echoes = Echoes()
        self.undecided = 0  # threads that wait for an answer

    def note_sent(self, broker: str, messages: Sequence[Message]) -> AfterSend:
        """Note copies about to be sent to `broker`; return `note_answers`, which must follow."""
        keys = [_key(broker, message) for message in messages]
        with self._answers:
            self._echoes.sent(keys)
        return partial(self.note_answers, broker, messages)

    def note_answers(
        self, broker: str, messages: Sequence[Message], answers: Sequence[Settlement]
    ) -> None:
        """Note what became of copies; the accepted ones have their origin path in the headers."""
        accepted: list[SentCopy] = []
        refused: list[EchoKey] = []
        for message, answer in zip(messages, answers, strict=True):
            if answer.outcome is Outcome.ACCEPTED:
                accepted.append((_key(broker, message), message.headers.origin))
            else:
                refused.append(_key(broker, message))
        with self._answers:
            self._echoes.accepted(accepted, monotonic())
            self._echoes.refused(refused)
            if self.undecided:
                self._answers.notify_all()

    def remember(self, copies: Sequence[SentCopy]) -> None:
        """Add copies that brokers accepted in an earlier run."""
        with self._answers:
            self._echoes.accepted(copies, monotonic())

    def waiting(self) -> list[SentCopy]:
        """The copies whose echo may still come."""
        with self._answers:
            return self._echoes.waiting(monotonic())

    def take_origin(self, broker: str, message: Message) -> tuple[str, ...]:
        """Remove and return the origin path of an echo from `broker`; empty for other messages.

        Wait for the answer to a copy that equals the message. Each send has one in the end: the
        time-outs of its endpoint replace a connection without answers.
        """
        key = _key(broker, message)
        with self._answers:
            found = self._echoes.returned(key, monotonic())
            if found is not None:
                return found
            release_followed()  # the answer may come over a socket that this thread waits for
            self.undecided += 1
            try:
                while (found := self._echoes.returned(key, monotonic())) is None:
                    self._answers.wait()
            finally:
                self.undecided -= 1
            return found


def _key(broker: str, message: Message) -> EchoKey:
    return broker, message.address, fingerprint(message.payload)[1]
