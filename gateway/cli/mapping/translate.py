"""`gateway translate`: translate a name or a subscription to another system.

Exit status: 0 translated, 1 refused, 2 invalid.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator

from gateway.check.described_message import DescribedMessage
from gateway.check.given_headers import parse_properties
from gateway.cli.mapping.name_requests import Answer, answer
from gateway.cli.mapping.route_answers import find_route, route_answers
from gateway.cli.parsers import JSON_ANSWER, CommandParser
from gateway.config.load import load
from gateway.dialects.registry import DIALECTS
from gateway.errors import GatewayError
from gateway.terminal.text import print_line

YES, NO, WRONG = 0, 1, 2


def add_options(parser: CommandParser) -> None:
    systems = ", ".join(DIALECTS)
    parser.add("NAME", "name; with --pattern a subscription")
    parser.add("--from SYSTEM", f"source: {systems}", dest="source")
    parser.add("--to SYSTEM", f"target: {systems}", dest="target")
    parser.add("--pattern", "treat NAME as a subscription")
    parser.add("--each", "translate each tag of a tag list")
    parser.add("--config CONFIG", "translate by a route of CONFIG")
    parser.add("--route ROUTE", "name of the route")
    text = "property of the message, for `{property.NAME}` in its templates; repeatable"
    parser.add("--property NAME=VALUE", text, [], dest="properties", action="append")
    parser.add("--payload TEXT", "payload of the message, for `{payload.KEY}` in its templates")
    parser.add(*JSON_ANSWER)


def run(args: argparse.Namespace) -> int:
    """Print the translation of NAME; exit status 0 translated, 1 refused, 2 invalid."""
    if args.config is not None or args.route is not None:
        return max(print_answer(each, as_json=args.json) for each in _by_route(args))
    if args.properties or args.payload is not None:
        print_line("gateway: --property and --payload need --config and --route", sys.stderr)
        return WRONG
    if args.source is None or args.target is None:
        print_line("gateway: translate needs --from and --to, or --config and --route", sys.stderr)
        return WRONG
    request: dict[str, object] = {"op": "translate", "from": args.source, "to": args.target}
    if args.pattern:
        request |= {"op": "subscribe", "pattern": args.name}
    else:
        request["name"] = args.name
        if args.each:
            request["tags"] = "each"
    return print_answer(answer(request), as_json=args.json)


def print_answer(found: Answer, *, as_json: bool) -> int:
    """Print an answer; return the exit status of its command."""
    if as_json:
        print(json.dumps(found))
    else:
        for line in _lines(found):
            print_line(line, sys.stderr if "error" in found else sys.stdout)
    if "error" in found:
        return WRONG
    return NO if "refused" in found or found.get("match") is False else YES


def _lines(found: Answer) -> Iterator[str]:
    target = f"{found['target']} ({found['system']}): " if "target" in found else ""
    match found:
        case {"refused": reason, "rule": rule}:
            yield f"{target}refused: {reason} (rule {rule})"
        case {"match": matches}:
            yield "match" if matches else "no match"
        case {"name": name}:
            yield f"{target}{name}"
        case {"names": list(names)}:
            yield from names
        case {"patterns": list(patterns), "exact": exact}:
            yield from patterns
            yield "exact" if exact else f"filtered by the gateway: {found['residual']}"
            if "omits" in found:
                yield f"not reached: {found['omits']}"
        case _:
            yield f"gateway: {found['error']}"


def _by_route(args: argparse.Namespace) -> list[Answer]:
    """Return what NAME becomes at each target of a route, or why the route does not take it."""
    if args.config is None or args.route is None:
        return [{"error": "--config and --route belong together", "rule": "route"}]
    try:
        given = DescribedMessage(args.name, parse_properties(args.properties), args.payload)
        configuration = load(args.config)
        route = find_route(configuration, args.route, args.config)
        return route_answers(route, given, configuration)
    except GatewayError as error:
        return [{"error": str(error), "rule": "route"}]
