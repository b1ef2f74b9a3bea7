"""Selection of the rows to classify: all rows, or the rows of copies that id sets do not prove."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from gateway.archive.layout import DAY, SECOND
from gateway.night.archive.intervals import count, from_ids
from gateway.night.reconcile.classify import copy_classes
from gateway.night.reconcile.classify.survey import Survey
from gateway.night.reconcile.grouping import RUN_KEYS, positions
from gateway.night.reconcile.input.executors import PARTITION_ROWS, divided, read_tasks
from gateway.night.reconcile.input.inputs import Inputs, Scope, day_range, hours_around, hours_near
from gateway.night.reconcile.input.row_reader import JOIN_ROWS, Parts, Selection, run_read

_PARTITION_BYTES: Final = 8 << 20  # of archive files for one partition of a shuffle
_MAX_WANTED: Final = 200_000  # exceptions whose ids select rows in the tasks of executors
_MAX_DETAILED: Final = 400_000  # rows to join with their texts; more are read again for exceptions


def joined(spark: SparkSession, scope: Scope, inputs: Inputs, found: Survey) -> Joined | None:
    """Return the copies of the date that are not proven; None when all are."""
    files = files_to_join(scope, inputs, found)
    if not files:
        return None
    tasks = divided(spark, list(files), list(files.values()))

    def read(selection: Selection) -> DataFrame:
        return read_tasks(spark, JOIN_ROWS, tasks, partial(run_read, scope.location, selection))

    selection = selection_of(scope, found)
    wanted = selection.wanted
    # A copy has mostly two rows.
    number = inputs.rows if wanted is None else 2 * sum(map(count, wanted.values()))
    own = sum(files.values()) // _PARTITION_BYTES if wanted is None else number // PARTITION_ROWS
    partitions = str(max(spark.sparkContext.defaultParallelism, own))
    spark.conf.set("spark.sql.shuffle.partitions", partitions)
    detailed = number <= _MAX_DETAILED
    leased = {each.gateway for each in inputs.verified.holders if each.lease}
    classes = classified(
        read(selection), scope, tapped=bool(found.taps), detailed=detailed, leased=leased
    )
    return Joined(read, selection, classes, detailed=detailed)


def selection_of(scope: Scope, found: Survey) -> Selection:
    """Return the rows to join: of the ids that are not proven, or of all."""
    wanted = None if scope.full else found.wanted()
    (begin, until), around = day_range(scope.day), hours_around(scope.day)
    late = hours_near(found.late)
    return Selection(begin - DAY, until, around, found.taps, wanted, scope.open_since, late)


def files_to_join(scope: Scope, inputs: Inputs, found: Survey) -> dict[tuple[Path, Parts], int]:
    """Return the segments with rows to join, each with its parts, and their bytes."""
    sizes = {each.path: each.size for each in inputs.all}
    files = dict.fromkeys(sizes) if scope.full else found.files()
    return {each: sizes[each[0]] for each in files.items() if each[0] in sizes}


@dataclass(frozen=True, slots=True)
class Joined:
    """The classes of the joined copies, and the function that reads their rows."""

    read: Callable[[Selection], DataFrame]
    selection: Selection
    classes: DataFrame
    detailed: bool = False  # `classes` has the details

    def exceptions(self, number: int) -> DataFrame:
        """Return the exceptions with their details; there are `number` of them.

        Without details their rows are read again: the texts of all copies would have to be sorted.
        """
        found = copy_classes.exceptions(self.classes)
        if self.detailed:
            return copy_classes.described(found)
        selection = self.selection
        if number <= _MAX_WANTED:
            copies = found.select(*copy_classes.COPY_KEYS).toArrow()
            counter = copies["counter"].to_numpy()
            wanted = {key: from_ids(counter[at]) for key, at in positions(copies, RUN_KEYS)}
            selection = replace(selection, wanted=wanted)
        details = copy_classes.details(self.read(selection))
        return copy_classes.described(found.join(details, list(copy_classes.COPY_KEYS), "left"))


def classified(
    rows: DataFrame,
    scope: Scope,
    *,
    tapped: bool,
    detailed: bool = False,
    leased: Collection[str] = (),
) -> DataFrame:
    """Return the class of every copy of the date in `rows`, with its details when `detailed`.

    The order of `leased` gateways, which have several instances, is compared within a turn.
    """
    begin, end = day_range(scope.day)
    own = F.unix_micros("received_time").between(begin, end - 1)
    assigned = copy_classes.assign_by_content(rows) if tapped else rows
    copies = copy_classes.copies(
        assigned, tapped=tapped, detailed=detailed, leased=leased
    ).persist()
    classes = copy_classes.classified(copies, scope.late * SECOND, scope.spooled_since)
    classes = copy_classes.without_thinned(classes)
    found = copy_classes.mark_disordered(classes, own)
    return (copy_classes.drop_known_sightings(found) if tapped else found).where(own)
