"""The golden page: one status with every kind of route, every fault and hostile names.

`test_golden_page.py` walks through it, and `python -m tests.pictures FOLDER` draws it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from gateway.config.load import load
from gateway.runtime.record.recent_names import SeenCopy, SeenMessage
from gateway.runtime.status import EndpointStatus, PairStatus, RouteStatus, Status
from tests.web.status_samples import (
    START,
    SUSPECTED,
    FakeStatus,
    changed,
    endpoint,
    refusal,
    route,
    status,
)

HOSTILE: Final = "<img/src=x/onerror=alert(1)><b>bold</b>&amp;"  # legal as a name
LONG: Final = "x" * 64
SYSTEMS: Final = {
    "plant": "mqtt", "office": "ems", "market": "smf", "tools": "yami4", "lake": "kafka",
    "hall": "nats", "yard": "rabbitmq", HOSTILE: "ibm", LONG: "rv",
}  # fmt: skip
CONFIG: Final = """\
endpoints:
  plant: {kind: memory, dialect: mqtt}
  office: {kind: memory, dialect: ems, broker: b, allow: ["LINE.>"]}
  market: {kind: memory, dialect: smf}
  lake: {kind: memory, dialect: kafka, broker: c, allow: [">"]}
routes:
  telemetry:
    from:
      endpoint: plant
      pattern: "line/{line}/{rest...}"
      exclude: ["line/test/#"]
      selector: "amount > 100"
    to: {endpoint: office, template: "LINE.{line}.{rest...}"}
  there:
    from: {endpoint: plant, pattern: "echo/{rest...}"}
    to: {endpoint: lake, template: "echo.{rest...}"}
    retained: ignore
  back:
    from: {endpoint: lake, pattern: "echo.{rest...}"}
    to: {endpoint: plant, template: "echo/{rest...}"}
  fields:
    from: {endpoint: plant, pattern: "o/{m}"}
    to: {endpoint: lake, template: "to.{payload.site}.{property.line|default:none}"}
    retained: ignore
  several:
    from: {endpoint: plant, pattern: "both/{rest...}"}
    to:
      - {endpoint: market, template: "both/{rest...}"}
      - {endpoint: lake, template: "both.{rest...}"}
