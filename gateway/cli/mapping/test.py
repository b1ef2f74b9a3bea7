"""`gateway test CONFIG`: the tests that stand beside the mappings; it opens no connection."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from gateway.check.mapping_tests import Verdict, run_tests
from gateway.cli.parsers import Commands
from gateway.config.load import load
from gateway.config.schema import ExpectRef

NOTHING_TO_DO = 2


def add_parsers(commands: Commands) -> None:
    parser = commands.add_parser("test", help="run the tests that stand in a configuration")
    parser.add_argument("config", type=Path, metavar="CONFIG", help="a YAML file or a folder")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Exit status: 0 when all pass, 1 when one fails, 2 when there is none."""
    verdicts = run_tests(load(args.config))
    if not verdicts:
        print(f"{args.config}: has no tests; add a section `tests:`")
        return NOTHING_TO_DO
    failed = [verdict for verdict in verdicts if not verdict.passed]
    for verdict in failed:
        print("\n".join(_lines(verdict)))
    passed = len(verdicts) - len(failed)
    print(f"{passed} tests passed" + (f", {len(failed)} failed" if failed else ""))
    return int(bool(failed))


def _lines(verdict: Verdict) -> Iterator[str]:
    yield f"test {verdict.name!r} failed"
    for expected in verdict.missing:
        yield f"  missing:    {_expected(expected)}"
    for copy in verdict.unexpected:
        yield f"  unexpected: {copy}"


def _expected(expected: ExpectRef) -> str:
    if expected.refused is not None:
        return f"{expected.endpoint} refused ({expected.refused})"
    shown = f"{expected.endpoint} {expected.name}"
    shown += f" {expected.payload!r}" if expected.payload is not None else ""
    return shown + (f" {dict(expected.properties)}" if expected.properties is not None else "")
