"""The answer to a shell that completes a command line: options, choices, and values in files.

The script of `gateway completion` runs the command with the line in the environment.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

import argcomplete
import yaml
from argcomplete.completers import FilesCompleter

from gateway.archive.layout import days
from gateway.cli import COMMANDS, all_commands, make_parser, root_parser
from gateway.cli.parsers import PATHS
from gateway.untyped import Untyped

Complete: TypeAlias = Callable[..., list[str]]  # takes prefix, parser and parsed_args


def complete() -> None:
    """Print the completions of the line in the environment, and end the process."""
    warnings.simplefilter("ignore")  # about broken packages: the terminal shows a line
    line = os.environ["COMP_LINE"][: int(os.environ["COMP_POINT"])]
    _, *words = f"{line}|".split()  # the last one is not complete
    argcomplete.autocomplete(
        _parser(words[0] if len(words) > 1 else ""),
        always_complete_options="long",
        default_completer=values,  # type: ignore[arg-type]  # a function does as well
    )


def _parser(command: str) -> argparse.ArgumentParser:
    """Return the parser of a command; without one, the parser of the names of all commands."""
    known = COMMANDS if command in COMMANDS else all_commands()
    if command in known:
        return make_parser(command)
    parser, commands = root_parser()
    for name in known:
        commands.add_parser(name)
    return parser


def values(*, action: argparse.Action, **facts: Untyped) -> list[str]:
    """Complete the value of an argument without choices; no number, address or other name."""
    find = VALUES.get(str(action.metavar or action.dest))
    return find(**facts) if find else []


def systems(**_: object) -> list[str]:
    from gateway.dialects.registry import DIALECTS  # other lines need none

    return list(DIALECTS)


def system_lists(prefix: str, **_: object) -> list[str]:
    """Complete the last system or broker of a list with commas."""
    from gateway.dialects.brokers import BROKERS  # other lines need none

    before, comma, _last = prefix.rpartition(",")
    names = (*systems(), *BROKERS)
    return [f"{before}{comma}{name}" for name in names if name not in before.split(",")]


def dates(parsed_args: argparse.Namespace, **_: object) -> list[str]:
    """Return the dates of a local archive."""
    with suppress(OSError, TypeError, RuntimeError):
        return list(map(str, days(Path(parsed_args.archive).expanduser())))
    return []


def keys(section: str, *, parsed_args: argparse.Namespace, **_: object) -> list[str]:
    """Return the keys of a section, also of a configuration that has errors."""
    found: list[str] = []
    with suppress(OSError, TypeError, AttributeError, RuntimeError):
        path = Path(parsed_args.config).expanduser()  # the shell has not done it yet
        for file in sorted(path.glob("*.y*ml")) if path.is_dir() else [path]:
            with suppress(yaml.YAMLError, UnicodeError):
                content: Any = yaml.safe_load(file.read_text(encoding="utf-8"))
                found += [str(key) for key in content.get(section) or ()]
    return found


VALUES: Final[Mapping[str, Complete]] = {  # by metavar, or by name without one
    **dict.fromkeys(("ARCHIVE", *PATHS), FilesCompleter()),
    "D": dates,
    "ENDPOINT": partial(keys, "endpoints"),
    "R": partial(keys, "routes"),
    "ROUTE": partial(keys, "routes"),
    "SYSTEM": systems,
    "SYSTEM[,SYSTEM]": system_lists,
}
