"""`gateway broker activemq`: Debian's ActiveMQ for trials of JMS."""

from __future__ import annotations

import argparse
from pathlib import Path

from gateway.cli.parsers import Commands, add_command
from gateway.trial.brokers.activemq import DEFAULT_PORT, serve


def add_parser(systems: Commands) -> None:
    """Add `activemq` to the systems of `gateway broker`."""
    activemq = add_command(
        systems,
        "activemq",
        "run ActiveMQ, a JMS broker, and print the settings of its endpoint",
        "It needs Java and Debian's packages activemq and libmqtt-client-java.",
    )
    activemq.add_argument(
        "--port",
        type=int,
        default=0,
        help=f"port; 0 selects a free port; ActiveMQ's own is {DEFAULT_PORT} (0)",
    )
    activemq.add_argument(
        "--store",
        type=Path,
        metavar="FOLDER",
        help="folder for queues and their messages; without it they are lost at the end",
    )
    activemq.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the listening address and the settings, and serve until SIGTERM or SIGINT."""
    serve(args.port, args.store)
    return 0
