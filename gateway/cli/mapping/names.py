"""`gateway translate`, `gateway match` and `gateway names`: the naming rules on a terminal."""

from __future__ import annotations

import argparse
import json
import sys
from functools import partial

from gateway.cli.mapping.name_requests import Answer, answer, answer_line
from gateway.cli.parsers import Commands, add_command, add_option
from gateway.config.load import load
from gateway.dialects.base import parse_subject
from gateway.dialects.registry import DIALECTS
from gateway.errors import GatewayError, TranslationError
from gateway.model.subject import Subject
from gateway.routing.route import Route, Target
from gateway.terminal import print_line

YES, NO, WRONG = 0, 1, 2


def add_parsers(commands: Commands) -> None:
    systems = ", ".join(DIALECTS)
    as_json = ("--json", "print JSON as `gateway names` does")
    translate = add_command(
        commands,
        "translate",
        "translate a name or a subscription to another system",
        "Exit status: 0 translated, 1 refused, 2 invalid.",
        run_translate,
    )
    add = partial(add_option, translate)
    add("NAME", "name; with --pattern a subscription")
    add("--from SYSTEM", f"source: {systems}", dest="source")
    add("--to SYSTEM", f"target: {systems}", dest="target")
    add("--pattern", "treat NAME as a subscription")
    add("--each", "translate each tag of a tag list")
    add("--config CONFIG", "translate by a route of CONFIG")
    add("--route ROUTE", "name of the route")
    add(*as_json)
    match = add_command(
        commands,
        "match",
        "test whether a subscription receives a name",
        "Exit status: 0 it does, 1 it does not, 2 invalid.",
        run_match,
    )
    add = partial(add_option, match)
    add("PATTERN", "subscription")
    add("NAME", "name")
    add("--system SYSTEM", f"system: {systems}", required=True)
    add(*as_json)
    add_command(
        commands,
        "names",
        "answer queries about names, one JSON object per line",
        "Queries are read from standard input; docs/names.md lists them.",
        run_names,
    )


def run_translate(args: argparse.Namespace) -> int:
    """Print the translation of NAME; exit status 0 translated, 1 refused, 2 invalid."""
    if args.config is not None or args.route is not None:
        return _translate_by_route(args)
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
    return _print_answer(answer(request), as_json=args.json)


def run_match(args: argparse.Namespace) -> int:
    """Say whether PATTERN receives NAME; 0 yes, 1 no, 2 one of them is illegal."""
    found = answer(
        {"op": "match", "system": args.system, "pattern": args.pattern, "name": args.name}
    )
    code = _print_answer(found, as_json=args.json)
    return NO if found.get("match") is False else code


def run_names(_: argparse.Namespace) -> int:
    """Answer each line of standard input, in order, to its end."""
    for line in sys.stdin.buffer:
        print(answer_line(line), flush=True)
    return YES


def _print_answer(found: Answer, *, as_json: bool) -> int:
    target = f"{found['target']} ({found['system']}): " if "target" in found else ""
    if as_json:
        print(json.dumps(found))
    elif "error" in found:
        print_line(f"gateway: {found['error']}", sys.stderr)
    elif "refused" in found:
        print_line(f"{target}refused: {found['refused']} (rule {found['rule']})")
    elif "match" in found:
        print_line("match" if found["match"] else "no match")
    else:
        _print_names(found, target)
    return WRONG if "error" in found else NO if "refused" in found else YES


def _print_names(found: Answer, target: str) -> None:
    for key in ("name", "names", "patterns"):
        texts = found.get(key, [])
        for text in [texts] if isinstance(texts, str) else texts if isinstance(texts, list) else ():
            print_line(f"{target}{text}")
    if "exact" in found:
        print_line("exact" if found["exact"] else f"residual: {found['residual']}")
    if "omits" in found:
        print_line(f"not reached: {found['omits']}")


def _translate_by_route(args: argparse.Namespace) -> int:
    """Say what NAME becomes at each target of a route; 1 when the route takes it not at all."""
    try:
        route = _route(args)
        subject = parse_subject(args.name, route.dialect)
    except GatewayError as error:
        return _print_answer({"error": str(error), "rule": "route"}, as_json=args.json)
    if not route.takes(subject.levels):
        reason = f"route {route.name} does not take {args.name!r}"
        return _print_answer({"refused": reason, "rule": "not-taken"}, as_json=args.json)
    captures = route.source.capture(subject.levels)
    return max(
        _print_answer(_at_target(target, subject, captures), as_json=args.json)
        for target in route.targets
    )


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
