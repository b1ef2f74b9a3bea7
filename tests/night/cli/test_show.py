"""The path of a message ends with the targets behind which it has another id."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.cli import main
from tests.archive.samples import NOON, identity
from tests.night.reconcile.hop_chain import Chain


def shown(archive: Path, capsys: pytest.CaptureFixture[str], *more: str) -> list[str]:
    assert main(["archive", "show", str(archive), identity(7).hex(), *more]) == 0
    return capsys.readouterr().out.splitlines()


def test_a_path_ends_with_the_targets_that_carry_no_id(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chain = Chain(ids=False)
    chain.relay("plant", 7, NOON)
    chain.write(tmp_path / "archive")

    title, *ends = shown(tmp_path / "archive", capsys)[-2:]

    assert title.startswith("The path ends at targets without `add_message_id`. At a gateway")
    assert ends == ["  plant  up  bus"]
    assert len(shown(tmp_path / "archive", capsys, "--json")) == 2  # rows only


def test_a_path_over_all_gateways_names_no_target(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chain = Chain(ids=False)
    chain.message(7, NOON)
    chain.write(tmp_path / "archive")

    assert not [line for line in shown(tmp_path / "archive", capsys) if "add_message_id" in line]


def test_targets_that_carry_the_id_end_no_path(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chain = Chain()
    chain.relay("plant", 7, NOON)
    chain.write(tmp_path / "archive")

    assert not [line for line in shown(tmp_path / "archive", capsys) if "add_message_id" in line]
