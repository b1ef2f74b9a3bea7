from __future__ import annotations

from pathlib import Path

import pytest

from gateway.check.examine import examine
from gateway.config.load import load

ROUTE = """\
routes:
  a: {from: {endpoint: plant, pattern: "a/{rest...}"}, to: {endpoint: office}}
"""
TLS = (
    """\
endpoints:
  plant: {kind: mqtt, host: plant, tls: {ca_file: tls/ca.pem}}
  office: {kind: mqtt, host: office}
"""
    + ROUTE
)
JMS = (
    """\
endpoints:
  plant: {kind: mqtt, host: plant}
  office: {kind: jms, classpath: ["jars/*.jar"]}
"""
    + ROUTE
)
SOLACE = (
    """\
endpoints:
  plant: {kind: mqtt, host: plant}
  office: {kind: solace, url: "tcps://office", trust_store: trust, token_file: made-later}
"""
    + ROUTE
)
STATE = (
    """\
endpoints: {plant: {kind: mqtt, host: plant}, office: {kind: mqtt, host: office}}
spool: {path: spool}
"""
    + ROUTE
)


def found(folder: Path, text: str, *, without_secrets: bool = False) -> list[tuple[str, int, str]]:
    """Return the rule, line and text of each error."""
    (folder / "gateway.yaml").write_text(text)
    configuration = load(folder / "gateway.yaml", {}, without_secrets=without_secrets)
    return [
        (each.rule, each.line, str(each))
        for each in examine(configuration)
        if each.severity == "error"
    ]


@pytest.mark.parametrize(
    ("text", "line", "key", "name"),
    [
        pytest.param(TLS, 2, "endpoint 'plant': `tls.ca_file`", "tls/ca.pem", id="ca-file"),
        pytest.param(JMS, 3, "endpoint 'office': `classpath`", "jars/*.jar", id="class-path"),
        pytest.param(SOLACE, 3, "endpoint 'office': `trust_store`", "trust", id="trust-store"),
    ],
)
def test_an_absent_file(tmp_path: Path, text: str, line: int, key: str, name: str) -> None:
    ((rule, at, message),) = found(tmp_path, text)

    assert (rule, at) == ("absent-file", line)
    assert f"{key}: no " in message
    assert f"{tmp_path / name}; create or mount it" in message
    assert found(tmp_path, text, without_secrets=True) == []


def test_an_impossible_name_is_an_absent_file(tmp_path: Path) -> None:
    for text in (TLS, JMS, SOLACE):
        longer = text.replace(".pem", "x" * 5_000).replace("/*.jar", "x" * 5_000)

        ((rule, *_),) = found(
            tmp_path, longer.replace("trust_store: trust", "trust_store: " + "x" * 5_000)
        )

        assert rule == "absent-file"


@pytest.mark.parametrize("folder", ["plain", "with[brackets]"])
def test_present_files(tmp_path: Path, folder: str) -> None:
    site = tmp_path / folder
    for name in ("tls/ca.pem", "jars/tibjms.jar"):
        (site / name).parent.mkdir(parents=True)
        (site / name).write_text("")
    (site / "trust").mkdir()

    assert [found(site, text) for text in (TLS, JMS, SOLACE)] == [[], [], []]


def test_a_file_in_the_working_directory_of_an_old_deployment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tls").mkdir()
    (tmp_path / "tls" / "ca.pem").write_text("")
    (tmp_path / "site").mkdir()
    monkeypatch.chdir(tmp_path)

    ((rule, _, message),) = found(tmp_path / "site", TLS)

    assert rule == "absent-file"
    assert message.endswith("a path is relative to its file, not to the working directory")


def test_a_folder_that_the_gateway_makes_may_be_absent(tmp_path: Path) -> None:
    assert found(tmp_path, STATE) == []
