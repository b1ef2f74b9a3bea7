"""`gateway run CONFIG`: the sidecar; SIGTERM finishes what is in hand, a second one exits."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import threading
from pathlib import Path

from gateway.cli.parsers import Commands
from gateway.config.examine import load_proven
from gateway.runtime.logs import FORMATS, set_up_logging
from gateway.runtime.supervisor import Gateway

log = logging.getLogger(__name__)


def add_parsers(commands: Commands) -> None:
    parser = commands.add_parser("run", help="bridge what the configuration says")
    parser.add_argument("config", type=Path, metavar="CONFIG", help="a YAML file or a folder")
    parser.add_argument(
        "--log-level", default="info", choices=("debug", "info", "warning", "error")
    )
    parser.add_argument(
        "--log-format", default="auto", choices=FORMATS, help="auto: text on a terminal, else json"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    set_up_logging(args.log_level, args.log_format)
    configuration = load_proven(args.config)
    stop = stop_on_signals()
    bridge = Gateway(configuration)
    bridge.start()
    log.info("running", extra={"routes": len(bridge.counters), "pid": os.getpid()})
    stop.wait()
    log.info("stopping")
    settled = bridge.stop(configuration.gateway.stop_seconds)
    log.info("stopped", extra={"settled": settled})
    return 0


def stop_on_signals() -> threading.Event:
    """An event that the first SIGTERM or SIGINT sets; a second one ends the process at once."""
    stop = threading.Event()

    def on_signal(number: int, _frame: object) -> None:
        if stop.is_set():
            os._exit(128 + number)
        stop.set()

    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGINT, on_signal)
    return stop
