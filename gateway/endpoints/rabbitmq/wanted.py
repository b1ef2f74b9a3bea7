"""Everything of a source that outlives its connections.

wanted            queues and bindings; from the configuration
memory            the bindings that its queue may have, and its place in each stream
known queues      their types, as far as this process was told; asked again by the next one
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from gateway.endpoints.continuity import Continuity, Retention
from gateway.endpoints.rabbitmq.topology import Binding
from gateway.endpoints.settings.rabbitmq import QUEUE, RabbitmqSettings
from gateway.endpoints.source_memory import SourceMemory


@dataclass(slots=True)
class KnownQueues:
    """The types of the queues of one source. Mutable: owned by the connection's thread."""

    others: set[str] = field(default_factory=set)  # that are not streams
    doubted: set[str] = field(default_factory=set)  # of them; asked again, for an offset came
    made: bool = False  # the own queue, since the last connection that was opened

    def doubt(self, queue: str) -> bool:
        """Return whether a queue has to be asked for its type again: once, at the first doubt."""
        if queue in self.doubted:
            return False
        self.doubted.add(queue)
        self.others.discard(queue)
        return True


@dataclass(slots=True)
class WantedQueues:
    """The queues of a source: `own` has the bindings, `named` are those that patterns name."""

    settings: RabbitmqSettings
    own: str
    bindings: Sequence[Binding]
    named: Sequence[str]
    memory: SourceMemory = field(default_factory=SourceMemory)
    continuity: Continuity = field(default_factory=lambda: Continuity(Retention.KEPT))
    known: KnownQueues = field(default_factory=KnownQueues)

    @property
    def addresses(self) -> list[tuple[str, str]]:
        """Each queue, with the address of its messages; empty where they have their key."""
        own = [(self.own, "")] if self.bindings else []
        return own + [(each, QUEUE + each) for each in self.named]

    def removes(self, address: str) -> bool:
        """Return whether it is a queue that others fill; a stream keeps what was read."""
        return address.startswith(QUEUE) and address.removeprefix(QUEUE) in self.known.others


def wanted_queues(
    settings: RabbitmqSettings, patterns: Sequence[str], instance: str
) -> WantedQueues:
    """Return the queues for `patterns`; `instance` is in the name of the source's own."""
    distinct = list(dict.fromkeys(patterns))
    own = settings.queue or f"gateway-{settings.name}"
    return WantedQueues(
        settings,
        f"{own}-{instance}" if instance else own,
        [(settings.exchange, each) for each in distinct if not each.startswith(QUEUE)],
        [each.removeprefix(QUEUE) for each in distinct if each.startswith(QUEUE)],
    )
