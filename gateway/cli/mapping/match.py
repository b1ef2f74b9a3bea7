"""`gateway match`: test whether a subscription receives a name.

Exit status: 0 it does, 1 it does not, 2 invalid.
"""

from __future__ import annotations

import argparse

from gateway.cli.mapping.name_requests import answer
from gateway.cli.mapping.translate import print_answer
from gateway.cli.parsers import JSON_ANSWER, CommandParser
from gateway.dialects.registry import DIALECTS


def add_options(parser: CommandParser) -> None:
    parser.add("PATTERN", "subscription")
    parser.add("NAME", "name")
    parser.add("--system SYSTEM", f"system: {', '.join(DIALECTS)}", required=True)
    parser.add(*JSON_ANSWER)


def run(args: argparse.Namespace) -> int:
    """Say whether PATTERN receives NAME; 0 yes, 1 no, 2 one of them is illegal."""
    request = {"op": "match", "system": args.system, "pattern": args.pattern, "name": args.name}
    return print_answer(answer(request), as_json=args.json)
