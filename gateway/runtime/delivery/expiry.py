"""Messages that expired while they waited: refused before any sink gets them.

A broker drops an expired message, or stores it, without a word.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from gateway.model.dead_letter_rule import EXPIRED
from gateway.model.message import Message
from gateway.model.outcome import Settlement, rejected

Complete: TypeAlias = Callable[[Sequence[Settlement]], Sequence[Settlement]]


def without_expired(
    endpoint: str, messages: Sequence[Message], time: int
) -> tuple[Sequence[Message], Complete | None]:
    """Return the messages that have not expired at `time`, in microseconds.

    The function with them completes their settlements to those of all `messages`; it is None where
    nothing has expired.
    """
    ends = [each.headers.expiry for each in messages]
    if ends.count(None) == len(ends):  # usual
        return messages, None
    expired = {at for at, end in enumerate(ends) if end is not None and end <= time}
    if not expired:
        return messages, None

    def complete(settlements: Sequence[Settlement]) -> Sequence[Settlement]:
        answers = iter(settlements)
        refusal = rejected(EXPIRED, f"{endpoint}: it expired before it could be sent")
        return [refusal if at in expired else next(answers) for at in range(len(ends))]

    return [each for at, each in enumerate(messages) if at not in expired], complete
