"""Changes of the files of an archive by somebody, and how each is taken back."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gateway.archive.heads import from_json, head_path
from gateway.archive.layout import SEALS, SECOND, is_merged, journal_of, parse_journal_name
from tests.nights.model_of_dates.machines import WrittenJournal, date_text
from tests.nights.model_of_dates.people import put_back

if TYPE_CHECKING:
    from tests.nights.model_of_dates.worlds import World, Writer

END: Final = "9999-12-31"
FORGED_REMOVAL: Final = "the statement of a removal is changed"
NIGHTS_REMOVED: Final = "records of nights are removed"
PUT_BACK: Final = "an older copy of the archive is put back"
REACH: Final = 120 * SECOND  # a journal concerns the dates of two minutes before and after it


@dataclass(eq=False)
class Tampering:
    """A change of the archive by somebody; `undo` takes it back, where it still can.

    It may be named on the dates `first` to `last`, and must be on those of `rows`.
    """

    kind: str
    first: str
    last: str
    rows: frozenset[str]
    undo: Callable[[], bool]
    undone: bool = False
    writer: str = ""  # whose head is another one
    stems: frozenset[str] = frozenset()  # of the journals whose seals are gone
    day: str = END  # until a removal takes this date, their absence is to be told
    paths: tuple[Path, ...] = ()


def segment_removed(world: World) -> Tampering | None:
    path = _any_segment(world)
    return None if path is None else _of_segment(path, "a segment is removed", None)


def segment_changed(world: World) -> Tampering | None:
    path = _any_segment(world)
    if path is None:
        return None
    content = bytearray(path.read_bytes())
    content[world.rng.randrange(len(content))] ^= 1
    return _of_segment(path, "a segment is changed", bytes(content))


def segment_copied(world: World) -> Tampering | None:
    path = _any_segment(world)
    if path is None or is_merged(path):
        return None
    copy = path.with_name(f"{journal_of(path)}-77.parquet")
    if copy.exists():
        return None
    copy.write_bytes(path.read_bytes())
    day = _dates_of(path)

    def undo() -> bool:
        """Remove it, unless somebody moved its date away: then it comes back with that."""
        if not copy.parent.exists() and day >= world.removed_up_to:
            return False
        copy.unlink(missing_ok=True)
        return True

    return _tampering("a segment is copied", day, day, [day], undo, [copy])


def seal_removed(world: World) -> Tampering | None:
    return _of_seal(world, "a seal is removed", lambda _: None)


def seal_changed(world: World) -> Tampering | None:
    """Its end is changed, and its digest not computed again."""

    def changed(content: bytes) -> bytes:
        seal = json.loads(content)
        seal["size"] += 1
        return json.dumps(seal).encode()

    return _of_seal(world, "a seal is changed", changed)


def head_removed(world: World) -> Tampering | None:
    writer = _resting_writer(world)
    if writer is None:
        return None
    path = world.bucket / head_path(writer.name)
    if not path.exists():
        return None
    rows = {date_text(row) for each in writer.books if each.archived for row in each.rows}
    return _of_head(writer, "a head is removed", path, None, rows)


def older_head(world: World) -> Tampering | None:
    writer = _resting_writer(world)
    if writer is None or not world.old_heads.get(writer.name):
        return None
    path = world.bucket / head_path(writer.name)
    content = world.rng.choice(world.old_heads[writer.name])
    old = from_json(content)
    last = parse_journal_name(old.last or "")
    if not path.exists() or last is None or path.read_bytes() == content:
        return None
    names = {each.stem: parse_journal_name(each.stem) for each in writer.books if each.archived}
    newer = [
        each
        for each in writer.books
        if (name := names.get(each.stem)) and (name.start, name.number) > (last.start, last.number)
    ]
    rows = {date_text(row) for each in newer for row in each.rows}
    return _of_head(writer, "an older head is put back", path, content, rows)


def first_date_removed(world: World) -> Tampering | None:
    """All files of the oldest date are gone, and no removal took them."""
    days = sorted(path.name for path in world.bucket.glob("date=*"))
    day = days[0].removeprefix("date=") if days else END
    if len(days) < 2 or day < world.removed_up_to:
        return None
    folders = [world.bucket / each / days[0] for each in ("", SEALS)]
    files = {path: path.read_bytes() for each in folders for path in each.rglob("*.*")
             if path.is_file()}  # fmt: skip
    for each in folders:
        shutil.rmtree(each, ignore_errors=True)

    def undo() -> bool:
        """Put all back, unless a removal reached the date since."""
        if day < world.removed_up_to:
            return False
        return all(_restored(path, content) for path, content in files.items())

    made = _tampering("the first date is removed", "", END, (), undo)
    made.day = day
    made.stems = frozenset(path.stem for path in files if path.parent == folders[1])
    return made


def statement_removed(world: World) -> Tampering | None:
    return _of_statement(world, "the statement of a removal is removed", None)


def statement_changed(world: World) -> Tampering | None:
    return _of_statement(world, FORGED_REMOVAL, str(world.today))


def _of_statement(world: World, kind: str, before: str | None) -> Tampering | None:
    """The statement of the last removal is gone, or names the date `before`."""
    found = sorted((world.bucket / "_removed").glob("*.json"))
    if not found or any(found[-1] in each.paths and not each.undone for each in world.tampered):
        return None
    path, content = found[-1], found[-1].read_bytes()
    forged = json.dumps({**json.loads(content), "before": before}).encode() if before else None
    _replace(path, forged)

    def undo() -> bool:
        """Put it back, unless another removal wrote one of this name."""
        if (path.read_bytes() if path.exists() else None) != forged:
            return False
        return _restored(path, content)

    return _tampering(kind, "", END, (), undo, [path])


def nights_removed(world: World) -> Tampering | None:
    folder = world.bucket / "_nights"
    found = sorted(folder.glob("[1-9]*.json"), key=lambda each: int(each.stem))
    if len(found) < 3:
        return None
    chosen = world.rng.choice([found, found[-1:], found[-2:], found[1:2]])
    contents = {path: path.read_bytes() for path in chosen}
    for path in chosen:
        path.unlink()

    def undo() -> bool:
        for path, content in contents.items():
            if not path.exists():
                path.write_bytes(content)
        return True

    return _tampering(NIGHTS_REMOVED, END, "", (), undo)


def results_removed(world: World) -> Tampering | None:
    """The results of some dates, or of all: the next night makes them again."""
    found = sorted((world.bucket / "_reconciled").glob("date=*"))
    if not found:
        return None
    for path in world.rng.choice([found, [world.rng.choice(found)]]):
        shutil.rmtree(path)
    return _tampering("results are removed", END, "", (), lambda: True)


def archive_put_back(world: World) -> Tampering | None:
    """All that came since is lost, and only the digest of a later night could tell."""
    if world.backup is None:
        return None
    put_back(world, world.backup)
    return _tampering(PUT_BACK, "", END, (), lambda: False)


KINDS: Final = [
    segment_removed, segment_changed, segment_copied, seal_removed, seal_changed, head_removed,
    older_head, first_date_removed, statement_removed, statement_changed, nights_removed,
    results_removed, archive_put_back,
]  # fmt: skip


def _any_segment(world: World) -> Path | None:
    found = sorted(world.bucket.glob("date=*/hour=*/*.parquet"))
    touched = {path for each in world.tampered for path in each.paths if not each.undone}
    free = [path for path in found if path not in touched and not path.stem.endswith("-77")]
    return world.rng.choice(free) if free else None


def _dates_of(segment: Path) -> str:
    return segment.parent.parent.name.removeprefix("date=")


def _of_segment(path: Path, kind: str, content: bytes | None) -> Tampering:
    day, before = _dates_of(path), path.read_bytes()
    _replace(path, content)
    return _tampering(kind, day, day, [day], lambda: _restored(path, before), [path])


def _of_seal(world: World, kind: str, change: Callable[[bytes], bytes | None]) -> Tampering | None:
    touched = {path for each in world.tampered for path in each.paths if not each.undone}
    paths = sorted(world.bucket.glob("_seals/date=*/*.json"))
    found = [each for each in paths if each not in touched and not is_merged(each)]
    if not found:
        return None
    books = {each.stem: (writer, each) for writer in world.writers for each in writer.books}
    firsts = [each for each in found if _begins(*books[each.stem])]
    # Often one that no night has judged, or that is the first of its process.
    path = world.rng.choice(world.rng.choice([found, found[-2:], firsts or found]))
    writer, journal = books[path.stem]
    content = path.read_bytes()
    _replace(path, change(content))
    later = [each.opened for each in writer.books[journal.index + 1 :] if each.archived]
    first = date_text(min(journal.opened, _end_before(writer, journal)) - REACH)
    last = date_text(max(later[0], journal.last) + REACH) if later else END
    rows = {date_text(row) for row in journal.rows}
    made = _tampering(kind, first, last, rows, lambda: _restored(path, content), [path])
    made.stems = frozenset([journal.stem] if change(content) is None else [])
    return made


def _begins(writer: Writer, journal: WrittenJournal) -> bool:
    return not journal.index or writer.books[journal.index - 1].run != journal.run


def _end_before(writer: Writer, journal: WrittenJournal) -> int:
    if not journal.index:
        return journal.opened
    return writer.books[journal.index - 1].last


def _of_head(
    writer: Writer, kind: str, path: Path, content: bytes | None, rows: set[str]
) -> Tampering:
    before = path.read_bytes()
    _replace(path, content)
    made = _tampering(kind, "", END, rows, lambda: _restored(path, before), [path])
    made.writer = writer.name
    return made


def _resting_writer(world: World) -> Writer | None:
    """A writer that has ended, whose head nobody writes meanwhile."""
    found = [
        each
        for each in world.writers
        if each.process is None and each.books and each.books[-1].archived
        if not any(own.writer == each.name and not own.undone for own in world.tampered)
    ]
    return world.rng.choice(found) if found else None


def _replace(path: Path, content: bytes | None) -> None:
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)


def _restored(path: Path, content: bytes) -> bool:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return True


def _tampering(
    kind: str,
    first: str,
    last: str,
    rows: Sequence[str] | set[str],
    undo: Callable[[], bool],
    paths: Sequence[Path] = (),
) -> Tampering:
    return Tampering(kind, first, last, frozenset(rows), undo, paths=tuple(paths))
