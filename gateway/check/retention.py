"""Warn of an archive that removes dates before their spooled copies can count as missing."""

from __future__ import annotations

from collections.abc import Iterator

from gateway.archive.retention import SPOOLED_DAYS
from gateway.check.key_location import key_location
from gateway.config.load import Configuration
from gateway.errors import ConfigError

ENOUGH = SPOOLED_DAYS + 1  # days: the last copies of a date are from its midnight
HINT = f"set `keep_days: {ENOUGH}` or more, or run gateway reconcile each night"


def short_retention(configuration: Configuration) -> Iterator[ConfigError]:
    """Yield a warning when `keep_days` is shorter than the life of a spooled copy.

    Where nights run, a date with such copies stays (`gateway.archive.retention`).
    """
    archive = configuration.archive
    if archive is None or configuration.spool is None:
        return
    if archive.keep_days is None or archive.keep_days >= ENOUGH:
        return
    reason = (
        f"`keep_days: {archive.keep_days}`: a copy that is lost with the spool is missing after"
        f" {SPOOLED_DAYS} days; without nights its date is removed before"
    )
    location = key_location(("archive", "keep_days"), configuration)
    yield location.error("short-retention", reason, HINT, "warning")
