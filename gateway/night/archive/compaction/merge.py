"""One merged segment: verified inputs, concatenated in row groups that are sorted by themselves.

A row group has whole messages of one gateway, so that all rows of a message in these inputs are in
one group.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import groupby, pairwise
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from gateway.archive.findings import Finding, error
from gateway.archive.layout import SCHEMA_VERSION, journal_of, staged_path
from gateway.archive.location import ArchiveLocation
from gateway.archive.storage import Storage, open_storage
from gateway.errors import ArchiveError, first_line
from gateway.night.archive.seals.seal import Replaced, SegmentEntry
from gateway.night.archive.segments.id_columns import words
from gateway.night.archive.segments.reading import is_dense, open_parquet
from gateway.night.archive.segments.tables import SCHEMA, sort_rows
from gateway.night.archive.segments.write import write_segment

_GROUP_ROWS: Final = 250_000
_GROUP_BYTES: Final = 256 << 20  # in memory, of rows with long names or payloads
STAYS: Final = "it stays as it is"


@dataclass(frozen=True, slots=True)
class MergeInput:
    """A segment to merge, with the hash of its seal."""

    path: str
    gateway: str
    sha256: str


@dataclass(frozen=True, slots=True)
class MergeTask:
    """The inputs of one merged segment, and its path in the archive."""

    location: ArchiveLocation
    path: str
    inputs: tuple[MergeInput, ...]


@dataclass(frozen=True, slots=True)
class MergeResult:
    """A merged segment in its staging folder, and findings about inputs that are not in it.

    `entry` is None when no input could be merged.
    """

    entry: SegmentEntry | None
    replaces: tuple[Replaced, ...] = ()
    findings: tuple[Finding, ...] = ()


@dataclass(slots=True)
class _Inputs:
    """The inputs of one task, read in order; a faulty one becomes a finding.

    Mutable: owned by `merge`.
    """

    storage: Storage
    task: MergeTask
    merged: list[MergeInput] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    rows: int = 0

    def tables(self) -> Iterator[tuple[str, pa.Table]]:
        """Yield the gateway and the rows of each intact input."""
        for each in self.task.inputs:
            try:
                table, dense = _read(self.storage, each)
            except _InputError as fault:
                rule, text = fault.args
                self.findings.append(error(rule, each.path, f"{text}; {STAYS}"))
                continue
            if dense:
                continue
            if table.num_rows:
                self.rows += table.num_rows
                yield each.gateway, table
            self.merged.append(each)


class _InputError(Exception):
    """An input cannot be merged, by a rule; the text says why."""


def merge(task: MergeTask) -> MergeResult:
    """Write the merged segment of `task` with its sets and pairs, and compare it with the inputs.

    Raises:
        ArchiveError: the written rows differ from those of the inputs.
        OSError: the archive cannot be reached.
    """
    storage = open_storage(task.location)
    inputs = _Inputs(storage, task)
    path = Path(task.path)
    groups = row_groups(inputs.tables())
    entry = write_segment(storage, path, groups, journal_of(path), merged=True)
    if (written := 0 if entry is None else entry.rows) != inputs.rows:
        raise ArchiveError(f"{path}: {written} of {inputs.rows} rows were written")
    replaces = tuple(Replaced(each.path, each.sha256) for each in inputs.merged)
    if entry is not None:
        _compare(storage, replace(task, inputs=tuple(inputs.merged)))
    return MergeResult(entry, replaces, tuple(inputs.findings))


def _compare(storage: Storage, task: MergeTask) -> None:
    """Read the merged segment again, and compare it with the rows of the inputs, read again.

    Raises:
        ArchiveError: they differ.
    """
    path, inputs = Path(task.path), _Inputs(storage, task)
    with open_parquet(storage.open(staged_path(path))) as merged:
        groups = merged.metadata.num_row_groups
        for number, group in enumerate(row_groups(inputs.tables())):
            groups -= 1
            if groups < 0 or not merged.row_group(number).equals(group):
                raise ArchiveError(f"{path}: row group {number} differs from the merged segments")
        if groups or inputs.findings:
            raise ArchiveError(f"{path}: the merged segments changed while they were read")


def row_groups(tables: Iterator[tuple[str, pa.Table]]) -> Iterator[pa.Table]:
    """Yield the rows of successive tables in sorted groups of whole messages of one gateway."""
    for _, own in groupby(tables, key=lambda each: each[0]):
        rest: pa.Table | None = None
        for _, table in own:
            rest = table if rest is None else pa.concat_tables([rest, table])
            if len(rest) >= _rows_of_group(rest):
                *full, rest = _parts(rest)
                yield from map(sort_rows, full)
        if rest is not None and len(rest):
            yield sort_rows(rest)


def _parts(table: pa.Table) -> list[pa.Table]:
    """Divide a table by ids into parts of at most a group's rows; the last is smaller."""
    rows = _rows_of_group(table)
    first, last = words(table["id"])
    order = np.lexsort((last, first))
    first, last = first[order], last[order]
    changes = (np.diff(first) != 0) | (np.diff(last) != 0)
    begins = np.concatenate([[0], np.flatnonzero(changes) + 1])  # of messages
    bounds = [0]
    while len(order) - bounds[-1] >= rows:
        at = np.searchsorted(begins, bounds[-1] + rows, "right") - 1
        if begins[at] == bounds[-1]:
            break  # one message has all these rows
        bounds.append(int(begins[at]))
    bounds.append(len(order))
    return [table.take(pa.array(order[start:end])) for start, end in pairwise(bounds)]


def _rows_of_group(table: pa.Table) -> int:
    size = max(1, int(table.nbytes))
    return min(_GROUP_ROWS, max(1, len(table) * _GROUP_BYTES // size))


def _read(storage: Storage, each: MergeInput) -> tuple[pa.Table, bool]:
    """Return the rows of an input, and whether they are too dense to be merged.

    Raises:
        _InputError: it is absent, differs from its seal, or is not a segment of this schema.
    """
    data = storage.read(Path(each.path))
    if data is None:
        raise _InputError("missing-segment", "the seal names it, and the file is absent")
    if hashlib.sha256(data).hexdigest() != each.sha256:
        raise _InputError("changed-segment", "the file differs from its seal")
    try:
        with open_parquet(pa.BufferReader(data)) as file:
            if not file.schema.equals(SCHEMA):
                text = f"its columns are not those of version {SCHEMA_VERSION}, which is merged"
                raise _InputError("foreign-file", text)
            table = file.read()
    except pa.ArrowException as fault:
        raise _InputError("unreadable-file", f"cannot be read: {first_line(fault)}") from fault
    return table, is_dense(table, len(data))
