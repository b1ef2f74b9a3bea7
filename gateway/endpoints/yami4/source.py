"""A YAMI4 source: the messages of its connections go through one queue.

YAMI4 has no acknowledgements, so unsettled messages stay in memory. They are handed out again from
there, also after the connection that brought them.
"""

from __future__ import annotations

from collections.abc import Sequence

from gateway.endpoints.base import Subscription
from gateway.endpoints.continuity import Continuity, Retention
from gateway.endpoints.received_queue import message_queue
from gateway.endpoints.settings.yami4 import Yami4Settings
from gateway.endpoints.source_memory import SourceMemory
from gateway.endpoints.source_shell import Opening, SourceShell
from gateway.endpoints.yami4.bodies import find_address_fault
from gateway.endpoints.yami4.intake import Yami4Intake
from gateway.errors import EndpointError, quoted


def open_source(
    settings: Yami4Settings, subscriptions: Sequence[Subscription], instance: str = ""
) -> SourceShell:
    """Return a closed source.

    Raises:
        EndpointError: the patterns are not a list.
    """
    del instance  # the broker keeps no state of its clients
    patterns = ",".join(subscription.pattern for subscription in subscriptions)
    if not subscriptions or find_address_fault(patterns):
        raise EndpointError(f"{settings.name}: no list of patterns: {quoted(patterns)}")
    continuity = Continuity(Retention.NOTHING)  # the broker stores no messages
    queue = message_queue(settings.receive_window_bytes, awaited=False)

    def make() -> Yami4Intake:
        queue.recover()
        return Yami4Intake(settings, patterns, queue, continuity)

    opening = Opening(make)
    return SourceShell(
        settings.name,
        opening.connect,
        SourceMemory(),
        continuity,
        settings.removes,
        interrupt=opening.interrupt,
    )
