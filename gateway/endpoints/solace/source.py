"""A Solace source: a queue with settlements, or direct subscriptions."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.endpoints.base import Subscription
from gateway.endpoints.settings.solace import SolaceSettings
from gateway.endpoints.solace.intake import SolaceIntake
from gateway.endpoints.solace.native_library import NativeLibrary
from gateway.endpoints.solace.received_objects import install
from gateway.endpoints.solace.wanted import wanted_topics
from gateway.endpoints.source_shell import Opening, SourceShell


def open_source(
    settings: SolaceSettings, subscriptions: Sequence[Subscription], instance: str = ""
) -> SourceShell:
    """Return a closed source; the name of its queue has `instance` in it.

    Raises:
        EndpointError: the library would misread a pattern or the name of the queue, or its
            version lacks a function.
    """
    wanted, native = wanted_topics(settings, subscriptions, instance), NativeLibrary()
    install()
    opening = Opening(lambda: SolaceIntake(wanted, native))
    return SourceShell(
        settings.name,
        opening.connect,
        wanted.memory,
        wanted.continuity,
        settings.removes,
        wanted.counts,
        opening.interrupt,
    )
