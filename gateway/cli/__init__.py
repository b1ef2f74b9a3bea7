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

COMMANDS = (
    "run", "check", "test", "explain", "preflight", "names", "schema", "import_", "reconcile",
    "broker", "demo",
)  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    for stream in (sys.stdout, sys.stderr):  # a name may hold what the terminal cannot show
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    args = make_parser().parse_args(arguments)
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


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gateway",
        description="Carries messages between brokers, proves its mappings and its traffic.",
    )
    parser.add_argument("--version", action="version", version=f"gateway {gateway.__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name in COMMANDS:
        import_module(f"gateway.cli.{name}").add_parsers(commands)
    return parser
