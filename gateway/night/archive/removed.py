"""The journals that removals took from the chain of each writer, by signed statements.

    ARCHIVE/_removed/<date>.json

A removal of the dates before <date> writes its statement before it removes anything. The statement
has the last removed journal of each writer, also of earlier removals, whose statements go then.
Verifications and nights read it: a journal that it does not cover was lost, and not removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Final

from gateway.archive.findings import Finding, error
from gateway.archive.layout import JournalName, day_of, day_start, parse_day, parse_journal_name
from gateway.archive.signed_json import Previous, SignedStatement
from gateway.archive.storage import Storage

_FOLDER: Final = Path("_removed")
_ATTEMPTS: Final = 5  # to read them all


@dataclass(frozen=True, slots=True)
class Removal(SignedStatement):
    """The statement that the dates before `before`, YYYY-MM-DD, were removed.

    `last` are the stems of the last journals, one of each writer, whose seals were among them.
    """

    before: str
    last: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Removed:
    """The proven statements of an archive together; `before` is empty without one.

    `last` is by writer the last journal whose seal was removed. The `findings` are the errors about
    statements that nothing proves.
    """

    before: str = ""
    last: Mapping[str, JournalName] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()

    @property
    def begin(self) -> int:
        """The begin of the first date that was not removed, in microseconds; 0 without one."""
        return day_start(date.fromisoformat(self.before)) if self.before else 0

    def has(self, journal: JournalName) -> bool:
        """Return whether the journal is the last removed one of its writer, or an earlier one."""
        last = self.last.get(journal.writer)
        return last is not None and journal <= last

    def has_closed(self, link: Previous) -> bool:
        """Return whether it is also one that was closed on a removed date."""
        name = parse_journal_name(link.journal)
        return name is not None and str(day_of(link.closed)) < self.before and self.has(name)


NOTHING_REMOVED: Final = Removed()


def removed(storage: Storage, key: bytes | None) -> Removed:
    """Return the statements about removals that `key` proves, as one.

    Raises:
        OSError: the archive cannot be read.
    """
    found = NOTHING_REMOVED
    for path, content in _contents(storage).items():
        try:
            statement = _parsed(path, content, key)
        except ValueError as fault:
            text = f"the statement about removed dates {fault}: it excuses no journal"
            one = error("forged-removal", path.as_posix(), text)
            found = Removed(found.before, found.last, (*found.findings, one))
        else:
            names = filter(None, map(parse_journal_name, statement.last))
            before = max(found.before, statement.before)
            found = Removed(before, _newest([*found.last.values(), *names]), found.findings)
    return found


def state_removal(
    storage: Storage, before: date, journals: Iterable[JournalName], key: bytes | None
) -> None:
    """State durably, signed with `key`, that the dates before `before` go with these `journals`.

    Raises:
        OSError: the archive cannot be read or written.
    """
    names = storage.names(_FOLDER)
    known = removed(storage, key)
    path = _path(max(str(before), known.before))
    last = _newest([*known.last.values(), *journals])
    statement = Removal(path.stem, tuple(str(last[writer]) for writer in sorted(last)))
    storage.put(path, statement.signed(key).to_json())
    for name in names:
        if name < path.name:  # another process may have stated more
            storage.delete(_FOLDER / name)


def _contents(storage: Storage) -> dict[Path, bytes]:
    """Return the content of each statement; a removal may replace them meanwhile."""
    found: dict[Path, bytes] = {}
    for _ in range(_ATTEMPTS):
        paths = [_FOLDER / name for name in storage.names(_FOLDER) if not name.startswith(".")]
        read = {path: storage.read(path) for path in paths}
        found = {path: content for path, content in read.items() if content is not None}
        if len(found) == len(paths):
            break
    return found


def _parsed(path: Path, content: bytes, key: bytes | None) -> Removal:
    statement = Removal.from_json(content)
    if fault := statement.fault(key):
        raise ValueError(fault)
    if _path(statement.before) != path or parse_day(f"date={statement.before}") is None:
        raise ValueError(f"is that of {statement.before!r:.20}")
    return statement


def _newest(journals: Iterable[JournalName]) -> dict[str, JournalName]:
    return {each.writer: each for each in sorted(journals)}


def _path(before: str) -> Path:
    return _FOLDER / f"{before}.json"
