"""`gateway broker`: a small broker of its own, for trials; it keeps nothing on disk."""

from __future__ import annotations

import argparse
import signal

from gateway.brokers.yami4 import BrokerOptions, OverflowPolicy, Yami4Broker
from gateway.cli.parsers import Commands
from gateway.cli.trial import broker_smf


def add_parsers(commands: Commands) -> None:
    """Add `broker` with one command per system."""
    broker = commands.add_parser("broker", help="run a small broker for trials")
    systems = broker.add_subparsers(dest="system", required=True)
    yami4 = systems.add_parser("yami4", help="a broker that speaks YAMI4")
    defaults = BrokerOptions()
    yami4.add_argument(
        "--listen",
        metavar="URL",
        default="tcp://127.0.0.1:0",
        help="tcp://host:port or unix:///path; port 0 takes a free one",
    )
    yami4.add_argument("--max-subscriptions", type=int, default=defaults.max_subscriptions)
    yami4.add_argument(
        "--max-client-queue",
        type=int,
        default=defaults.max_client_queue,
        help="updates a subscription may have waiting",
    )
    yami4.add_argument(
        "--overflow-policy",
        choices=[policy.value for policy in OverflowPolicy],
        default=defaults.overflow_policy.value,
        help="what happens to an update past --max-client-queue",
    )
    yami4.add_argument(
        "--warm-up", type=float, default=defaults.warm_up, help="seconds before publishing works"
    )
    yami4.set_defaults(run=run)
    broker_smf.add_parser(systems)


def run(args: argparse.Namespace) -> int:
    """Serve until SIGTERM or SIGINT; prints the address it listens on first."""
    options = BrokerOptions(
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
