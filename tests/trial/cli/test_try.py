"""The command `try`: a mapping without its brokers."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gateway.cli import main
from gateway.trial.first_try import running, tried

MAPPINGS = Path(__file__).parents[3] / "mappings"
DIFFERS = "the pattern does not match: level 1 is {!r}, the pattern has {!r}"
MAPPING = """\
gateway: {{name: plant-1, instance: "${{env:ABSENT}}", path_key: "${{env:ABSENT_KEY}}"}}
endpoints:
  plant: {{kind: mqtt, host: nowhere.invalid, port: 1883, password: "${{file:absent}}"}}
  erp: {{kind: jms, dialect: ems, urls: ["tcp://nowhere.invalid:7222"], classpath: ["absent.jar"]}}
  lab: {{kind: mqtt, host: nowhere.invalid, port: 1883}}
routes:
  orders:
    from: {{endpoint: plant, pattern: "orders/{{rest...}}"}}
    to: {{endpoint: erp, template: "ORDERS.{{rest...}}", on_too_long: refuse}}
  copies:
    from: {{endpoint: erp, pattern: "ORDERS.{{rest...}}", selector: "amount > 5"}}
    to: {{endpoint: lab, template: "copies/{{rest...}}"}}
archive: {{path: "{folder}/archive"}}
spool: {{path: "{folder}/spool", shared: true}}
standby: {{lease: {{kind: file, path: "{folder}/lease/lease"}}}}
web: {{}}
"""


def typed(
    lines: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str
) -> list[str]:
    """Return what `gateway try` prints for the lines, without the two of its start."""
    monkeypatch.setattr("sys.stdin", io.StringIO(lines))

    assert main(["try", *words]) == 0

    shown = capsys.readouterr()
    assert not shown.err
    return shown.out.partition("Ctrl-D ends\n")[2].splitlines()


def test_without_a_mapping_a_name_crosses_to_five_systems(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = typed("plant/v1.2//temperature 21.5\n", monkeypatch, capsys)

    assert shown == [
        "plant plant/v1.2//temperature",
        "  -> ems plant.v1%2E2.%-.temperature 21.5",
        "  -> solace plant/v1.2//temperature 21.5",
        "  -> nats plant.v1%2E2.%-.temperature 21.5",
        "  -> rabbitmq plant.v1%2E2..temperature 21.5",
        "  -> ibm plant/v1.2//temperature 21.5",
    ]


def test_a_mapping_is_tried_without_its_secrets_brokers_and_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "gateway.yaml"
    config.write_text(MAPPING.format(folder=tmp_path))

    shown = typed(f'orders/1 new\n"orders/a b" x\norders/{"x" * 300}\nalarm 1\n',
                  monkeypatch, capsys, str(config))  # fmt: skip

    assert shown[:6] == [
        "plant orders/1",
        "  -> erp ORDERS.1 new",
        "  -> lab left out, rule unselected",
        "plant orders/a b",
        "  -> erp ORDERS.a b x",
        "  -> lab left out, rule unselected",
    ]
    assert shown[7].startswith("  -> erp dead letter, rule ")
    assert shown[8:] == [
        "alarm: no route takes it",
        f"  orders, from plant: {DIFFERS.format('alarm', 'orders')}",
        f"  copies, from erp: {DIFFERS.format('alarm', 'ORDERS')}",
    ]
    assert [*tmp_path.iterdir()] == [config]


def test_an_illegal_name_is_no_message(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = typed("a/#/b 1\n", monkeypatch, capsys)

    assert shown[0] == "plant a/#/b"
    assert shown[1].startswith("  no message: mqtt: 'a/#/b' at 2: ")
    assert len(shown) == 2


def test_the_source_can_be_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "gateway.yaml"
    config.write_text(MAPPING.format(folder=tmp_path))

    shown = typed("orders/1\n", monkeypatch, capsys, str(config), "--from", "erp")

    assert shown == [
        "orders/1: no route takes it",
        f"  copies, from erp: {DIFFERS.format('orders/1', 'ORDERS')}",
    ]


def test_a_mapping_with_an_error_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "gateway.yaml"
    config.write_text(MAPPING.format(folder=tmp_path).replace("kind: jms", "kind: jmms"))

    assert main(["try", str(config)]) == 1
    assert "did you mean 'jms'?" in capsys.readouterr().err


@pytest.mark.parametrize("path", sorted(MAPPINGS.glob("*/*.yaml")), ids=lambda path: path.stem)
def test_each_mapping_does_what_its_tests_expect(path: Path, tmp_path: Path) -> None:
    configuration = tried(path, tmp_path, archive=False)
    shown: list[str] = []
    with running(configuration, shown.append) as trial:
        for name, test in configuration.tests.items():
            given = test.given
            if not test.expect or given.properties or given.reply_to or given.correlation_id:
                continue  # it has no copy, or a header that a line cannot have
            shown.clear()
            trial.send(f"{json.dumps(given.name)} {given.payload}", given.endpoint)
            for each in test.expect:
                wanted = f"  -> {each.endpoint} {each.name}"
                if each.refused is not None:
                    place = "at" if each.endpoint == given.endpoint else "->"
                    wanted = f"  {place} {each.endpoint} dead letter, rule {each.refused}"
                assert any(line.startswith(wanted) for line in shown), (name, wanted, shown)


@pytest.mark.nightly
@pytest.mark.spark
@pytest.mark.timeout(600)
def test_a_night_ends_the_trial(tmp_path: Path) -> None:
    config = tmp_path / "gateway.yaml"
    config.write_text(MAPPING.format(folder=tmp_path))
    command = [sys.executable, "-m", "gateway", "try", str(config), "--night"]
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    done = subprocess.run(  # noqa: S603  # our own command
        command, input="orders/1 new\norders/2 new\n", capture_output=True, text=True,
        timeout=500, check=False, env={**os.environ, "TMPDIR": str(scratch)},
    )  # fmt: skip

    assert done.returncode == 0, done.stdout + done.stderr
    assert "verdict: clean" in done.stdout
    assert sorted(tmp_path.iterdir()) == sorted([config, scratch])
    report = re.search("^report: (.*)$", done.stderr, re.MULTILINE)
    assert report is not None
    assert Path(report[1]).is_file()


def test_an_empty_key_is_shown_as_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "gateway.yaml"
    config.write_text("""\
endpoints:
  plant: {kind: mqtt, host: nowhere.invalid}
  lake: {kind: kafka, servers: ["nowhere.invalid"]}
routes:
  keyed:
    from: {endpoint: plant, pattern: "line/{line}/{rest...}"}
    to: {endpoint: lake, topic: "line.{line}", key: "{rest...}"}
""")
    shown = typed("line/7 21.5\nline/7/a 21.5\n", monkeypatch, capsys, str(config))

    arrows = [each for each in shown if "->" in each]
    assert arrows == ["  -> lake line.7: (an empty key) 21.5", "  -> lake line.7:a 21.5"]
