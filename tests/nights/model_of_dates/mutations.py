"""Rules of the verification and of the nights that are broken on purpose: worlds find each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from gateway.archive import judged_journals
from gateway.archive.journal import local_head
from gateway.archive.layout import MAX_TIME, JournalName, day_of
from gateway.archive.storage import Storage
from gateway.night.archive import acknowledged, night_record, removed, retention
from gateway.night.archive.compaction.merge import MergeResult, MergeTask, merge
from gateway.night.archive.night_record import Night
from gateway.night.archive.removed import Removal
from gateway.night.archive.seals.seal import Seal
from gateway.night.archive.segments import convert
from gateway.night.archive.verification import chains, writers
from gateway.night.reconcile.nights import archive_state, chain, known, writer_findings
from gateway.night.reconcile.nights import run as night_run
from gateway.night.reconcile.nights.archive_state import ArchiveState, NewJournal
from gateway.night.reconcile.nights.chain import Chain, read_chain
from gateway.night.reconcile.nights.plan import with_verdict
from tests.nights.model_of_dates import people
from tests.nights.model_of_dates.campaign import judged_world

_NOTHING: Final = lambda *_: iter(())  # noqa: E731  # no finding


def _with_results(*arguments: Any, **times: Any) -> ArchiveState:  # noqa: ANN401  # those of `archive_state`
    found = archive_state.archive_state(*arguments, **times)
    return replace(found, results=found.kept)


def _settled(night: Night, day: str, status: int, _: int) -> Night:
    return with_verdict(night, day, status, 0)


def _endless(journals: Iterable[JournalName]) -> dict[str, JournalName]:
    return {each.writer: each._replace(start=MAX_TIME) for each in journals}


def _unchecked(_: Path, content: bytes, __: bytes | None) -> Removal:
    return Removal.from_json(content)


def _of_one_date(seal: Seal, *_: object) -> NewJournal:
    own = (str(day_of(seal.closed)),)
    return NewJournal(seal.writer, seal.start, seal.sequence, seal.mac, own)


def _without_digest(storage: Storage, key: bytes | None, _: object, *, stated: int) -> Chain:
    return read_chain(storage, key, stated=stated)


def _without_rows(task: MergeTask) -> MergeResult:
    """The merged segment has the entry of its last input, and all are replaced."""
    whole = merge(task)
    one = merge(replace(task, inputs=task.inputs[-1:]))
    return replace(one, replaces=whole.replaces)


MUTATIONS: Final = {
    "the end of a chain is not looked at": (chains._Chain, "_end", _NOTHING),  # noqa: SLF001
    "a second chain is not compared": (chains._Chain, "_break", _NOTHING),  # noqa: SLF001
    "a head is not told how its journal ended": (convert, "note_end", lambda *_, **__: None),
    "a journal before the first judged one is old": (
        judged_journals.Seen, "has", lambda self, number: number <= self.number,
    ),
    "a start says nothing about the date before": (
        archive_state, "_proven_from", lambda seal, *_: seal.opened,
    ),
    "an acknowledgement ends no error": (acknowledged, "_shown", lambda _, finding, __: finding),
    "a lost journal ends with no lease": (writers.Facts, "followed", lambda *_: writers.FOREVER),
    "a new machine does not take the head of the lost one": (
        local_head, "_copied_head", lambda *_: None,
    ),
    "a date without results is not judged again": (known, "archive_state", _with_results),
    "copies in flight are settled": (night_run, "with_verdict", _settled),
    "late rows are no evidence": (archive_state, "_new_journal", _of_one_date),
    "nobody compares the digest that was kept": (known, "read_chain", _without_digest),
    "a removed record is not missed": (chain, "gaps", lambda *_: ()),
    "a vanished seal is not missed": (writer_findings, "missing_journals", _NOTHING),
    "a silent writer is not named": (writer_findings, "writer_errors", _NOTHING),
    "a date that was removed too early is not named": (writer_findings, "removed_dates", _NOTHING),
    "late rows of a removed date are not told": (writer_findings, "late_for_removed", _NOTHING),
    "a removal waits for no copy": (retention, "oldest_needed", lambda *_: None),
    "a removal states nothing": (retention, "_state_forgotten", lambda *_: None),
    "a removal does not say where chains begin": (retention, "state_removal", lambda *_: None),
    "a removal states later journals than it took": (removed, "_newest", _endless),
    "a forged statement of a removal is not named": (removed, "_parsed", _unchecked),
    "a night that resumes repeats nothing": (
        night_record.Night, "interrupted", property(lambda _: False),
    ),
    "a compaction leaves out the last row group": (people, "merge", _without_rows),
}  # fmt: skip


def seeds_until_found(name: str, seeds: range) -> int | None:
    """Return how many worlds are judged until one contradicts the truth; None when none does."""
    with _broken(name):
        found = (number for number, seed in enumerate(seeds, 1) if _is_bad(seed))
        return next(found, None)


def _is_bad(seed: int) -> bool:
    return bool(judged_world(seed)[0].contradictions)


@contextmanager
def _broken(name: str) -> Iterator[None]:
    owner, attribute, replacement = MUTATIONS[name]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, attribute, replacement)
        yield
