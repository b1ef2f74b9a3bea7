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


def test_explain_says_which_field_is_missing(
    config: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status = main(["explain", "o/m1", "--config", config, "--payload", "{}"])

    assert status == 1
    assert "'{payload.site}': is missing in the message" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    [["explain", "o/m1", "--config"], ["translate", "o/m1", "--route", "orders", "--config"]],
    ids=["explain", "translate"],
)
def test_a_name_alone_is_refused_with_the_field_that_it_needs(
    config: str, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    status = main([*words, config])

    assert status == 1
    assert "'{payload.site}': is a field of a message, and there is only a name" in (
        capsys.readouterr().out
    )


def test_the_page_shows_the_field_that_a_name_needs(config: str) -> None:
    found: Any = look_up("o/m1", "mqtt", "name", load(Path(config)).routes)

    ((made,),) = (each["made"] for each in found["routes"])
    assert made["rule"] == "field"
    assert "{payload.site}" in made["reason"]
