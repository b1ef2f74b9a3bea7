"""A value that came from a reference is in no finding, whatever its key."""

from __future__ import annotations

import json
import string
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.check.examine import examine
from gateway.cli import main
from gateway.config.hidden_values import HiddenValues
from gateway.config.load import load
from gateway.endpoints.registry import ENDPOINT_KINDS
from gateway.errors import ConfigError, ConfigErrors
from gateway.runtime.gateway import Gateway
from gateway.setting import fields_by_key
from gateway.web.application import WebApplication
from gateway.web.exchange import HttpRequest
from gateway.web.snapshot import snapshot_json
from gateway.web.status_cache import StatusCache
from tests.web.status_samples import LOCAL

SECRET = "hunter2secret"  # noqa: S105  # the value that must not be printed
VALUES = {
    "PW": SECRET,
    "LONG": SECRET * 40,
    "TEXT": f'it\'s "{SECRET}"\n',
    "PATTERN": f"plant/{SECRET}/#/x",
    "NUMBER": "0x7fffffff",
}
FILE = """\
endpoints:
  a: {{kind: {kind}, dialect: mqtt}}
  b: {{kind: memory, dialect: {dialect}}}
routes:
  r:
    from: {{endpoint: {source}, pattern: {pattern}}}
    to: {{endpoint: b, template: {template}}}
{more}
"""
GOOD = {
    "kind": "memory", "dialect": "ems", "source": "a", "pattern": "'x/{y}'", "template": "'X.{y}'",
    "more": "",
}  # fmt: skip
LEAKS = [
    {"more": "web: {address: '${env:PW}'}"},
    {"more": "web: {address: '${env:TEXT}'}"},
    {"more": "web: {port: '${env:PW}'}"},
    {"more": "web: {port: '${env:NUMBER}'}"},
    {"more": "include: ['${env:PW}/x.yaml']"},
    {"more": "include: ['${env:LONG}']"},
    {"more": "archive: {path: '${env:PW}://a'}"},
    {"more": "gateway: {name: '-${env:PW}'}"},
    {"more": "tracing: {otlp: '${env:PW}'}"},
    {"more": "dead_letters: {endpoint: '${env:PW}'}"},
    {"kind": "'${env:PW}'"},
    {"dialect": "'${env:LONG}'"},
    {"source": "'${env:PW}'"},
    {"source": "'${env:LONG}'"},
    {"pattern": "'a/${env:PW}/#/b'"},
    {"pattern": "'${env:PATTERN}'"},
    {"pattern": "'${env:LONG}/#/x'"},
    {"pattern": "'x/{${env:PW}}'"},
    {"template": "'{${env:PW}}'"},
    {"template": "'${env:PW}'"},  # a finding of the proofs: names collide
]


def findings(file: Path, values: Mapping[str, str] = VALUES) -> list[ConfigError]:
    try:
        return examine(load(file, values))
    except ConfigErrors as errors:
        return errors.findings


@pytest.mark.parametrize("change", LEAKS, ids=lambda change: " ".join(change.values()))
def test_no_finding_has_a_value(tmp_path: Path, change: dict[str, str]) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_text(FILE.format(**GOOD | change))
    found = findings(file)
    text = " ".join(f"{each} {each.examples}" for each in found)

    assert found
    assert SECRET[:8] not in text
    assert str(int(VALUES["NUMBER"], 16)) not in text


@pytest.mark.parametrize(
    "content", [f"{SECRET}: x", f"{SECRET}\nabc", f"*{SECRET}", f"a: !{SECRET}!"]
)
def test_an_included_file_is_not_shown(tmp_path: Path, content: str) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_text(FILE.format(**GOOD | {"more": "include: [secret]"}))
    (tmp_path / "secret").write_text(content)
    found = findings(file)

    assert found
    assert SECRET not in " ".join(map(str, found))


def test_the_path_of_an_included_file_has_no_value(tmp_path: Path) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_text(FILE.format(**GOOD | {"more": "include: ['${env:PW}.yaml']"}))
    (tmp_path / f"{SECRET}.yaml").write_text("web: {port: x}")

    assert [each.path for each in findings(file)] == ["${env:PW}.yaml"]


def test_a_nul_character_is_no_place_of_a_value() -> None:
    hidden = HiddenValues()
    hidden.add("${env:N}", "value", ("web", "address"))

    assert hidden.hide("\x007\x00 value") == r"\07\0 ${env:N}"


def test_the_routes_that_check_prints_have_no_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PW", SECRET)
    file = tmp_path / "gateway.yaml"
    change = {"pattern": "'${env:PW}/{y}'", "template": "'${env:PW}.{y}'"}
    file.write_text(FILE.format(**GOOD | change))
    main(["check", str(file)])
    main(["check", "--format", "json", str(file)])
    printed = capsys.readouterr().out

    assert "r: a (mqtt) ${env:PW}/{y}" in printed
    assert SECRET not in printed


def test_a_failed_test_prints_no_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PW", SECRET)
    test = {
        "given": {"endpoint": "a", "name": "x/1"},
        "expect": [{"endpoint": "b", "name": "${env:PW}"}],
    }
    file = tmp_path / "gateway.yaml"
    file.write_text(FILE.format(**GOOD | {"more": f"tests: {json.dumps({'t': test})}"}))

    assert main(["test", str(file)]) == 1
    assert SECRET not in capsys.readouterr().out


