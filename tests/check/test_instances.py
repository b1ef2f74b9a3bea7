"""The names of instances: legal ones, and those that no start has twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.check.examine import examine
from gateway.config.load import load
from gateway.errors import ConfigErrors

CONFIG = """\
gateway: {{name: plant-1, instance: {instance}}}
endpoints:
  plant: {{kind: mqtt, host: localhost}}
  erp: {{kind: mqtt, host: erp.example}}
routes:
  orders:
    from: {{endpoint: plant, pattern: a/b}}
    to: {{endpoint: erp, template: c/d}}
"""


def rules(folder: Path, instance: str) -> list[str]:
    file = folder / "gateway.yaml"
    file.write_text(CONFIG.format(instance=instance))
    return [each.rule for each in examine(load(file)) if "instance" in each.rule]


@pytest.mark.parametrize(
    "name", ["gateway-7d4b9c6f5d-x2k8p", "plant-1-5f6c8b7d9-abc12", "3f2a9c0b1d4e"]
)
def test_a_name_that_each_start_changes_is_a_warning(tmp_path: Path, name: str) -> None:
    assert rules(tmp_path, name) == ["changing-instance"]


@pytest.mark.parametrize(
    "name", ["a", "gateway-0", "host-01.example", "bridge-eu-west-1", "deadbeef"]
)
def test_a_name_that_stays_is_none(tmp_path: Path, name: str) -> None:
    assert rules(tmp_path, name) == []


def test_the_name_may_come_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POD", "gateway-0")
    file = tmp_path / "gateway.yaml"
    file.write_text(CONFIG.format(instance='"${env:POD}"'))

    assert load(file).gateway.writer == "plant-1@gateway-0"


@pytest.mark.parametrize("name", ["a@b", '"a b"', "-a"])
def test_an_illegal_name_is_an_error(tmp_path: Path, name: str) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_text(CONFIG.format(instance=name))

    with pytest.raises(ConfigErrors) as raised:
        load(file)

    assert [(each.rule, each.line) for each in raised.value.findings] == [("bad-name", 1)]
