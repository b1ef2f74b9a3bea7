"""`gateway broker`: run a small broker for trials."""

from __future__ import annotations

import argparse
import logging
import signal
import ssl
from pathlib import Path

from gateway.cli.parsers import CommandParser, Commands, add_command, options_of
from gateway.errors import GatewayError, first_line
from gateway.logs.lines import set_up_logging
from gateway.trial.brokers.activemq import DEFAULT_PORT, serve
from gateway.trial.brokers.smf import BrokerOptions, QueueOptions, SmfBroker
from gateway.trial.brokers.yami4 import OverflowPolicy, Yami4Broker, Yami4BrokerOptions

log = logging.getLogger(__name__)


def add_options(parser: CommandParser) -> None:
    """Add one command for each system."""
    systems = parser.add_subparsers(metavar="SYSTEM", required=True)
    _add_yami4(systems)
    _add_smf(systems)
    _add_activemq(systems)


def _add_yami4(systems: Commands) -> None:
    add = add_command(systems, "yami4", "run a YAMI4 broker", run=run_yami4).add
    defaults = Yami4BrokerOptions()
    text = "tcp://host:port or unix:///path; port 0 selects a free port"
    add("--listen URL", text, "tcp://127.0.0.1:0")
    add("--max-subscriptions N", "maximum number of subscriptions", defaults.max_subscriptions)
    text = "maximum number of queued updates per subscription"
    add("--max-client-queue N", text, defaults.max_client_queue)
    text = "handling of updates above --max-client-queue"
    policies = [policy.value for policy in OverflowPolicy]
    add("--overflow-policy", text, defaults.overflow_policy.value, choices=policies)
    add("--warm-up SECONDS", "time before publishing is allowed (0)", defaults.warm_up)


def _add_smf(systems: Commands) -> None:
    add = add_command(systems, "smf", "run an SMF broker for Solace clients", run=run_smf).add
    add("--host HOST", "address to listen on", "127.0.0.1")
    add("--port PORT", "port; 0 selects a free port; Solace brokers use 55555 (0)", 0)
    add("--vpn NAME", "message VPN (default)", action="append")
    add(
        "--logins FILE",
        "file of accepted users, a line NAME:PASSWORD for each; without this option every client"
        " is accepted",
    )
    text = "durable queue to create at the start, with its topic subscriptions"
    add("--queue NAME[=TOPIC,TOPIC]", text, [], action="append", type=_queue)
    text = "folder for queues and guaranteed messages; without it they are lost at the end"
    add("--store FOLDER", text)
    add("--cert FILE", "certificate (PEM); enables TLS")
    add("--key FILE", "private key (contained in --cert)")
    add("--client-ca FILE", "CA for client certificates; clients without one are rejected")
    add("--reject-unmatched", "refuse guaranteed messages without a subscriber")


def _add_activemq(systems: Commands) -> None:
    activemq = add_command(
        systems,
        "activemq",
        "run ActiveMQ, a JMS broker, and print the settings of its endpoint",
        "It needs Java and Debian's packages activemq and libmqtt-client-java.",
        run_activemq,
    )
    text = f"port; 0 selects a free port; ActiveMQ's own is {DEFAULT_PORT} (0)"
    activemq.add("--port PORT", text, 0)
    text = "folder for queues and their messages; without it they are lost at the end"
    activemq.add("--store FOLDER", text)


def run_yami4(args: argparse.Namespace) -> int:
    """Print the listening address, log connections and refusals, and serve until a signal."""
    policy = OverflowPolicy(args.overflow_policy)
    options = options_of(Yami4BrokerOptions, args, overflow_policy=policy)
    return _serve(Yami4Broker(args.listen, options))


def _serve(broker: Yami4Broker | SmfBroker) -> int:
    control = set_up_logging("info", "text")
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: broker.stop())
    print(f"listening on {broker.url}", flush=True)  # scripts read the port here
    log.info("Ctrl-C or SIGTERM stops the broker")
    broker.run()
    log.info("stopped")
    control.close()
    return 0


def run_smf(args: argparse.Namespace) -> int:
    """Print the listening address, log connections and refusals, and serve until a signal."""
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
