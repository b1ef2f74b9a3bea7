"""Everything of a source that outlives its connections.

wanted      topics; from the configuration
memory      the claim of the source, and its position in each partition (`positions`)
absent      topics of which the log says that they do not exist
backlog     messages that are not settled yet, as far as the servers have told
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from gateway.endpoints.continuity import Continuity, Retention
from gateway.endpoints.settings.kafka import KafkaSettings
from gateway.endpoints.source_memory import SourceMemory


@dataclass(slots=True)
class SubscribedTopics:
    """The topics of a source: names, and regular expressions that begin with `^`.

    Mutable: one connection at a time uses it.
    """

    settings: KafkaSettings
    instance: str
    topics: Sequence[str]
    memory: SourceMemory = field(default_factory=SourceMemory)
    continuity: Continuity = field(default_factory=lambda: Continuity(Retention.KEPT))
    absent: set[str] = field(default_factory=set)
    backlog: int | None = None

    def selects(self, topics: Iterable[str]) -> bool:
        """Return whether one of these topics is wanted."""
        return any(
            re.fullmatch(each, topic) if each.startswith("^") else each == topic
            for topic in topics
            for each in self.topics
        )

    @property
    def group(self) -> str:
        """The consumer group; its only member has the same name at each start."""
        template = self.settings.group_id
        return template.replace("{instance}", self.instance) or self.settings.name
