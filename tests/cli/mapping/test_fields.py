"""Commands about names that are made of fields of the message."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gateway.cli import main
from gateway.config.load import load
from gateway.web.lookup import look_up

CONFIG = """\
endpoints:
  plant: {kind: memory}
  site: {kind: memory, allow: ["to/#"]}
routes:
  orders:
    from: {endpoint: plant, pattern: "o/{m}"}
    to:
      endpoint: site
      template: "to/{payload.site}/{property.line|default:none}"
      payload: {pick: [id], set: {machine: "{m}"}}
    retained: ignore
"""
PAYLOAD = '{"id": 1.50, "site": "hall", "secret": 1}'


@pytest.fixture
def config(tmp_path: Path) -> str:
    file = tmp_path / "fields.yaml"
    file.write_text(CONFIG)
    return str(file)


SEPARATORS = """\
endpoints:
  plant: {kind: memory}
  site: {kind: memory, broker: site}
routes:
  orders:
    from: {endpoint: plant, pattern: "o/{m}"}
    to:
      endpoint: site
      template: "to/{m}"
      payload: {set: {path: "{payload.path}", line: "{property.line|default:a/b}"}}
    retained: ignore
"""


def test_a_field_in_a_payload_is_a_value_and_no_level(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "fields.yaml"
    file.write_text(SEPARATORS)
    words = ["explain", "o/1", "--config", str(file), "--json", "--payload"]

    assert main(["check", str(file)]) == 0
    capsys.readouterr()
    assert main([*words, '{"path": "a/b/#\\n"}']) == 0
    ((made,),) = (each["made"] for each in json.loads(capsys.readouterr().out))
    assert made["messages"][0]["payload"] == '{"path": "a/b/#\\n", "line": "a/b"}'


@pytest.mark.parametrize("payload", ['{"other": 1}', "no JSON", '{"path": ""}'])
def test_preflight_and_translate_know_what_a_payload_needs(
    tmp_path: Path, payload: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file, names = tmp_path / "fields.yaml", tmp_path / "names.txt"
    file.write_text(SEPARATORS)
    lines = [{"name": "o/1", "payload": payload}, {"name": "o/1", "payload": {"path": "a/b"}}]
    names.write_text("".join(f"{json.dumps(each)}\n" for each in lines) + "o/2\n")

    assert main(["preflight", str(names), "--config", str(file)]) == 1
    out = capsys.readouterr().out
    assert f"{names}:1: " in out
    assert "(rule field)" in out or "(rule payload)" in out
    assert "site: 2 fit; refused: 1 " in out

    translate = ["translate", "o/1", "--config", str(file), "--route", "orders"]
    assert main([*translate, "--payload", payload]) == 1
    assert main([*translate, "--payload", '{"path": "a/b"}']) == 0
    assert main(translate) == 0


EXPLAIN = ["explain", "o/m1", "--config"]
TRANSLATE = ["translate", "o/m1", "--route", "orders", "--config"]
MISSING = "'{payload.site}': is missing in the message"
ALONE = "'{payload.site}': is a field of a message, and there is only a name"
GIVEN = [
    pytest.param([], "to/hall/none", id="payload"),
    pytest.param(["--property", "line=7"], "to/hall/7", id="property"),
]


@pytest.mark.parametrize(("words", "name"), GIVEN)
def test_explain_makes_the_name_of_a_message(
    config: str, capsys: pytest.CaptureFixture[str], words: list[str], name: str
) -> None:
    status = main(["explain", "o/m1", "--config", config, "--payload", PAYLOAD, "--json", *words])

    ((made,),) = (each["made"] for each in json.loads(capsys.readouterr().out))
    (message,) = made["messages"]
    assert status == 0
    assert (made["name"], message["name"]) == (name, name)
    assert message["payload"] == '{"id": 1.50, "machine": "m1"}'


@pytest.mark.parametrize(("words", "name"), GIVEN)
def test_translate_makes_the_name_of_a_message(
    config: str, capsys: pytest.CaptureFixture[str], words: list[str], name: str
) -> None:
    status = main([*TRANSLATE, config, "--payload", PAYLOAD, *words])

    assert (status, capsys.readouterr().out) == (0, f"site (mqtt): {name}\n")


@pytest.mark.parametrize("words", [EXPLAIN, TRANSLATE], ids=["explain", "translate"])
def test_a_missing_field_is_named(
    config: str, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    status = main([*words, config, "--payload", "{}"])

    assert status == 1
    assert MISSING in capsys.readouterr().out


def test_fields_need_a_route(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["translate", "a", "--from", "mqtt", "--to", "ems", "--payload", "{}"]) == 2
    assert "--property and --payload need --config and --route" in capsys.readouterr().err


CAPTURED = f"""\
{{"name": "o/m1", "payload": {PAYLOAD}}}
{{"name": "o/m2", "payload": {{"site": "x/y"}}}}
{{"name": "o/m3", "payload": "{{\\"site\\": 7}}", "properties": {{"line": 4}}}}
{{"name": "o/m4", "payload": {{}}}}
o/m5
other/name
{{"name": "o/m6", "topic": "x"}}
{{not JSON
"""


@pytest.mark.parametrize("route", [[], ["--route", "orders"]], ids=["all", "one"])
def test_preflight_makes_the_names_of_captured_messages(
    config: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], route: list[str]
) -> None:
    file = tmp_path / "captured.txt"
    file.write_text(CAPTURED)
    status = main(["preflight", str(file), "--config", config, "--json", *route])

    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert status == 1
    assert [(each["to"], each.get("name", each.get("rule"))) for each in found] == [
        ("site", "to/hall/none"),
        ("site", "field"),
        ("site", "to/7/4"),
        ("site", "field"),
        ("site", "field"),
        ("source", "not-taken"),
        ("source", "message"),
        ("source", "not-taken"),
    ]
    assert MISSING in found[3]["refused"]
    assert ALONE in found[4]["refused"]


def test_preflight_prints_the_place_of_each_refusal_and_counts(
    config: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "captured.txt"
    file.write_text(CAPTURED)
    main(["preflight", str(file), "--config", config])

    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"{file}:2: ")
    assert lines[-2:] == ["site: 2 fit; refused: 3 field",
                          "source: 0 fit; refused: 1 message, 2 not-taken"]  # fmt: skip


PREFLIGHT_ERRORS = [
    pytest.param([], "preflight needs --from and --to, or --config", id="nothing"),
    pytest.param(["--from", "mqtt"], "preflight needs --from and --to", id="half"),
    pytest.param(["--config", "CONFIG", "--to", "ems"], "leave out the others", id="both"),
    pytest.param(["--config", "CONFIG", "--route", "x"], "no route 'x'; there are orders", id="no"),
]


@pytest.mark.parametrize(("words", "text"), PREFLIGHT_ERRORS)
def test_preflight_says_what_it_needs(
    config: str, capsys: pytest.CaptureFixture[str], words: list[str], text: str
) -> None:
    words = [config if each == "CONFIG" else each for each in words]
    assert main(["preflight", "names.txt", *words]) == 2
    assert text in capsys.readouterr().err


@pytest.mark.parametrize("words", [EXPLAIN, TRANSLATE], ids=["explain", "translate"])
def test_a_name_alone_is_refused_with_the_field_that_it_needs(
    config: str, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    status = main([*words, config])

    assert status == 1
    assert ALONE in capsys.readouterr().out


def test_the_page_shows_the_field_that_a_name_needs(config: str) -> None:
    found: Any = look_up("o/m1", "mqtt", "name", load(Path(config)).routes)

    ((made,),) = (each["made"] for each in found["routes"])
    assert made["rule"] == "field"
    assert "{payload.site}" in made["reason"]
