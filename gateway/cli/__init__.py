"""The `gateway` command: dispatches to one module per command, and maps errors to exit codes.

Exit codes: 0 success; 1 a negative answer, or an error in the user's files; 2 a wrong command
line, or a command that cannot run on this machine; 130 interrupted; 141 nobody read the answer to
its end, as with `| head`. `gateway reconcile` has the exit code of its verdict nevertheless.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from traceback import format_exc
from typing import Final

import gateway
from gateway.cli.parsers import CommandParser, Commands, add_modules
from gateway.errors import ConfigErrors, GatewayError
from gateway.registry import PluginWarning
from gateway.terminal.text import print_line, visible_lines
from gateway.untyped import Untyped

_UNIX_ONLY = ("fcntl", "resource")  # modules of Python that Windows does not have
_NOT_HERE = (
    "this command needs Linux or macOS; on Windows run the image gateway:slim"
    " (docker run gateway:slim COMMAND); names, check, test and explain run here"
)
_SIGPIPE = 141  # the status of a process that this signal ends

COMMANDS: Final[Mapping[str, str]] = {  # the bridge's own: the module of each
    "run": "gateway.cli.live.run",
    "handover": "gateway.cli.live.handover",
    "status": "gateway.cli.live.status",
    "top": "gateway.cli.live.top",
    "withdraw": "gateway.cli.live.withdraw",
    "init": "gateway.cli.mapping.init",
    "check": "gateway.cli.mapping.check",
    "test": "gateway.cli.mapping.test",
    "explain": "gateway.cli.mapping.explain",
    "connect": "gateway.cli.live.connect",
    "tail": "gateway.cli.live.tail",
    "preflight": "gateway.cli.mapping.preflight",
    "translate": "gateway.cli.mapping.translate",
    "match": "gateway.cli.mapping.match",
    "names": "gateway.cli.mapping.names",
    "schema": "gateway.cli.mapping.schema",
    "files": "gateway.cli.shell.files",
    "completion": "gateway.cli.shell.completion",
}
# The packages of the other houses, each with a table `COMMANDS` like this one. They are names: the
# bridge imports none of these houses, and `gateway run` loads nothing of them.
HOUSES: Final = ("gateway.imports.cli", "gateway.night.cli", "gateway.trial.cli")


CONFIG_PLACES = {  # the words before CONFIG, of commands that have it as an argument
    **dict.fromkeys(("run", "handover", "status", "top", "check", "test"), 1),
    **dict.fromkeys(("connect", "tail", "try", "withdraw"), 1),
    "dead-letters": 2,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal cannot show all characters of names
            stream.reconfigure(errors="backslashreplace")
    if "_ARGCOMPLETE" in os.environ:  # a shell asks, by the script of `gateway completion`
        import_module("gateway.cli.shell.complete").complete()
    words = sys.argv[1:] if arguments is None else arguments
    try:
        with _faults_of_packages_shown():
            args = _parsed(words)
            code: int = args.run(args)
        print(end="", flush=True)  # there may be no standard output
    except ConfigErrors as error:
        for finding in error.findings:
            print_line(str(finding), sys.stderr)
        return 1
    except GatewayError as error:
        print(visible_lines(f"gateway: {error}"), file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader of the pipe has closed it, as `head` does
        from gateway.terminal.console import discard  # loads rich

        discard(sys.stdout)
        return _SIGPIPE
    except Exception as error:  # noqa: BLE001  # a fault; its text may quote a message
        text = _missing_system(error) or _output_error(error) or format_exc()
        print(visible_lines(text), file=sys.stderr)
        return 2
    return code


def _parsed(words: Sequence[str]) -> argparse.Namespace:
    """Return the arguments of a command line; a help, or a wrong line, ends the process."""
    words = _with_config_as_argument(words)
    try:
        if not words:
            make_parser().print_help(sys.stderr)
            raise SystemExit(2)
        args, unknown = make_parser(words[0] if words else "").parse_known_args(words)
        if unknown:  # of the command, whose usage is shown, and not of `gateway`
            args.command_parser.error(f"unrecognized arguments: {' '.join(unknown)}")
        return args
    finally:
        print(end="", flush=True)  # the help


def _with_config_as_argument(words: Sequence[str]) -> Sequence[str]:
    """Return the words with CONFIG at its place, where it was written as `--config CONFIG`."""
    before = CONFIG_PLACES.get(words[0] if words else "", 0)
    if not before or len(words) < before:
        return words
    given = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    given.add_argument("--config", action="append", default=[])
    try:
        found, rest = given.parse_known_args(words[before:])
    except argparse.ArgumentError:  # without a value: the command's own parser says so
        return words
    return [*words[:before], *found.config, *rest]


@contextmanager
def _faults_of_packages_shown() -> Iterator[None]:
    """Show the warnings about packages that add a row as every other message."""
    shown = warnings.showwarning

    def show(
        message: Warning | str,
        category: type[Warning],
        *where: Untyped,
        **more: Untyped,
    ) -> None:
        if category is PluginWarning:
            print(visible_lines(f"gateway: warning: {message}"), file=sys.stderr)
        else:
            shown(message, category, *where, **more)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


def _missing_system(error: Exception) -> str:
    """Return the text of an error of Windows, which lacks modules of Python; else an empty text."""
    is_one = isinstance(error, ModuleNotFoundError) and error.name in _UNIX_ONLY
    return f"gateway: {_NOT_HERE}" if is_one else ""


def _output_error(error: Exception) -> str:
    """Return the text of an error of standard output, and discard its rest; else an empty text.

    An error of another file has the same number, and neither has a name: so a byte is written.
    """
    from gateway.terminal.console import discard  # loads rich

    if not isinstance(error, OSError) or sys.stdout is None:
        return ""
    try:
        os.write(sys.stdout.fileno(), b"\n")
    except OSError as found:
        if found.errno == error.errno:
            discard(sys.stdout)
            return f"gateway: cannot write the output: {error.strerror}"
    return ""


def make_parser(command: str = "") -> CommandParser:
    """Return the parser of all commands; of `command` only, to load no other command's module."""
    parser, commands = root_parser()
    if command != "--version":  # needs no command, and none of what they load
        table = COMMANDS if command in COMMANDS else all_commands()
        add_modules(commands, {command: table[command]} if command in table else table)
    return parser


def all_commands() -> Mapping[str, str]:
    """Return the commands of all houses in the order of the help, and the module of each."""
    found = dict(COMMANDS)
    for house in HOUSES:
        found |= import_module(house).COMMANDS
    return found


def root_parser() -> tuple[CommandParser, Commands]:
    """Return the parser of `gateway` without commands, and its list of commands."""
    parser = CommandParser(
        prog="gateway",
        description="Carry messages between brokers, prove mappings, and reconcile traffic.",
    )
    parser.add_argument("--version", action="version", version=f"gateway {gateway.__version__}")
    return parser, parser.add_subparsers(metavar="COMMAND", required=True)
