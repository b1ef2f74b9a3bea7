"""`gateway schema`: print the JSON Schema of configurations."""

from __future__ import annotations

import argparse
import json

from gateway.cli.parsers import Commands, add_documented
from gateway.config.json_schema import json_schema


def add_parsers(commands: Commands) -> None:
    add_documented(commands, "schema", __doc__, run)


def run(_: argparse.Namespace) -> int:
    """Print the schema; exit status 0."""
    print(json.dumps(json_schema(), indent=2))
    return 0
