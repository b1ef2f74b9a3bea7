"""The table of servers, and the servers of the supply that this run uses."""

from __future__ import annotations

import socket
from contextlib import closing
from pathlib import Path

import pytest

from tests.brokers import servers
from tests.brokers.mosquitto import Mosquitto
from tests.brokers.servers import IMAGES, SERVERS, SUITE, Image


@pytest.mark.broker
@pytest.mark.parametrize("program", sorted({server.program for server in SERVERS}))
def test_a_server_of_this_run_is_not_older_than_its_row(program: str) -> None:
    servers.required(program)
    (row,) = (row for row in SERVERS if (row.supply, row.program) == (servers.supply(), program))

    assert _numbers(servers.version(row)) >= _numbers(row.least)


def _numbers(version: str) -> list[int]:
    return [int(number) for number in version.split(".")]


@pytest.mark.broker
def test_a_kill_reaches_a_server_of_this_run(mosquitto: Mosquitto) -> None:
    mosquitto.kill()

    with closing(socket.socket()) as probe:
        assert probe.connect_ex(("127.0.0.1", mosquitto.port))


def test_each_supply_has_each_server_once() -> None:
    programs = {server.program for server in SERVERS}
    pairs = [(server.supply, server.program) for server in SERVERS]

    assert sorted(pairs) == sorted({(row.supply, name) for row in SERVERS for name in programs})


def test_the_documents_have_each_row() -> None:
    text = (Path(__file__).parents[2] / "docs/servers.md").read_text("utf-8")
    rows = {f"| `{each.name}` | {_had(each)} |" for each in IMAGES}
    rows |= {f"| `{each.supply}` |" for each in SERVERS if each.supply}

    assert {row for row in rows if row not in text} == set()


def _had(image: Image) -> str:
    return f"stage `{image.image}`" if image.built else f"`{image.image}`"


def test_a_supply_that_nobody_made_is_a_skip_that_says_how(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(SUITE, "trixie")
    monkeypatch.setattr(servers, "ROOTS", tmp_path)

    with pytest.raises(pytest.skip.Exception) as skipped:
        servers.required("mosquitto")

    assert str(skipped.value) == (
        f"mosquitto: no {tmp_path}/trixie; `make test-current SUITE=trixie`, as root, makes it"
    )
