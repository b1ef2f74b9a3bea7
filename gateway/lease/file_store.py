"""A lease in a folder that both instances reach, NFS included.

Each lease is a file with a number, made with O_EXCL, which every file system decides once for all
its clients; no `flock`, which would never leave a frozen process. A renewal writes the file in
place: a client of NFS that opens a file sees what another wrote and closed ("close-to-open").
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeVar

from gateway.lease.lease import NO_RECORD, LeaseError, Record

T = TypeVar("T")

SIZE: Final = 512  # bytes of a record; a renewal takes no further room on a full disk
DIGITS: Final = 12
HIGHEST: Final = 10**DIGITS - 1
MODE: Final = 0o750  # of the folder
KEPT: Final = 100  # numbers; an old file stops an instance that was frozen before it asked
STANDBY: Final = ".standby"
WANTED: Final = "handover"
IDENTITY: Final = "identity"
MEMORY: Final = ".memory"  # behind the number of the lease in which it was written


class FileLeaseStore:
    """The lease in the folder `path`, made when it is absent.

    Its parent is not made: where the shared file system is not mounted, that would be a second
    lease.
    """

    look_every = 0.2

    def __init__(self, path: Path) -> None:
        self._path = path
        self._start = secrets.token_hex(8)  # a pid comes again: in a container it is always 1
        self._renewals = 0

    def look(self, instance: str = "") -> Record:
        def read() -> Record:
            if instance:
                self._path.mkdir(MODE, exist_ok=True)
                self._write(self._path / f"{instance}{STANDBY}", {"renewal": self._renewal()})
            return self._last()

        return self._tried(read)

    def take(self, seen: Record, instance: str) -> Record | None:
        """Make the next file, then see whether the one before was renewed meanwhile.

        Its holder renews first and then looks for our file: one of us sees the other. Our file ends
        the lease before, so it is made only when that has not changed since we saw it.
        """
        number = seen.number + 1

        def make() -> Record | None:
            last = self._last()
            if (last.number, last.renewal) != (seen.number, seen.renewal):
                return None
            self._path.mkdir(MODE, exist_ok=True)
            path = self._file(number)
            try:
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o640))
            except FileExistsError:
                return None
            if max(self._numbers()) != number:  # we slept while this number went by
                path.unlink()
                return None
            if _read(self._file(seen.number)).get("renewal", "") != seen.renewal:
                return None  # our file stays without a holder: nobody takes it before its time
            identity = self._made_identity()
            self._write(path, {"holder": instance, "renewal": self._renewal()})
            for old in self._numbers():
                if old <= number - KEPT:
                    self._file(old).unlink(missing_ok=True)
                    self._file(old).with_suffix(MEMORY).unlink(missing_ok=True)
            return Record(number, instance, identity=identity)

        return self._tried(make)

    def renew(self, number: int, instance: str) -> Record:
        def write() -> Record:
            if (last := self._last()).number == number and last.holder == instance:
                self._write(self._file(number), {"holder": instance, "renewal": self._renewal()})
                return self._last()
            return last

        return self._tried(write)

    def give(self, number: int, instance: str) -> None:
        fields = {"holder": instance, "renewal": self._renewal(), "given": True}
        self._tried(lambda: self._write(self._file(number), fields))

    def want(self, number: int) -> None:
        self._tried(lambda: self._write(self._path / WANTED, {"number": number}))

    def read_memory(self) -> str | None:
        def read() -> str | None:
            files = sorted(self._path.glob(f"{'[0-9]' * DIGITS}{MEMORY}"))
            if not files:
                return None
            file = os.open(files[-1], os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            with os.fdopen(file, encoding="utf-8") as text:
                return text.read()

        return self._tried(read)

    def write_memory(self, number: int, instance: str, text: str) -> None:
        """Replace the file of this number: a frozen holder writes none that the next one reads."""

        def write() -> None:
            path = self._file(number).with_suffix(MEMORY)
            new = path.with_name(f"{path.name}.{instance}.tmp")
            flags = os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_NOFOLLOW
            with os.fdopen(os.open(new, flags, 0o640), "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            new.replace(path)

        self._tried(write)

    def _last(self) -> Record:
        numbers = self._numbers()
        if not numbers:
            return NO_RECORD
        number = max(numbers)
        if number == HIGHEST:
            raise OSError(errno.EINVAL, f"nobody can follow the file {number}; remove it")
        fields = _read(self._file(number))
        standby = {
            path.name.removesuffix(STANDBY): str(_read(path).get("renewal", ""))
            for path in self._path.glob(f"*{STANDBY}")
        }
        wanted = _read(self._path / WANTED).get("number", 0)
        return Record(
            number,
            str(fields.get("holder", "")),
            str(fields.get("renewal", "")),
            given=fields.get("given") is True,
            standby=standby,
            wanted=wanted if isinstance(wanted, int) else 0,
            identity=self._identity(),
        )

    def _identity(self) -> str:
        return str(_read(self._path / IDENTITY).get("identity", ""))

    def _made_identity(self) -> str:
        """The digits of this lease, made by its first holder."""
        if not (known := self._identity()):
            known = secrets.token_hex(16)
            self._write(self._path / IDENTITY, {"identity": known})
        return known

    def _numbers(self) -> list[int]:
        try:
            with os.scandir(self._path) as found:
                names = [each.name for each in found if each.is_file(follow_symlinks=False)]
        except FileNotFoundError:
            return []
        return [int(name) for name in names if len(name) == DIGITS and name.isdecimal()]

    def _file(self, number: int) -> Path:
        return self._path / f"{number:0{DIGITS}}"

    def _renewal(self) -> str:
        """Return a text that no earlier call, and no other process, returned."""
        self._renewals += 1
        return f"{self._start}-{self._renewals}"

    def _write(self, path: Path, fields: Mapping[str, object]) -> None:
        """Write a file in place, in one call, up to the disk of its server."""
        flags = os.O_CREAT | os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK  # a pipe waits for readers
        file = os.open(path, flags, 0o640)
        try:
            os.pwrite(file, json.dumps(fields).encode().ljust(SIZE), 0)
            os.fsync(file)
        finally:
            os.close(file)

    def _tried(self, call: Callable[[], T]) -> T:
        try:
            return call()
        except FileNotFoundError as error:
            hint = "is absent; is the shared file system mounted?"
            raise LeaseError(f"lease {self._path}: the folder around it {hint}") from error
        except (OSError, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or error
            raise LeaseError(f"lease {self._path}: {reason}") from error


def _read(path: Path) -> dict[str, object]:
    """Return the fields of a file; none of an absent one, a pipe, or one that is written first."""
    with suppress(FileNotFoundError, ValueError):
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            if stat.S_ISFIFO(os.fstat(file).st_mode):
                return {}
            fields = json.loads(os.read(file, SIZE) or b"{}")
        finally:
            os.close(file)
        return fields if isinstance(fields, dict) else {}
    return {}
