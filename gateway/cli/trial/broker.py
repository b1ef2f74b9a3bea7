"""`gateway broker`: small brokers for trials."""

from __future__ import annotations

import argparse
import signal

from gateway.cli.parsers import Commands, add_command
from gateway.cli.trial import broker_activemq, broker_smf
from gateway.trial.brokers.yami4 import OverflowPolicy, Yami4Broker, Yami4BrokerOptions


def add_parsers(commands: Commands) -> None:
    """Add `broker` with one command for each system."""
    broker = add_command(commands, "broker", "run a small broker for trials")
    systems = broker.add_subparsers(dest="system", metavar="SYSTEM", required=True)
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
    yami4.set_defaults(run=run)
    broker_smf.add_parser(systems)
    broker_activemq.add_parser(systems)


def run(args: argparse.Namespace) -> int:
    """Print the listening address, and serve until SIGTERM or SIGINT."""
    options = Yami4BrokerOptions(
        max_subscriptions=args.max_subscriptions,
        max_client_queue=args.max_client_queue,
        overflow_policy=OverflowPolicy(args.overflow_policy),
        warm_up=args.warm_up,
    )
    broker = Yami4Broker(args.listen, options)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: broker.stop())
    print(f"listening on {broker.url}", flush=True)  # scripts read the port here
    broker.run()
    return 0
