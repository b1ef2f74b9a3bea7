"""The `gateway` command: one module a command; errors become exit codes.

Exit codes: 0 all is well, 1 the answer is no or something is wrong with the user's files,
2 the command line is wrong or the command cannot run here.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module

import gateway
from gateway.errors import ConfigErrors, GatewayError

MODULES = {  # each with its commands, in the order of the help
    "live.run": ("run",),
    "live.status": ("status",),
    "live.top": ("top",),
    "mapping.check": ("check",),
    "mapping.test": ("test",),
    "mapping.explain": ("explain",),
    "mapping.preflight": ("preflight",),
    "mapping.names": ("translate", "match", "names"),
    "mapping.schema": ("schema",),
    "mapping.import_": ("import",),
    "archive.archive": ("archive",),
    "archive.reconcile": ("reconcile",),
    "archive.replay": ("replay",),
    "live.dead_letters": ("dead-letters",),
    "trial.broker": ("broker",),
    "trial.demo": ("demo",),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    for stream in (sys.stdout, sys.stderr):  # a name may hold what the terminal cannot show
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    given = sys.argv[1:] if arguments is None else arguments
    args = make_parser(given[0] if given else "").parse_args(given)
    try:
        code: int = args.run(args)
    except ConfigErrors as error:
        print(error, file=sys.stderr)
        return 1
    except GatewayError as error:
        print(f"gateway: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # `gateway ... | head` has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return code


def make_parser(command: str = "") -> argparse.ArgumentParser:
    """The parser of all commands, or of `command` alone: a sidecar need not load the demo."""
    parser = argparse.ArgumentParser(
        prog="gateway",
        description="Carries messages between brokers, proves its mappings and its traffic.",
    )
    parser.add_argument("--version", action="version", version=f"gateway {gateway.__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    alone = [module for module, names in MODULES.items() if command in names]
    for module in alone or MODULES:
        import_module(f"gateway.cli.{module}").add_parsers(commands)
    return parser
