"""A copy that thinning decides about: made for each copy of a name that a rule concerns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import TypeAlias

from gateway.routing.route import Thin

Earlier: TypeAlias = Callable[[], object]  # the batch of the first copy, while it is not settled


class Course(Enum):
    """The way of a copy that is not left out."""

    SEND = auto()
    HOLD = auto()
    FOLLOW = auto()  # it is sent behind the older copies of its name


@dataclass(frozen=True, slots=True)
class Candidate:
    """A copy of a target with the facts that decide its course.

    `name` is that at the target, and `content` equal for copies without a change. `earlier` returns
    the batch of the copy while that is not settled. `again`: it is known as a duplicate.
    """

    name: str
    route: str
    rule: Thin | None  # None: its route does not thin
    id: bytes
    earlier: Earlier
    content: bytes = b""
    again: bool = False

    @property
    def seconds(self) -> float:
        """The interval of its rule; 0 without one."""
        return self.rule.seconds if self.rule else 0.0
