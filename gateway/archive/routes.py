"""The routes that a gateway ran with, so that its names can be checked later.

    ARCHIVE/_routes/<writer>-<since>.json

A file is in force from `since` (microseconds) until the next one of its writer. It is durable
before the first row of these routes; a start or a reload with equal routes adds none. It has the
`mac` of a seal, and never a secret: see `gateway.routing.name_rules`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from gateway.archive.durable import make_folders, read_regular, replacing, sync_folder
from gateway.archive.findings import Finding, error
from gateway.archive.layout import MAX_TIME, ROUTES, listed
from gateway.archive.signed_json import SignedStatement
from gateway.archive.threads import in_threads
from gateway.errors import ArchiveError

if TYPE_CHECKING:  # the gateway itself never loads Arrow
    from gateway.archive.storage import RemoteStorage, Storage, StoredFile

Rules: TypeAlias = Sequence[Mapping[str, Any]]

_NAME = re.compile(r"(?P<writer>.+)-(?P<since>\d{1,19})\.json")


@dataclass(frozen=True, slots=True)
class RoutesFile:
    """A file by its path in the archive; in force from `since` until before `until`."""

    path: Path
    writer: str
    since: int
    until: int = MAX_TIME


@dataclass(frozen=True, slots=True)
class StoredRoutes:
    """The rules in a file; None when it is damaged, and the `fault` is a predicate."""

    file: RoutesFile
    rules: Rules | None
    fault: str = ""


@dataclass(frozen=True, slots=True)
class SignedRoutes(SignedStatement):
    """The content of a file: the rules of `writer` from `since` on, in microseconds."""

    writer: str
    since: int
    routes: tuple[Mapping[str, Any], ...]


def write_routes(
    root: Path, writer: str, rules: Rules, since: int, key: bytes | None = None
) -> None:
    """Store the rules with which `writer` runs from `since` on, unless the newest file has them.

    They are durable when this returns.

    Raises:
        ArchiveError: the folder cannot be written.
    """
    folder = root / ROUTES
    try:
        make_folders(folder)
        if own := [each for each in _files(_names(folder)) if each.writer == writer]:
            newest = own[-1]
            if read_regular(root / newest.path) == _content(writer, newest.since, rules, key):
                return
            since = max(since, newest.since + 1)  # a clock may be set back
        with replacing(root / _path(writer, since)) as file:
            file.write(_content(writer, since, rules, key))
        sync_folder(root)
    except OSError as fault:
        raise ArchiveError(f"{folder}: cannot be written: {fault.strerror}") from fault


def routes_files(storage: Storage) -> list[RoutesFile]:
    """Return the files of all writers, each writer's by time.

    Raises:
        OSError: the archive cannot be read.
    """
    return _files(storage.names(Path(ROUTES)))


def read_routes(
    storage: Storage, files: Sequence[RoutesFile], key: bytes | None = None
) -> list[StoredRoutes]:
    """Read `files`; with a `key`, a file without a valid signature is damaged.

    Raises:
        OSError: the archive cannot be read.
    """
    return in_threads(lambda file: _read(storage, file, key), files)


def routes_findings(
    storage: Storage, begin: int, end: int, key: bytes | None = None
) -> Iterator[Finding]:
    """Yield a finding for each damaged file that is in force at a time from `begin` to `end`.

    Raises:
        OSError: the archive cannot be read.
    """
    files = [each for each in routes_files(storage) if each.since < end and each.until > begin]
    for stored in read_routes(storage, files, key):
        if stored.fault:
            yield error("damaged-routes", stored.file.path.as_posix(), stored.fault)


def remove_routes(storage: Storage, oldest: int) -> list[StoredFile]:
    """Remove the files that are not in force at `oldest` or later; return them.

    Raises:
        OSError: the archive cannot be reached; the next call removes the rest.
    """
    old = {each.path for each in routes_files(storage) if each.until <= oldest}
    removed = [each for each in storage.files(Path(ROUTES)) if each.path in old] if old else []
    for each in removed:
        storage.delete(each.path)
    return removed


def upload_routes(storage: RemoteStorage, buffer: Path) -> None:
    """Upload the files of the local folder `buffer`, which keeps the newest of each writer.

    Raises:
        OSError: the archive cannot be reached.
    """
    for each in _files(_names(buffer / ROUTES)):
        storage.upload(each.path, buffer / each.path)
        if each.until < MAX_TIME:
            (buffer / each.path).unlink(missing_ok=True)


def _path(writer: str, since: int) -> Path:
    return Path(ROUTES) / f"{writer}-{since}.json"


def _names(folder: Path) -> list[str]:
    return [path.name for path in listed(folder, ".json")]


def _files(names: Iterable[str]) -> list[RoutesFile]:
    found = sorted(
        (match["writer"], int(match["since"]), name)
        for name in names
        if not name.startswith(".") and (match := _NAME.fullmatch(name))
    )
    following = [*found[1:], ("", 0, "")]
    return [
        RoutesFile(Path(ROUTES) / name, writer, since, until if other == writer else MAX_TIME)
        for (writer, since, name), (other, until, _) in zip(found, following, strict=False)
    ]


def _content(writer: str, since: int, rules: Rules, key: bytes | None) -> bytes:
    return SignedRoutes(writer, since, tuple(rules)).signed(key).to_json()


def _read(storage: Storage, file: RoutesFile, key: bytes | None) -> StoredRoutes:
    try:
        found = SignedRoutes.from_json(storage.read(file.path) or b"")
    except ValueError as error:
        return StoredRoutes(file, None, str(error))
    fault = found.fault(key)
    if (found.writer, found.since) != (file.writer, file.since):
        fault = f"is that of {found.writer!r}, from {found.since!r} on"
    return StoredRoutes(file, None if fault else found.routes, fault)
