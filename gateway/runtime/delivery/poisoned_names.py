"""The common traits of names of poisoned messages, and the limit that would refuse them."""

from __future__ import annotations

from sys import maxsize
from typing import Final

from gateway.dialects.brokers import BROKERS
from gateway.model.dead_letter_rule import POISONED
from gateway.model.outcome import Outcome
from gateway.runtime.delivery.outbound_batch import OutboundBatch

MIN_POISONED: Final = 3  # messages before a limit is proposed
MAX_NAMES: Final = 10_000  # names that are compared; then the last proposal stands
MIN_LEVELS: Final = 5  # shallower and shorter names differ by chance
MIN_BYTES: Final = 100
# Poisoned names that are far past the limit of a usual broker tell the limit only roughly.
_KNOWN_LEVELS: Final = BROKERS["mosquitto"].limits.levels or 0


class PoisonedNames:
    """The names that one target took since its first poisoned message, and those that broke it.

    A limit is proposed when every poisoned name is past it and no other name is. Mutable: owned by
    the lane.
    """

    def __init__(self, separator: str) -> None:
        self._separator = separator
        self.poisoned = 0
        self._taken = 0
        self._common: set[str] = set()  # characters of every poisoned name
        self._other: set[str] = set()  # characters of the names that were taken
        self._first: set[str] = set()  # first levels of the poisoned names
        self._other_first: set[str] = set()
        self._least = [maxsize, maxsize]  # levels and bytes of poisoned names
        self._most = [0, 0]
        self._proposed = ""

    def finished(self, batch: OutboundBatch) -> str:
        """Note a batch with all its settlements; return a new proposal, as YAML, or ""."""
        if self.poisoned + self._taken > MAX_NAMES:
            return ""
        for message, settlement in zip(batch.messages, batch.settlements, strict=True):
            if settlement.rule == POISONED:
                self._add_poisoned(message.address)
            elif settlement.outcome is Outcome.ACCEPTED:
                self._add_taken(message.address)
        if self.poisoned < MIN_POISONED or not self._taken:
            return ""
        before, self._proposed = self._proposed, self._proposal()
        return self._proposed if self._proposed != before else ""

    def _add_poisoned(self, name: str) -> None:
        self._common = self._common & set(name) if self.poisoned else set(name)
        self._least = [*map(min, self._least, self._sizes(name))]
        self._first.add(name.partition(self._separator)[0])
        self.poisoned += 1

    def _add_taken(self, name: str) -> None:
        self._other |= set(name)
        self._most = [*map(max, self._most, self._sizes(name))]
        self._other_first.add(name.partition(self._separator)[0])
        self._taken += 1

    def _sizes(self, name: str) -> list[int]:
        return [name.count(self._separator) + 1, len(name.encode("utf-8", "surrogatepass"))]

    def _proposal(self) -> str:
        chars = [char for char in sorted(self._common - self._other) if not char.isalnum()]
        if chars and self._separator not in chars:
            return f"forbidden_characters: {_quoted(''.join(chars))}"
        levels, size = self._least
        if levels >= MIN_LEVELS and levels > self._most[0]:
            fits = self._most[0] <= _KNOWN_LEVELS < levels
            return f"levels: {_KNOWN_LEVELS if fits else levels - 1}"
        if size >= MIN_BYTES and size > self._most[1]:
            return f"bytes: {size - 1}"
        if len(self._first) == 1 and self._first.isdisjoint(self._other_first):
            return f"forbidden_first_levels: [{_quoted(*self._first)}]"
        return ""


def _quoted(text: str) -> str:
    escaped = text.encode("unicode_escape").decode().replace('"', '\\"')
    return f'"{escaped}"'
