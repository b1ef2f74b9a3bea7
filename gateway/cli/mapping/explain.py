"""`gateway explain NAME --config CONFIG`: show the routes and the targets of a name.

Exit status: 0 a target accepts the name, or the message, 1 no target does. With `--wanted` it is
0 when the proposed route has no error beside the other routes.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from functools import partial

from gateway.check.proposal import findings_beside, makers, propose, route_yaml
from gateway.cli.mapping.explained_message import RouteMessage, TypedMessage, message_lines
from gateway.cli.parsers import WITHOUT_SECRETS, CommandParser
from gateway.config.load import Configuration, load
from gateway.errors import GatewayError
from gateway.routing.explain import RouteResult, TargetResult, explain, likely_endpoints
from gateway.routing.other_separator import separator_question
from gateway.terminal.text import print_line
from gateway.terminal.units import counted
from gateway.translate.names import Renderer

_SELECTED = {
    None: "not evaluated; give the properties of the message with --property NAME=VALUE",
    True: "true for this message",
    False: "not true for this message, which the route leaves out",
}


def add_options(parser: CommandParser) -> None:
    parser.add("NAME", "name in the syntax of the source system")
    parser.add("CONFIG", "the same as --config CONFIG", dest="place", nargs="?")
    parser.add("--config CONFIG", "YAML file, or a folder of YAML files")
    parser.add("--from ENDPOINT", "show only routes from this endpoint", dest="endpoint")
    text = (
        "property or JMS header of the message, for selectors and `{property.NAME}`: amount=150,"
        " JMSPriority=5; repeatable"
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
    text = "propose the route that makes this name of NAME, and prove it beside the other routes"
    parser.add("--wanted NAME", text)
    parser.add(
        "--to ENDPOINT",
        "needed with --wanted, as --from: the endpoint of the wanted name",
        dest="target",
    )
    parser.add("--all", "print the reason of each route, whatever the system of the name")
    parser.add(*WITHOUT_SECRETS)
    parser.add("--json", "print JSON")


def run(args: argparse.Namespace) -> int:
    """Print the result of every route; exit status 0 when a target accepts the name, else 1."""
    places = [each for each in (args.place, args.config) if each is not None]
    if len(places) != 1:
        raise GatewayError("explain: give one CONFIG: gateway explain NAME CONFIG")
    configuration = load(places[0], without_secrets=args.without_secrets)
    if args.wanted is not None:
        return _propose(args, configuration)
    hide = partial(configuration.hidden.hide, at=("routes",))
    given = TypedMessage(args, configuration)
    message_at = given.message_at if given else None
    results = [
        replace(
            each,
            pattern=hide(each.pattern),
            selector=hide(each.selector),
            why_not=hide(each.why_not),
        )
        for each in explain(args.name, configuration.routes, args.endpoint, message_at)
    ]
    routes = [each for each in configuration.routes if args.endpoint in (None, each.endpoint)]
    messages = list(map(given.at, routes))
    arrives = any(made.name for each in results if each.selected is not False for made in each.made)
    if given:
        arrives = any(each.arrives for each in messages)
    if args.json:
        shown = [_as_json(*each) for each in zip(results, messages, strict=True)]
        print(json.dumps(shown, indent=2, default=repr))
    else:
        likely = likely_endpoints(args.name, results, routes)
        shown_results = [args.all or each.endpoint in likely for each in results]
        for result, message, is_shown in zip(results, messages, shown_results, strict=True):
            for line in _lines(result, message) if is_shown else ():
                print_line(line)
        if others := shown_results.count(False):
            verb = "does" if others == 1 else "do"
            print_line(f"{counted(others, 'other route')} {verb} not take it; --all shows why")
        if not arrives:
            print_line(f"no target gets this {'message' if given else 'name'}")
            no_route = all(each.why_not for each in results)
            if no_route and (question := separator_question(args.name, routes)):
                print_line(question)
    return 0 if arrives else 1


def _propose(args: argparse.Namespace, configuration: Configuration) -> int:
    """Print a route for the wanted name with its findings; exit status 0 without an error."""
    if not {args.endpoint, args.target} <= configuration.endpoints.keys():
        known = ", ".join(configuration.endpoints)
        raise GatewayError(f"--wanted needs --from ENDPOINT and --to ENDPOINT, two of: {known}")
    if made := makers(args.name, args.wanted, configuration.routes, args.endpoint, args.target):
        print_line(f"{', '.join(made)} makes {args.wanted} of {args.name} already")
        return 0
    here, there = (configuration.endpoints[each] for each in (args.endpoint, args.target))
    renderer = Renderer(there.dialect, there.on_unmappable, there.on_too_long)
    proposal = propose(args.name, args.wanted, here.dialect, renderer)
    findings = findings_beside(proposal, configuration, args.endpoint, args.target)
    if args.json:
        shown = asdict(proposal) | {"findings": [asdict(each) for each in findings]}
        print(json.dumps(shown, indent=2))
    else:
        for line in ["routes:", *route_yaml(proposal, args.endpoint, args.target)]:
            print_line(line)
        why = proposal.why_not_back
        back = f"not back: {why}" if why else "and back"
        print_line(f"{args.name} -> {args.wanted}, {back}")
        if not proposal.takes_others:
            print_line("the names have no level in common: the route takes this name alone")
        for each in findings:
            print_line(f"{each.severity}: route {each.route!r}: {each.text} [{each.rule}]")
        if not findings:
            print_line("no findings beside the other routes")
    return int(any(each.severity == "error" for each in findings))


def _as_json(result: RouteResult, message: RouteMessage) -> dict[str, object]:
    made = [
        asdict(each) | ({"messages": message.at(number)} if message.made else {})
        for number, each in enumerate(result.made)
    ]
    return asdict(result) | {"made": made, "assumed": message.assumed if result.selector else {}}


def _lines(result: RouteResult, message: RouteMessage) -> Iterator[str]:
    yield f"{result.route}: from {result.endpoint}, {result.pattern}"
    if result.why_not:
        yield f"  not taken: {result.why_not}"
        return
    for name, taken in result.captures:
        yield f"  {{{name}}} = {taken!r}"
    if result.selector:
        yield f"  selector {result.selector}: {_SELECTED[result.selected]}"
        if message.assumed:
            values = ", ".join(f"{name} = {value!r}" for name, value in message.assumed.items())
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
    note = " (an empty key)" if made.empty_key else ""
    yield f"  -> {made.target} ({made.system}) {made.name}{note}"
    if made.used:
        used = (f"{u.actual} of {u.maximum} {u.unit}{u.why}" for u in made.used)
        yield f"     uses {', '.join(used)}"
    if made.partition:
        yield f"     partition: {made.partition}"
    if made.thin:
        yield f"     not every message: {made.thin}"
    for back in made.back:
        yield f"     from there {back.route} makes it {back.name} at {back.endpoint}"
    if not made.back:
        yield "     no route takes it on from there"
