"""The archive that the arguments of a command name: its location, its storage, and a date of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gateway.archive.layout import NEVER_WRITTEN, journals, names_an_archive
from gateway.archive.location import ArchiveLocation, parse_location
from gateway.errors import ArchiveError, first_line

if TYPE_CHECKING:
    from gateway.archive.storage import Storage

_YAML: Final = (".yaml", ".yml")


def named_location(archive: str) -> ArchiveLocation:
    """Return the location of an archive.

    Raises:
        ArchiveError: it is a path, and no folder.
    """
    location = parse_location(archive)
    if not location.url and not location.local.is_dir():
        is_configuration = location.local.suffix in _YAML and location.local.is_file()
        hint = "; it is a configuration: give its `archive.path`" if is_configuration else ""
        raise ArchiveError(f"archive {str(location)!r}: is not a folder{hint}")
    return location


@contextmanager
def named_storage(archive: str, failed: str = "cannot be read") -> Iterator[Storage]:
    """Yield the storage of an archive; the block reads it, and prints nothing.

    Raises:
        ArchiveError: it is not a folder, or cannot be reached; `failed` says what was not done.
    """
    from gateway.archive.storage import open_storage  # loads PyArrow

    location = named_location(archive)
    try:
        yield open_storage(location)
    except OSError as error:
        raise ArchiveError(f"archive {location}: {failed}: {first_line(error)}") from error


def check_written(archive: str, storage: Storage, buffer: Path | None = None) -> None:
    """Check that a gateway has written to the archive, or to its `buffer`.

    Raises:
        ArchiveError: none has.
        OSError: the archive cannot be read.
    """
    if not names_an_archive(storage.names(Path())) and not (buffer and journals(buffer)):
        raise ArchiveError(f"archive {parse_location(archive)}: {NEVER_WRITTEN}")


def written_location(archive: str) -> ArchiveLocation:
    """Return the location of an archive to which a gateway has written.

    Raises:
        ArchiveError: it is not such an archive, or cannot be reached.
    """
    with named_storage(archive) as storage:
        check_written(archive, storage)
    return named_location(archive)


def parse_date(text: str | None) -> date | None:
    """Return the date of an option; None without one.

    Raises:
        ArchiveError: it is not a date.
    """
    try:
        return None if text is None else date.fromisoformat(text)
    except ValueError as error:
        raise ArchiveError(f"{text!r} is no date; write YYYY-MM-DD") from error
