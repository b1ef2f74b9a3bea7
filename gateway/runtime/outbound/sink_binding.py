"""A sink as its lane uses it, and the answers that somebody beside the lane waits for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from gateway.endpoints.base import Sink
from gateway.model.message import Message
from gateway.model.outcome import RETRY, Settlement
from gateway.runtime.delivery.lane import LaneLimits

AfterSend: TypeAlias = Callable[[Sequence[Message], Sequence[Settlement]], None]


@dataclass(frozen=True, slots=True)
class SinkBinding:
    """A sink with the fields its system carries and the limits of its lane.

    `before_send` is called with the messages of every send, and `after_send` once for each of these
    calls, with the answers: RETRY where there was none before the connection was lost.
    """

    sink: Sink
    system: str
    carries: frozenset[str]
    limits: LaneLimits
    before_send: Callable[[Sequence[Message]], None] | None = None
    after_send: AfterSend | None = None


class NotedSends:
    """The sends of a lane that `before_send` was told of, and `after_send` was not.

    Each has the `after_send` of its own binding: a reload may replace that meanwhile.
    Thread-safe: each step is one operation on a dict.
    """

    def __init__(self) -> None:
        self.waiting: dict[int, tuple[AfterSend, Sequence[Message]]] = {}  # by number of the send

    def note(self, number: int, binding: SinkBinding, messages: Sequence[Message]) -> None:
        """Tell the binding of a send, before it."""
        if binding.before_send is not None and binding.after_send is not None:
            binding.before_send(messages)
            self.waiting[number] = binding.after_send, messages

    def answered(self, number: int, answers: Sequence[Settlement] | None = None) -> None:
        """Tell the binding the answers to a send, or that there are none, unless it knows."""
        after_send, messages = self.waiting.pop(number, (None, ()))
        if after_send is not None:
            after_send(messages, answers or [RETRY] * len(messages))

    def end(self) -> None:
        """No send is in progress, and no answer comes any more."""
        for number in list(self.waiting):
            self.answered(number)
