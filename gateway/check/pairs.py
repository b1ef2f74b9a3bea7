"""Find what a pair cannot have: names that change, state on one host, targets that stop others."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from gateway.archive.location import parse_location
from gateway.config.load import Configuration
from gateway.errors import ArchiveError, ConfigError


def pair_findings(configuration: Configuration) -> Iterator[ConfigError]:
    """Yield the findings about the section `standby`; none for a gateway alone."""
    if configuration.standby is None:
        return
    yield from _instance(configuration)
    yield from _spool(configuration)
    yield from _archive(configuration)
    yield from _shared_sources(configuration)


def _instance(configuration: Configuration) -> Iterator[ConfigError]:
    if not configuration.gateway.instance:
        yield configuration.location_of(("standby",)).error(
            "pair-instance",
            "`standby`: the instances of a pair need names",
            'write `instance: "${env:HOSTNAME}"` in `gateway`: a name that each keeps',
        )


def _spool(configuration: Configuration) -> Iterator[ConfigError]:
    """A copy in a spool of the dead host waits until that comes back."""
    spool = configuration.spool
    if spool is not None and not spool.shared:
        yield configuration.location_of(("spool",)).error(
            "pair-spool",
            "`spool`: what waits on the disk of one host is not at the other",
            "remove it, so that copies wait at their source; or write `shared: true`, if the folder"
            " moves with the lease",
        )


def _archive(configuration: Configuration) -> Iterator[ConfigError]:
    """An archive beside a lease that both reach is one that both reach."""
    if configuration.archive is None or configuration.standby is None:
        return
    try:
        location = parse_location(configuration.archive.path)
    except ArchiveError:
        return  # reported where the file is read
    if location.url or _on_one_device(configuration.standby.lease.path, location.local):
        return
    yield configuration.location_of(("archive", "path")).error(
        "pair-archive",
        "`archive`: nothing shows that both instances reach this folder, and the night needs the"
        " rows of both",
        "use a bucket (s3://), or the file system of the lease",
        "warning",
    )


def _on_one_device(lease: str | None, archive: Path) -> bool:
    """Return whether both paths, or the nearest folders that exist, are in one file system."""
    devices = set()
    for path in (Path(lease or os.sep).absolute(), archive.absolute()):
        found = next((each for each in (path, *path.parents) if each.exists()), Path(os.sep))
        devices.add(found.stat().st_dev)
    return lease is not None and len(devices) == 1


def _shared_sources(configuration: Configuration) -> Iterator[ConfigError]:
    """Without a spool a target that is away stops the source, also for the other targets."""
    if configuration.spool is not None:
        return
    targets: dict[str, dict[str, None]] = defaultdict(dict)  # in the order of the file
    for route in configuration.routes:
        targets[route.endpoint].update((target.endpoint, None) for target in route.targets)
    for source, names in targets.items():
        first, *others = (repr(each) for each in names)
        if not others:
            continue
        yield configuration.location_of(("endpoints", source)).error(
            "pair-shared-source",
            f"endpoint {source!r}: while {first} is away, nothing is received for"
            f" {' and '.join(others)} either",
            "write a source endpoint for each target",
            "warning",
        )
