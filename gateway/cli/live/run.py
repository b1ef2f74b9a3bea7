"""`gateway run CONFIG`: the sidecar; SIGTERM finishes what is in hand, a second one exits."""

from __future__ import annotations

import argparse
import gc
import logging
import os
import signal
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from gateway.check.encryption import exposures
from gateway.check.examine import load_proven
from gateway.cli.live.signals import ENDS, Signals
from gateway.cli.parsers import Commands
from gateway.config.load import Configuration
from gateway.errors import ConfigErrors, GatewayError
from gateway.logs.lines import FORMATS, LEVELS, Journal, set_up_logging
from gateway.logs.redaction import secrets_of
from gateway.runtime.gateway import Gateway
from gateway.web import open_page

log = logging.getLogger(__name__)
GARBAGE = 100_000  # objects between searches for cycles; Python's own 700 cost a tenth of all time


def add_parsers(commands: Commands) -> None:
    parser = commands.add_parser("run", help="bridge what the configuration says")
    parser.add_argument("config", type=Path, metavar="CONFIG", help="a YAML file or a folder")
    parser.add_argument(
        "--log-level", default="info", choices=LEVELS, help="SIGUSR1: debug for 5 minutes"
    )
    parser.add_argument(
        "--log-format", default="auto", choices=FORMATS, help="auto: text on a terminal, else json"
    )
    parser.add_argument(
        "--log-repeats",
        type=float,
        default=10.0,
        metavar="SECONDS",
        help="count a line that comes again within this time; 0 says each (10)",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    signals = Signals()  # first of all: a hangup would end the process
    signals.catch(signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
    journal = set_up_logging(args.log_level, args.log_format, repeats=args.log_repeats)
    configuration = load_proven(args.config)
    journal.hide(secrets_of(configuration))
    say_exposures(configuration)
    signals.catch(*ENDS)  # from here on something may be in hand
    bridge = Gateway(configuration)
    page = open_page(bridge, str(args.config))
    bridge.start()
    if page is not None:
        page.start()
    log.info("running", extra={"routes": len(bridge.counters), "pid": os.getpid()})
    collect_rarely()
    attend(
        signals,
        {
            signal.SIGHUP: partial(reload, bridge, args.config, journal),
            signal.SIGUSR1: journal.louder,
            signal.SIGUSR2: journal.normal,  # before its minutes are over
        },
    )
    log.info("stopping")
    settled = bridge.stop(configuration.gateway.stop_seconds)
    if page is not None:
        page.stop()
    log.info("stopped", extra={"settled": settled})
    journal.close()
    if "jpype" in sys.modules:  # a virtual machine may crash while Python takes itself apart
        os._exit(0)
    return 0


def collect_rarely() -> None:
    """Keep the search for cycles off the messages' way: they have none, and end without it.

    What is there now stays, and is not searched again.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE, 50, 100)


def say_exposures(configuration: Configuration) -> None:
    """What `gateway check` warns of is said at every start too, for those who never ran it."""
    for each in exposures(configuration.endpoints):
        if each.severity == "warning":
            log.warning("%s; %s", each.reason, each.hint, extra={"rule": each.rule})


def attend(signals: Signals, actions: Mapping[int, Callable[[], None]]) -> None:
    """Do what signals ask for, until one asks for the end."""
    while (number := signals.next()) not in ENDS:
        actions[number]()


def reload(bridge: Gateway, path: Path, journal: Journal) -> None:
    """Take the configuration anew; one that is wrong changes nothing and is said to be."""
    try:
        wanted = load_proven(path)
        journal.hide(secrets_of(wanted))
        bridge.reload(wanted)
    except ConfigErrors as errors:
        for finding in errors.findings:
            log.error("%s", finding)  # noqa: TRY400  # the finding says it all
        log.error("not reloaded; what ran goes on")  # noqa: TRY400
    except GatewayError as error:
        log.error("not reloaded; what ran goes on: %s", error)  # noqa: TRY400
    else:
        log.info("reloaded", extra={"routes": len(bridge.configuration.routes)})
