"""The status on a terminal: the gateway, its endpoints and routes, and the latest dead letters."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

from rich.console import Console
from rich.text import Text

from gateway.terminal.table import HEAD_STYLE, Column, Table, indented
from gateway.terminal.text import visible, visible_values
from gateway.terminal.units import counted, duration, size

StatusJson: TypeAlias = Mapping[str, Any]  # an object of /api/status
COLOURS: Final = {"connected": "green", "connecting": "yellow"}
MAX_REASONS: Final = 10  # why the gateway is not ready
MAX_STUCK: Final = 3  # routes that are named for one reason
MAX_REFUSALS: Final = 5  # the latest dead letters
GAPS: Final = 3  # empty lines between the parts
MIN_LINES: Final = 4  # of a table, even on a small terminal


def dashboard(
    status: StatusJson,
    before: StatusJson | None,
    console: Console,
    *,
    rows: int | None = None,
    height: int | None = None,
) -> list[Text]:
    """Return the lines of `status`, at most `height`, with rates since the status `before`.

    Endpoints and routes in trouble come first, and at most `rows` of each. Texts in the status may
    come from messages; they are made visible here, before anything reads them.
    """

    def lines(table: Table, room: int) -> list[Text]:
        return table.lines(console, max_rows=rows, max_lines=max(MIN_LINES, room))

    status, before = visible_values(status), visible_values(before)
    room, hint = height or sys.maxsize, "; --all shows them" if rows else ""
    head = _head(status, console, height // 8 if height else MAX_REASONS)
    refusals = lines(_refusals(status["refusals"][:MAX_REFUSALS]), room // 5)
    room -= len(head) + len(refusals) + GAPS
    endpoints = lines(_endpoints(status, hint), room // 2)
    routes = lines(_routes(status, rates(status, before), hint), room - len(endpoints))
    parts = [part for part in (head, endpoints, routes, refusals) if part]
    return [line for part in parts for line in (*part, Text())][:-1][:height]


def unreachable(reason: str) -> Text:
    """The display while the gateway does not answer."""
    return Text(f"gateway: {visible(reason)}", style="red")


def rates(status: StatusJson, before: StatusJson | None) -> dict[str, float]:
    """Messages a second by route since `before`; empty without an earlier status of this run."""
    if before is None or before["started"] != status["started"]:
        return {}
    seconds = status["time"] - before["time"]
    if seconds <= 0:
        return {}
    earlier = {route["name"]: route["received"] for route in before["routes"]}
    return {
        route["name"]: (route["received"] - earlier[route["name"]]) / seconds
        for route in status["routes"]
        if route["name"] in earlier
    }


def _head(status: StatusJson, console: Console, max_reasons: int) -> list[Text]:
    ready, reasons = status["ready"], status["reasons"]
    first = Text.assemble(
        (f"{status['gateway']} ", "bold"),
        ("ready" if ready else "not ready", "bold green" if ready else "bold red"),
        f"  version {status['version']}, up {duration(status['time'] - status['started'])},",
        f" {status['config']}",
    )
    reasons = [*reasons, *_stuck(status)]
    texts = [Text(reason, "red") for reason in reasons[:max_reasons]]
    if len(reasons) > max_reasons:
        texts.append(
            Text(f"... and {counted(len(reasons) - max_reasons, 'more reason')}", HEAD_STYLE)
        )
    texts += [Text(warning, "yellow") for warning in status["warnings"][:max_reasons]]
    letters, queued = status["dead_letters"], size(status["archive"]["queued"])
    sent = f", sent again {letters['sent_again']:,}" if letters["sent_again"] else ""
    last = Text(f"dead letters kept {letters['count']:,}{sent}, archive queue {queued}")
    return [
        *first.wrap(console, console.width, overflow="fold"),
        *_pair(status, console),
        *(line for text in texts for line in indented(text, console)),
        last,
    ]


def _stuck(status: StatusJson) -> list[str]:
    """Return a line for each reason for which routes are stuck, unless the head has it."""
    by_reason: dict[str, list[str]] = {}
    for route in status["routes"]:
        for reason in route["stuck"]:
            if f"route {route['name']}: {reason}" in status["reasons"]:
                continue
            by_reason.setdefault(reason, []).append(route["name"])
    return [f"stuck, {reason}: {_names(routes)}" for reason, routes in by_reason.items()]


def _names(routes: Sequence[str]) -> str:
    more = len(routes) - MAX_STUCK
    named = ", ".join(routes[:MAX_STUCK])
    return f"{named} and {counted(more, 'more route')}" if more > 0 else named


def _pair(status: StatusJson, console: Console) -> list[Text]:
    """Return the line about the pair; none for a gateway alone."""
    if (pair := status["pair"]) is None:
        return []
    text = Text.assemble(
        (f"{pair['instance']} ", "bold"),
        f"is the {pair['role']} for {duration(pair['since'])}, lease {pair['number']}",
    )
    if pair["role"] == "standby":
        text.append(f"; {pair['active'] or 'no instance'} is active")
    else:
        waiting = ", ".join(pair["standby"])
        text.append(
            f"; {waiting} waits" if waiting else "; no standby waits", "" if waiting else "yellow"
        )
    if pair["failure"]:
        text.append(f"; {pair['failure']}", "red")
    return list(text.wrap(console, console.width, overflow="fold"))


def _endpoints(status: StatusJson, hint: str) -> Table:
    table = Table(
        Column("endpoint", key=True),
        Column("side"),
        Column("connection"),
        Column("address"),
        Column("duration", right=True),
        Column("reconnects", right=True),
        Column("pending", note=True),
        Column("reason", note=True),
        more=f"more endpoints{hint}",
    )
    for end in sorted(status["endpoints"], key=_endpoint_order):
        table.add_row(
            end["name"],
            f"{end['side']}, {end['system']}",
            Text(end["connection"], COLOURS.get(end["connection"], "red")),
            end["address"],
            duration(status["time"] - end["since"]),
            f"{end['reconnects']:,}",
            _pending(end),
            end["reason"] or end["gap"],
        )
    return table


def _pending(end: StatusJson) -> str:
    """Return what waits for the endpoint; "" if nothing does."""
    spool, parts = end["spool"], []
    if end["backlog"]:
        parts.append(f"{end['backlog']:,} at the broker")
    if end["held"]:
        parts.append(f"{size(end['held'])} in memory")
    if spool["messages"]:
        oldest = duration(spool["age"])
        parts.append(f"{spool['messages']:,} on disk ({size(spool['bytes'])}, oldest {oldest})")
    return ", ".join(parts)


def _endpoint_order(end: StatusJson) -> tuple[bool, bool]:
    """Sort endpoints without a connection first, then those with spooled messages."""
    return end["connection"] == "connected", not end["spool"]["messages"]


def _routes(status: StatusJson, rate: Mapping[str, float], hint: str) -> Table:
    table = Table(
        Column("route", key=True),
        Column("rate", right=True),
        Column("received", right=True, always=True),
        Column("delivered", right=True, always=True),
        Column("lag", right=True),
        Column("heartbeat", right=True),
        Column("guarantee"),
        Column("not selected", right=True),
        Column("thinned", right=True),
        Column("refused since start", note=True),
        more=f"more routes{hint}",
    )
    for route in sorted(status["routes"], key=lambda route: _route_order(route, status, rate)):
        heartbeat, rules = route["heartbeat_age"], route["rules"]
        table.add_row(
            route["name"],
            f"{rate[route['name']]:,.1f}/s" if route["name"] in rate else "",
            f"{route['received']:,}",
            f"{route['delivered']:,}",
            Text(duration(route["lag"]) if route["lag"] else "", "yellow"),
            Text(
                "" if heartbeat is None else duration(heartbeat), "red" * _is_stale(route, status)
            ),
            route["guarantee"].replace("_", " "),
            f"{route['unselected']:,}" if route["unselected"] else "",
            f"{route['thinned']:,}" if route["thinned"] else "",
            Text(", ".join(f"{rule} {count:,}" for rule, count in rules.items()), "red"),
        )
    return table


def _route_order(
    route: StatusJson, status: StatusJson, rate: Mapping[str, float]
) -> tuple[bool, bool, bool, float]:
    """Sort routes without heartbeats first, then with a lag, with dead letters, and the busiest."""
    busy = rate.get(route["name"], 0.0)
    return not _is_stale(route, status), not route["lag"], not route["rules"], -busy


def _is_stale(route: StatusJson, status: StatusJson) -> bool:
    heartbeat = route["heartbeat_age"]
    return heartbeat is not None and heartbeat >= status["max_heartbeat_age"]


def _refusals(refusals: Sequence[StatusJson]) -> Table:
    table = Table(
        Column("refused", key=True),
        Column("route", key=True),
        Column("rule"),
        Column("name", note=True),
    )
    for each in refusals:
        at = datetime.fromtimestamp(each["time"], tz=UTC).strftime("%H:%M:%S")
        table.add_row(at, each["route"], Text(each["rule"], "red"), each["name"])
    return table
