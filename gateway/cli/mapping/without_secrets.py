"""The option `--without-secrets` of the commands that check a configuration."""

from __future__ import annotations

import argparse


def add_without_secrets(parser: argparse.ArgumentParser) -> None:
    """Add the option; no command that runs a configuration has it."""
    parser.add_argument(
        "--without-secrets",
        action="store_true",
        help="accept references without a value, and absent files: on a machine without them",
    )
