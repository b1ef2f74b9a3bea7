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


def test_the_default_buffer_of_an_old_deployment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may hold journals that are not uploaded."""
    site, old = tmp_path / "site", tmp_path / "gateway-buffer"
    site.mkdir()
    old.mkdir()
    (old / ".journal").mkdir()
    monkeypatch.chdir(tmp_path)
    text = STATE.replace("spool: {path: spool}", "archive: {path: s3://bucket/archive}")

    ((rule, line, message),) = found(site, text)

    assert (rule, line) == ("moved-path", 2)
    assert f"`archive.buffer`: {site / 'gateway-buffer'} is absent, and {old} is not" in message


def test_a_spool_in_the_working_directory_of_an_old_deployment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, old = tmp_path / "site", tmp_path / "spool"
    site.mkdir()
    monkeypatch.chdir(tmp_path)
    assert found(site, STATE) == []
    old.mkdir()
    assert found(site, STATE) == []  # it is empty
    (old / "spool.sqlite").write_text("")

    ((rule, line, message),) = found(site, STATE)

    assert (rule, line) == ("moved-path", 2)
    assert f"{site / 'spool'} is absent, and {old} is not" in message
    assert f"move the old content to {site / 'spool'}, or write its absolute path" in message
    old.rename(site / "spool")
    assert found(site, STATE) == []


def test_an_empty_volume_beside_the_spool_of_an_old_deployment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, mount = tmp_path / "spool", tmp_path / "site" / "spool"
    old.mkdir()
    (old / "spool.sqlite").write_text("")
    monkeypatch.chdir(tmp_path)
    for made in (mount, mount / "lost+found"):
        made.mkdir(parents=True)

        ((rule, line, message),) = found(tmp_path / "site", STATE)

        assert (rule, line) == ("moved-path", 2)
        assert f"{mount} is empty, and {old} is not" in message
    (mount / "spool.sqlite").write_text("")
    assert found(tmp_path / "site", STATE) == []
