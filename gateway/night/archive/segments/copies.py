"""Archive rows as copies: a row for each target that it names, in numbers, sorted by copy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gateway.archive.schema import NOT_COPIES, Leg
from gateway.model.cut_class import THINNED
from gateway.night.archive.intervals import Flags, Numbers
from gateway.night.archive.seals.seal import HandedOver
from gateway.night.archive.segments.id_columns import hex_ids, words

# The number of a leg in `Copies.leg` is its place here; any other leg has the next number.
LEGS: Final = (Leg.RECEIVED, Leg.DELIVERED, Leg.DEAD, Leg.SPOOLED, Leg.OBSERVED)
RECEIVED: Final = LEGS.index(Leg.RECEIVED)
DELIVERED: Final = LEGS.index(Leg.DELIVERED)

_OBSERVED: Final = LEGS.index(Leg.OBSERVED)
_LEG_NAMES: Final = pa.array([leg.value for leg in LEGS])


@dataclass(frozen=True, slots=True)
class Copies:
    """The elements of a table of rows: a row once for each target, sorted by copy.

    A copy is a group, a run and a counter. A group is a gateway, a route and a target, which
    `keys` has by the number of the group. `source` is the position of the row in `rows`. `receipt`
    is the time of the row where `received` is null. The id of an observed row is that of its
    `origin_id`, where it has one.

    Units: microseconds.
    """

    rows: pa.Table
    keys: pa.Table
    source: Numbers
    group: Numbers
    run: Numbers
    counter: Numbers
    leg: Numbers
    receipt: Numbers
    time: Numbers

    def bounds(self) -> Numbers:
        """Return the position of the first element of each copy, and the number of elements."""
        same = (
            (self.group[1:] == self.group[:-1])
            & (self.run[1:] == self.run[:-1])
            & (self.counter[1:] == self.counter[:-1])
        )
        inner = np.flatnonzero(~same) + 1
        return np.concatenate([[0], inner, [len(self.source)]] if len(self.source) else [[0]])


def are_copies(rows: pa.Table) -> pa.ChunkedArray:
    """Return which rows say something about copies; gaps and cuts do not.

    A cut by `thin` does: its copy has a received row.
    """
    gap, cut = (pc.not_equal(rows["leg"], each) for each in NOT_COPIES)
    return pc.or_(pc.and_(gap, cut), are_thinned(rows))


def are_thinned(rows: pa.Table) -> pa.ChunkedArray:
    """Return which rows are cuts by `thin`."""
    by_rule = pc.fill_null(pc.equal(rows["rule"], THINNED), False)
    return pc.and_(pc.equal(rows["leg"], Leg.CUT.value), by_rule)


def copies_of(rows: pa.Table) -> Copies:
    """Return the copies of `rows`, without gaps and cuts."""
    rows = rows.filter(are_copies(rows))
    source, targets = per_target(rows)
    group, keys = _groups(rows, source, targets)
    leg = pc.fill_null(pc.index_in(rows["leg"], _LEG_NAMES), len(LEGS)).to_numpy()
    run, counter, _ = copy_ids(rows, leg == _OBSERVED)
    time = pc.fill_null(rows["time"].cast(pa.int64()), 0)
    receipt = pc.coalesce(rows["received"].cast(pa.int64()), time)
    order = np.lexsort((counter[source], run[source], group))  # fast: the ids of a run ascend
    source = source[order]
    numbers = [each[source] for each in (run, counter, leg, receipt.to_numpy(), time.to_numpy())]
    return Copies(rows, keys, source, group[order], *numbers)


def per_target(rows: pa.Table) -> tuple[Numbers, pa.Array]:
    """Return row positions, one for every target that a row names, and those targets."""
    own = pc.fill_null(rows["target"], "")
    lengths = pc.fill_null(pc.list_value_length(rows["targets"]), 0)
    many = pc.and_(pc.equal(own, ""), pc.greater(lengths, 0))
    repeats = np.where(many.to_numpy(), lengths.to_numpy(), 1)
    source = np.repeat(np.arange(len(rows), dtype=np.int64), repeats)
    labels, where = (each.take(pa.array(source)).combine_chunks() for each in (own, many))
    named = pc.list_flatten(rows["targets"].filter(many)).combine_chunks()
    return source, pc.replace_with_mask(labels, where, pc.fill_null(named, ""))


def encoded(column: pa.ChunkedArray | pa.Array) -> tuple[npt.NDArray[np.int64], pa.Array]:
    """Return the place of each value among the distinct values, and those."""
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    codes = whole.dictionary_encode(null_encoding="encode")
    return codes.indices.to_numpy().astype(np.int64), codes.dictionary


def _groups(rows: pa.Table, source: Numbers, targets: pa.Array) -> tuple[Numbers, pa.Table]:
    """Return the group of each element, and the keys of the groups."""
    gateway, gateways = encoded(rows["gateway"])
    route, routes = encoded(rows["route"])
    target, labels = encoded(targets)
    every = (gateway * len(routes) + route)[source] * len(labels) + target
    group, found = encoded(pa.array(every))
    both, label = np.divmod(found.to_numpy(), max(len(labels), 1))
    at = np.divmod(both, max(len(routes), 1))
    places = {"gateway": (gateways, at[0]), "route": (routes, at[1]), "target": (labels, label)}
    return group, pa.table({name: each.take(pa.array(n)) for name, (each, n) in places.items()})


def copy_ids(rows: pa.Table, observed: Flags) -> tuple[Numbers, Numbers, Flags]:
    """Return run and counter of each row, and which observed rows lack the id of a message."""
    run, counter = words(rows["id"])
    lacking = observed.copy()
    if observed.any():
        at = np.flatnonzero(observed)
        has_id, *own = hex_ids(rows["origin_id"].take(pa.array(at)))
        run[at[has_id]], counter[at[has_id]] = own
        lacking[at[has_id]] = False
    return run, counter, lacking


def handed_over(table: pa.Table, before: HandedOver | None = None) -> HandedOver | None:
    """Return when targets took copies of `table`, and of the segments `before`; None for never."""
    own = pc.and_(
        pc.equal(table["leg"], Leg.DELIVERED.value),
        pc.invert(pc.fill_null(table["replayed"], False)),
    )
    found = pc.min_max(table["time"].cast(pa.int64()).filter(own)).as_py()
    if found["min"] is None:
        return before
    sure = pc.max(table["received"].cast(pa.int64()).filter(own)).as_py()
    now = HandedOver(found["min"], found["max"], found["min"] if sure is None else sure)
    known = before or now
    first, last = min(now.first, known.first), max(now.last, known.last)
    return HandedOver(first, last, max(now.sure, known.sure))
