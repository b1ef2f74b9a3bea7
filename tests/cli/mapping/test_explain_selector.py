"""`gateway explain` with the properties of a message, for routes with a selector."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gateway.cli import main

CONFIG = """\
endpoints:
  mqtt5: {kind: mqtt, host: 127.0.0.1}
  mqtt3: {kind: mqtt, host: 127.0.0.1, port: 1884, version: "3.1.1"}
  ems: {kind: memory, dialect: ems}
  out: {kind: memory, dialect: ems}
routes:
  text:
    from: {endpoint: mqtt5, pattern: a, selector: "amount = '150'"}
    to: {endpoint: out, template: one}
  absent:
    from: {endpoint: mqtt3, pattern: a, selector: "amount IS NULL"}
    to: {endpoint: out, template: two}
  typed:
    from: {endpoint: ems, pattern: a, selector: "amount > 100 AND JMSPriority > 4"}
    to: {endpoint: out, template: three}
"""
GIVEN = ["--property", "amount=150", "--property", "JMSPriority=7"]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "gateway.yaml"
    file.write_text(CONFIG)
    return file


@pytest.mark.parametrize(
    ("given", "selected"),
    [
        (GIVEN, {"text": True, "absent": True, "typed": True}),
        (["--property", "amount=50"], {"text": False, "absent": True, "typed": False}),
        (["--property", "JMSPriority=7"], {"text": False, "absent": True, "typed": False}),
        ([], {"text": None, "absent": None, "typed": None}),
    ],
)
def test_a_selector_is_evaluated_with_the_types_of_its_source(
    config: Path,
    given: list[str],
    selected: dict[str, bool | None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["explain", "a", "--config", str(config), "--json", *given]) == 0

    results = json.loads(capsys.readouterr().out)
    assert {each["route"]: each["selected"] for each in results} == selected


def test_a_message_that_is_left_out_gets_no_name(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["explain", "a", "--config", str(config), "--from", "mqtt5"]
    assert main([*arguments, "--property", "amount=1"]) == 1
    assert (
        capsys.readouterr().out
        == """\
text: from mqtt5, a
  selector amount = '150': not true for this message, which the route leaves out
no target gets this message
"""
    )
    assert main(arguments) == 0
    out = capsys.readouterr().out
    assert "not evaluated; give the properties of the message with --property NAME=VALUE" in out


@pytest.mark.parametrize(
    ("given", "selected", "assumed"),
    [
        pytest.param([], True, {"JMSDeliveryMode": "PERSISTENT", "JMSPriority": 4}, id="defaults"),
        pytest.param(["JMSPriority=5"], False, {"JMSDeliveryMode": "PERSISTENT"}, id="one-given"),
        pytest.param(["JMSPriority=4", "JMSDeliveryMode=PERSISTENT"], True, {}, id="both-given"),
    ],
)
def test_header_values_that_a_selector_reads_and_nobody_gave_are_shown(
    tmp_path: Path,
    given: list[str],
    selected: bool,
    assumed: dict[str, object],
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "gateway.yaml"
    selector = "amount = '1' AND JMSDeliveryMode = 'PERSISTENT' AND JMSPriority < 5"
    file.write_text(CONFIG.replace("amount = '150'", selector))
    words = ["explain", "a", "--config", str(file), "--from", "mqtt5"]
    for option in ("amount=1", *given):
        words += ["--property", option]

    assert main([*words, "--json"]) == (0 if selected else 1)
    (result,) = json.loads(capsys.readouterr().out)
    assert (result["selected"], result["assumed"]) == (selected, assumed)
    main(words)
    shown = ", ".join(f"{name} = {value!r}" for name, value in assumed.items())
    line = f"  assumed: {shown}\n"
    assert (line in capsys.readouterr().out) == bool(assumed)


def test_a_header_that_the_source_does_not_carry_has_its_default(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_text(CONFIG.replace("amount IS NULL", "JMSPriority = 4"))

    words = ["explain", "a", "--config", str(file), "--from", "mqtt3", "--json"]
    assert main([*words, "--property", "JMSPriority=7"]) == 0

    (result,) = json.loads(capsys.readouterr().out)
    assert result["assumed"] == {"JMSPriority": 4}


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("amount", "--property amount: write NAME=VALUE"),
        ("=1", "--property =1: write NAME=VALUE"),
        ("JMSPriority=10", "JMSPriority is a number from 0 to 9"),
        ("JMSPriority=-1", "JMSPriority is a number from 0 to 9"),
        ("JMSPriority=high", "JMSPriority and JMSTimestamp are whole numbers"),
        ("JMSDeliveryMode=1", "JMSDeliveryMode is one of PERSISTENT, NON_PERSISTENT"),
    ],
)
def test_a_wrong_property_is_an_error(
    config: Path, given: str, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", "a", "--config", str(config), "--property", given]) == 2
    assert reason in capsys.readouterr().err
