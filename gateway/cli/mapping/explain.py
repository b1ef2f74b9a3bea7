"""`gateway explain NAME --config CONFIG`: show the routes and the targets of a name.

Exit status: 0 a target accepts the name, or the message, 1 no target does.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from functools import partial

from gateway.check.given_headers import assumed_values
from gateway.cli.mapping.explained_message import RouteMessage, TypedMessage, message_lines
from gateway.cli.parsers import WITHOUT_SECRETS, CommandParser
from gateway.config.load import Configuration, load
from gateway.model.message import Value
from gateway.routing.explain import RouteResult, TargetResult, explain
from gateway.routing.route import Route
from gateway.terminal import print_line

_SELECTED = {
    None: "not evaluated; give the properties of the message with --property NAME=VALUE",
    True: "true for this message",
    False: "not true for this message, which the route leaves out",
}


def add_options(parser: CommandParser) -> None:
    parser.add("NAME", "name in the syntax of the source system")
    parser.add("--config CONFIG", "YAML file, or a folder of YAML files", required=True)
    parser.add("--from ENDPOINT", "show only routes from this endpoint", dest="endpoint")
    text = (
        "property or JMS header of the message, for selectors: amount=150, JMSPriority=5;"
        " repeatable"
    )
    parser.add("--property NAME=VALUE", text, [], dest="properties", action="append")
    text = (
        "header of the message, by its name in header rules: priority=7, ttl=30,"
        " content_type=text/plain; repeatable"
    )
    parser.add("--header NAME=VALUE", text, [], dest="headers", action="append")
    text = (
        "payload of the message; with it, or with headers or properties, the whole message of"
        " each target is shown"
    )
    parser.add("--payload TEXT", text)
    parser.add(*WITHOUT_SECRETS)
    parser.add("--json", "print JSON")


def run(args: argparse.Namespace) -> int:
    """Print the result of every route; exit status 0 when a target accepts the name, else 1."""
    configuration = load(args.config, without_secrets=args.without_secrets)
    hide = partial(configuration.hidden.hide, at=("routes",))
    given = TypedMessage(args)
    results = [
        replace(each, pattern=hide(each.pattern), selector=hide(each.selector))
        for each in explain(
            args.name,
            configuration.routes,
            args.endpoint,
            partial(given.headers_at, configuration=configuration) if given else None,
        )
    ]
    routes = [each for each in configuration.routes if args.endpoint in (None, each.endpoint)]
    assumed = [_assumed(each, configuration, given.properties) for each in routes]
    messages = [given.at(each, configuration) for each in routes]
    arrives = any(made.name for each in results if each.selected is not False for made in each.made)
    if given:
        arrives = any(each.arrives for each in messages)
    if args.json:
        shown = [_as_json(*each) for each in zip(results, assumed, messages, strict=True)]
        print(json.dumps(shown, indent=2, default=repr))
    else:
        for each, values, message in zip(results, assumed, messages, strict=True):
            for line in _lines(each, values, message):
                print_line(line)
        if not arrives:
            print_line(f"no target gets this {'message' if given else 'name'}")
    return 0 if arrives else 1


def _as_json(
    result: RouteResult, assumed: Mapping[str, Value], message: RouteMessage
) -> dict[str, object]:
    made = [
        asdict(each) | ({"messages": message.at(number)} if message.made else {})
        for number, each in enumerate(result.made)
    ]
    return asdict(result) | {"made": made, "assumed": assumed if result.selector else {}}


def _assumed(
    route: Route, configuration: Configuration, given: Mapping[str, str]
) -> Mapping[str, Value]:
    """Return the assumed header values at a route; none without given properties."""
    if not given or route.selector is None:
        return {}
    settings = configuration.endpoints[route.endpoint].settings
    return assumed_values(route.selector, given, settings)


def _lines(
    result: RouteResult, assumed: Mapping[str, Value], message: RouteMessage
) -> Iterator[str]:
    yield f"{result.route}: from {result.endpoint}, {result.pattern}"
    if result.why_not:
        yield f"  not taken: {result.why_not}"
        return
    for name, taken in result.captures:
        yield f"  {{{name}}} = {taken!r}"
    if result.selector:
        yield f"  selector {result.selector}: {_SELECTED[result.selected]}"
        if assumed:
            values = ", ".join(f"{name} = {value!r}" for name, value in assumed.items())
            yield f"  assumed: {values}"
    if result.selected is not False:
        if message.left_out:
            yield f"  {result.endpoint} does not carry: {', '.join(message.left_out)}"
        for number, made in enumerate(result.made):
            yield from _made_lines(made)
            for copy in message.at(number):
                if not made.rule:
                    yield from message_lines(copy, made.target)


def _made_lines(made: TargetResult) -> Iterator[str]:
    if made.rule:
        yield f"  -> {made.target} ({made.system}) refused, rule {made.rule}: {made.reason}"
        return
    yield f"  -> {made.target} ({made.system}) {made.name}"
    if made.used:
        yield "     uses " + ", ".join(f"{u.actual} of {u.maximum} {u.unit}" for u in made.used)
    for back in made.back:
        yield f"     from there {back.route} makes it {back.name} at {back.endpoint}"
    if not made.back:
        yield "     no route takes it on from there"
