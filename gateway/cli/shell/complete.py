"""The answer to a shell that completes a command line: options, choices, and values in files.

The script of `gateway completion` runs the command with the line in the environment.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Any, Final, TypeAlias

import argcomplete
import yaml

from gateway.cli import MODULES, make_parser, root_parser
from gateway.cli.parsers import PATHS

Complete: TypeAlias = Callable[..., list[str]]  # takes prefix, action, parser and parsed_args

_FILES: Final = ("ARCHIVE", *PATHS)  # metavars
_LAYOUT: Final = "date="  # of the folders in an archive


def complete() -> None:
    """Print the completions of the line in the environment, and end the process."""
    warnings.simplefilter("ignore")  # about broken packages: the terminal shows a line
    line = os.environ["COMP_LINE"][: int(os.environ["COMP_POINT"])]
    _, *words = f"{line}|".split()  # the last one is not complete
    parser = _parser(words[0] if len(words) > 1 else "")
    for each in _parsers(parser):
        _add_completers(each)
    argcomplete.autocomplete(parser, always_complete_options="long")


def _parser(command: str) -> argparse.ArgumentParser:
    """Return the parser of a command; without one, the parser of the names of all commands."""
    if any(command in names for names in MODULES.values()):
        return make_parser(command)
    parser, commands = root_parser()
    for names in MODULES.values():
        for name in names:
            commands.add_parser(name)
    return parser


def _parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for action in parser._actions:  # noqa: SLF001  # argparse has no public list
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for each in action.choices.values():
                yield from _parsers(each)


def _add_completers(parser: argparse.ArgumentParser) -> None:
    for action in parser._actions:  # noqa: SLF001
        word = str(action.metavar or action.dest)
        if action.choices is None and word not in _FILES:
            action.completer = VALUES.get(word, unknown)  # type: ignore[attr-defined]  # read by argcomplete


def unknown(**_: object) -> list[str]:
    """Complete no value: a number, an address or a name."""
    return []


def systems(**_: object) -> list[str]:
    from gateway.dialects.registry import DIALECTS  # noqa: PLC0415  # other lines need none

    return list(DIALECTS)


def system_lists(prefix: str, **_: object) -> list[str]:
    """Complete the last system or broker of a list with commas."""
    from gateway.dialects.brokers import BROKERS  # noqa: PLC0415  # other lines need none

    before, comma, _last = prefix.rpartition(",")
    names = (*systems(), *BROKERS)
    return [f"{before}{comma}{name}" for name in names if name not in before.split(",")]


def dates(parsed_args: argparse.Namespace, **_: object) -> list[str]:
    """Return the dates of a local archive."""
    found = []
    with suppress(OSError, TypeError, RuntimeError):
        for folder in Path(parsed_args.archive).expanduser().glob(f"{_LAYOUT}*"):
            with suppress(ValueError):
                found.append(str(date.fromisoformat(folder.name.removeprefix(_LAYOUT))))
    return sorted(found)


def routes(parsed_args: argparse.Namespace, **_: object) -> list[str]:
    return _section(parsed_args, "routes")


def endpoints(parsed_args: argparse.Namespace, **_: object) -> list[str]:
    return _section(parsed_args, "endpoints")


def _section(args: argparse.Namespace, name: str) -> list[str]:
    """Return the keys of a section, also of a configuration that has errors."""
    found: list[str] = []
    with suppress(OSError, TypeError, AttributeError, RuntimeError):
        path = Path(args.config).expanduser()  # the shell has not done it yet
        for file in sorted(path.glob("*.y*ml")) if path.is_dir() else [path]:
            with suppress(yaml.YAMLError, UnicodeError):
                content: Any = yaml.safe_load(file.read_text(encoding="utf-8"))
                found += [str(key) for key in content.get(name) or ()]
    return found


VALUES: Final[Mapping[str, Complete]] = {  # by metavar, or by name without one
    "D": dates,
    "ENDPOINT": endpoints,
    "R": routes,
    "ROUTE": routes,
    "SYSTEM": systems,
    "SYSTEM[,SYSTEM]": system_lists,
}
