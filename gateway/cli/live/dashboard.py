"""A status as tables of a terminal: the gateway, its endpoints, its routes, latest refusals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

Found: TypeAlias = Mapping[str, Any]
COLOURS: Final = {"connected": "green", "connecting": "yellow"}
AROUND: Final = 12  # lines that titles and the gateway's own figures take
REFUSALS: Final = 5  # the latest that are shown
FEWEST: Final = 3  # routes that are shown however small the terminal is
UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB")
STEP: Final = 1024


def dashboard(found: Found, before: Found | None = None, height: int | None = None) -> Group:
    """`found` as /api/status has it; rates are those since `before`.

    With a `height` in lines only as many routes are shown as there is room for.
    """
    parts: list[RenderableType] = [_head(found), _endpoints(found)]
    refusals = found["refusals"][:REFUSALS]
    room = None
    if height is not None:
        taken = AROUND + len(found["reasons"]) + len(found["endpoints"]) + len(refusals)
        room = max(FEWEST, height - taken)
    parts.append(_routes(found, rates(found, before), room))
    if refusals:
        parts.append(_refusals(refusals))
    return Group(*parts)


def lost(reason: str) -> Text:
    """What is shown while nobody answers."""
    return Text(f"gateway: {reason}", style="red")


def rates(found: Found, before: Found | None) -> dict[str, float]:
    """Messages a second of each route since `before`; empty when nobody knows."""
    if before is None or before["started"] != found["started"]:
        return {}
    seconds = found["time"] - before["time"]
    if seconds <= 0:
        return {}
    earlier = {route["name"]: route["received"] for route in before["routes"]}
    return {
        route["name"]: (route["received"] - earlier[route["name"]]) / seconds
        for route in found["routes"]
        if route["name"] in earlier
    }


def _head(found: Found) -> Text:
    ready = found["ready"]
    text = Text.assemble(
        (f"{found['gateway']} ", "bold"),
        ("ready" if ready else "not ready", "bold green" if ready else "bold red"),
        f"  version {found['version']}, up {age(found['time'] - found['started'])},",
        f" {found['config']}\n",
    )
    for reason in found["reasons"]:
        text.append(f"  {reason}\n", "red")
    letters, archive = found["dead_letters"], found["archive"]
    text.append(f"dead letters {letters['count']}, archive queue {size(archive['queued'])}")
    return text


def _endpoints(found: Found) -> Table:
    table = _table("endpoint", "side", "connection", ">for", ">again", ">spool", "reason")
    for end in found["endpoints"]:
        spool = end["spool"]
        waits = f"{spool['messages']:,}, {size(spool['bytes'])}" if spool["messages"] else ""
        state = Text(end["connection"], COLOURS.get(end["connection"], "red"))
        table.add_row(
            Text(end["name"]),
            f"{end['side']}, {end['system']}",
            state,
            age(found["time"] - end["since"]),
            str(end["reconnects"] or ""),
            waits,
            Text(end["reason"]),
        )
    return table


def _routes(found: Found, rate: Mapping[str, float], room: int | None) -> Table:
    every = sorted(found["routes"], key=lambda route: -rate.get(route["name"], 0.0))
    shown = every if room is None else every[:room]
    table = _table(
        "route", ">rate", ">received", ">delivered", ">lag", ">heartbeat", "guarantee",
        "dead letters",
    )  # fmt: skip
    for route in shown:
        beat = route["heartbeat_age"]
        stale = beat is not None and beat >= 3 * found["heartbeat_seconds"]
        table.add_row(
            Text(route["name"]),
            f"{rate[route['name']]:,.1f}/s" if route["name"] in rate else "",
            f"{route['received']:,}",
            f"{route['delivered']:,}",
            Text(age(route["lag"]) if route["lag"] else "", "yellow"),
            Text("" if beat is None else age(beat), "red" if stale else ""),
            route["guarantee"].replace("_", " "),
            Text(", ".join(f"{rule} {count:,}" for rule, count in route["rules"].items()), "red"),
        )
    if len(shown) < len(every):
        table.caption = f"{len(every) - len(shown)} more routes"
    return table


def _refusals(refusals: Iterable[Found]) -> Table:
    table = _table("refused", "route", "rule", "name")
    for each in refusals:
        at = datetime.fromtimestamp(each["time"], tz=UTC).strftime("%H:%M:%S")
        table.add_row(at, Text(each["route"]), Text(each["rule"], "red"), Text(each["name"]))
    return table


def _table(*titles: str) -> Table:
    """A table without lines; titles that begin with `>` stand to the right."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for title in titles:
        right = title.startswith(">")
        table.add_column(title.removeprefix(">"), justify="right" if right else "left")
    return table


def age(seconds: float) -> str:
    for unit, length, next_length in (("s", 1, 100), ("min", 60, 6_000), ("h", 3_600, 172_800)):
        if seconds < next_length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds / 86_400:.0f} d"


def size(count: float) -> str:
    for unit in UNITS[:-1]:
        if count < STEP:
            return f"{count:.0f} {unit}"
        count /= STEP
    return f"{count:.0f} {UNITS[-1]}"
