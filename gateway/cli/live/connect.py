"""`gateway connect CONFIG`: open every endpoint once and print what its broker answers.

It sends and subscribes nothing. Exit status: 0 every broker accepts the connection, 1 not all do.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from time import monotonic

from gateway.cli.parsers import CONFIG, CommandParser
from gateway.config.load import load
from gateway.endpoints.base import address_of
from gateway.endpoints.registry import make_sink
from gateway.endpoints.settings.base import EndpointSettings, Server
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
    servers = [*settings.servers()]
    if not address and len(servers) == 1 and servers[0].port is not None:
        host = servers[0].host
        address = f"[{host}]:{servers[0].port}" if ":" in host else f"{host}:{servers[0].port}"
    tls = _certificate(settings, servers, address)
    shown = address or settings.broker_key
    facts = (f"connected to {shown} ({seconds:.1f} s)", settings.way, tls)
    return f"{settings.name}: {'; '.join(filter(None, facts))}"


def _certificate(settings: EndpointSettings, servers: Sequence[Server], address: str) -> str:
    """Return what the server at `address` shows of itself; empty without TLS, or a port."""
    host, _, port = address.rpartition(":")
    for each in servers:
        if each.host == host.strip("[]") and port in {str(each.port), ""}:
            return describe_certificate(settings, each)
    return ""
