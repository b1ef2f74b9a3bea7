"""Everything of a source that outlives its connections.

wanted    its addresses; at RabbitMQ a queue with bindings, and queues; elsewhere a selector; from
          the configuration
memory    the bindings that its queue may have
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from gateway.endpoints.amqp.addresses import QUEUES, address_of, encoded
from gateway.endpoints.continuity import Continuity, Retention
from gateway.endpoints.settings.amqp import QUEUE, AmqpSettings
from gateway.endpoints.source_memory import SourceMemory


@dataclass(slots=True)
class WantedAddresses:
    """The addresses that a source reads; `own` is its queue, or its durable subscription."""

    settings: AmqpSettings
    own: str
    patterns: Sequence[str]
    selector: str = ""
    memory: SourceMemory = field(default_factory=SourceMemory)
    continuity: Continuity = field(default_factory=lambda: Continuity(Retention.KEPT))
    made: bool = False  # the own queue, since the last connection that was opened

    @property
    def bindings(self) -> list[str]:
        """The patterns that the own queue is bound to; none where servers have no exchanges."""
        if not self.settings.product.has_exchanges:
            return []
        return [each for each in self.patterns if not each.startswith(QUEUE)]

    @property
    def addresses(self) -> list[tuple[str, str]]:
        """The address of each link, with its pattern; empty for the own queue."""
        bound = {*self.bindings}
        own = [(QUEUES + encoded(self.own), "")] if bound else []
        others = [each for each in self.patterns if each not in bound]
        return own + [(address_of(each, self.settings), each) for each in others]


def wanted_addresses(
    settings: AmqpSettings, patterns: Sequence[str], instance: str, selector: str = ""
) -> WantedAddresses:
    """Return what a source reads for `patterns`; `instance` is in the name of its own queue."""
    own = settings.queue or f"gateway-{settings.name}"
    own = f"{own}-{instance}" if instance else own
    return WantedAddresses(settings, own, list(dict.fromkeys(patterns)), selector)
