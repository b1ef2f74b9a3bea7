"""A gap that a source knows and no row tells yet, kept in its memory.

A broker that had no session of the source says so once: at the connection that makes it again. The
row of the gap is durable later.

    untold    in the memory: written by that connection, and cleared when the row is durable

After a stop or a kill in between, the first connection of the next run says it again. After a kill
between the row and the clearing, a second row may say it.
"""

from __future__ import annotations

from typing import Final

from gateway.endpoints.continuity import Continuity, Retention
from gateway.endpoints.source_memory import SourceMemory

UNTOLD: Final = "untold"  # a fact


class UntoldGap:
    """The gap of one source. Mutable: one thread connects; any tells."""

    def __init__(self, memory: SourceMemory, continuity: Continuity) -> None:
        self._memory, self._continuity = memory, continuity
        self._is_first = True
        continuity.on_told = self._told

    def connected(self) -> None:
        """Keep what the broker said, or say what an earlier run could not tell."""
        continuity, is_first, self._is_first = self._continuity, self._is_first, False
        if continuity.retention is Retention.NEW:
            self._memory.put(UNTOLD, True)  # a value of JSON
        elif is_first and continuity.retention is Retention.KEPT and self._is_untold():
            continuity.retention = Retention.NEW

    def _told(self) -> None:
        if self._is_untold():
            self._memory.put(UNTOLD, False)  # a value of JSON

    def _is_untold(self) -> bool:
        return bool(self._memory.get(UNTOLD, bool, False))
