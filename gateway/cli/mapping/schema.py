"""`gateway schema`: print the JSON Schema of configurations."""

from __future__ import annotations

import argparse
import json

from gateway.cli.parsers import CommandParser
from gateway.config.json_schema import json_schema


def add_options(_: CommandParser) -> None:
    """It has none."""


def run(_: argparse.Namespace) -> int:
    """Print the schema; exit status 0."""
    print(json.dumps(json_schema(), indent=2))
    return 0
