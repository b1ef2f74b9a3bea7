"""`gateway connect CONFIG`: open every endpoint once and print what its broker answers.

It sends and subscribes nothing. Exit status: 0 every broker accepts the connection, 1 not all do.
"""

from __future__ import annotations

import argparse
from time import monotonic

from gateway.cli.parsers import CONFIG, CommandParser
from gateway.config.load import load
from gateway.endpoints.base import address_of
from gateway.endpoints.registry import make_sink
from gateway.endpoints.settings.base import EndpointSettings
from gateway.endpoints.tls import describe_certificate
from gateway.errors import GatewayError
from gateway.terminal.text import print_line


def add_options(parser: CommandParser) -> None:
    parser.add(*CONFIG)


def run(args: argparse.Namespace) -> int:
    """Print one line for each endpoint, in the order of the file."""
    configuration = load(args.config)
    refused = 0
    for name, endpoint in configuration.endpoints.items():
        try:
            line = _open(endpoint.settings)
        except GatewayError as error:
            refused += 1
            line = str(error)
        print_line(configuration.hidden.hide(line, ("endpoints", name)))
    return int(refused > 0)


def _open(settings: EndpointSettings) -> str:
    """Open the sending side, which needs no subscription, with a client id of its own.

    Raises:
        EndpointError: the broker does not answer or refuses, or its driver is absent.
    """
    begun = monotonic()
    sink = make_sink(settings, instance="connect")
    try:
        sink.open()
        seconds = monotonic() - begun
        address = address_of(sink)
    finally:
        sink.close()
    servers = {f"{each.host}:{each.port}": each for each in settings.servers()}
    if not address:
        address = next(iter(servers)) if len(servers) == 1 else settings.broker_key
    tls = describe_certificate(settings, servers[address]) if address in servers else ""
    return f"{settings.name}: connected to {address} ({seconds:.1f} s){tls and '; '}{tls}"
