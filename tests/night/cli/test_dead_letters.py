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
    for command in ("show", "replay", "purge"):
        assert main(["dead-letters", command, "gateway.yaml", "--rule", "other"]) == 1
        assert capsys.readouterr() == ("", "gateway: no such dead letter\n")

    assert main(["dead-letters", "purge", "gateway.yaml", "--yes"]) == 0
    assert capsys.readouterr().out == "1 deleted\n"
    for command in ("show", "replay", "purge"):
        assert main(["dead-letters", command, "gateway.yaml"]) == 1
        assert capsys.readouterr() == ("", "gateway: there is no dead letter\n")


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


ARCHIVED = "archive: {path: /srv/rows}\n"
COPIED = "dead_letters: {endpoint: plant, name: dead}\n"
PAIR = "standby: {lease: {kind: file, path: /srv/lease}}\n"


@pytest.mark.parametrize(
    ("sections", "parts", "absent"),
    [
        pytest.param(
            "",
            ["and no section `archive`: no dead letter is kept", "add a section `spool`"],
            ["dead_letters"],
            id="nothing-keeps-them",
        ),
        pytest.param(
            ARCHIVED,
            [
                "their rows are in the archive: gateway archive show /srv/rows --name NAME",
                "gateway replay /srv/rows sends those with a payload (`archive_payload`) again",
                "a section `spool` with a `path` keeps the next ones whole",
            ],
            [],
            id="the-archive-has-rows",
        ),
        pytest.param(
            ARCHIVED + COPIED, ["copies of them went to the endpoint 'plant'"], [], id="copies"
        ),
        pytest.param(
            ARCHIVED + PAIR,
            ["`dead_letters` with an `endpoint` sends copies of the next ones"],
            ["section `spool` with"],
            id="a-pair-has-no-spool",
        ),
        pytest.param(
            ARCHIVED + "web: {prot: 1}\n" + "dead_letters: {prot: 1}\n",
            ["gateway archive show /srv/rows"],
            [],
            id="broken-sections",
        ),
    ],
)
def test_without_a_spool_the_advice_leads_to_the_dead_letters(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    sections: str,
    parts: list[str],
    absent: list[str],
) -> None:
    """A pair was told to add the spool that `gateway check` refuses there."""
    file = tmp_path / "gateway.yaml"
    file.write_text(CONFIG.replace("spool: {path: spool}\n", sections))

    assert main(["dead-letters", "list", str(file)]) != 0
    shown = capsys.readouterr().err
    assert [each for each in parts if each not in shown] == []
    assert [each for each in absent if each in shown] == []


@pytest.mark.parametrize(
    ("more", "hint"),
    [("", "add a section `spool` with a `path`, or an"), (PAIR, "a pair has no spool: add an `")],
)
def test_dead_letters_of_a_pair_get_no_advice_that_check_refuses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: str, hint: str
) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_text(CONFIG.replace("spool: {path: spool}\n", f"dead_letters: {{bytes: 9}}\n{more}"))

    assert main(["check", str(file)]) == 1
    assert hint in capsys.readouterr().out
