"""What a configuration's `archive` section means to the writer; it opens nothing."""

from __future__ import annotations

from gateway.archive.places import Place, parse_place
from gateway.archive.rolling import ArchiveOptions
from gateway.config.process import ArchiveRef


def place_of(archive: ArchiveRef) -> Place:
    """Where its journals and its segments are; the configuration was checked, so this works."""
    return parse_place(archive.path, archive.buffer)


def options_of(archive: ArchiveRef) -> ArchiveOptions:
    """How it is written. Only an archive elsewhere has a bound: a local one ends with its disk."""
    return ArchiveOptions(
        segment_bytes=archive.segment_bytes,
        segment_seconds=archive.segment_seconds,
        sync=archive.sync,
        buffer_bytes=archive.buffer_bytes if place_of(archive).url else None,
        keep_days=archive.keep_days,
    )
