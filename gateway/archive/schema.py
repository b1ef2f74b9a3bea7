"""The columns of the archive's tables, shared by writer, readers and Spark jobs."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final


class Leg(Enum):
    """The event that a row records: values of the column `leg`."""

    RECEIVED = "received"  # the source delivered the message; one row for each matching route
    DELIVERED = "delivered"  # a target took responsibility; one row for each target
    SPOOLED = "spooled"  # the target is not connected, the copy is on disk; an outcome follows
    DEAD = "dead"  # dead-lettered by a rule; one row for each target, or one for the message
    OBSERVED = "observed"  # a tap at the target saw the message arrive
    GAP = "gap"  # a source may have missed messages; one row for each of its routes
    CUT = "cut"  # a route left the message out for a target, by the rule in `rule`


NOT_COPIES: Final = (Leg.GAP.value, Leg.CUT.value)  # not compared; a cut by `thin` is


class RowOutcome(Enum):
    """The result of the event: values of the column `outcome`."""

    RECEIVED = "received"  # on received rows only
    ACCEPTED = "accepted"  # the payload must be the received one: hashes are compared
    CONVERTED = "converted"  # the route converted the payload, so the hashes differ
    REJECTED = "rejected"  # the copy is a dead letter
    SPOOLED = "spooled"  # the copy is on the gateway's disk
    GAP = "gap"  # on gap rows only
    CUT = "cut"  # on cut rows only
    SIGNED = "signed"  # on cut rows only: gateways that share a key have signed its path


# Column -> type, in the order of the Parquet files. Type names are those common to Arrow and Spark:
# `timestamp` is microseconds UTC, `binary` raw bytes, `list` a list of strings, `map` a map from
# string to string.
#
# A message of a route with k targets must get k outcomes, each a delivered or a dead row. The
# mapping may change later, so the received row lists its targets in `targets`, and every outcome
# names its own in `target`. A target's label is the name of its endpoint, with a suffix where a
# route has two targets at one endpoint.
COLUMNS: Final[Mapping[str, str]] = {
    "gateway": "string",  # name of the gateway, from its configuration
    "route": "string",  # name of the route; empty when no route matched the message
    "leg": "string",  # received, delivered, spooled, dead, observed, gap or cut
    "endpoint": "string",  # the endpoint at which the message has `name`
    "system": "string",  # dialect of that endpoint
    "target": "string",  # the target; empty on received, and on dead for all `targets`
    "targets": "list",  # the expected ones, with cuts by `thin` only; also on dead for all of them
    "name": "string",  # the name (or tag list) at that endpoint
    "source_name": "string",  # on delivered, dead: the name at the source
    "target_name": "string",  # on some cuts: the name that the target would have got
    "fields": "string",  # on delivered, dead: fields of the message in `name`, as JSON, or null
    "id": "binary",  # 16 bytes: start of the gateway in microseconds, then a counter
    "origin_id": "string",  # the message id of the source system, where it has one
    "identity": "string",  # on received: by what a repeat is known; null where it is `origin_id`
    "trace": "binary",  # 16 bytes: the trace id of the message; null where it is `id`
    "attempt": "int32",  # 1 for the first attempt of this leg
    "source_time": "timestamp",  # time of sending, where known
    "time": "timestamp",  # of this event; on received: the arrival; on gap: its end so far
    "received": "timestamp",  # arrival of the message; the same on all its rows; null on gap
    "begin": "timestamp",  # on gap: its begin; the same on all its rows
    "mode": "int32",  # delivery mode: 0 at most, 1 at least, 2 exactly once
    "redelivered": "boolean",  # marked by the broker
    "replayed": "boolean",  # sent again by a replay command
    "size": "int64",  # payload bytes
    "lost": "int64",  # on gap: the number of lost messages, where the broker says so
    "hash": "binary",  # XXH3 of the payload, 16 bytes
    "outcome": "string",  # received, accepted, converted, rejected, spooled, gap, cut or signed
    "rule": "string",  # what made it a dead letter, a gap or a cut; on delivered: a repeat
    "reason": "string",  # the explanation of `rule`
    "encoding": "string",  # on delivered, spooled: what encodes the payload after `hash`
    "payload": "binary",  # only with `archive_payload`
    "headers": "map",  # only with `archive_payload`
}

REQUIRED: Final = ("gateway", "route", "leg", "endpoint", "system", "name", "id", "time")

# The ids of a segment, by gateway, route, target, run and minute of receipt: a *block*. An id is a
# run and a counter, 8 bytes each, here as signed numbers. A merged segment has the blocks of each
# of its row groups, numbered by `part`; any other segment is part 0.
#
# *Settled* are the copies with exactly two rows in the part: received, and delivered at the first
# attempt with the same receipt and hash, or converted. None of their stream (gateway, route,
# target, source name) is delivered out of order in the part. All other ids are *open*.
SETS: Final[Mapping[str, str]] = {
    "gateway": "string",
    "route": "string",
    "target": "string",
    "run": "int64",
    "minute": "timestamp",  # start of the minute of `received`; of `time` where that is null
    "part": "int32",
    "settled_first": "counts",  # counters: sorted, disjoint intervals with both ends included
    "settled_last": "counts",
    "open_first": "counts",
    "open_last": "counts",
    "received": "int64",  # rows by leg; a row counts once for every target that it names
    "delivered": "int64",
    "dead": "int64",
    "spooled": "int64",
    "observed": "int64",
    "settled": "int64",  # copies
    "converted": "int64",  # of the settled copies
    "redelivered": "int64",  # of the settled copies: marked by the source as a redelivery
    "slowest": "int64",  # of the settled copies: microseconds from receipt to delivery
    "latency": "counts",  # of the settled copies, by half octaves of microseconds
    "first_time": "timestamp",  # of the deliveries that no command replayed: earliest, latest
    "last_time": "timestamp",
    "first_counter": "int64",  # of the same deliveries: smallest, largest
    "last_counter": "int64",
}

# The distinct pairs of source name and target name of a segment's deliveries.
PAIRS: Final[Mapping[str, str]] = {
    "gateway": "string",
    "route": "string",
    "target": "string",
    "leg": "string",
    "system": "string",  # dialect of `name`
    "source_name": "string",
    "name": "string",
    "fields": "string",  # those of the message in `name`, as in the rows
    "count": "int64",
    "first_id": "binary",  # smallest and largest
    "last_id": "binary",
    "first_time": "timestamp",  # of the deliveries, earliest and latest
    "last_time": "timestamp",
}

# Shortened names with their whole names: a row for each target and shortened name sent there, and
# a row without a target for each shortened name that no kept day has sent.
DICTIONARY: Final[Mapping[str, str]] = {
    "target": "string",
    "system": "string",  # dialect of `name` and `whole`; null without a target
    "name": "string",  # as it was sent; the digest alone without a target
    "digest": "string",  # its last level
    "levels": "list",  # of the whole name in canonical form; null when unknown
    "whole": "string",  # the whole name in that system's spelling, without its length limit
    "sources": "list",  # names at the source, ten at most
    "gateways": "list",  # gateways that sent it; without a target, that recorded it
    "first_time": "timestamp",  # of its deliveries in the kept days
    "last_time": "timestamp",
    "count": "int64",  # of those deliveries
}
