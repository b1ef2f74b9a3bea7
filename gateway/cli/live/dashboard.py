"""Terminal tables of a status: gateway, endpoints, routes and latest dead letters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from gateway.terminal import visible, visible_values

StatusJson: TypeAlias = Mapping[str, Any]  # an object of /api/status
COLOURS: Final = {"connected": "green", "connecting": "yellow"}
FIXED_LINES: Final = 12  # titles and the figures of the gateway itself
MAX_REFUSALS: Final = 5  # the latest dead letters
MIN_ROUTES: Final = 3  # shown even on a small terminal
UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB")
UNIT_FACTOR: Final = 1024


def dashboard(
    status: StatusJson, before: StatusJson | None = None, height: int | None = None
) -> Group:
    """Tables of `status`, with rates since the status `before`.

    `height` in lines limits the number of routes. Texts in the status may come from messages; they
    are made visible here, before anything reads them.
    """
    status, before = visible_values(status), visible_values(before)
    parts: list[RenderableType] = [_head(status), _endpoints(status)]
    refusals = status["refusals"][:MAX_REFUSALS]
    max_routes = None
    if height is not None:
        used = FIXED_LINES + len(status["reasons"]) + len(status["endpoints"]) + len(refusals)
        max_routes = max(MIN_ROUTES, height - used)
    parts.append(_routes(status, rates(status, before), max_routes))
    if refusals:
        parts.append(_refusals(refusals))
    return Group(*parts)


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


def _head(status: StatusJson) -> Text:
    ready = status["ready"]
    text = Text.assemble(
        (f"{status['gateway']} ", "bold"),
        ("ready" if ready else "not ready", "bold green" if ready else "bold red"),
        f"  version {status['version']}, up {age(status['time'] - status['started'])},",
        f" {status['config']}\n",
    )
    for reason in status["reasons"]:
        text.append(f"  {reason}\n", "red")
    letters, archive = status["dead_letters"], status["archive"]
    text.append(f"dead letters {letters['count']}, archive queue {size(archive['queued'])}")
    return text


def _endpoints(status: StatusJson) -> Table:
    table = _table("endpoint", "side", "connection", ">duration", ">reconnects", ">spool", "reason")
    for end in status["endpoints"]:
        spool = end["spool"]
        waits = f"{spool['messages']:,}, {size(spool['bytes'])}" if spool["messages"] else ""
        state = Text(end["connection"], COLOURS.get(end["connection"], "red"))
        table.add_row(
            Text(end["name"]),
            Text(f"{end['side']}, {end['system']}"),
            state,
            age(status["time"] - end["since"]),
            str(end["reconnects"] or ""),
            waits,
            Text(end["reason"]),
        )
    return table


def _routes(status: StatusJson, rate: Mapping[str, float], max_routes: int | None) -> Table:
    every = sorted(status["routes"], key=lambda route: -rate.get(route["name"], 0.0))
    shown = every if max_routes is None else every[:max_routes]
    table = _table(
        "route", ">rate", ">received", ">delivered", ">lag", ">heartbeat", "guarantee",
        "dead letters",
    )  # fmt: skip
    for route in shown:
        heartbeat = route["heartbeat_age"]
        stale = heartbeat is not None and heartbeat >= 3 * status["heartbeat_seconds"]
        table.add_row(
            Text(route["name"]),
            f"{rate[route['name']]:,.1f}/s" if route["name"] in rate else "",
            f"{route['received']:,}",
            f"{route['delivered']:,}",
            Text(age(route["lag"]) if route["lag"] else "", "yellow"),
            Text("" if heartbeat is None else age(heartbeat), "red" if stale else ""),
            Text(route["guarantee"].replace("_", " ")),
            Text(", ".join(f"{rule} {count:,}" for rule, count in route["rules"].items()), "red"),
        )
    if len(shown) < len(every):
        table.caption = f"{len(every) - len(shown)} more routes"
    return table


def _refusals(refusals: Iterable[StatusJson]) -> Table:
    table = _table("refused", "route", "rule", "name")
    for each in refusals:
        at = datetime.fromtimestamp(each["time"], tz=UTC).strftime("%H:%M:%S")
        table.add_row(at, Text(each["route"]), Text(each["rule"], "red"), Text(each["name"]))
    return table


def _table(*titles: str) -> Table:
    """A table without lines; a title with `>` makes a right-aligned column."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for title in titles:
        right = title.startswith(">")
        table.add_column(title.removeprefix(">"), justify="right" if right else "left")
    return table


def age(seconds: float) -> str:
    """A duration in its largest suitable unit."""
    for unit, length, next_length in (("s", 1, 100), ("min", 60, 6_000), ("h", 3_600, 172_800)):
        if seconds < next_length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds / 86_400:.0f} d"


def size(count: float) -> str:
    """Bytes in their largest suitable unit."""
    for unit in UNITS[:-1]:
        if count < UNIT_FACTOR:
            return f"{count:.0f} {unit}"
        count /= UNIT_FACTOR
    return f"{count:.0f} {UNITS[-1]}"
