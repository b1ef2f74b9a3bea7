"""The roles of the sources of a configuration, and the place of what each remembers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gateway.archive.layout import journal_folder, writer_name
from gateway.config.load import Configuration
from gateway.endpoints.registry import find_kind
from gateway.lease.holder import LeaseHolder
from gateway.runtime.archive_setup import archive_location
from gateway.runtime.endpoint_uses import source_endpoints, tap_targets
from gateway.runtime.inbound.source_memories import (
    MemoryFile,
    MemoryPlace,
    SourceMemories,
)
from gateway.runtime.record.gap_rows import Watched, watched_by


def state_folder(configuration: Configuration) -> Path | None:
    """The folder of what a gateway knows beyond its end: of the journals, else of the spool."""
    if configuration.archive is not None:
        return journal_folder(archive_location(configuration.archive).local)
    return Path(configuration.spool.path) if configuration.spool is not None else None


def memory_place(configuration: Configuration, lease: LeaseHolder | None) -> MemoryPlace | None:
    """The place of the memories; None where they end with the process."""
    if lease is not None:
        return lease
    if (folder := state_folder(configuration)) is None:
        return None
    name, spool = f"{writer_name(configuration.gateway.name)}.memory", configuration.spool
    return MemoryFile(folder / name, Path(spool.path) / name if spool else None)


def source_memories(
    configuration: Configuration, lease: LeaseHolder | None, *, ran_before: bool
) -> SourceMemories:
    """The memories of the sources: of a pair beside its lease, else in the gateway's folder.

    A gateway without an archive keeps them in the folder of its spool, and may get one later.
    """
    place = memory_place(configuration, lease)
    memories = SourceMemories(place, configuration.gateway.name, ran_before=ran_before)
    use_roles(memories, configuration)
    return memories


def watched_by_role(configuration: Configuration) -> dict[str, tuple[str, Sequence[Watched]]]:
    """By role, the endpoint of each source and tap, and the routes that it receives for."""
    found: dict[str, tuple[str, Sequence[Watched]]] = {}
    for name in configuration.endpoints:
        routes = [each for each in configuration.routes if each.endpoint == name]
        found[role_of(configuration, name)] = name, watched_by(routes)
    for target in tap_targets(configuration):
        found[tap_role(configuration, target)] = target.endpoint, [target]
    return found


def use_roles(memories: SourceMemories, configuration: Configuration) -> None:
    """Let memories know all endpoints and taps of a configuration, and its sources."""
    roles = [role_of(configuration, each) for each in configuration.endpoints]
    roles += [tap_role(configuration, each) for each in tap_targets(configuration)]
    sources = [role_of(configuration, each) for each in source_endpoints(configuration)]
    own = {
        role_of(configuration, name): f"{find_kind(endpoint.settings).name} {name}"
        for name, endpoint in configuration.endpoints.items()
        if endpoint.was
    }
    memories.use_roles(roles, sources, own)


def role_of(configuration: Configuration, name: str) -> str:
    """The role of the source of the endpoint `name`: an earlier name of it stays in its role."""
    kind = find_kind(configuration.endpoints[name].settings).name
    return f"{kind} {configuration.first_name(name)}"


def tap_role(configuration: Configuration, target: Watched) -> str:
    kind = find_kind(configuration.endpoints[target.endpoint].settings).name
    return f"{kind} {target.endpoint} {target.tap_name}"
