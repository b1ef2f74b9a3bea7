"""Everything of a source that outlives its connections.

wanted    topics, and the queue that collects them; from the configuration
memory    the subscriptions that the queue may have
counts    gaps at which direct messages were dropped, and malformed messages
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from gateway.endpoints.base import Subscription
from gateway.endpoints.continuity import Continuity, Retention
from gateway.endpoints.settings.solace import SolaceSettings
from gateway.endpoints.solace.topic_rules import find_pattern_error, find_queue_error
from gateway.endpoints.source_memory import NO_TEXTS, SourceMemory, read_texts
from gateway.errors import EndpointError


@dataclass(slots=True)
class WantedTopics:
    """The topics of one source; `queue` is empty for direct subscriptions.

    Mutable: owned by the thread that opens; the library's thread counts.
    """

    settings: SolaceSettings
    patterns: Sequence[str]
    queue: str
    continuity: Continuity
    memory: SourceMemory = field(default_factory=SourceMemory)
    queue_is_new: bool = False  # made since the last connection that was opened
    counts: dict[str, int] = field(default_factory=lambda: {"lost": 0, "undecoded": 0})

    @property
    def _fact(self) -> str:
        return f"subscriptions {self.queue}"

    def begin(self) -> list[str]:
        """Note what the queue is about to have of us; return what we no longer want there.

        Another gateway may want it on a queue that several read.
        """
        if not (self.queue and self.settings.subscribe_queue):
            return []
        known = {*(self.memory.get(self._fact, read_texts, NO_TEXTS) or NO_TEXTS)}
        wanted = {*self.patterns}
        self.memory.put(self._fact, sorted(known | wanted))
        return sorted(known - wanted) if self.settings.exclusive_queue else []

    def keep(self, left: Sequence[str]) -> None:
        """Note that the queue has what is wanted, and `left`, which could not be removed."""
        self.memory.put(self._fact, sorted({*self.patterns, *left}))


def wanted_topics(
    settings: SolaceSettings, subscriptions: Sequence[Subscription], instance: str
) -> WantedTopics:
    """Check the names and return them; `instance` is in that of the queue.

    Raises:
        EndpointError: the library would misread a pattern or the name of the queue.
    """
    patterns = [each.pattern for each in subscriptions]
    for pattern in patterns:
        if found := find_pattern_error(pattern):
            raise EndpointError(f"{settings.name}: subscription {pattern[:300]!r}: {found[1]}")
    queue = _queue_name(settings, instance) if settings.guaranteed else ""
    continuity = Continuity(Retention.KEPT if queue else Retention.NOTHING)
    return WantedTopics(settings, patterns, queue, continuity)


def _queue_name(settings: SolaceSettings, instance: str) -> str:
    name = settings.queue.replace("{instance}", instance) or f"gateway/{settings.name}/{instance}"
    if found := find_queue_error(name):
        raise EndpointError(f"{settings.name}: queue {name[:300]!r}: {found[1]}")
    return name