"""
PAIR: Final = PairStatus("a", "holder", 7, 60.0, "a", ("b",), f"lease: the disk is away {HOSTILE}")


def flow(name: str, source: str, *targets: str, **facts: object) -> RouteStatus:
    names = tuple(f"{each} {name}/{{rest...}}" for each in targets)
    pattern = f"{source} {name}/{{rest...}}"
    return route(name, source=pattern, targets=targets, target_names=names, **facts)


def sides() -> Iterator[EndpointStatus]:
    """A source and a sink at each broker, with another fault at each; a tap."""
    faults: dict[str, dict[str, object]] = {
        "office": {
            "connection": "lost", "reason": f"gone {HOSTILE}", "retry_in": 7.0, "reconnects": 4,
            "spooled_messages": 123_456, "spooled_bytes": 200_000_000, "spool_share": 0.83,
            "spooled_age": 122.0, "address": "office-2:7222",
        },
        "market": {"connection": "refused", "reason": "not authorized"},
        "tools": {"silence": 12.0, "held": 4_096},
        "lake": {"counts": {"no_route": 3, "retries": 8}, "messages": 9},
        "hall": {"connection": "connecting"},
        LONG: {"reason": LONG * 4, "connection": "lost"},
    }  # fmt: skip
    for name, system in SYSTEMS.items():
        facts = {"system": system, "broker_id": f"id of {name}"}
        lost = "session-lost, 77 s" if name == "plant" else ""
        yield endpoint(name, **facts, gap=lost, backlog=12 if lost else None)
        yield endpoint(name, "sink", **facts, **faults.get(name, {}))
    yield endpoint("office", "tap", system="ems")


def flows() -> Iterator[RouteStatus]:
    """Every kind of route: one for each state of a flow, both ways, thinned, with several ends."""
    latest = refusal(HOSTILE, int(time.time()))  # refuses now
    both: dict[str, object] = {"has_reverse": True, "loops": 30}
    yield flow(
        "telemetry", "plant", "office", lag=12.0, spooled=123_456, ignored=2, unselected=3,
        duplicates=4, lost_fields={"reply_to": 5}, loops=3,
    )  # fmt: skip
    yield changed(flow("there", "plant", "lake"), **both)
    yield changed(flow("back", "lake", "plant"), **both)
    yield flow(
        "fields", "plant", "lake", rules={"too-long": 12}, refused={"lake": latest},
        refusals=(latest, refusal("line/2/y", START + 5)),
    )  # fmt: skip
    yield flow("several", "plant", "market", "lake", guarantee="at_most_once")
    yield flow("several", "yard", "lake", guarantee="at_most_once")
    yield flow("silent", "plant", "tools")
    yield flow("stuck", "lake", "yard", heartbeat_age=99.0)
    yield flow("thin", "yard", "plant", guarantee="thinned", thinned=70, heartbeat_age=1.0)
    yield flow("waiting", "plant", "hall")
    yield flow(HOSTILE, HOSTILE, "yard")
    yield flow(LONG, "yard", LONG)


def golden() -> Status:
    return status(
        gateway=f"plant-1 {HOSTILE}",
        endpoints=tuple(sides()),
        routes=tuple(flows()),
        archive_queued=3_000_000,
        archive_failure=f"no space left {HOSTILE}",
        spool_failure="the spool's disk is away",
        thread_failure="the pump of plant ended",
        dead_letters=17,
        dead_letter_bytes=4_096,
        dead_letters_dropped=2,
        dead_letters_sent_again=1_234,
        pair=PAIR,
        reload_refused=f"gateway.yaml:3:5 {HOSTILE}",
        suspected_loops=(replace(SUSPECTED, name=HOSTILE),),
        stranded=(("cellar", 5),),
    )


def calm() -> Status:
    """The same gateway without a fault, with two routes."""
    ends = (endpoint(), endpoint("office", "sink", system="ems"))
    return status(endpoints=ends, routes=(flow("telemetry", "plant", "office"),))


def thousand() -> Status:
    """Routes of which each pair of four brokers has 84, or 83; one of them refuses names."""
    names = [*SYSTEMS][:4]
    pairs = [(one, other) for one in names for other in names if one != other]
    latest = refusal(at=int(time.time()))
    bad: dict[str, object] = {
        "refusals": (latest,), "refused": {"": latest}, "rules": {"too-long": 1},
    }  # fmt: skip
    routes = tuple(
        changed(flow(f"route-{n:04}", *pairs[n % 12]), **(bad if n == 600 else {}))
        for n in range(1_000)
    )
    ends = [each for each in sides() if each.name in names and each.side != "tap"]
    return status(
        endpoints=tuple(endpoint(each.name, each.side, system=each.system) for each in ends),
        routes=routes,
    )


def shown_golden(folder: Path) -> FakeStatus:
    """The golden status, with the routes of `CONFIG` for lookups and names that have passed."""
    file = folder / "gateway.yaml"
    file.write_text(CONFIG)
    configuration = load(file)
    settings = {name: each.settings for name, each in configuration.endpoints.items()}
    shown = FakeStatus(golden(), configuration.routes, settings)
    copies = (
        SeenCopy("office", f"LINE.{HOSTILE}", "", ""),
        SeenCopy("lake", "", "too-long", f"300 characters {HOSTILE}"),
    )
    shown.seen["telemetry"] = [SeenMessage(START + 3.0, "plant", f"line/{HOSTILE}", copies)]
    return shown


def passed(shown: FakeStatus, messages: int) -> None:
    """Ten seconds in which the first route received so many messages."""
    first, *others = shown.status.routes
    routes = (changed(first, received=first.totals.received + messages), *others)
    shown.status = replace(shown.status, routes=routes)
    shown.seconds += 10
    shown.history.sample()
