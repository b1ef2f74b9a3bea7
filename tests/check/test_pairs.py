"""Findings about the section `standby`."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.check.examine import examine
from gateway.config.load import load
from gateway.errors import ConfigErrors

BASE = """\
gateway: {{name: plant-1{instance}}}
standby: {{lease: {lease}}}
endpoints:
  a: {{kind: memory, dialect: mqtt}}
  b: {{kind: memory, dialect: mqtt}}
  c: {{kind: memory, dialect: mqtt}}
routes:
  ab: {{from: {{endpoint: a, pattern: "x/{{r...}}"}}, to: {{endpoint: b, template: "y/{{r...}}"}}}}
"""
SECOND = (
    '  ac: {from: {endpoint: a, pattern: "z/{r...}"}, to: {endpoint: c, template: "w/{r...}"}}\n'
)


def findings(folder: Path, more: str = "", instance: str = ", instance: a") -> list[str]:
    text = BASE.format(instance=instance, lease="{kind: file, path: lease}") + more
    (folder / "gateway.yaml").write_text(text)
    found = examine(load(folder / "gateway.yaml"))
    return [f"{each.severity} {each.rule}" for each in found if each.rule.startswith("pair-")]


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ("", []),
        (SECOND, ["warning pair-shared-source"]),
        ("spool: {path: spool}\n", ["error pair-spool"]),
        ("spool: {path: spool, shared: true}\n", []),
        (SECOND + "spool: {path: spool, shared: true}\n", []),
        ("archive: {path: archive}\n", []),  # beside the lease
        ("archive: {path: /proc/archive}\n", ["warning pair-archive"]),  # another file system
        ("archive: {path: s3://bucket/archive}\n", []),
    ],
)
def test_what_a_pair_cannot_have(tmp_path: Path, more: str, expected: list[str]) -> None:
    assert findings(tmp_path, more) == expected


def test_the_instances_of_a_pair_have_names(tmp_path: Path) -> None:
    assert findings(tmp_path, instance="") == ["error pair-instance"]


@pytest.mark.parametrize(
    ("lease", "reason"),
    [
        ("{kind: file}", "a lease of `kind: file` needs a `path`"),
        ("{kind: file, path: x, name: y}", "`kind: file` has no 'name'"),
        ("{kind: kubernetes, path: x}", "`kind: kubernetes` has no 'path'"),
    ],
)
def test_a_lease_has_the_keys_of_its_kind(tmp_path: Path, lease: str, reason: str) -> None:
    (tmp_path / "gateway.yaml").write_text(BASE.format(instance=", instance: a", lease=lease))
    with pytest.raises(ConfigErrors) as caught:
        load(tmp_path / "gateway.yaml")
    assert [each.reason for each in caught.value.findings] == [reason]


ARCHIVE = "archive: {path: archive}\n"


def test_dead_letters_need_a_spool_or_an_endpoint_and_an_archive(tmp_path: Path) -> None:
    assert findings(tmp_path, ARCHIVE + "dead_letters: {endpoint: b}\n") == []
    for more in ("dead_letters: {endpoint: b}\n", ARCHIVE + "dead_letters: {bytes: 100000}\n"):
        with pytest.raises(ConfigErrors, match="dead letters are kept in the folder of the spool"):
            findings(tmp_path, more)
