"""Sample reports: clean, lossy, hostile, huge, empty, and with gaps of sources or with cuts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from gateway.archive.findings import error, warning
from gateway.model.copy_class import HOP_CLASSES, TALLIES
from gateway.model.cut_class import CUT_CLASSES
from gateway.night.reconcile.report.report import Report
from gateway.night.reconcile.report.reported_gaps import ReportedGap
from gateway.night.reconcile.report.rows import Row
from gateway.night.reconcile.report.summary import to_json
from gateway.night.reconcile.report.timelines import Turn

DAY = datetime(2026, 3, 14, tzinfo=UTC)
BAD = ("missing", "lost in target", "altered", "duplicated", "out of order", "delivered late")
SAMPLED = (*BAD, "unexpected", "refused", "dead-lettered", "in flight", "recovered")
HOSTILE = "<script>document.title='taken'</script>\x1b[2J\u202e\x00&\"'\ud800"


def counted(received: int, **counts: int) -> dict[str, object]:
    """A row of counts; a class with a blank in its name is written with `_`."""
    named = {name.replace("_", " "): value for name, value in counts.items()}
    lost = sum(named.values()) - named.get("marked", 0) - named.get("unexpected", 0)
    return {
        **dict.fromkeys(TALLIES, 0),
        "received": received,
        "delivered": received - lost,
        **named,
    }


def hour(at: int, row: Mapping[str, object], timed: int = 0, **way: str) -> Row:
    received = row["received"]
    assert isinstance(received, int)
    wave = 2_047 << (at % 5)
    known = timed > 0
    return {
        "hour": DAY + timedelta(hours=at), **way, **row, "rate": received / 3600,
        "timed": timed or None, "p50": wave if known else None,
        "p90": 4 * wave if known else None, "p99": 50 * wave if known else None,
        "slowest": 1_073_741_823 if known else None,
    }  # fmt: skip


def sample(kind: str, number: int, name: str = "plant/line1/temp") -> Row:
    at = DAY + timedelta(seconds=number)
    dead = kind in ("refused", "dead-lettered")
    return {
        "class": kind, "gateway": "east", "route": "orders", "target": "erp",
        "id": f"{number:032x}", "received_time": at, "end_time": at, "latency": 2_000,
        "deliveries": 1, "sightings": 1, "marked": False, "name": name, "size": 42,
        "sent_name": name.replace("/", "."), "rule": "too-long" if dead else None,
        "reason": "ems: the name is 260 characters, limit 249" if dead else None,
    }  # fmt: skip


def clean() -> Report:
    hours = [hour(at, counted(440 + 40 * at), timed=440 + 40 * at) for at in range(24)]
    ways = [hour(at, counted(900), timed=900, route="orders", target="erp") for at in range(24)]
    return Report(
        archive="/var/archive",
        day=DAY.date(),
        routes=[{"route": "orders", "target": "erp", **counted(21_600)}],
        gateways=[{"gateway": "east", **counted(21_600)}],
        hours=ways,
        whole_day=hours,
        proof={"copies": 21_600, "compared": 0, "sets": 24, "seals": 24, "keyed": True},
        timings={"files": 0.08, "spark": 6.8, "job": 12.3},
    )


def lossy(name: str = "plant/line1/temp", routes: int = 3) -> Report:
    """A report with copies in every class and errors in the archive; every name is `name`."""
    every = {each.replace(" ", "_"): 2 + place for place, each in enumerate(SAMPLED)}
    row = counted(40_000, marked=2, **every)
    calm = [
        {"route": f"route-{number}", "target": "audit", **counted(1_000 * number)}
        for number in range(2, routes + 1)
    ]
    way = {"route": name, "target": "erp"}
    hours = [at for at in range(20) if at != 12]
    faulty = {**row, "received": 2_000, "delivered": 2_000 - 40_000 + int(str(row["delivered"]))}
    rows = [faulty if at == 7 else counted(2_111) for at in hours]
    return Report(
        archive="/var/archive of the night",
        day=DAY.date(),
        findings=[
            warning("missing-hour", "date=2026-03-14", "no segment in hour 12: idle, or lost"),
            error("unreadable-file", f"date=2026-03-14/hour=06/{name}.parquet", "is truncated"),
        ],
        routes=[{**way, **row}, *calm],
        gateways=[{"gateway": "east", **row}, {"gateway": "west", **counted(6_000)}],
        hours=[hour(at, each, 900, **way) for at, each in zip(hours, rows, strict=True)]
        + [
            hour(at, counted(45), route=str(each["route"]), target="audit")
            for at in range(24)
            for each in calm
        ],
        whole_day=[hour(at, each, 900) for at, each in zip(hours, rows, strict=True)],
        dead_letters=[
            {"class": "refused", "route": name, "target": "erp", "rule": "too-long", "copies": 9,
             "id": "ab" * 16, "name": name, "reason": "ems: the name is 260 characters, limit 249"},
            {"class": "dead-lettered", "route": name, "target": None, "rule": "spool-full",
             "copies": 8, "id": "cd" * 16, "name": name, "reason": name},
        ],
        names=[{"route": name, "name": f"{name}{n}", "copies": 9 - n,
                **dict.fromkeys(SAMPLED[:3], 1), **dict.fromkeys(SAMPLED[3:], 0)}
               for n in range(5)],
        renamed=[{"route": name, "target": "erp", "name": name, "sent": "a.b", "now": "a.c"}],
        samples=[sample(each, number, name) for each in SAMPLED for number in range(10)],
        proof={"copies": 39_000, "compared": 6_000, "sets": 48, "seals": 48, "keyed": False},
        timings={"files": 0.08, "spark": 6.8, "job": 42.3},
    )  # fmt: skip


def huge() -> Report:
    """A thousand routes and ten thousand exceptions."""
    longest, long = "plant/" + "x" * 60_000, "plant/" + "x" * 600
    routes = [
        {"route": f"route-{n:04}", "target": "erp", **counted(1_000 + n, missing=n % 3 and n % 7)}
        for n in range(1_000)
    ]
    return Report(
        archive="/var/archive",
        day=DAY.date(),
        findings=[error("unreadable-file", f"f{n}.parquet", "is truncated") for n in range(5_000)],
        routes=routes,
        gateways=[{"gateway": f"gateway-{n}", **counted(100_000)} for n in range(20)],
        hours=[
            hour(at, counted(40, missing=at % 2), 40, route=f"route-{n:04}", target="erp")
            for n in range(400)
            for at in range(24)
        ],
        whole_day=[hour(at, counted(40_000, missing=at), 40_000) for at in range(24)],
        dead_letters=[
            {"class": "refused", "route": "route-0001", "target": "erp", "rule": f"rule-{n}",
             "copies": n, "id": "ab" * 16, "name": long, "reason": long} for n in range(1_000)
        ],
        names=[{"route": "route-0001", "name": f"{n}{longest}", "copies": 9, "missing": 9}
               for n in range(100)],
        samples=[sample(each, number, long) for each in SAMPLED for number in range(1_000)],
        proof={"copies": 39_000, "compared": 6_000, "sets": 48, "seals": 48, "keyed": False},
        timings={"files": 0.08, "spark": 6.8, "job": 42.3},
    )  # fmt: skip


def gap(  # the facts of a gap
    rule: str,
    begin: float,
    seconds: float,
    *,
    gateway: str = "east",
    endpoint: str = "plant",
    route: str = "orders",
    reason: str = "",
    lost: int | None = None,
    kept: bool = False,
) -> ReportedGap:
    """A gap; `begin` in hours."""
    at = DAY + timedelta(hours=begin)
    end = at + timedelta(seconds=seconds)
    return ReportedGap(route, endpoint, gateway, rule, at, end, reason, lost, kept)


def gappy() -> Report:
    """A clean night with gaps: a lost session, and two intervals in which nothing was lost."""
    return replace(
        clean(),
        gaps=[
            gap("session-lost", 6.2, 77, reason="the broker kept no session; 77 s"),
            gap("session-lost", 6.2, 77, reason="the broker kept no session; 77 s", route="audit"),
            gap("away", 11, 900, endpoint="headquarters"),
            gap("not-running", 22.5, 240, endpoint="", route="", kept=True),
        ],
    )


def hidden() -> Report:
    """A clean night with cuts of each class, and a message between gateways on a word."""
    way = {"gateway": "east", "route": "orders", "target": "erp", "endpoint": "plant"}
    cuts = [
        {**way, "rule": "ignored" if name == "left out" else "loop", "class": name, "copies": at}
        for at, name in enumerate(CUT_CLASSES, 2)
    ]
    told = {"id": f"{11:032x}", "name": "plant/line1/temp", "received_time": DAY}
    ends = {"broker": "bus", "receiver": "west", "receiver_route": "up"}
    return replace(
        clean(),
        cuts=cuts,
        cut_samples=[{**cuts[0], **told}],
        hops=[{**way, **ends, "expected": 9, "delivered": 9, "unproven": 1}],
        hop_samples=[{**way, **ends, **told, "class": "unproven", "sent_time": DAY}],
    )


def holder(instance: str, lease: int, begin: float, end: float, overlap: float = 0.0) -> Turn:
    """A turn; `begin` and `end` in hours."""
    first, last = DAY + timedelta(hours=begin), DAY + timedelta(hours=end)
    return Turn("plant-1", f"plant-1@{instance}", lease, first, last, overlap)


def paired() -> Report:
    """A clean night of a pair: two takeovers, the second one with an overlap within the lease."""
    turns = [holder("a", 7, -0.5, 9.25), holder("b", 8, 9.2528, 14.0364),
             holder("a", 9, 14.035, 24, 5.04)]  # fmt: skip
    return replace(clean(), holders=turns)


def eventful() -> Report:
    """A night with gaps, recovered and missing copies, and a forged segment."""
    counts = {"missing": 3, "recovered": 5, "in flight": 2}
    row = counted(21_600, missing=3, recovered=5, in_flight=2)
    bare = counted(9_000, missing=1, lost_in_target=2)
    quiet = counted(900)
    hours = [row | {"received": 900, "delivered": 890} if at == 9 else quiet for at in range(24)]
    segment = "date=2026-03-14/hour=09/east-1773446400000000-000012-0000.parquet"
    orders = {"route": "orders", "target": "erp"}
    events = {"route": "plant-events", "target": "historian"}
    return replace(
        gappy(),
        findings=[
            error("changed-segment", segment, "its content differs from the seal: SHA-256 is"
                  " 9f86d081884c7d65, the seal has 2c26b46b68ffc68f"),
            error("missing-seal", "_seals/date=2026-03-14", "writer east: journal 13 is absent"
                  " between 12 (closed 09:59:58) and 14 (opened 10:59:58)"),
            warning("killed-journal", "_seals/date=2026-03-14", "writer west: 4 has no end"),
        ],
        routes=[
            {**orders, **row, "payloads_archived": True},
            {**events, **bare, "payloads_archived": False,
             "taps_needed": "the JMS client encodes map messages again"},
            *({"route": f"line-{n}", "target": "audit", **counted(700)} for n in range(6)),
        ],
        gateways=[{"gateway": "east", **row}, {"gateway": "west", **bare}],
        hours=[hour(at, each, 900, **orders) for at, each in enumerate(hours)]
        + [hour(at, counted(375), 375, **events) for at in range(24)],
        whole_day=[hour(at, each, 900) for at, each in enumerate(hours)],
        samples=[sample(kind, n) for kind, total in counts.items() for n in range(total)]
        + [{**sample("missing", 9), **events}],
        gaps=[
            *gappy().gaps,
            gap("dropped", 13.5, 1_800, endpoint="headquarters", lost=1_204, gateway="west",
                reason="$SYS counts dropped messages: 1,204"),
            gap("subscription-refused", 0, 86_400, endpoint="plant", gateway="west",
                reason="reason code 0x87, not authorized", route="alarms"),
        ],
        carried=[
            {"date": "2026-03-13", "before": 5, "after": 0, "status_before": 0, "status": 0,
             "verdict": "clean"},
        ],
        proof={"copies": 30_100, "compared": 5_000, "sets": 48, "seals": 47, "keyed": True,
               "unproven": 12_000},
    )  # fmt: skip


def golden() -> Report:
    """A night with every section, every class, every kind of gap, and names that are hostile."""
    whole, long = lossy(HOSTILE, routes=14), "plant/" + "x" * 600
    ends = {"gateway": "plant", "route": "shipping-in", "broker": "work"}
    hop = {**ends, "receiver": "office", "receiver_route": "shipping-out", "expected": 9}
    letter = {
        **whole.dead_letters[0],
        "rule": "too-deep",
        "copies": 1,
        "name": long,
        "reason": long,
    }
    return replace(
        whole,
        routes=[*whole.routes, {"route": long, "target": "erp", **counted(9, missing=1)}],
        dead_letters=[*whole.dead_letters, letter],
        samples=[*whole.samples, sample("missing", 10, long)],
        gaps=eventful().gaps,
        carried=eventful().carried,
        holders=paired().holders,
        cuts=hidden().cuts,
        cut_samples=hidden().cut_samples,
        hops=[{**dict.fromkeys(HOP_CLASSES, 0), **hop}, *hidden().hops],
        hop_samples=hidden().hop_samples,
    )


def empty() -> Report:
    nothing = error("no-data", "date=2026-03-14", "there is no readable segment of this date")
    return Report("/var/archive", DAY.date(), [nothing], answered=False)


def content(report: Report) -> dict[str, object]:
    """The parsed summary.json of a report."""
    found = json.loads(to_json(report))
    assert isinstance(found, dict)
    return found
