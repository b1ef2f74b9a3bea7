"""The option `--seal-key` of the commands that read or write seals."""

from __future__ import annotations

import argparse
from pathlib import Path


def add_seal_key(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--seal-key", type=Path, metavar="FILE",
        help="file with the value of archive.seal_key (the environment variable GATEWAY_SEAL_KEY)",
    )  # fmt: skip


def seal_key(args: argparse.Namespace) -> bytes | None:
    """Return the key in the file of `--seal-key`, or in the environment; None without a key.

    Raises:
        ArchiveError: the file cannot be read, or is empty.
    """
    from gateway.archive.seals.key import key_from_environment, read_key  # noqa: PLC0415  # at use

    return key_from_environment() if args.seal_key is None else read_key(args.seal_key)
