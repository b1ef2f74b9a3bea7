"""How much the proofs may search, in steps of a few microseconds, so that every check ends.

A question is one thing that is to be proved, about one target or one pair of them. It has some
steps of its own; what it needs beyond comes out of a purse that all questions of a part of the
proofs share. So a few hard questions get an answer, and very many leave enough to the easy ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from gateway.errors import LimitError

OWN = 300  # steps of each question
AMPLE = 1_000  # the same, for questions that there are few of
PURSE = 300_000  # steps that the questions share, about a second
MOST = 100_000  # steps of one question
ATTEMPT = 20  # steps that a name run through a route counts for
TOO_LONG = "the search for an example became too long"


@dataclass(slots=True)
class _Effort:
    """Mutable, because it is used up."""

    own: int
    purse: int
    used: int = 0  # by the question at hand

    def spend(self, steps: int) -> None:
        before = max(self.own, self.used)
        self.used += steps
        self.purse -= max(0, self.used - before)
        if self.used > MOST or (self.purse < 0 and self.used > self.own):
            raise LimitError("proofs", "a question", "steps", "steps", self.used, MOST)


_EFFORT: ContextVar[_Effort | None] = ContextVar("effort", default=None)


@contextmanager
def bounded(own: int | None = None) -> Iterator[None]:
    """Questions asked within have `own` steps each, and share a purse; outside nothing counts."""
    token = _EFFORT.set(_Effort(OWN if own is None else own, PURSE))
    try:
        yield
    finally:
        _EFFORT.reset(token)


def ask() -> None:
    """Begin another question, with steps of its own."""
    effort = _EFFORT.get()
    if effort is not None:
        effort.used = 0


def spend(steps: int) -> None:
    """Count `steps`.

    Raises:
        LimitError: the question has had its own steps, and the purse is empty.
    """
    effort = _EFFORT.get()
    if effort is not None:
        effort.spend(steps)
