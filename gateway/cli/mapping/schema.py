"""`gateway schema`: the JSON Schema of a configuration, for editors."""

from __future__ import annotations

import argparse
import json

from gateway.cli.parsers import Commands
from gateway.config.json_schema import json_schema


def add_parsers(commands: Commands) -> None:
    parser = commands.add_parser("schema", help="print the JSON Schema of a configuration")
    parser.set_defaults(run=run)


def run(_: argparse.Namespace) -> int:
    print(json.dumps(json_schema(), indent=2))
    return 0
