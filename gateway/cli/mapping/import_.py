"""`gateway import ems` and `gateway import mosquitto`: what people have today as a mapping file.

Exit codes: 0 all was carried over, 1 something was not and is listed, 2 a file cannot be read.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from gateway.cli.parsers import Commands
from gateway.errors import GatewayError
from gateway.imports.document import Document, render
from gateway.imports.ems.importer import import_ems
from gateway.imports.mosquitto.importer import import_mosquitto

MAX_BYTES = 4 << 20  # a larger file is no configuration


def add_parsers(commands: Commands) -> None:
    parser = commands.add_parser("import", help="a mapping from what another bridge is told")
    systems = parser.add_subparsers(dest="system", metavar="SYSTEM", required=True)
    ems = systems.add_parser("ems", help="bridges, topics and transports of an EMS server")
    ems.add_argument(
        "files", nargs="+", type=Path, metavar="FILE",
        help="bridges.conf, topics.conf, transports.conf: known by their names or by what they say",
    )  # fmt: skip
    mosquitto = systems.add_parser("mosquitto", help="the bridges of a mosquitto broker")
    mosquitto.add_argument("files", nargs=1, type=Path, metavar="FILE", help="mosquitto.conf")
    for each in (ems, mosquitto):
        each.add_argument(
            "-o", "--output", type=Path, metavar="FILE", help="write there, not to the terminal"
        )
        each.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Write the mapping; what is not in it goes to standard error, line by line."""
    files = [(str(path), _read(path)) for path in args.files]
    document = import_ems(files) if args.system == "ems" else import_mosquitto(*files[0])
    _write(render(document), args.output)
    for left in document.left:
        print(left, file=sys.stderr)
    print(_summary(document), file=sys.stderr)
    return 1 if document.left or not document.rules else 0


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise GatewayError(f"{path}: cannot read the file: {error.strerror}") from error
    if len(data) > MAX_BYTES:
        raise GatewayError(f"{path}: the file is larger than {MAX_BYTES} bytes")
    if b"\0" in data:
        raise GatewayError(f"{path}: the file is not text")
    return data


def _write(text: str, output: Path | None) -> None:
    if output is None:
        print(text, end="")
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise GatewayError(f"{output}: cannot write the file: {error.strerror}") from error


def _summary(document: Document) -> str:
    routes, left = len(document.rules), len(document.left)
    return f"gateway: {routes} routes, {left} lines or options are not in the mapping"
