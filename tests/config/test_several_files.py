"""Files of one folder: a section or a name of two of them is a finding that names both places."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.config.load import load
from gateway.errors import ConfigErrors

FIRST = """\
endpoints: {a: {kind: mqtt}}
routes: {r: {from: {endpoint: a, pattern: x}, to: {endpoint: a, template: y}}}
"""
SECTIONS = {
    "archive": "{path: archive}",
    "spool": "{path: spool}",
    "dead_letters": "{name: dead}",
    "web": "{port: 8047}",
    "tracing": '{otlp: "http://localhost:4318"}',
    "standby": "{lease: {kind: kubernetes}}",
}
NAMES = {
    "endpoints": "{a: {kind: mqtt}}",
    "routes": "{r: {from: {endpoint: a, pattern: z}, to: {endpoint: a, template: z/z}}}",
    "tests": "{t: {given: {endpoint: a, name: x}, expect: []}}",
}


def findings(folder: Path, first: str, second: str) -> list[str]:
    (folder / "10.yaml").write_text(FIRST + first)
    (folder / "20.yaml").write_text("# the second\n" + (second or "tests: {}\n"))
    try:
        load(folder)
    except ConfigErrors as error:
        return [str(each).replace(f"{folder}/", "") for each in error.findings]
    return []


@pytest.mark.parametrize("name", SECTIONS)
def test_a_section_of_two_files(tmp_path: Path, name: str) -> None:
    spool = "" if name == "spool" else "spool: {path: spool}\n"
    text = f"{name}: {SECTIONS[name]}\n"

    assert findings(tmp_path, spool + text, "") == []
    line = 3 + bool(spool)
    assert findings(tmp_path, spool + text, text) == [
        f"20.yaml:2:1: section {name!r} stands in 10.yaml:{line}, too; write it once"
    ]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_of_two_files(tmp_path: Path, name: str) -> None:
    text = f"{name}: {NAMES[name]}\n"
    first = text if name == "tests" else ""
    line = {"endpoints": 1, "routes": 2, "tests": 3}[name]
    word = {"endpoints": "a", "routes": "r", "tests": "t"}[name]

    (found,) = findings(tmp_path, first, text)

    assert found == (
        f"20.yaml:2:{len(name) + 4}: {name} {word!r} stands in 10.yaml:{line}, too; write it once"
    )


def test_other_names_of_two_files_are_read_as_one(tmp_path: Path) -> None:
    assert findings(tmp_path, "", "endpoints: {b: {kind: mqtt, host: h}}\n") == []


def test_a_folder_of_several_gateways_is_one_finding(tmp_path: Path) -> None:
    gateway = "gateway: {name: plant}\n"
    (tmp_path / "30.yaml").write_text(gateway + FIRST)

    assert findings(tmp_path, gateway, gateway + FIRST) == [
        (
            "20.yaml:2:1: section 'gateway' stands in 10.yaml:3, too; write it once; where each"
            " file is a gateway: gateway check 10.yaml 20.yaml 30.yaml"
        )
    ]


def test_a_broker_id_with_a_placeholder_is_refused(tmp_path: Path) -> None:
    second = "endpoints: {b: {kind: mqtt, broker_id: SITE/localhost:1883}}\n"

    assert findings(tmp_path, "", second) == [
        (
            "20.yaml:2:40: `broker_id` 'SITE/localhost:1883': SITE is a placeholder; write a name"
            " of this site in its place"
        )
    ]
