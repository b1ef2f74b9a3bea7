"""Order of the deliveries in a table of rows.

A delivery is out of order when it was recorded before that of a smaller id of its stream: the same
gateway, route, target and source name. Replayed deliveries have no order.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gateway.archive.intervals import Flags, Numbers
from gateway.archive.segments.copies import DELIVERED, Copies, encoded


def ordered_deliveries(copies: Copies) -> Numbers:
    """Return the positions of the elements that are deliveries with an order."""
    replayed = pc.fill_null(copies.rows["replayed"], False).to_numpy()[copies.source]
    return np.flatnonzero((copies.leg == DELIVERED) & ~replayed)


def in_disordered_stream(copies: Copies) -> Flags:
    """Return for each element whether it is a delivery of a stream that is out of order."""
    found = np.zeros(len(copies.source), np.bool_)
    at = ordered_deliveries(copies)
    group, time = copies.group[at], copies.time[at]
    descents = (group[1:] == group[:-1]) & (time[1:] < time[:-1])
    if not descents.any():  # usual, and needs no names
        return found
    at = at[np.isin(group, group[1:][descents])]
    names = pc.coalesce(copies.rows["source_name"], copies.rows["name"])
    name, distinct = encoded(names.take(pa.array(copies.source[at])))
    stream, _ = encoded(pa.array(copies.group[at] * len(distinct) + name))
    order = np.lexsort((copies.time[at], copies.counter[at], copies.run[at], stream))
    at, stream = at[order], stream[order]
    ranks = np.unique(copies.time[at], return_inverse=True)[1]
    key = stream * len(at) + ranks  # a later stream has larger keys
    late = stream[key < np.maximum.accumulate(key)]
    found[at] = np.isin(stream, late)
    return found
