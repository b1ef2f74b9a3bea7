"""Hostile files: each is a finding at its location, in short time."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.check.examine import examine
from gateway.config.load import load
from gateway.config.references import MAX_SECRET
from gateway.errors import ConfigError, ConfigErrors

ENDPOINT = "endpoints: {a: {kind: memory, dialect: mqtt}}\n"
ROUTE = "routes: {r: {from: {endpoint: a, pattern: x}, to: {endpoint: a, template: y}}}\n"


def findings(file: Path) -> list[ConfigError]:
    with pytest.raises(ConfigErrors) as caught:
        load(file, {})
    return caught.value.findings


def written(folder: Path, text: str) -> Path:
    file = folder / "gateway.yaml"
    file.write_text(text, encoding="utf-8")
    return file


HOSTILE = [
    pytest.param("gateway: {stop_seconds: .nan}\n", "type", ".nan", id="not-a-number"),
    pytest.param("archive: {path: x, segment_seconds: .inf}\n", "type", ".inf", id="infinite"),
    pytest.param(
        f"archive: {{path: x, segment_bytes: {'9' * 5000}}}\n", "type", "999", id="digits"
    ),
    pytest.param(f"web: {{port: 0x{'f' * 4000}}}\n", "type", "0xf", id="hexadecimal-digits"),
    pytest.param(f"web: {{port: 1{':1' * 4000}}}\n", "type", "1:1", id="digits-to-base-60"),
    pytest.param(
        "archive: {path: x, segment_bytes: 0x8000000000000000}\n", "too-large", "0x8", id="64-bits"
    ),
    pytest.param(f"gateway: {{stop_seconds: 0x{'f' * 300}}}\n", "too-large", "0xf", id="no-float"),
    pytest.param("gateway: {heartbeat_seconds: 1.0e+10}\n", "range", "1.0", id="no-timer"),
    pytest.param("web: {port: !!int ''}\n", "type", "!!int", id="no-digits"),
    pytest.param("web: {port: !!int '-'}\n", "type", "!!int", id="sign-without-digits"),
    pytest.param("web: {spool_percent: !!float '_'}\n", "type", "!!float", id="no-fraction"),
    pytest.param('web: {cert_file: "a\\0b"}\n', "bad-text", '"a', id="path-nul"),
    pytest.param('include: ["a\\0b"]\n', "bad-text", '"a', id="include-nul"),
    pytest.param(f"include: [{'a' * 5000}]\n", "unreadable", "aaa", id="include-long"),
    pytest.param("include: [/]\n", "unreadable", "/", id="include-folder"),
    pytest.param("include: [/dev/zero]\n", "unreadable", "/", id="include-device"),
    pytest.param("defaults: &d {route: {<<: *d}}\n", "too-large", None, id="merges-itself"),
    pytest.param("tests: &t [*t]\n", "too-large", None, id="holds-itself"),
    pytest.param("&a *a\n", "syntax", None, id="alias-as-key"),
    pytest.param("? [a, b]\n: 1\n", "bad-key", "[", id="list-as-key"),
    pytest.param("--- 1\n--- 2\n", "syntax", None, id="two-documents"),
    pytest.param("tests: !!python/object/apply:os.system [x]\n", "type", None, id="python-tag"),
]


@pytest.mark.parametrize(("text", "rule", "at"), HOSTILE)
def test_a_hostile_file_is_a_finding(tmp_path: Path, text: str, rule: str, at: str | None) -> None:
    found = findings(written(tmp_path, ENDPOINT + ROUTE + text))
    locations = {(each.line, each.column) for each in found if each.rule == rule}

    assert locations
    assert at is None or locations == {(3, text.index(at) + 1)}
    assert all(len(str(each)) < 2_000 for each in found)


def test_a_value_that_is_not_utf_8_is_a_finding(tmp_path: Path) -> None:
    text = "endpoints: {a: {kind: mqtt, host: '${env:HOST}'}}\n" + ROUTE
    with pytest.raises(ConfigErrors) as caught:
        load(written(tmp_path, text), {"HOST": "a\udcff"})

    assert [each.rule for each in caught.value.findings] == ["bad-text"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every folder")
def test_a_folder_that_cannot_be_read_is_a_finding(tmp_path: Path) -> None:
    tmp_path.chmod(0)

    assert [each.rule for each in findings(tmp_path)] == ["unreadable"]


@pytest.mark.parametrize("name", ["/dev/zero", "a\\0b", "x" * 5000, "/"])
def test_an_unreadable_secret_is_a_finding(tmp_path: Path, name: str) -> None:
    text = f'endpoints: {{a: {{kind: mqtt, host: x, password: "${{file:{name}}}"}}}}\n'

    assert [each.rule for each in findings(written(tmp_path, text + ROUTE))] == ["missing-secret"]


def test_a_secret_has_a_maximum_size(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    text = f"endpoints: {{a: {{kind: mqtt, host: x, password: '${{file:{secret}}}'}}}}\n"
    secret.write_bytes(b"x" * MAX_SECRET)
    load(written(tmp_path, text + ROUTE), {})
    secret.write_bytes(b"x" * (MAX_SECRET + 1))

    assert [each.rule for each in findings(written(tmp_path, text + ROUTE))] == ["missing-secret"]


def _pipe(path: Path) -> None:
    os.mkfifo(path)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        pytest.param(_pipe, "is a pipe", id="pipe-without-writer"),
        pytest.param(Path.mkdir, "Is a directory", id="folder"),
        pytest.param(lambda path: path.write_bytes(b"\xff"), "is not UTF-8", id="bytes"),
        pytest.param(lambda path: path.write_bytes(b"x" * (1 << 21)), "is longer than", id="long"),
        pytest.param(lambda _path: None, "create or mount the file", id="absent"),
    ],
)
def test_an_unreadable_secret_has_its_reason(
    tmp_path: Path, make: Callable[[Path], object], reason: str
) -> None:
    make(tmp_path / "secret")
    text = "endpoints: {a: {kind: mqtt, host: x, password: '${file:secret}'}}\n"

    (found,) = findings(written(tmp_path, text + ROUTE))

    assert reason in str(found)
    assert str(tmp_path / "secret") in str(found)


def test_a_file_that_two_others_include_is_read_once(tmp_path: Path) -> None:
    for number in range(20):  # a million paths to the last one
        text = f"include: [{number + 1}.yaml, {number + 1}.yaml]\n"
        (tmp_path / f"{number}.yaml").write_text(text)
    (tmp_path / "20.yaml").write_text(ENDPOINT + ROUTE)

    assert [route.name for route in load(tmp_path / "0.yaml").routes] == ["r"]
    assert [route.name for route in load(tmp_path).routes] == ["r"]


def test_includes_have_a_maximum_depth(tmp_path: Path) -> None:
    for number in range(3_000):
        (tmp_path / f"{number}.yaml").write_text(f"include: {number + 1}.yaml\n")

    (found,) = [each for each in findings(tmp_path / "0.yaml") if each.rule != "no-routes"]
    assert (found.rule, Path(found.path).name) == ("recursive-include", "31.yaml")


def long(pattern: str, dialect: str, template: str | None = None) -> str:
    made = "" if template is None else f", template: '{template}'"
    return (
        f"endpoints: {{a: {{kind: memory, dialect: {dialect}}}}}\n"
        f"routes: {{r: {{from: {{endpoint: a, pattern: '{pattern}'}}, to: {{endpoint: a{made}}}}}}}"
    )


LONG = [
    pytest.param(long("/".join(["+"] * 3_000) + "/#", "mqtt"), id="levels"),
    pytest.param(long("{x...}", "mqtt", "/".join(["{x...}"] * 900)), id="one-capture-often"),
    pytest.param(
        long(
            "/".join(f"{{c{n}}}" for n in range(300)), "mqtt",
            "".join(f"{{c{n}}}" for n in range(300)),
        ), id="one-level-of-many",
    ),
    pytest.param(long("/".join(["#", "a"] * 400), "ibm"), id="rest-wildcards"),
    pytest.param(long("/" + "*a" * 3_000 + "*", "smartsockets", "/y"), id="stars"),
]  # fmt: skip


@pytest.mark.parametrize("text", LONG)
def test_a_huge_pattern_is_proven_or_reported(tmp_path: Path, text: str) -> None:
    assert examine(load(written(tmp_path, text), {}))
