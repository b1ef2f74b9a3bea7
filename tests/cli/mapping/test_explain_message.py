"""`gateway explain` with a whole message: the copy of each target after its rules."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gateway.cli import main
from tests.config.test_names_of import BACK, ENDPOINTS, OUT

CONFIG = """\
endpoints:
  plant: {kind: mqtt, host: 127.0.0.1}
  old: {kind: mqtt, host: 127.0.0.1, port: 1884, version: "3.1.1"}
  ems: {kind: memory, dialect: ems}
routes:
  temperatures:
    from: {endpoint: plant, pattern: "t/{line}"}
    to:
      - endpoint: ems
        template: "T.{line}"
        payload: map
        headers: {map: {priority: {"*": 2}}, rename: {unit: u}, set: {line: "{line}"}}
      - {endpoint: old, template: "o/{line}"}
  back:
    from: {endpoint: old, pattern: "t/{line}"}
    to: {endpoint: ems, template: "B.{line}"}
"""
MESSAGE = [
    "--payload", '{"v": 21}', "--property", "unit=C", "--header", "content_type=text/json",
    "--header", "priority=7", "--header", "ttl=30", "--header", "reply_to=r/1",
]  # fmt: skip


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "gateway.yaml"
    file.write_text(CONFIG)
    return file


def test_each_target_shows_the_message_that_it_gets(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["explain", "t/4", "--config", str(config), "--from", "plant"]
    assert main([*words, *MESSAGE]) == 0

    assert (
        capsys.readouterr().out
        == """\
temperatures: from plant, t/{line}
  {line} = '4'
  -> ems (ems) T.4
     uses 3 of 247 characters (249 less 2 for 2 levels), \
2 of 64 levels, 1 of 127 characters in one level
     no route takes it on from there
     message mode at_least_once, priority 2, ttl 30.0, content_type text/json, reply_to r.1
       property u = 'C'
       property line = '4'
       payload, map: {'v': 21}
  -> old (mqtt) o/4
     uses 3 of 65535 bytes
     no route takes it on from there
     message mode at_least_once
       payload, bytes: {"v": 21}
       not carried by old: priority, expiry, content_type, reply_to, properties
"""
    )
    assert main([*words, *MESSAGE, "--json"]) == 0
    (result,) = json.loads(capsys.readouterr().out)
    (first,), (second,) = (each["messages"] for each in result["made"])
    assert first["payload"] == {"v": 21}
    assert first["properties"] == {"u": "C", "line": "4"}
    assert second["not_carried"] == ["priority", "expiry", "content_type", "reply_to", "properties"]


def test_a_payload_that_the_target_cannot_have_is_refused(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["explain", "t/4", "--config", str(config), "--from", "plant"]
    main([*words, "--payload", "21"])

    assert "     message refused, rule payload: " in capsys.readouterr().out


def test_a_source_leaves_out_what_it_does_not_carry(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["explain", "t/4", "--config", str(config), "--from", "old"]
    main([*words, *MESSAGE])

    out = capsys.readouterr().out
    assert "  old does not carry: priority, expiry, content_type, reply_to, properties\n" in out
    assert '     message mode at_least_once\n       payload, bytes: {"v": 21}\n' in out


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        ("priority=10", "--header priority=10: the value is not an integer from 0 to 9"),
        ("priorty=1", "--header priorty: unknown header; known are priority, expiry, ttl"),
        ("ttl", "--header ttl: write NAME=VALUE"),
    ],
)
def test_a_wrong_header_is_an_error(
    config: Path, header: str, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", "a", "--config", str(config), "--header", header]) == 2
    assert reason in capsys.readouterr().err


def test_a_mapping_test_expects_what_the_target_carries(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_text(
        CONFIG
        + """\
tests:
  a lost header:
    given: {endpoint: plant, name: t/4, payload: "{}", priority: 7}
    expect: [{endpoint: ems, name: T.4}, {endpoint: old, name: o/4, priority: 7}]
"""
    )

    assert main(["test", str(file)]) == 1
    assert "unexpected: old o/4 b'{}'\n" in capsys.readouterr().out


def test_an_empty_key_is_shown_as_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It stands for nothing that a reader could see, and is not a null key."""
    file = tmp_path / "gateway.yaml"
    file.write_text("""\
endpoints:
  plant: {kind: memory, dialect: mqtt}
  lake: {kind: memory, dialect: kafka}
routes:
  keyed:
    from: {endpoint: plant, pattern: "line/{line}/{rest...}"}
    to: {endpoint: lake, topic: "line", key: "{rest...}"}
""")
    lines = []
    for name in ("line/7", "line/7/a"):
        assert main(["explain", name, str(file)]) == 0
        lines += [each for each in capsys.readouterr().out.splitlines() if "->" in each]

    assert lines == ["  -> lake (kafka) line: (an empty key)", "  -> lake (kafka) line:a"]


def test_a_name_for_which_a_broker_hangs_up_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_text(f"{ENDPOINTS}routes:\n{OUT}{BACK}")
    words = ["explain", "--config", str(file), "--from"]

    assert main([*words, "lake", "plant:7", "--property", "gateway_name=plant/7/x\ny"]) == 1
    shown = capsys.readouterr().out
    refused = "the topic name holds U+000A, and a broker may hang up for it"
    assert "-> plant2 (mqtt) refused, rule control-character: " in shown
    assert refused in shown
    assert main([*words, "plant", "plant/7/x\ny"]) == 0
    assert "from there back makes it refused (control-character) at plant2" in (
        capsys.readouterr().out
    )
