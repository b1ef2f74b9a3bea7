"""`gateway dead-letters` about letters that the mapping made."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gateway.cli import main
from gateway.model.message import Message
from tests.runtime.gateway.running import BrokerClient, running
from tests.waiting import until

CONFIG = """\
gateway: {name: test}
endpoints:
  plant: {kind: memory, dialect: mqtt, broker: letters}
  ems: {kind: memory, dialect: ems, broker: letters-ems, limits: {levels: 2}}
spool: {path: spool}
routes:
  orders:
    from: {endpoint: plant, pattern: "orders/{rest...}"}
    to: {endpoint: ems, template: "ORDERS.{rest...}"}
"""


def test_a_shown_letter_has_no_empty_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A name that the mapping refuses was sent to no endpoint."""
    monkeypatch.chdir(tmp_path)
    with running(CONFIG) as gateway:
        client = BrokerClient("letters", "mqtt")
        client.publish(Message("orders/1/2", b"x"))
        client.close()
        until(lambda: gateway.counters["orders"].dead == 1)

    assert main(["dead-letters", "show", "gateway.yaml"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if line]
    assert ["source_name", "orders/1/2"] in lines
    assert [line for line in lines if len(line) == 1] == []

    for command in ("show", "replay", "purge"):
        assert main(["dead-letters", command, "gateway.yaml", "1", "8", "9"]) == 1
        assert capsys.readouterr().err.splitlines()[-1] == "gateway: no such dead letter: 8, 9"
    assert main(["dead-letters", "show", "gateway.yaml", "--rule", "other"]) == 1
    assert capsys.readouterr().err == "gateway: no such dead letter\n"


BROKEN = """gateway: {name: test}
endpoints: {plant: {kind: mqtt, password: "${env:ABSENT_HERE}", prot: 1}}
rouges: {}
spool: {path: spool}
"""


def test_dead_letters_are_shown_beside_a_broken_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Then somebody needs them, in a shell without the secrets of the service."""
    monkeypatch.chdir(tmp_path)
    with running(CONFIG) as gateway:
        client = BrokerClient("letters", "mqtt")
        client.publish(Message("orders/1/2", b"x"))
        client.close()
        until(lambda: gateway.counters["orders"].dead == 1)
    Path("gateway.yaml").write_text(BROKEN)

    for command in ("list", "show", "purge"):
        assert main(["dead-letters", command, "gateway.yaml"]) == 0
    assert "orders/1/2" in capsys.readouterr().out
    assert main(["dead-letters", "replay", "gateway.yaml"]) != 0
    Path("gateway.yaml").write_text("spool: {path: spool, prot: 1}\n")
    assert main(["dead-letters", "list", "gateway.yaml"]) != 0


@pytest.mark.parametrize("inside", [".journal", "_seals", "date=2026-03-14"])
def test_an_archive_is_no_configuration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], inside: str
) -> None:
    (tmp_path / inside).mkdir()

    assert main(["dead-letters", "list", str(tmp_path)]) != 0

    text = "the folder has no .yaml file; it is an archive: give the configuration of its gateway"
    assert text in capsys.readouterr().err


def test_a_list_says_for_each_rule_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with running(CONFIG) as gateway:
        client = BrokerClient("letters", "mqtt")
        for name in ("orders/1/2", "orders/3/4"):
            client.publish(Message(name, b"x"))
        client.close()
        until(lambda: gateway.counters["orders"].dead == 2)

    assert main(["dead-letters", "list", "gateway.yaml"]) == 0
    *_, number, advice = capsys.readouterr().out.splitlines()
    assert number == "2 dead letters"
    assert advice == "too-deep: correct the mapping or the sender"
    assert main(["dead-letters", "list", "gateway.yaml", "--json"]) == 0
    letters = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {each["advice"] for each in letters} == {"correct the mapping or the sender"}

    assert main(["dead-letters", "replay", "gateway.yaml"]) == 1
    assert capsys.readouterr().err.splitlines()[-1] == advice
