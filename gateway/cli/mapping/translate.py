"""`gateway translate`: translate a name or a subscription to another system.

Exit status: 0 translated, 1 refused, 2 invalid.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator

from gateway.cli.mapping.name_requests import Answer, answer
from gateway.cli.parsers import JSON_ANSWER, CommandParser
from gateway.config.load import load
from gateway.dialects.base import parse_subject
from gateway.dialects.registry import DIALECTS
from gateway.errors import GatewayError, TranslationError
from gateway.model.subject import Subject
from gateway.routing.route import Route, Target
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
    parser.add(*JSON_ANSWER)


def run(args: argparse.Namespace) -> int:
    """Print the translation of NAME; exit status 0 translated, 1 refused, 2 invalid."""
    if args.config is not None or args.route is not None:
        return max(print_answer(each, as_json=args.json) for each in _by_route(args))
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
    try:
        route = _route(args)
        subject = parse_subject(args.name, route.dialect)
    except GatewayError as error:
        return [{"error": str(error), "rule": "route"}]
    if not route.takes(subject.levels):
        reason = f"route {route.name} does not take {args.name!r}"
        return [{"refused": reason, "rule": "not-taken"}]
    captures = route.source.capture(subject.levels)
    return [_at_target(target, subject, captures) for target in route.targets]


def _route(args: argparse.Namespace) -> Route:
    if args.config is None or args.route is None:
        raise GatewayError("--config and --route belong together")
    routes = {route.name: route for route in load(args.config).routes}
    if args.route not in routes:
        known = ", ".join(routes) or "none"
        raise GatewayError(f"{args.config}: no route {args.route!r}; there are {known}")
    return routes[args.route]


def _at_target(target: Target, subject: Subject, captures: dict[str, tuple[str, ...]]) -> Answer:
    place: Answer = {"target": target.label, "system": target.system}
    try:
        return place | {"name": target.name_for(subject, captures)}
    except TranslationError as error:
        return place | {"refused": str(error), "rule": error.rule}
