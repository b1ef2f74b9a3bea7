"""`gateway status`: show the status of a running gateway.

Exit status: 0 ready, 1 not ready, 2 no answer.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import TYPE_CHECKING, Final

from gateway.cli.parsers import Commands, add_documented, add_option
from gateway.errors import NoAnswerError, WebError

if TYPE_CHECKING:
    from pathlib import Path

    from gateway.web.client import StatusClient
    from gateway.web.snapshot import Json

MAX_ROWS: Final = 20  # endpoints, and routes, on a terminal
WAIT_INTERVAL: Final = 0.1  # seconds between two questions to a gateway that is not ready
RATE_INTERVAL: Final = 1.0  # seconds between the two requests that a rate needs


def add_parsers(commands: Commands) -> None:
    parser = add_documented(commands, "status", __doc__, run)
    add_arguments(parser)
    add_option(parser, "--json", "print the response of /api/status")
    text = f"show all rows on a terminal, not the first {MAX_ROWS}"
    add_option(parser, "--all", text)
    add_option(parser, "--wait SECONDS", "wait until the gateway is ready, at most so long", 0.0)


def run(args: argparse.Namespace) -> int:
    """Exit status: 0 ready, 1 not ready, 2 no answer."""
    client = client_of(args)
    first = _status(client, time.monotonic() + args.wait)
    if args.json:
        print(json.dumps(first))
        return 0 if first["ready"] else 1
    from gateway.cli.live.dashboard import DashboardSize, dashboard  # noqa: PLC0415  # not for --json
    from gateway.terminal.console import open_console, print_lines  # noqa: PLC0415

    time.sleep(RATE_INTERVAL)
    latest = client.status()
    console = open_console()
    rows = MAX_ROWS if console.is_terminal and not args.all else None
    limits = DashboardSize(rows, hint="; --all shows them")
    print_lines(dashboard(latest, first, console, limits), console)
    return 0 if latest["ready"] else 1


def _status(client: StatusClient, deadline: float) -> Json:
    """Return the status as soon as the gateway is ready, or that at the deadline.

    Raises:
        WebError: it does not answer, or needs another token.
    """
    while True:
        try:
            found = client.status()
        except NoAnswerError:
            if time.monotonic() >= deadline:
                raise
        else:
            if found["ready"] or time.monotonic() >= deadline:
                return found
        time.sleep(WAIT_INTERVAL)


DEFAULT_URL: Final = "http://127.0.0.1:8047"  # the default address of a section `web`
EVERY_ADDRESS: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  # and how to reach it


def add_arguments(parser: argparse.ArgumentParser) -> None:
    text = "configuration of the running gateway, for its address and token"
    add_option(parser, "CONFIG", text, nargs="?")
    add_option(parser, "--url URL", "address of the running gateway", DEFAULT_URL)
    add_option(parser, "--token-file FILE", "file with the token")
    add_option(parser, "--ca-file FILE", "CA of the gateway's certificate (PEM)")
    add_option(parser, "--cert-file FILE", "client certificate (PEM)")
    add_option(parser, "--key-file FILE", "key of the client certificate (PEM)")


def client_of(args: argparse.Namespace) -> StatusClient:
    """The client for the arguments of `add_arguments`.

    Raises:
        ConfigErrors: the configuration has errors.
        WebError: it has no section `web` with a port, or a file cannot be used.
    """
    from gateway.web.client import ConnectionOptions, StatusClient  # noqa: PLC0415  # `gateway run` does without

    url, token = args.url, ""
    if args.config is not None:
        url, token = _at(args.config, args.url)
    return StatusClient(
        ConnectionOptions(url, args.token_file, args.ca_file, args.cert_file, args.key_file, token)
    )


def _at(config: Path, url: str) -> tuple[str, str]:
    """Return the URL that `config` says, unless another one than the default was given; its token.

    Raises:
        WebError: it has no section `web` with a port.
    """
    from gateway.config.load import load  # noqa: PLC0415  # only with a configuration

    web = load(config).web
    if url != DEFAULT_URL:
        return url, "" if web is None else web.token or ""
    if web is None or not web.port:
        what = "`web`" if web is None else "`web.port`"
        raise WebError(f"{config}: has no {what}; add it, or give the address with --url")
    host = EVERY_ADDRESS.get(web.address, web.address)
    shown = f"[{host}]" if ":" in host else host
    return f"{'https' if web.cert_file else 'http'}://{shown}:{web.port}", web.token or ""
