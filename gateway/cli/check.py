"""`gateway check CONFIG`: every finding at once; it opens no connection and writes nothing."""

from __future__ import annotations

import argparse
from pathlib import Path

from gateway.cli.parsers import Commands
from gateway.config.load import load


def add_parsers(commands: Commands) -> None:
    parser = commands.add_parser("check", help="say all that is wrong with a configuration")
    parser.add_argument("config", type=Path, metavar="CONFIG", help="a YAML file or a folder")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    configuration = load(args.config)
    for route in configuration.routes:
        targets = ", ".join(f"{target.endpoint} ({target.system})" for target in route.targets)
        source = f"{route.endpoint} ({route.dialect.name})"
        print(f"{route.name}: {source} {route.source.text} -> {targets}")
    print(f"{args.config}: no findings")
    return 0
