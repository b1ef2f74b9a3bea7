"""The note about a source whose window all its targets share."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.check.unlikely_settings import doubts
from gateway.config.load import load

ENDPOINTS = """\
gateway: {name: g}
endpoints:
  plant: {kind: mqtt, host: a}
  one: {kind: memory}
  two: {kind: memory}
routes:
  first: {from: {endpoint: plant, pattern: "a/#"}, to: {endpoint: one}}
"""
SECOND = '  second: {from: {endpoint: plant, pattern: "b/#"}, to: {endpoint: two}}\n'


def notes(path: Path, text: str) -> list[str]:
    (path / "gateway.yaml").write_text(text)
    found = list(doubts(load(path / "gateway.yaml"), ["shared-window"]))
    assert {each.severity for each in found} <= {"note"}
    return list(map(str, found))


@pytest.mark.parametrize(
    ("more", "number"),
    [
        pytest.param("", 0, id="one-target"),
        pytest.param(SECOND, 1, id="two"),
        pytest.param(SECOND + "spool: {path: spool}\n", 0, id="spool"),
        pytest.param(SECOND.replace("plant", "two").replace("two}", "one}"), 0, id="two-sources"),
    ],
)
def test_a_source_of_several_targets_without_a_spool_is_noted(
    tmp_path: Path, more: str, number: int
) -> None:
    found = notes(tmp_path, ENDPOINTS + more)

    assert len(found) == number
    for each in found:
        assert "5,000 messages or 16 MiB" in each
        assert "'plant'" in each


def test_a_source_without_a_window_of_messages_names_its_bytes(tmp_path: Path) -> None:
    text = (ENDPOINTS + SECOND).replace("mqtt, host: a", 'yami4, url: "tcp://localhost:1"')
    found = notes(tmp_path, text.replace("/#", ".{rest...}"))

    assert len(found) == 1
    assert "of it after 64 MiB" in found[0]
