"""`gateway explain NAME --config C`: every route tried, what it makes, and the way back."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from gateway.cli.parsers import Commands
from gateway.config.load import load
from gateway.routing.explain import Made, Tried, explain


def add_parsers(commands: Commands) -> None:
    parser = commands.add_parser("explain", help="where a name goes, and why")
    parser.add_argument("name", metavar="NAME", help="a name, as the source system spells it")
    parser.add_argument("--config", type=Path, required=True, metavar="CONFIG")
    parser.add_argument(
        "--from", dest="endpoint", metavar="ENDPOINT", help="only routes from there"
    )
    parser.add_argument("--json", action="store_true", help="the same as JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Exit status: 0 when a target gets the name, 1 when none does."""
    tried = explain(args.name, load(args.config).routes, args.endpoint)
    arrives = any(made.name for each in tried for made in each.made)
    if args.json:
        print(json.dumps([asdict(each) for each in tried], indent=2))
    else:
        for each in tried:
            print("\n".join(_lines(each)))
        if not arrives:
            print("no target gets this name")
    return 0 if arrives else 1


def _lines(tried: Tried) -> Iterator[str]:
    head = f"{tried.route}: from {tried.endpoint}, {tried.pattern}"
    if tried.why_not:
        yield f"{head}\n  not taken: {tried.why_not}"
        return
    yield head
    for name, taken in tried.captures:
        yield f"  {{{name}}} = {taken!r}"
    for made in tried.made:
        yield from _made_lines(made)


def _made_lines(made: Made) -> Iterator[str]:
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
