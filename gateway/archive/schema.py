"""What an archive row holds, stated once for the writer, the reader and the Spark job."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final


class Leg(Enum):
    """Which step of a message's way a row records."""

    RECEIVED = "received"  # the gateway has it from its source; one row a route that took it
    DELIVERED = "delivered"  # a target has taken responsibility; one row a target
    SPOOLED = "spooled"  # its target is away, the gateway keeps it; an end will follow
    DEAD = "dead"  # set aside with a rule; one row a target, or one for the whole message
    OBSERVED = "observed"  # a tap at the target saw it arrive


class Step(Enum):
    """How the step ended: what the column `outcome` holds."""

    RECEIVED = "received"
    ACCEPTED = "accepted"  # the target has the payload as it was received
    CONVERTED = "converted"  # the target has it in another form, as the route says; hashes differ
    REJECTED = "rejected"  # never for this target; the row is a dead letter
    SPOOLED = "spooled"  # on the gateway's disk


# Column -> type, in the order of the Parquet files. Types are named as Arrow and Spark both know
# them: `timestamp` is microseconds UTC, `binary` raw bytes, `list` of strings, `map` string to
# string.
#
# A message of a route with k targets owes k ends, each a delivered or a dead row. Which k, only the
# moment of receipt knows (the mapping may be another one in the morning), so the received row names
# them in `targets` and every end names its own in `target`. A target's label is its endpoint's
# name, made different where a route has two targets at one endpoint.
COLUMNS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "gateway": "string",  # name of the gateway, from its configuration
        "route": "string",  # name of the route; empty when no route took the message
        "leg": "string",  # a value of Leg
        "endpoint": "string",  # where the name of this row was seen: the source, or the target
        "system": "string",  # dialect of that endpoint
        "target": "string",  # whose end it is; empty on received, and on dead for all `targets`
        "targets": "list",  # the targets that owe an end; on received, and on dead for all of them
        "name": "string",  # the name (or tag list) as that system saw it
        "source_name": "string",  # on delivered and dead: the name as the source had it
        "id": "binary",  # 16 bytes: start of the gateway in microseconds, then a counter
        "origin_id": "string",  # the identity the source system gave the message, where it has one
        "attempt": "int32",  # 1 for the first try of this leg
        "source_time": "timestamp",  # when its publisher says it was sent, where it says so
        "time": "timestamp",  # when the gateway recorded this step; received: when it arrived
        "received": "timestamp",  # when the gateway had the message; the same on all its rows
        "mode": "int32",  # delivery mode: 0 at most, 1 at least, 2 exactly once
        "redelivered": "boolean",  # the source marked it as perhaps seen before
        "size": "int64",  # payload bytes
        "hash": "binary",  # XXH3 of the payload, 16 bytes
        "outcome": "string",  # a value of Step
        "rule": "string",  # the rule that made it a dead letter
        "reason": "string",  # the text a person reads
        "payload": "binary",  # only where the route asks for it
        "headers": "map",  # only where the route asks for it
    }
)

REQUIRED: Final = ("gateway", "route", "leg", "endpoint", "system", "name", "id", "time")

# What a segment's rows add up to, by gateway, route, target, leg and minute. Everything but
# `slowest`, which is a maximum, is a sum, and adds up over files, gateways and restarts. `counts`
# is a list of numbers, which add up one by one.
DIGESTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "gateway": "string",
        "route": "string",
        "target": "string",
        "leg": "string",
        "minute": "timestamp",  # start of the minute of `received`; of `time` where that is null
        "count": "int64",  # rows; a row counts once for every target it names
        "converted": "int64",  # of those, in another form than received: their hashes differ
        "redelivered": "int64",  # of those, marked by the source as perhaps seen before
        "retried": "int64",  # of those, not at the first attempt
        "slowest": "int64",  # the longest time since receipt, microseconds
        "disordered": "int64",  # ends recorded before an end of an earlier message of that name
        "latency": "counts",  # of delivered: rows by half octaves of microseconds since receipt
        **{f"{of}_{word}": "int64" for of in ("id", "content") for word in range(4)},
    }
)

# The distinct names that a segment's deliveries were received and sent under.
PAIRS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "gateway": "string",
        "route": "string",
        "target": "string",
        "leg": "string",
        "system": "string",  # dialect of `name`
        "source_name": "string",
        "name": "string",
        "count": "int64",
        "first_id": "binary",  # smallest and largest
        "last_id": "binary",
        "first_time": "timestamp",  # of the ends, earliest and latest
        "last_time": "timestamp",
    }
)

# What shortened names stand for: a row for each target and shortened name that was sent there, and
# one without a target for each that no kept day has sent anywhere.
DICTIONARY: Final[Mapping[str, str]] = MappingProxyType(
    {
        "target": "string",
        "system": "string",  # dialect of `name` and `whole`; null without a target
        "name": "string",  # as it was sent; the digest alone without a target
        "digest": "string",  # its last level
        "levels": "list",  # of the whole name in the middle; null when nobody remembers it
        "whole": "string",  # the whole name as that system would spell it, had it room
        "sources": "list",  # names it came under, ten at most
        "gateways": "list",  # that sent it; without a target, that wrote it down
        "first_time": "timestamp",  # of its ends in the days that are there
        "last_time": "timestamp",
        "count": "int64",  # of those ends
    }
)
