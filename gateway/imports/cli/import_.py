"""`gateway import`: convert the configuration of another bridge to a mapping."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from gateway.cli.mapping.init_text import unset_variables
from gateway.cli.parsers import CommandParser, add_command
from gateway.errors import GatewayError
from gateway.imports.document import Document, render
from gateway.imports.ems.importer import import_ems
from gateway.imports.imported_files import conf_files, read_file, site_of
from gateway.imports.mosquitto.importer import import_mosquitto
from gateway.imports.nanomq.importer import import_nanomq
from gateway.imports.rabbitmq.importer import import_rabbitmq
from gateway.imports.source_lines import LineStatus, grouped
from gateway.terminal.text import print_line
from gateway.terminal.units import counted

_STATUS = "Exit status: 0 no line is lost, 1 some lines are, or there is no bridge."
_EMS_FILES = (
    "bridges.conf, topics.conf, transports.conf, tibemsd.json, and scripts of tibemsadmin;"
    " recognised by name or content"
)
_DEFINITIONS = "definitions in JSON, of `rabbitmqctl export_definitions` or of the management API"
_SYSTEMS = (
    ("ems", "import bridges, topics and transports of an EMS server", "+", _EMS_FILES),
    ("mosquitto", "import the bridges of a mosquitto broker", 1, "mosquitto.conf"),
    (
        "nanomq",
        "import the MQTT bridges of NanoMQ and EMQX 4",
        1,
        "nanomq.conf, nanomq_bridge.conf or emqx_bridge_mqtt.conf",
    ),
    ("rabbitmq", "import the shovels of a RabbitMQ server", 1, _DEFINITIONS),
)


def add_options(parser: CommandParser) -> None:
    systems = parser.add_subparsers(dest="system", metavar="SYSTEM", required=True)
    for system, summary, nargs, files in _SYSTEMS:
        importer = add_command(systems, system, summary, _STATUS)
        importer.add("FILE", files, dest="files", nargs=nargs)
        importer.add("-o --output FILE", "new file to write the mapping to (standard output)")


def run(args: argparse.Namespace) -> int:
    """Write the mapping, and list the lines that are not in it on standard error.

    Exit status: 0 nothing got lost, 1 some lines were not carried over and are listed, or there is
    no route, 2 a file is unreadable, or the output exists.
    """
    if args.output is not None and args.output.is_file():
        raise GatewayError(f"{args.output}: exists; remove it, or write another file")
    files = [(str(path), read_file(path)) for path in args.files]
    document = _imported(args.system, files, site_of(args.files[0]))
    text = render(document)
    _write(text, args.output)
    if args.output is not None or not sys.stdout.isatty():  # a terminal shows the list at the end
        for line in grouped(document.omitted):
            print_line(str(line), sys.stderr)
    variables = unset_variables(text)
    advice = ""
    if variables:
        advice = f"; set {variables} before `gateway check`, or give it --without-secrets"
    if document.live_routes:
        print_line(_fleet_advice(args.output), sys.stderr)
    print_line(_summary(document) + advice, sys.stderr)
    lost = document.lines(LineStatus.NOT_CARRIED_OVER)
    return 1 if lost or not document.live_routes else 0


def _imported(system: str, files: Sequence[tuple[str, bytes]], site: str) -> Document:
    if system == "ems":
        return import_ems(files, site)
    if system == "mosquitto":
        return import_mosquitto(*files[0], include=conf_files, site=site)
    if system == "nanomq":
        return import_nanomq(*files[0], site)
    return import_rabbitmq(*files[0], site)


def _write(text: str, output: Path | None) -> None:
    if output is None:
        print(text, end="")
        return
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise GatewayError(f"{output}: cannot write the file: {error.strerror}") from error


def _fleet_advice(output: Path | None) -> str:
    """Return what to do where several gateways meet at brokers."""
    file = output or "MAPPING.yaml"
    return (
        "gateway: with other gateways at these brokers, write each `broker_id`, and run"
        f" gateway check {file} OTHER.yaml ..."
    )


def _summary(document: Document) -> str:
    lost, stay = (len(document.lines(status)) for status in LineStatus)
    routes = counted(len(document.live_routes), "route") if document.live_routes else "no routes"
    verb = "stays" if stay == 1 else "stay"
    lines = counted(lost, "line or option", "lines or options")
    return f"gateway: {routes}; {lines} lost, {stay:,} {verb} at the broker"
