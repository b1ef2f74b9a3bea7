"""`gateway tail CONFIG ROUTE`: show the messages of a route as they pass.

Without ROUTE it lists the routes and connects to nothing.

It subscribes at the source of the route with a client id of its own, and shows what the route makes
of each message; a running gateway is not asked. It takes no message from another reader, keeps
nothing at the broker and sends nothing. The broker sends each message once more, and a log-in with
this user. A queue, a shared subscription and a kind of endpoint without such a reader are refused.
Ctrl-C ends it. Exit status: 0 ended, 2 the route cannot be shown, or the connection ended.
"""

from __future__ import annotations

import argparse
import secrets
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import islice
from threading import Event
from typing import Any, Final

from gateway.check.result_copies import NOW, copies
from gateway.cli.live.signals import stop_signals
from gateway.cli.mapping.explained_message import copy_values, message_lines
from gateway.cli.parsers import CONFIG, CommandParser
from gateway.clock import moment, now
from gateway.config.load import Configuration, load
from gateway.endpoints.base import Source
from gateway.endpoints.registry import find_kind, make_source
from gateway.endpoints.settings.base import EndpointSettings
from gateway.errors import GatewayError
from gateway.model.message import Message
from gateway.model.outcome import ACCEPTED
from gateway.routing.route import Route
from gateway.runtime.inbound.subscriptions import subscriptions
from gateway.terminal.text import print_line

RECEIVE_TIMEOUT: Final = 0.25  # seconds; an interrupt waits this long
MAX_SHOWN: Final = 200  # characters of a payload


def add_options(parser: CommandParser) -> None:
    parser.add(*CONFIG)
    parser.add("ROUTE", "name of the route; without it the routes are listed", nargs="?")
    parser.add("--count N", "end after N messages of the route")
    parser.add("--payload", f"show payloads, too, up to {MAX_SHOWN} characters")


def run(args: argparse.Namespace) -> int:
    """Print the messages until a signal, or until there are `--count` of them.

    Raises:
        GatewayError: the route is unknown or its source has no further reader; the connection ends.
    """
    configuration = load(args.config)
    if args.route is None:
        for each in configuration.routes:
            pattern = configuration.hidden.hide(each.source.text, ("routes", each.name))
            print_line(f"{each.name}: {each.endpoint} {pattern}")
        return 0
    route = _route(configuration, args.route)
    source = _open_source(configuration, route)
    with stop_signals() as stopping:
        try:
            source.open()
            shown = _shown(source, route, configuration, stopping, payload=args.payload)
            for lines in islice(shown, args.count):
                for line in lines:
                    print_line(line)
                print(end="", flush=True)
        finally:
            source.close()
    return 0


def _route(configuration: Configuration, name: str) -> Route:
    for route in configuration.routes:
        if route.name == name:
            return route
    known = ", ".join(each.name for each in configuration.routes)
    raise GatewayError(f"{name!r} is no route; known are {known}")


def _open_source(configuration: Configuration, route: Route) -> Source:
    """Return a closed source that disturbs no other reader of the route's messages."""
    settings: Any = configuration.endpoints[route.endpoint].settings  # a dataclass
    kind = find_kind(settings)
    if kind.observer is None:
        raise GatewayError(
            f"{route.endpoint}: kind {kind.name} has no reader that leaves the messages and the"
            " broker as they are"
        )
    observer: EndpointSettings = replace(settings, **kind.observer)
    if route.source.share or observer.group(route.source.text):
        raise GatewayError(
            f"route {route.name!r}: its source divides the messages among the readers of a queue or"
            " share; a further reader would take some of them"
        )
    wanted = [replace(each, exclude_retained=True) for each in subscriptions([route])]
    return make_source(observer, wanted, instance=f"tail-{secrets.token_hex(4)}")


def _shown(
    source: Source, route: Route, configuration: Configuration, stopping: Event, *, payload: bool
) -> Iterator[list[str]]:
    """Yield the lines of each message that the route takes, until `stopping` is set."""
    while not stopping.is_set():
        batch = source.receive(RECEIVE_TIMEOUT)
        if batch is None:
            continue
        for message in batch.messages:
            if lines := list(_lines(message, route, configuration, payload=payload)):
                yield lines
        batch.settle([ACCEPTED] * len(batch.messages))


def _lines(
    message: Message, route: Route, configuration: Configuration, *, payload: bool
) -> Iterator[str]:
    at = now()
    expiry = message.headers.expiry
    if expiry is not None:  # the rules are applied at NOW
        headers = replace(message.headers, expiry=NOW + expiry - at)
        message = replace(message, headers=headers)
    hide = partial(configuration.hidden.hide, at=("routes",))
    found = list(copies([route], message, configuration))
    if found:
        yield f"{moment(at):%H:%M:%S.%f}Z {route.endpoint} {message.address}"
    for copy in found:
        values = dict(copy_values(copy, hide))
        yield f"  -> {copy.endpoint}" + (f" {values['name']}" if "name" in values else "")
        text = values.pop("payload", None)
        if payload and text is not None:
            values["payload"] = _cut(str(text))
        yield from message_lines(values, copy.endpoint)


def _cut(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}... ({len(text)} characters)"
