"""`gateway run CONFIG`: run the gateway.

SIGTERM stops it, SIGHUP reloads the configuration, SIGUSR1 logs all for 5 minutes.
"""

from __future__ import annotations

import argparse
import gc
import logging
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gateway.check.examine import load_proven, startup_warnings
from gateway.cli.live.lease import is_over, open_lease
from gateway.cli.live.signals import STOP_SIGNALS, FileWatch, SignalQueue
from gateway.cli.parsers import CONFIG, CommandParser
from gateway.config.load import Configuration
from gateway.errors import ConfigErrors, GatewayError
from gateway.lease.holder import LeaseHolder
from gateway.logs.lines import FORMATS, LEVELS, LogControl, set_up_logging
from gateway.logs.redaction import secrets_of
from gateway.runtime.gateway import Gateway
from gateway.terminal.units import counted
from gateway.web import open_server

if TYPE_CHECKING:
    from gateway.web.server import WebServer

log = logging.getLogger(__name__)
GC_THRESHOLD: Final = 100_000  # new objects; Python's default of 700 took a tenth of the CPU time
RELOAD_REJECTED: Final = "reload rejected; still running the previous configuration"


def add_options(parser: CommandParser) -> None:
    parser.add(*CONFIG)
    parser.add("--log-level", "lowest level of logged lines", "info", choices=LEVELS)
    text = "format of the lines; auto is text on a terminal, else json"
    parser.add("--log-format", text, "auto", choices=FORMATS)
    text = "count lines that repeat within this time; 0 logs each"
    parser.add("--log-repeats SECONDS", text, 10.0)
    text = "reload when this file, or a file of this folder, changes; may be repeated"
    parser.add("--watch PATH", text, [], action="append")


def run(args: argparse.Namespace) -> int:
    # Before anything else: an unhandled SIGHUP ends the process.
    signals = SignalQueue(FileWatch(args.watch).changed)
    signals.catch(signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
    log_control = set_up_logging(args.log_level, args.log_format, repeats=args.log_repeats)
    log_unhandled_errors()
    configuration = load_proven(args.config)
    hide_secrets(configuration, log_control)
    log_warnings(configuration)
    signals.catch(*STOP_SIGNALS)  # from here on a stop must settle and close
    lease = open_lease(configuration)
    running = Gateway(configuration, lease)
    log_unhandled_errors(partial(end_without_thread, running, signals))
    server = open_server(running, str(args.config))
    actions: dict[int, Callable[[], None]] = {
        signal.SIGHUP: partial(reload, running, args.config, log_control, server),
        signal.SIGUSR1: log_control.raise_level,
        signal.SIGUSR2: log_control.restore_level,
    }
    settled = True
    if lease is None or wait_for_lease(lease, running, server, signals, actions):
        running.start()
        if server is not None and lease is None:
            server.start()
        log.info("running", extra={"routes": len(running.counters), "pid": os.getpid()})
        tune_garbage_collection()
        handle_signals(signals, actions, partial(is_over, lease))
        log.info("stopping")
        settled = running.stop(running.configuration.gateway.stop_seconds)
    if lease is not None:
        lease.give()
    if server is not None:
        server.stop()
    log.info("stopped", extra={"settled": settled})
    log_control.close()
    if "jpype" in sys.modules:  # the JVM may crash while the interpreter shuts down
        os._exit(1 if running.thread_failure else 0)
    return 1 if running.thread_failure else 0


def wait_for_lease(
    lease: LeaseHolder,
    running: Gateway,
    server: WebServer | None,
    signals: SignalQueue,
    actions: Mapping[int, Callable[[], None]],
) -> bool:
    """Wait as a warm standby; return whether the lease is held, and no stop signal came."""
    running.warm_up()
    if server is not None:
        server.start()
    lease.start()
    log.info("standby", extra={"instance": lease.instance, "pid": os.getpid()})
    stopped = handle_signals(signals, actions, lambda: lease.holds() or lease.ended)
    return not stopped and not is_over(lease)


def end_without_thread(running: Gateway, signals: SignalQueue, failure: str) -> None:
    """Stop the process: without one of its threads it would carry a part of the traffic only."""
    running.thread_failure = running.thread_failure or failure
    signals.stop()


def log_unhandled_errors(ended: Callable[[str], None] = lambda _: None) -> None:
    """Log warnings, and errors that no code catches: those of threads, and of drivers' callbacks.

    `ended` receives the reason why a thread ended.

    Python prints them to standard error as they are, with the secrets and control characters in
    their texts.
    """

    def of_thread(args: threading.ExceptHookArgs) -> None:
        if not issubclass(args.exc_type, SystemExit):
            log.error("a thread ended by an error", exc_info=args.exc_value)
            name = args.thread.name if args.thread else "of a driver"
            ended(f"thread {name} ended: {args.exc_type.__name__}: {args.exc_value}")

    threading.excepthook = of_thread
    sys.unraisablehook = lambda args: log.error("a callback failed", exc_info=args.exc_value)
    warnings.showwarning = lambda message, *_, **_more: log.warning("%s", message)


def tune_garbage_collection() -> None:
    """Collect rarely, because messages make no reference cycles, and never scan old objects."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(GC_THRESHOLD, 50, 100)


def log_warnings(configuration: Configuration) -> None:
    """Log the warnings of `gateway check` about endpoints at every start."""
    for each in startup_warnings(configuration):
        log.warning("%s; %s", each.reason, each.hint, extra={"rule": each.rule})


def handle_signals(
    signals: SignalQueue,
    actions: Mapping[int, Callable[[], None]],
    ended: Callable[[], bool] = lambda: False,
) -> bool:
    """Run the action of each signal until a stop signal comes, or `ended` returns true.

    Return whether it was a stop signal.
    """
    while (number := signals.next(ended)) is not None and number not in STOP_SIGNALS:
        actions[number]()
    return number is not None


def hide_secrets(configuration: Configuration, log_control: LogControl) -> None:
    """Keep the secrets of a configuration out of the log, and those that its files have later."""
    log_control.hide(secrets_of(configuration))
    configuration.hidden.learned = log_control.learn


def reload(running: Gateway, path: Path, log_control: LogControl, server: WebServer | None) -> None:
    """Load and apply the configuration again; one with errors changes nothing and is logged.

    An error that is not a finding is a fault of the gateway; it is logged, and the gateway runs on.
    """
    running.reload_refused = RELOAD_REJECTED  # until it is through
    try:
        wanted = load_proven(path)
        hide_secrets(wanted, log_control)
        use = server.prepared(wanted.web) if server and wanted.web else None
        running.reload(wanted)
        if use is not None:
            use()
    except ConfigErrors as errors:
        for finding in errors.findings:
            log.error("%s", finding)  # noqa: TRY400  # the finding is complete
        log.error(RELOAD_REJECTED)  # noqa: TRY400
        first, *more = errors.findings
        running.reload_refused = (
            f"{first}; and {counted(len(more), 'more finding')}" if more else str(first)
        )
    except GatewayError as error:
        running.reload_refused = str(error)
        log.error(f"{RELOAD_REJECTED}: %s", error)  # noqa: TRY400, G004  # a constant
    except Exception as error:
        running.reload_refused = f"{type(error).__name__}, a fault of the gateway: see the log"
        log.exception("reload failed; restart the gateway when routes or endpoints do not work")
    else:
        running.reload_refused = ""
        log.info("reloaded", extra={"routes": len(running.configuration.routes)})
