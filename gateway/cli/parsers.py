"""Adds commands to the `gateway` command, and the options that several commands have."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    Commands: TypeAlias = argparse._SubParsersAction[argparse.ArgumentParser]  # noqa: SLF001  # no public name
else:
    Commands = object


def add_command(
    commands: Commands, name: str, summary: str, details: str = ""
) -> argparse.ArgumentParser:
    """Add a command and return its parser.

    `summary` is an imperative in lower case without a full stop: the command's line in the list of
    commands, and the first sentence of its own help. `details` are further sentences.
    """
    sentence = f"{summary[:1].upper()}{summary[1:]}."
    description = f"{sentence} {details}".rstrip()
    parser = commands.add_parser(name, help=summary, description=description)
    parser.set_defaults(command_parser=parser)
    return parser


def add_documented(commands: Commands, name: str, doc: str | None) -> argparse.ArgumentParser:
    """Add a command whose help is the docstring of its module, and return its parser.

    The docstring is "`gateway NAME`: summary." and, after an empty line, the details.
    """
    summary, _, details = (doc or "").partition(": ")[2].partition("\n\n")
    return add_command(commands, name, summary.removesuffix("."), " ".join(details.split()))


def add_config(parser: argparse.ArgumentParser) -> None:
    text = "YAML file, or a folder of YAML files"
    parser.add_argument("config", type=Path, metavar="CONFIG", help=text)


def add_without_secrets(parser: argparse.ArgumentParser) -> None:
    """Add the option; no command that runs a configuration has it."""
    parser.add_argument(
        "--without-secrets",
        action="store_true",
        help="for a machine without secrets: accept references without a value and absent files",
    )


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
