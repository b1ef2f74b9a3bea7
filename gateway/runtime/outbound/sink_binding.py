"""A sink as its lane uses it, and the answers that somebody beside the lane waits for."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from gateway.endpoints.base import Sink
from gateway.errors import GatewayError, unexpected_error
from gateway.model.message import Message
from gateway.model.outcome import RETRY, Settlement
from gateway.runtime.delivery.lane_limits import LaneLimits

log = logging.getLogger(__name__)

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


def open_sink(
    binding: SinkBinding, name: str, require_lease: Callable[[], None]
) -> GatewayError | None:
    """Open the sink of the endpoint `name`; return why it is not open, None if it is."""
    try:
        binding.sink.close()
        require_lease()  # our connection would close that of the new holder
        binding.sink.open()
    except GatewayError as error:
        return error
    except Exception as error:  # a driver's fault must not end the thread of the lane
        log.exception("unexpected error in a driver", extra={"endpoint": name})
        return unexpected_error(name, error)
    return None


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
