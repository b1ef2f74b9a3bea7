"""`gateway demo`: run a demonstration with brokers, traffic, archive and reconciliation.

Exit status: 0 when every message arrived and the reconciliation is clean.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from time import monotonic, sleep

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from gateway.archive.layout import reconciled_folder
from gateway.cli import main
from gateway.cli.parsers import CommandParser
from gateway.clock import today
from gateway.config.load import Configuration, load
from gateway.logs.lines import set_up_logging
from gateway.night.cli.arguments import named_storage
from gateway.night.reconcile.report.report import REPORT_PAGE
from gateway.routing.router import Router
from gateway.runtime.gateway import Gateway
from gateway.terminal.console import open_console, print_lines
from gateway.terminal.table import Column, Table
from gateway.terminal.text import visible
from gateway.trial.demo.feed import SPECIAL_TOPICS, TOO_LONG, alarms, expected, messages
from gateway.trial.demo.systems import Environment, running_systems
from gateway.trial.demo.traffic import Watcher, feeding

STOP_TIMEOUT = 120.0  # seconds; a busy machine converts the archive slowly
ARRIVAL_TIMEOUT = 120.0  # seconds
ALARMS = 500  # messages with two tags


def add_options(parser: CommandParser) -> None:
    parser.add("--messages N", "number of messages", 10_000)
    parser.add("--archive DIR", "folder of the archive (a new folder)")


def run(args: argparse.Namespace) -> int:
    """Run the demo; exit status 0 when every message arrived and the reconciliation is clean."""
    console = Console()
    set_up_logging("error", "text")
    archive = args.archive or Path(tempfile.mkdtemp(prefix="gateway-demo-")) / "archive"
    with tempfile.TemporaryDirectory(prefix="gateway-demo-") as scratch:
        folder = Path(scratch)
        console.print("[dim]starting the brokers[/dim]")
        with running_systems(folder) as (systems, missing, environment):
            names = {"DEMO_ARCHIVE": str(archive.absolute()), **environment}
            configuration = load(folder, names)
            console.rule(
                f"MQTT ({names['DEMO_MQTT']}) <-> {', '.join(each.name for each in systems)}"
            )
            for reason in missing:
                console.print(f"not included: {reason}", highlight=False)
            _print("names", _names(configuration))
            wanted: dict[str, int] = {}
            for system in systems:
                wanted |= expected(args.messages, system.expected)
            wanted |= {"alarms": ALARMS, "maintenance": ALARMS}
            day = today()
            arrived, settled = _bridge(configuration, names, args.messages, wanted, console)
    _print("messages at the targets", _target_table(wanted, arrived))
    _print("one message over both gateways", _path_table(archive))
    console.rule("reconciliation")
    command = ["reconcile", str(archive), "--date", day.isoformat(), "--hops"]
    console.print(f"[dim]gateway {' '.join(command)}[/dim]")
    code = main(command)
    page = reconciled_folder(archive, day) / REPORT_PAGE
    if page.exists():
        line = f"open the report in a browser: {page.resolve().as_uri()}"
        console.print(line, style="bold", highlight=False, markup=False, soft_wrap=True)
    return code or int(arrived != wanted or not settled)


def _bridge(
    configuration: Configuration,
    environment: Environment,
    number: int,
    wanted: Mapping[str, int],
    console: Console,
) -> tuple[dict[str, int], bool]:
    """Run two gateways with the feed: from the plant to each broker, and from there back.

    Returns the arrived messages by first level, and whether all messages were settled.
    """
    port = int(environment["DEMO_MQTT_PORT"])
    bridges = [Gateway(_half(configuration, there=there)) for there in (True, False)]
    for bridge in bridges:
        bridge.start()
    with Watcher(port, [f"{level}/#" for level in wanted]) as watcher:
        states = [state for bridge in bridges for state in bridge.states]
        _wait(lambda: all(state.connection.value == "connected" for state in states))
        feeders = feeding(environment, messages(number), alarms(ALARMS))
        started = monotonic()
        with Live(console=console, refresh_per_second=4) as live:

            def all_arrived() -> bool:
                table = _routes(bridges, monotonic() - started)
                live.update(Group(*_titled("routes", table, console)))
                return all(watcher.arrived[level] >= count for level, count in wanted.items())

            for feeder in feeders:
                feeder.start()
            _wait(all_arrived)
        for feeder in feeders:
            feeder.join(timeout=5)
        # No gateway starts again here, so the sources end and are not only away: as by a reload.
        for bridge in bridges:
            bridge.reload(replace(bridge.configuration, routes=()))
        settled = [bridge.stop(STOP_TIMEOUT) for bridge in bridges]
        return {level: watcher.arrived[level] for level in wanted}, all(settled)


def _half(configuration: Configuration, *, there: bool) -> Configuration:
    """Return the gateway with the routes that read from the plant, or the one with the others."""
    routes = [route for route in configuration.routes if (route.endpoint == "plant") is there]
    own = configuration.gateway if there else replace(configuration.gateway, name="office")
    return replace(configuration, gateway=own, routes=tuple(routes))


def _wait(done: Callable[[], bool]) -> None:
    deadline = monotonic() + ARRIVAL_TIMEOUT
    while not done() and monotonic() < deadline:
        sleep(0.1)


def _names(configuration: Configuration) -> Table:
    """Return the special topics of the feed with their EMS destinations."""
    table = Table(Column("MQTT topic", key=True), Column("EMS destination", note=True))
    routes = [
        route
        for route in configuration.routes
        if route.endpoint == "plant" and route.targets[0].endpoint == "ems"
    ]
    router = Router(routes[0].dialect, routes)
    for name in ("shop/orders/emea/fx/4711", *SPECIAL_TOPICS, TOO_LONG):
        for match in router[name]:
            for delivery in match.deliveries:
                refusal = Text.assemble(
                    ("refused", "red"), ": ", visible(delivery.reason.rpartition(": ")[2])
                )
                shown = name if len(name) < 60 else f"{name[:28]}... ({len(name)})"  # noqa: PLR2004
                table.add_row(shown, refusal if delivery.rule else delivery.address)
    return table


def _routes(bridges: Sequence[Gateway], seconds: float) -> Table:
    heads = ("received", "delivered", "dead letters", "messages/s")
    table = Table(Column("route", key=True), *(Column(head, right=True) for head in heads))
    for name, counters in (each for bridge in bridges for each in bridge.counters.items()):
        rate = counters.delivered / seconds if seconds > 0 else 0.0
        figures = (counters.received, counters.delivered, counters.dead, round(rate))
        table.add_row(name, *(f"{figure:,}" for figure in figures))
    return table


def _target_table(wanted: Mapping[str, int], arrived: Mapping[str, int]) -> Table:
    """Return the messages that an independent subscriber counted, and the expected numbers."""
    heads = ("expected", "arrived")
    table = Table(Column("topics", key=True), *(Column(h, right=True, always=True) for h in heads))
    for level, count in wanted.items():
        style = "" if arrived[level] == count else "bold red"
        cells = (f"{level}/#", f"{count:,}", f"{arrived[level]:,}")
        table.add_row(*(Text(cell, style) for cell in cells))
    return table


def _path_table(archive: Path) -> Table:
    """Return the rows of one order, by time: what `gateway archive show` prints of its id."""
    import pyarrow.compute as pc  # slow, and not for the other commands

    from gateway.night.archive.lookup.message import message_rows  # loads PyArrow
    from gateway.night.archive.lookup.row_files import (  # loads PyArrow
        find_rows,
        row_days,
        row_files,
    )

    columns = ("gateway", "route", "leg", "name")
    table = Table(*(Column(name, key=name == "gateway", note=name == "name") for name in columns))
    with named_storage(str(archive)) as storage:
        files = (path for day in row_days(storage) for path in row_files(storage, day))
        wanted = (pc.field("route") == "orders-in") & (pc.field("leg") == "delivered")
        order = next(find_rows(storage, files, wanted, 1, ["id", "route", "leg"]))
        for row in sorted(message_rows(storage, order["id"].hex()), key=lambda each: each["time"]):
            table.add_row(*(str(row[name]) for name in columns))
    return table


def _print(title: str, table: Table) -> None:
    console = open_console()
    print_lines(_titled(title, table, console), console)


def _titled(title: str, table: Table, console: Console) -> list[Text]:
    return [Text(), Text(title, "italic"), *table.lines(console), Text()]
