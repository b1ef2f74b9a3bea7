"""`gateway broker`: small brokers for trials."""

from __future__ import annotations

import argparse
import signal
import ssl
from pathlib import Path

from gateway.cli.parsers import Commands, add_command
from gateway.errors import GatewayError, first_line
from gateway.trial.brokers.activemq import DEFAULT_PORT, serve
from gateway.trial.brokers.smf import BrokerOptions, QueueOptions, SmfBroker
from gateway.trial.brokers.yami4 import OverflowPolicy, Yami4Broker, Yami4BrokerOptions


def add_parsers(commands: Commands) -> None:
    """Add `broker` with one command for each system."""
    broker = add_command(commands, "broker", "run a small broker for trials")
    systems = broker.add_subparsers(dest="system", metavar="SYSTEM", required=True)
    _add_yami4(systems)
    _add_smf(systems)
    _add_activemq(systems)


def _add_yami4(systems: Commands) -> None:
    yami4 = add_command(systems, "yami4", "run a YAMI4 broker")
    defaults = Yami4BrokerOptions()
    yami4.add_argument(
        "--listen",
        metavar="URL",
        default="tcp://127.0.0.1:0",
        help="tcp://host:port or unix:///path; port 0 selects a free port",
    )
    yami4.add_argument(
        "--max-subscriptions",
        type=int,
        default=defaults.max_subscriptions,
        metavar="N",
        help="maximum number of subscriptions (%(default)s)",
    )
    yami4.add_argument(
        "--max-client-queue",
        type=int,
        default=defaults.max_client_queue,
        metavar="N",
        help="maximum number of queued updates per subscription (%(default)s)",
    )
    yami4.add_argument(
        "--overflow-policy",
        choices=[policy.value for policy in OverflowPolicy],
        default=defaults.overflow_policy.value,
        help="handling of updates above --max-client-queue (%(default)s)",
    )
    yami4.add_argument(
        "--warm-up",
        type=float,
        default=defaults.warm_up,
        metavar="SECONDS",
        help="time before publishing is allowed (%(default)s)",
    )
    yami4.set_defaults(run=run_yami4)


def _add_smf(systems: Commands) -> None:
    smf = add_command(systems, "smf", "run an SMF broker for Solace clients")
    smf.add_argument("--host", default="127.0.0.1", help="address to listen on")
    smf.add_argument(
        "--port",
        type=int,
        default=0,
        help="port; 0 selects a free port; Solace brokers use 55555 (0)",
    )
    smf.add_argument("--vpn", action="append", metavar="NAME", help="message VPN (default)")
    smf.add_argument(
        "--logins",
        type=Path,
        metavar="FILE",
        help="file of accepted users, a line NAME:PASSWORD for each; without this option every"
        " client is accepted",
    )
    smf.add_argument(
        "--queue",
        action="append",
        type=_queue,
        default=[],
        metavar="NAME[=TOPIC,TOPIC]",
        help="durable queue to create at the start, with its topic subscriptions",
    )
    smf.add_argument(
        "--store",
        type=Path,
        metavar="FOLDER",
        help="folder for queues and guaranteed messages; without it they are lost at the end",
    )
    smf.add_argument("--cert", metavar="FILE", help="certificate (PEM); enables TLS")
    smf.add_argument("--key", metavar="FILE", help="private key (contained in --cert)")
    smf.add_argument(
        "--client-ca",
        metavar="FILE",
        help="CA for client certificates; clients without one are rejected",
    )
    smf.add_argument(
        "--reject-unmatched",
        action="store_true",
        help="refuse guaranteed messages without a subscriber",
    )
    smf.set_defaults(run=run_smf)


def _add_activemq(systems: Commands) -> None:
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
    activemq.set_defaults(run=run_activemq)


def run_yami4(args: argparse.Namespace) -> int:
    """Print the listening address, and serve until SIGTERM or SIGINT."""
    options = Yami4BrokerOptions(
        max_subscriptions=args.max_subscriptions,
        max_client_queue=args.max_client_queue,
        overflow_policy=OverflowPolicy(args.overflow_policy),
        warm_up=args.warm_up,
    )
    return _serve(Yami4Broker(args.listen, options))


def _serve(broker: Yami4Broker | SmfBroker) -> int:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: broker.stop())
    print(f"listening on {broker.url}", flush=True)  # scripts read the port here
    broker.run()
    return 0


def run_smf(args: argparse.Namespace) -> int:
    """Print the listening address, and serve until SIGTERM or SIGINT."""
    options = BrokerOptions(
        vpns=tuple(args.vpn or ("default",)),
        users=None if args.logins is None else _read_users(args.logins),
        queues=tuple(args.queue),
        reject_unmatched=args.reject_unmatched,
    )
    broker = SmfBroker(args.port, options, host=args.host, store=args.store, tls=_tls(args))
    return _serve(broker)


def run_activemq(args: argparse.Namespace) -> int:
    """Print the listening address and the settings, and serve until SIGTERM or SIGINT."""
    serve(args.port, args.store)
    return 0


def _read_users(path: Path) -> dict[str, str]:
    """Return the passwords by user; they are in a file, since every process may read arguments.

    Raises:
        GatewayError: the file cannot be read, or a line has no name or no password.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeError) as error:
        raise GatewayError(f"{path}: cannot read the users: {first_line(error)}") from error
    users = [line.partition(":") for line in lines if line]
    for number, (name, colon, _) in enumerate(users, start=1):
        if not colon or not name:
            raise GatewayError(f"{path}: user {number} has no password; write NAME:PASSWORD")
    return {name: password for name, _, password in users}


def _queue(text: str) -> QueueOptions:
    name, _, topics = text.partition("=")
    if not name:
        raise argparse.ArgumentTypeError("the queue has no name; write NAME=TOPIC,TOPIC")
    return QueueOptions(name, tuple(filter(None, topics.split(","))))


def _tls(args: argparse.Namespace) -> ssl.SSLContext | None:
    if args.cert is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(args.cert, args.key)
    if args.client_ca is not None:
        context.load_verify_locations(args.client_ca)
        context.verify_mode = ssl.CERT_REQUIRED
    return context
