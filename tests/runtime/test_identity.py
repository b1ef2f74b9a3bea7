"""The identity of a gateway: kept, and never that of another one."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from gateway.config.load import load
from gateway.runtime.identity import gateway_identity
from tests.runtime.one_route import ONE_ROUTE

KEPT = "archive: {path: archive}"


def identity(folder: Path, section: str = KEPT, *, of_lease: str = "") -> str:
    file = folder / "gateway.yaml"
    file.write_text(f"{ONE_ROUTE}{section}\n")
    return gateway_identity(load(file), of_lease).id


@pytest.mark.parametrize("section", [KEPT, "spool: {path: spool}"])
def test_an_identity_outlives_the_process(tmp_path: Path, section: str) -> None:
    assert identity(tmp_path, section) == identity(tmp_path, section)


def test_two_gateways_have_two(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()

    assert identity(tmp_path) != identity(other)
    assert len(identity(tmp_path)) == 32


def test_a_gateway_without_a_folder_has_another_one_after_each_start(tmp_path: Path) -> None:
    assert identity(tmp_path, "") != identity(tmp_path, "")


def test_a_pair_takes_the_one_of_its_lease_and_keeps_it_for_replays(tmp_path: Path) -> None:
    before = identity(tmp_path)

    assert identity(tmp_path, of_lease="5" * 32) == "5" * 32 != before
    assert identity(tmp_path) == "5" * 32


@pytest.mark.parametrize("content", [b"", b"x" * 32, b"1" * 31, b"\xff" * 40])
def test_a_damaged_file_costs_an_identity_and_no_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, content: bytes
) -> None:
    identity(tmp_path)
    (file,) = tmp_path.rglob("*.identity")
    file.write_bytes(content)

    with caplog.at_level(logging.WARNING):
        assert len(identity(tmp_path)) == 32

    assert "is damaged; the gateway takes another one" in caplog.text
    assert file.read_text().strip() == identity(tmp_path)
