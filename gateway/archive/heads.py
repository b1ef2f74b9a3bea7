"""The head of each writer: its last closed journal, its open one, and the states of its sources.

    ARCHIVE/_heads/<writer>.json
    ARCHIVE/_heads/<writer>.damaged     one that a start of the writer found changed
    ARCHIVE/_heads/<writer>-<start>.earlier   the last one of a process on another machine

A writer replaces its head when the file of its next journal exists, before that accepts a row. A
journal that a head names is therefore somewhere: it waits, or it has a seal. A head is canonical
JSON with the `mac` of a seal. Times are microseconds since 1970-01-01 UTC.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gateway.archive.durable import make_folders, read_regular, replacing
from gateway.archive.gaps import SourceGap
from gateway.archive.layout import (
    DAMAGED,
    HEADS,
    OTHERS,
    UPLOADED,
    JournalName,
    is_replay,
    listed,
    parse_journal_name,
)
from gateway.archive.signed_json import NO_TERM, Previous, SignedStatement, Term
from gateway.archive.threads import in_threads

if TYPE_CHECKING:  # the gateway itself never loads Arrow
    from gateway.archive.storage import Storage

_SUFFIX: Final = ".json"
_EARLIER: Final = ".earlier"
_OPEN: Final = 1 << 62  # microseconds: after every date
_SET_ASIDE: Final = (
    "is not what the writer wrote before its last start; see what changed it, then remove the file"
)


@dataclass(frozen=True, slots=True)
class Outage:
    """A time without a connection, or in dispute with another client.

    Units: microseconds since 1970-01-01 UTC.
    """

    begin: int
    rule: str  # a value of `gateway.archive.gaps.GapRule`
    reason: str


@dataclass(frozen=True, slots=True)
class SourceConnection:
    """The state of one source: the last sign of its broker, and the outage that has not ended.

    `known` is true once the source was connected, `keeps` while its broker keeps messages for it.
    `dropped` is the broker's own count of dropped messages, where the source reads one. `tap` says
    that the source is a tap.
    Units: microseconds.
    """

    heard: int
    known: bool
    outage: Outage | None = None
    keeps: bool = True
    dropped: int | None = None
    tap: bool = False


@dataclass(frozen=True, slots=True)
class WriterHead(SignedStatement):
    """The statement of a writer about itself at the time `at`.

    `instance` is empty, and `lease` has the number 0, for a gateway alone. `closed` is the last
    closed journal; `open` the stem of the journal that it opened last, None after a clean stop.
    Both are the same journal when its process was killed and the converter closed it.
    """

    writer: str
    gateway: str
    at: int
    closed: Previous | None = None
    open: str | None = None
    sources: Mapping[str, SourceConnection] = field(default_factory=dict)
    instance: str = ""
    lease: Term = NO_TERM

    @property
    def last(self) -> str | None:
        """The stem of the last journal; None without one."""
        return self.open or (self.closed.journal if self.closed else None)

    @property
    def open_name(self) -> JournalName | None:
        """The journal that it opened last; None after a clean stop."""
        return parse_journal_name(self.open or "")

    @property
    def last_name(self) -> JournalName:
        """The last journal, to compare heads by; the number -1 without one."""
        return parse_journal_name(self.last or "") or JournalName(self.writer, 0, -1)


@dataclass(frozen=True, slots=True)
class StoredHead:
    """A file in the folder of the heads; the `fault`, a predicate, says why nothing proves it.

    A head that is readable, but not what its writer signed, is there all the same.
    """

    path: Path
    head: WriterHead | None
    fault: str = ""

    @property
    def writer(self) -> str:
        """The writer of the head, or that in the name of the file."""
        return self.head.writer if self.head else self.path.stem

    @property
    def current(self) -> bool:
        """Whether it is the head of the writer, and no copy that was set aside."""
        return self.path.suffix == _SUFFIX


def head_path(writer: str) -> Path:
    """Return the path of the head of `writer` in its archive."""
    return Path(HEADS) / f"{writer}{_SUFFIX}"


def write_head(root: Path, head: WriterHead, key: bytes | None = None) -> None:
    """Sign `head` and replace the head of its writer, durably and in one step.

    Raises:
        OSError: the folder cannot be written.
    """
    path = root / head_path(head.writer)
    make_folders(path.parent)
    with replacing(path) as file:
        file.write(head.signed(key).to_json())


def read_head(root: Path, writer: str, key: bytes | None = None) -> StoredHead:
    """Return the head of `writer` in the local folder `root`; without a fault when it is absent.

    Raises:
        OSError: the file cannot be read.
    """
    path = head_path(writer)
    with suppress(FileNotFoundError):
        return parsed(path, read_regular(root / path), key)
    return StoredHead(path, None)


def read_heads(storage: Storage, key: bytes | None = None) -> list[StoredHead]:
    """Return the heads of all writers, sorted by name; with a `key`, unsigned ones have a fault.

    Raises:
        OSError: the archive cannot be read.
    """
    names = [name for name in storage.names(Path(HEADS)) if not name.startswith(".")]
    paths = [Path(HEADS) / name for name in names]
    heads = [path for path in paths if path.suffix in {_SUFFIX, _EARLIER}]
    found = in_threads(lambda path: parsed(path, storage.read(path) or b"", key), heads)
    return found + [StoredHead(each, None, _SET_ASIDE) for each in paths if each.suffix == DAMAGED]


def upload_heads(storage: Storage, buffer: Path, *, changed: bool = False) -> None:
    """Upload the heads in the local folder `buffer`: before the seals of what they name.

    With `changed`, those that are as they were uploaded last are left out. A head of another
    machine in the archive is set aside first: what it names may be lost, and nothing else says so.

    Raises:
        OSError: the archive cannot be reached.
    """
    for path in listed(buffer / HEADS):
        if not path.name.startswith("."):
            content, uploaded = read_regular(path), path.parent / UPLOADED / path.name
            if changed and content in _contents(uploaded):
                continue
            stored = storage.read(place := Path(HEADS) / path.name)
            known = [content, *_contents(uploaded, path.parent / OTHERS / path.name)]
            if stored is not None and stored not in known:
                storage.put(_aside(place, stored), stored)
            storage.put(place, content)
            make_folders(uploaded.parent)
            with replacing(uploaded) as file:
                file.write(content)


def _contents(*paths: Path) -> Iterator[bytes]:
    for path in paths:
        with suppress(FileNotFoundError):
            yield read_regular(path)


def _aside(path: Path, content: bytes) -> Path:
    """Return where the head at `path` is set aside: one place for each process."""
    with suppress(ValueError):
        return _earlier_path(from_json(content))
    return path.with_suffix(DAMAGED)


def _earlier_path(head: WriterHead) -> Path:
    return Path(HEADS) / f"{head.writer}-{head.last_name.start}{_EARLIER}"


def remove_earlier(storage: Storage, journals: Iterable[JournalName]) -> None:
    """Remove each head that was set aside and names no journal after those of its writer.

    Their seals are removed, so nothing shows any more that a later process followed.

    Raises:
        OSError: the archive cannot be reached.
    """
    newest: dict[str, JournalName] = {}
    for each in journals:
        newest[each.writer] = max(each, newest.get(each.writer, each))
    for stored in read_heads(storage) if newest else ():
        known = newest.get(stored.writer)
        aside = stored.path.suffix == _EARLIER and stored.head
        if aside and known and aside.last_name <= known:
            storage.delete(stored.path)


def newest_head(heads: Iterable[StoredHead], writer: str) -> StoredHead | None:
    """Return the signed head of a writer that states the last journal, current or set aside.

    A machine that comes back sets aside the head of the machine after it.
    """
    own = (each for each in heads if each.writer == writer and each.head and not each.fault)
    return max(own, key=lambda each: each.head.last_name if each.head else (), default=None)


def newest_heads(heads: Iterable[WriterHead]) -> list[WriterHead]:
    """Return the head of each gateway whose instance wrote last: by lease, then by time."""
    newest: dict[str, WriterHead] = {}
    for head in sorted(heads, key=lambda each: (each.lease.number, each.at)):
        if not is_replay(head.writer):
            newest[head.gateway] = head
    return list(newest.values())


def open_gaps(heads: Sequence[StoredHead]) -> list[SourceGap]:
    """Return the gaps of all sources but taps that have not ended, without route and pattern.

    The sources of a gateway are those of the instance that wrote last.
    """
    current = [each.head for each in heads if each.current and each.head is not None]
    return [
        SourceGap(
            head.gateway,
            "",
            name,
            "",
            each.outage.rule,
            each.outage.reason,
            each.outage.begin,
            _OPEN,
            None,
        )
        for head in newest_heads(current)
        for name, each in head.sources.items()
        if each.outage is not None and not each.tap
    ]


def parsed(path: Path, content: bytes, key: bytes | None = None) -> StoredHead:
    """Return the head that `content`, the file at `path`, states."""
    try:
        head = from_json(content)
    except ValueError as fault:
        return StoredHead(path, None, str(fault))
    if path.name not in {head_path(head.writer).name, _earlier_path(head).name}:
        return StoredHead(path, None, f"is that of {head.writer!r}")
    return StoredHead(path, head, head.fault(key))


def from_json(content: bytes) -> WriterHead:
    """Parse a head; its `mac` is not checked.

    Raises:
        ValueError: `content` is not a head, or none of this version; the text is a predicate.
    """
    head = WriterHead.from_json(content)
    if Path(head.writer).name != head.writer:  # else it could choose where it is set aside
        raise ValueError(f"names {head.writer!r:.80}, which is no writer")
    for stem in (head.open, None if head.closed is None else head.closed.journal):
        if stem is not None and parse_journal_name(stem) is None:
            raise ValueError(f"names {stem!r}, which is no journal")
    return head
