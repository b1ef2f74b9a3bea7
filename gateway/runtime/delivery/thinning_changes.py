"""The changes of the names of one target: which copies are left out as equal to the last one.

A *change* of a name. Known: the copy that the target accepted last. Left out: an equal one, while
no copy of the name waits for its answer. Forgotten: at each connection of the target, which may
have begun empty; when another route sends under the name; when its rule is gone. A name without
room is sent.

After a crash: nothing is known.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from gateway.model.memory_size import text_size
from gateway.model.outcome import REPEAT, Outcome, Settlement
from gateway.runtime.delivery.thinning_candidate import Candidate, Course

MAX_SIZE: Final = 16 << 20  # bytes of the changes of a target
CHANGE_SIZE: Final = 550  # bytes of a change beside its name


@dataclass(slots=True)
class NameChange:
    """The copy of a name that a target accepted last, and those without an answer, by their ids.

    All are of one route.
    """

    route: str
    accepted: tuple[bytes, bytes] | None = None  # content, and id
    at: tuple[int, int] = (0, 0)  # number of its batch, and place in it
    open: set[bytes] | None = None  # None: most names have none


class NameChanges:
    """The changes of one target, by name.

    Mutable: its owner calls one method at a time.
    """

    def __init__(self) -> None:
        self.by_name: dict[str, NameChange] = {}
        self._size = 0  # bytes

    def course(self, copy: Candidate) -> Course | bytes:
        """Return the course of a copy, or the id of the accepted one that stands for it."""
        route, name = copy.route, copy.name
        found = self.by_name.get(name)
        if found is None or found.route != route:
            self.forget(name)
            size = CHANGE_SIZE + text_size(name)
            if self._size + size > MAX_SIZE:
                return Course.SEND
            self._size += size
            found = self.by_name[name] = NameChange(route)
        if found.accepted is not None:
            content, accepted = found.accepted
            if copy.again or (not found.open and content == copy.content):
                return accepted
        if found.open is None:
            found.open = set()
        found.open.add(copy.id)
        return Course.SEND

    def answered(self, copy: Candidate, settlement: Settlement, at: tuple[int, int]) -> None:
        """Take the final settlement of a copy that was sent, from the place `at` in its lane."""
        change = self.by_name.get(copy.name)
        if change is None or change.open is None or copy.id not in change.open:
            return  # its name had no room, or was forgotten meanwhile
        change.open.remove(copy.id)
        change.open = change.open or None
        if settlement.outcome is Outcome.REJECTED or at < change.at:
            return
        change.at = at
        # A spooled one may yet be refused; a repeat came before what others sent meanwhile.
        is_last = settlement.outcome is Outcome.ACCEPTED and settlement.rule != REPEAT
        change.accepted = (copy.content, copy.id) if is_last else None

    def keep(self, routes: Collection[str]) -> None:
        """Forget the changes of other routes."""
        for name in [each for each, change in self.by_name.items() if change.route not in routes]:
            self.forget(name)

    def forget_all(self) -> None:
        """The target may have lost what it accepted: the next message of each name is sent."""
        self.by_name.clear()
        self._size = 0

    def forget(self, name: str) -> None:
        """The target may have another value of a name: the next message of it is sent."""
        if self.by_name.pop(name, None) is not None:
            self._size -= CHANGE_SIZE + text_size(name)
