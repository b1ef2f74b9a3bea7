"""A sink as its lane uses it, and the answers that somebody beside the lane waits for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from gateway.endpoints.base import Sink
from gateway.model.message import Message
from gateway.model.outcome import RETRY, Settlement
from gateway.runtime.delivery.lane import LaneLimits

AfterSend: TypeAlias = Callable[[Sequence[Settlement]], None]


@dataclass(frozen=True, slots=True)
class SinkBinding:
    """A sink with the fields its system carries and the limits of its lane.

    `before_send` is called with the messages of every send. Its result is called once, with
    the answers: RETRY where there was none before the connection was lost.
    """

    sink: Sink
    system: str
    carries: frozenset[str]
    limits: LaneLimits
    before_send: Callable[[Sequence[Message]], AfterSend] | None = None


class NotedSends:
    """The sends of a lane whose answers somebody beside the lane waits for.

    Thread-safe: each step is one operation on a dict.
    """

    def __init__(self) -> None:
        self.waiting: dict[int, tuple[AfterSend, int]] = {}  # with messages, by number of the send

    def answered(self, number: int, answers: Sequence[Settlement] | None = None) -> None:
        """Pass on the answers to a send, or that there are none, unless that was done."""
        after_send, count = self.waiting.pop(number, (None, 0))
        if after_send is not None:
            after_send(answers or [RETRY] * count)

    def end(self) -> None:
        """No send is in progress, and no answer comes any more."""
        for number in list(self.waiting):
            self.answered(number)
