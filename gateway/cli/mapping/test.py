"""`gateway test CONFIG`: run the tests of a configuration.

Exit status: 0 all pass, 1 a test fails, 2 there are no tests.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from gateway.check.mapping_tests import MappingTestResult, run_tests
from gateway.check.result_copies import fields_text, header_values
from gateway.cli.parsers import CONFIG, WITHOUT_SECRETS, CommandParser
from gateway.config.load import load
from gateway.config.schema import ExpectedCopy
from gateway.terminal.text import print_line
from gateway.terminal.units import counted

NO_TESTS = 2


def add_options(parser: CommandParser) -> None:
    parser.add(*CONFIG)
    parser.add(*WITHOUT_SECRETS)


def run(args: argparse.Namespace) -> int:
    """Print the failed tests; exit status 0 when all pass, 1 when one fails, 2 without tests."""
    configuration = load(args.config, without_secrets=args.without_secrets)
    results = run_tests(configuration)
    if not results:
        print_line(f"{args.config}: has no tests; add a section `tests:`")
        return NO_TESTS
    failed = [result for result in results if not result.passed]
    for result in failed:
        for line in _lines(result):
            print_line(configuration.hidden.hide(line, ("tests", result.name)))
    passed = len(results) - len(failed)
    print_line(f"{counted(passed, 'test')} passed" + (f", {len(failed)} failed" if failed else ""))
    return int(bool(failed))


def _lines(result: MappingTestResult) -> Iterator[str]:
    yield f"test {result.name!r} failed"
    for expected in result.missing:
        yield f"  missing:    {_expected(expected)}"
    for copy in result.unexpected:
        yield f"  unexpected: {copy}"


def _expected(expected: ExpectedCopy) -> str:
    if expected.refused is not None:
        return f"{expected.endpoint} refused ({expected.refused})"
    shown = f"{expected.endpoint} {expected.name}"
    shown += f" {expected.payload!r}" if expected.payload is not None else ""
    shown += f" {dict(expected.properties)}" if expected.properties is not None else ""
    return shown + fields_text(expected.reply_to, header_values(expected))
