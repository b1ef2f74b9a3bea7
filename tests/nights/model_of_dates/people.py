"""The work of people and their schedulers beside the nights: compaction, removal, and backups."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gateway.archive.layout import SEALS, days_in
from gateway.night.archive import retention
from gateway.night.archive.compaction.compact_day import compact_day
from gateway.night.archive.compaction.merge import merge
from gateway.night.archive.retention import remove_days
from gateway.night.reconcile.nights.marker import mark
from tests.nights.model_of_dates.machines import Disk

if TYPE_CHECKING:
    from gateway.archive.findings import Finding
    from tests.nights.model_of_dates.worlds import World


def compact(world: World) -> None:
    """Merge the segments of a date that has ended, then write its marker."""
    days = [day for day in days_in(world.storage.names(Path())) if day < world.today]
    if not days:
        return
    day = world.rng.choice(days)
    merged = compact_day(
        world.location, day, lambda tasks: [merge(each) for each in tasks], lambda _: None,
        key=world.key,
    )  # fmt: skip
    mark(world.storage, day)
    world.say(f"{merged.segments} segments of {day} are merged")


@dataclass(frozen=True, slots=True)
class Removed:
    """A date that was removed on `on`, and the journals with its messages that were there."""

    day: str
    on: date
    stems: frozenset[str]


def forget(world: World) -> None:
    """Remove the dates that are older than somebody wants to keep."""
    oldest = world.today - timedelta(days=world.traits.keep_days)
    stems: dict[str, set[str]] = {}
    hidden = world.hidden
    for each in world.journals:
        if each.archived and each.stem not in hidden:
            for day in each.dates:
                stems.setdefault(day, set()).add(each.stem)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(retention, "today", lambda: world.today)
        removed = [str(day) for day in remove_days(world.storage, oldest, world.key).days]
    for day in removed:
        if world.has_nights:  # else a removal goes by age
            world.removals.append(Removed(day, world.today, frozenset(stems.get(day, ()))))
        world.say(f"{day} is removed")
    stored = [*world.bucket.glob("date=*"), *(world.bucket / SEALS).glob("date=*")]
    first = min((path.name.removeprefix("date=") for path in stored), default=str(oldest))
    world.removed_up_to = max(world.removed_up_to, min(str(oldest), first))
    for tampering in world.tampered:
        folders = {path.parent if path.parent.name.startswith("date=") else path.parent.parent
                   for path in tampering.paths}  # fmt: skip
        if folders and all(each.name.startswith("date=") for each in folders):
            tampering.undone |= not any(each.exists() for each in folders)


@dataclass(frozen=True)
class Backup:
    """A copy of a bucket, and what people and machines knew of it then."""

    folder: Path
    named: dict[Disk, dict[str, int | None]]
    retired: dict[str, int | None]
    acknowledged: frozenset[Finding]


def back_up(world: World) -> None:
    """Keep a copy of the bucket, unless somebody changed something in it."""
    if not world.url or any(not each.undone for each in world.tampered):
        return
    folder = world.folder / "backup"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(world.bucket, folder)
    disks = [disk for each in world.writers for disk in (*each.others, each.disk)]
    world.backup = Backup(
        folder,
        {disk: dict(disk.named) for disk in disks},
        {each.name: each.retired for each in world.writers},
        frozenset(world.acknowledged),
    )


def put_back(world: World, backup: Backup) -> None:
    """Put the copy in the place of the bucket: what came since is in no buffer any more."""
    shutil.rmtree(world.bucket)
    shutil.copytree(backup.folder, world.bucket)
    for each in world.tampered:
        each.undone = True
    sealed = {path.stem for path in (world.bucket / SEALS).glob("date=*/*.json")}
    for journal in world.journals:
        if journal.archived and journal.stem not in sealed:
            journal.archived = False
            world.removed.add(journal.stem)
    for writer in world.writers:
        writer.retired = backup.retired[writer.name]
        for disk in (*writer.others, writer.disk):
            disk.named = dict(backup.named.get(disk, {}))
    world.acknowledged = set(backup.acknowledged)
    world.removals.clear()