def test_explain_and_the_page_show_patterns_without_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PW", SECRET)
    file = tmp_path / "gateway.yaml"
    file.write_text(FILE.format(**GOOD | {"pattern": "'${env:PW}/{y}'"}))
    main(["explain", "x/1", "--config", str(file)])
    cache = StatusCache(Gateway(load(file)), "gateway.yaml", 80.0)
    page = WebApplication(cache, mutual_tls=False)
    request = HttpRequest("GET", "/api/explain", f"system=mqtt&text={SECRET}/1", LOCAL)

    assert "from a, ${env:PW}/{y}" in (printed := capsys.readouterr().out)
    assert SECRET not in printed
    assert SECRET not in json.dumps(snapshot_json(cache.snapshot()))
    (found,) = json.loads(page.answer(request).body)["routes"]
    assert found["pattern"] == "${env:PW}/{y}"


def test_the_page_shows_the_details_of_a_route_without_values(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PW", SECRET)
    source = "'${env:PW}/{y}', exclude: ['${env:PW}/x'], selector: \"a = '${env:PW}'\""
    file = tmp_path / "gateway.yaml"
    file.write_text(FILE.format(**GOOD | {"pattern": source, "template": "'${env:PW}.{y}'"}))
    page = WebApplication(StatusCache(Gateway(load(file)), "gateway.yaml", 80.0), mutual_tls=False)
    for path, query in (("/api/route", "name=r"), ("/api/status", ""), ("/metrics", "")):
        assert SECRET.encode() not in page.answer(HttpRequest("GET", path, query, LOCAL)).body

    found = json.loads(page.answer(HttpRequest("GET", "/api/route", "name=r", LOCAL)).body)
    assert found["patterns"] == [
        {
            "endpoint": "a",
            "pattern": "${env:PW}/{y}",
            "excludes": ["${env:PW}/x"],
            "selector": "a = '${env:PW}'",
            "targets": [{"label": "b", "templates": ["${env:PW}.{y}"]}],
        }
    ]


def test_a_short_value_is_replaced_only_where_it_stands_alone() -> None:
    hidden = HiddenValues()
    hidden.add("${env:N}", "a", ("web", "address"))

    assert hidden.hide("'a' at 1: a pattern") == "'${env:N}' at 1: ${env:N} pattern"


@given(
    st.text(string.printable, min_size=4, max_size=200).filter(str.strip),
    st.text(string.ascii_lowercase + "' ", max_size=20),
)
def test_a_value_is_hidden_in_every_text(value: str, around: str) -> None:
    values = HiddenValues()
    values.add("${}", value, ("web", "address"))
    hidden = values.hide(f"{around}{value}: {value!r} {around}").replace("${}", "\0")

    assert value not in hidden
    assert repr(value)[1:-1] not in hidden


NAMED_ALIKE = """\
endpoints:
  plant: {kind: mqtt, host: broker.example, username: "${env:U}", password: "${env:P}"}
  far:
    {kind: mqtt, host: f.example, username: "${env:U}", password: "${env:P}", tls: {verify: false}}
  site: {kind: memory, dialect: mqtt, allow: ["${env:SITE}/#"]}
routes:
  telemetry: {from: {endpoint: plant, pattern: "plants/hall3/{r...}"}, to: {endpoint: far}}
  hall3:
    from: {endpoint: plant, pattern: "a/{x}"}
    to: {endpoint: far, template: "telemetry/s3cr3t"}
  north:
    from: {endpoint: far, pattern: "${env:SITE}/{x}"}
    to: {endpoint: site, template: "b/{x}"}
"""


def test_names_that_a_value_contains_stay_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in {"U": "hall3", "P": "s3cr3t-telemetry", "SITE": "north"}.items():
        monkeypatch.setenv(name, value)
    file = tmp_path / "gateway.yaml"
    file.write_text(NAMED_ALIKE)

    main(["check", str(file)])
    captured = capsys.readouterr()
    printed = captured.out + captured.err

    assert "\ntelemetry: plant (mqtt) plants/hall3/{r...}\n" in printed
    assert "\nhall3: plant (mqtt) a/{x}\n  -> far (mqtt) telemetry/s3cr3t\n" in printed
    assert "\nnorth: far (mqtt) ${env:SITE}/{x}\n" in printed
    assert "route 'hall3': " in printed  # a finding: names collide
    assert "'telemetry/s3cr3t'" in printed
    assert "${env:P}" not in printed
    assert "${env:U}" not in printed
    assert "s3cr3t-telemetry" not in printed


@pytest.mark.parametrize("kind", ENDPOINT_KINDS)
def test_a_declared_secret_is_in_no_finding(tmp_path: Path, kind: str) -> None:
    """No text of `gateway check` has a declared secret, so that none is looked for in names."""
    settings = ENDPOINT_KINDS[kind].settings
    secrets = [
        key for key, field in fields_by_key(settings).items() if field.metadata.get("secret")
    ]
    values = {key: f"{key}-{SECRET}" for key in secrets}
    written = ", ".join(f"{key}: '${{env:{key}}}'" for key in secrets)
    file = tmp_path / "gateway.yaml"
    file.write_text(
        f"endpoints:\n  a: {{kind: {kind}{', ' * bool(written)}{written}}}\n"
        "  b: {kind: memory, dialect: ems}\nroutes:\n"
        "  r: {from: {endpoint: a, pattern: x}, to: {endpoint: b, template: '{nothing}'}}\n"
    )
    found = findings(file, values)

    assert found
    assert SECRET not in " ".join(map(str, found))
