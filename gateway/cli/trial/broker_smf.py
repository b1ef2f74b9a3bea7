"""`gateway broker smf`: a small Solace-like broker for trials."""

from __future__ import annotations

import argparse
import signal
import ssl
import sys
from pathlib import Path

from gateway.brokers.smf import BrokerOptions, QueueOptions, SmfBroker
from gateway.cli.parsers import Commands


def add_parser(systems: Commands) -> None:
    """Add `smf` to the systems of `gateway broker`."""
    smf = systems.add_parser("smf", help="a broker that speaks SMF to Solace clients")
    smf.add_argument("--host", default="127.0.0.1", help="the address to listen at")
    smf.add_argument("--port", type=int, default=0, help="0 takes a free one; real ones use 55555")
    smf.add_argument(
        "--vpn", action="append", metavar="NAME", help="a message VPN; default `default`"
    )
    smf.add_argument(
        "--user",
        action="append",
        type=_user,
        metavar="NAME:PASSWORD",
        help="who is let in; everybody without this option",
    )
    smf.add_argument(
        "--queue",
        action="append",
        type=_queue,
        default=[],
        metavar="NAME[=TOPIC,TOPIC]",
        help="a durable queue that exists from the start, with its topic subscriptions",
    )
    smf.add_argument(
        "--store",
        type=Path,
        metavar="FOLDER",
        help="keep queues and guaranteed messages here over restarts; memory only without it",
    )
    smf.add_argument("--cert", metavar="FILE", help="certificate (PEM); makes it serve TLS")
    smf.add_argument("--key", metavar="FILE", help="its key; in --cert when absent")
    smf.add_argument("--client-ca", metavar="FILE", help="demand client certificates from these")
    smf.add_argument(
        "--reject-unmatched",
        action="store_true",
        help="refuse guaranteed messages that nobody subscribes to",
    )
    smf.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Serve until SIGTERM or SIGINT; prints the address it listens on first."""
    options = BrokerOptions(
        vpns=tuple(args.vpn or ("default",)),
        users=dict(args.user) if args.user else None,
        queues=tuple(args.queue),
        reject_unmatched=args.reject_unmatched,
    )
    broker = SmfBroker(args.port, options, host=args.host, store=args.store, tls=_tls(args))
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: broker.stop())
    sys.stdout.write(f"listening on {broker.url}\n")  # scripts read the port here
    sys.stdout.flush()
    broker.run()
    return 0


def _user(text: str) -> tuple[str, str]:
    name, colon, password = text.partition(":")
    if not colon or not name:
        raise argparse.ArgumentTypeError(f"{name!r} has no password; write NAME:PASSWORD")
    return name, password


def _queue(text: str) -> QueueOptions:
    name, _, topics = text.partition("=")
    if not name:
        raise argparse.ArgumentTypeError("a queue without a name; write NAME=TOPIC,TOPIC")
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
