"""`gateway demo`: a broker, the bridge, ten thousand messages, and the proof that none is lost."""

from __future__ import annotations

import argparse
import os
import tempfile
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from time import monotonic

from rich.console import Console
from rich.live import Live
from rich.table import Table

from gateway.cli import main
from gateway.cli.parsers import Commands
from gateway.config.load import Configuration, load
from gateway.demo.broker import mqtt_broker
from gateway.demo.feed import ODD, TOO_LONG, messages, undeliverable
from gateway.demo.traffic import Publisher, Watcher
from gateway.routing.router import Router
from gateway.runtime.logs import set_up_logging
from gateway.runtime.supervisor import Gateway

VERSIONS = {"mosquitto": "5", "amqtt": "3.1.1"}  # the best each broker speaks
SECONDS = 120.0  # the demo gives up when nothing more arrives


def add_parsers(commands: Commands) -> None:
    parser = commands.add_parser("demo", help="everything embedded: traffic, archive, proof")
    parser.add_argument("--messages", type=int, default=10_000, metavar="N")
    parser.add_argument("--archive", type=Path, help="where to keep the archive; else a new folder")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    console = Console()
    set_up_logging("warning", "text")
    archive = args.archive or Path(tempfile.mkdtemp(prefix="gateway-demo-")) / "archive"
    with mqtt_broker() as (broker, port):
        environment = {
            **os.environ,
            "DEMO_MQTT_PORT": str(port),
            "DEMO_MQTT_VERSION": VERSIONS[broker],
            "DEMO_ARCHIVE": str(archive),
        }
        mapping = files("gateway.demo") / "demo.yaml"
        configuration = load(Path(str(mapping)), environment)
        console.rule(f"MQTT ({broker}) -> EMS names -> MQTT")
        console.print(_names(configuration))
        day = datetime.now(tz=UTC).date()
        arrived, settled = _bridge(configuration, port, args.messages, console)
    expected = args.messages - undeliverable(args.messages)
    console.print(f"published {args.messages}, arrived at the far end {arrived} of {expected}")
    console.rule("reconciliation")
    console.print(f"[dim]gateway reconcile {archive} --date {day}[/dim]")
    code = main(["reconcile", str(archive), "--date", day.isoformat()])
    return code or int(arrived != expected or not settled)


def _bridge(
    configuration: Configuration, port: int, number: int, console: Console
) -> tuple[int, bool]:
    """Run the bridge under the feed; how many arrived, and whether all was settled."""
    bridge = Gateway(configuration)
    bridge.start()
    with Watcher(port, ["erp/#", "historian/#"]) as watcher:
        _wait(lambda: all(s.connection.value == "connected" for s in bridge.states), None)
        publisher = Publisher(port)
        feeder = threading.Thread(target=publisher.publish, args=(messages(number),), daemon=True)
        expected = number - undeliverable(number)
        started = monotonic()
        with Live(console=console, refresh_per_second=4, transient=False) as live:
            feeder.start()
            _wait(
                lambda: watcher.arrived >= expected,
                lambda: live.update(_routes(bridge, monotonic() - started)),
            )
        feeder.join(timeout=5)
        publisher.close()
        return watcher.arrived, bridge.stop(configuration.gateway.stop_seconds)


def _wait(done: Callable[[], bool], each: Callable[[], None] | None) -> None:
    tick = threading.Event()
    deadline = monotonic() + SECONDS
    while not done() and monotonic() < deadline:
        tick.wait(0.1)
        if each is not None:
            each()


def _names(configuration: Configuration) -> Table:
    """What the odd names of the feed become, as the running bridge translates them."""
    table = Table(title="names", title_justify="left", show_edge=False)
    table.add_column("MQTT topic", overflow="fold")
    table.add_column("EMS destination", overflow="fold")
    routes = [route for route in configuration.routes if route.endpoint == "plant"]
    router = Router(routes[0].dialect, routes)
    for name in ("shop/orders/emea/fx/4711", *ODD, TOO_LONG):
        for way in router[name]:
            for hop in way.hops:
                refusal = f"[red]refused ({hop.rule})[/red]: {hop.reason.rpartition(': ')[2]}"
                table.add_row(name, refusal if hop.rule else hop.address)
    return table


def _routes(bridge: Gateway, seconds: float) -> Table:
    table = Table(title="routes", title_justify="left", show_edge=False)
    for heading in ("route", "received", "delivered", "dead letters", "messages/s"):
        table.add_column(heading, justify="left" if heading == "route" else "right")
    for name, counters in bridge.counters.items():
        rate = counters.delivered / seconds if seconds > 0 else 0.0
        figures = (counters.received, counters.delivered, counters.dead, round(rate))
        table.add_row(name, *(f"{figure:,}" for figure in figures))
    return table
