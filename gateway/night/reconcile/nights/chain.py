"""The files of the chain of nights: read, checked, and written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from gateway.archive.findings import Finding, error
from gateway.archive.judged_journals import Span, gaps
from gateway.archive.layout import NIGHTS
from gateway.archive.storage import Storage
from gateway.errors import ReconcileError
from gateway.night.archive.night_record import NO_NIGHT, Night, night_numbers, night_path


@dataclass(frozen=True, slots=True)
class Chain:
    """The newest night, `NO_NIGHT` where none proves anything, and the errors about the chain.

    `last` is the number of the newest record that a file or a result names, sound or not.
    """

    newest: Night
    last: int
    findings: tuple[Finding, ...] = ()


def read_chain(
    storage: Storage, key: bytes | None, expect: str | None = None, *, stated: int = 0
) -> Chain:
    """Read the two newest nights, and list the others; with `expect`, read them all.

    Results name the night `stated`, so it was there.

    Raises:
        ReconcileError: no night of the chain has the digest `expect`.
        OSError: the archive cannot be read.
    """
    numbers = night_numbers(storage)
    last = max([stated, *numbers])
    findings = [_missing(each) for each in gaps(1, last, numbers)]
    nights: dict[int, Night] = {}
    for number in numbers if expect is not None else numbers[-2:]:
        before = nights.get(number - 1)
        try:
            nights[number] = _read(storage, number, key)
            if before is not None and nights[number].previous != before.mac:
                raise ValueError(f"does not follow night {number - 1}")  # noqa: TRY301  # one text for all
        except ValueError as fault:
            findings.append(error("forged-night", night_path(number).as_posix(), str(fault)))
    if expect is not None and expect not in {night.mac for night in nights.values()}:
        text = f"no night of the chain has the digest {expect!r}"
        raise ReconcileError(f"{NIGHTS}: {text}: the archive was rolled back, or is another one")
    return Chain(nights.get(last, NO_NIGHT), last, tuple(findings))


def nights_backwards(storage: Storage) -> Iterator[Night]:
    """Yield the readable nights from the newest on; no `mac` is checked.

    Raises:
        OSError: the archive cannot be read.
    """
    for number in reversed(night_numbers(storage)):
        with suppress(ValueError):
            yield Night.from_json(storage.read(night_path(number)) or b"")


def write_night(storage: Storage, night: Night, key: bytes | None) -> Night:
    """Sign and write the record, durably; return it with its `mac`.

    Raises:
        OSError: the storage cannot be written.
    """
    signed = night.signed(key)
    storage.put(night_path(signed.n), signed.to_json())
    return signed


def _missing(span: Span) -> Finding:
    text = f"the record of night {span.first} is missing"
    if span.last > span.first:
        text = f"the records of nights {span.first} to {span.last} are missing"
    return error("missing-night", night_path(span.first).as_posix(), text)


def _read(storage: Storage, number: int, key: bytes | None) -> Night:
    night = Night.from_json(storage.read(night_path(number)) or b"")
    if fault := night.fault(key):
        raise ValueError(fault)
    if night.n != number:
        raise ValueError(f"is the record of night {night.n}")
    return night
