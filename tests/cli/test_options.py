"""The options of a command become the fields of one value, by their names."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from inspect import signature
from pathlib import Path
from typing import Any

import pytest

from gateway.cli import CONFIG_PLACES, main, make_parser
from gateway.night.reconcile.follow.day import FollowOptions
from gateway.night.reconcile.job import Job
from gateway.trial.brokers.yami4 import Yami4BrokerOptions
from gateway.trial.synthetic.traffic import Traffic

RECONCILE = ("reconcile", "ARCHIVE")
LIMITS = {"max_connections", "max_list_items", "max_peer_bytes", "max_total_bytes", "frames"}


@pytest.mark.parametrize(
    ("words", "kind", "others"),
    [
        (RECONCILE, Job, {"samples", "now"}),
        (RECONCILE, FollowOptions, {"root"}),
        (("archive", "generate", "ARCHIVE", "--messages", "1"), Traffic, {"day"}),
        (("broker", "yami4"), Yami4BrokerOptions, LIMITS),
    ],
)
def test_each_field_has_an_option_or_is_none_of_the_users(
    words: tuple[str, ...], kind: type[Any], others: set[str]
) -> None:
    args = make_parser(words[0]).parse_args(words)

    assert {name for name in signature(kind).parameters if name not in args} == others


def parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Yield the parser of each command and of each action."""
    yield parser
    for each in parser._actions:  # noqa: SLF001  # argparse shows them nowhere else
        if isinstance(each, argparse._SubParsersAction):  # noqa: SLF001
            for below in each.choices.values():
                yield from parsers(below)


def test_the_table_of_configurations_has_each_command_with_that_argument() -> None:
    found: dict[str, int] = {}
    for parser in parsers(make_parser()):
        if any(each.dest == "config" and not each.option_strings for each in parser._actions):  # noqa: SLF001
            words = parser.prog.split()
            found[words[1]] = len(words) - 1

    assert found == CONFIG_PLACES


def test_no_command_lists_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([])

    printed = capsys.readouterr()
    assert (ended.value.code, printed.out) == (2, "")
    assert "check validate a configuration" in " ".join(printed.err.split())


@pytest.mark.parametrize(
    ("words", "status"),
    [(["CONFIG"], 0), (["--config", "CONFIG"], 0), ([], 2), (["CONFIG", "--config", "CONFIG"], 2)],
)
def test_explain_takes_its_configuration_in_both_forms(
    tmp_path: Path, words: list[str], status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "gateway.yaml"
    config.write_text(
        "endpoints: {a: {kind: memory, dialect: mqtt}, b: {kind: memory, dialect: mqtt}}\n"
        "routes: {r: {from: {endpoint: a, pattern: x}, to: {endpoint: b}}}\n"
    )

    given = [str(config) if each == "CONFIG" else each for each in words]
    assert main(["explain", "x", *given]) == status
    assert ("gateway explain NAME CONFIG" in capsys.readouterr().err) == bool(status)


@pytest.mark.parametrize(
    "words",
    [
        ["check", "--strict", "CONFIG"],
        ["check", "--config", "CONFIG", "--strict"],
        ["check", "--config=CONFIG"],
        ["test", "--config", "CONFIG"],
        ["connect", "--config", "CONFIG"],
    ],
)
def test_a_configuration_is_an_argument_or_an_option(words: list[str], tmp_path: Path) -> None:
    config = tmp_path / "gateway.yaml"
    config.write_text(
        "endpoints:\n  a: {kind: memory, broker: a}\n  b: {kind: memory, broker: b}\n"
        'routes:\n  r:\n    from: {endpoint: a, pattern: "plant/#"}\n    to: {endpoint: b}\n'
        "  s: {from: {endpoint: b, pattern: x}, to: {endpoint: a, template: y}}\n"
        f"spool: {{path: {tmp_path}/spool}}\n"
        "tests: {t: {given: {endpoint: a, name: x}, expect: []}}\n"
    )

    assert main([each.replace("CONFIG", str(config)) for each in words]) == 0
