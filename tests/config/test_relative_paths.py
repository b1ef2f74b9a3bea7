"""A relative path is relative to the folder of the file that contains it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gateway.config.load import load
from gateway.errors import ConfigErrors

ROUTE = """\
routes:
  a: {from: {endpoint: plant, pattern: "a/{rest...}"}, to: {endpoint: ems}}
"""
PATHS = """\
gateway: {name: plant-1}
archive: {path: archive, buffer: segments}
spool: {path: ./state/spool}
web: {cert_file: tls/page.pem, key_file: tls/page.key, client_ca_file: ../ca.pem}
tracing: {otlp: "https://collector:4318", ca_file: ca.pem}
endpoints:
  plant:
    kind: mqtt
    tls: {ca_file: tls/ca.pem, cert_file: tls/client.pem, key_file: /keys/client.key}
  ems: {kind: jms, classpath: ["jars/*.jar", /opt/tibjms.jar]}
  solace: {kind: solace, url: "tcps://s", token_file: token, trust_store: trust}
"""


def test_every_path_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = tmp_path / "site"
    site.mkdir()
    (site / "gateway.yaml").write_text(PATHS + ROUTE)
    monkeypatch.chdir(tmp_path)

    found = load(site / "gateway.yaml")

    assert found.archive
    assert found.spool
    assert found.web
    assert found.tracing
    assert found.archive.path == str(site / "archive")
    assert found.archive.buffer == str(site / "segments")
    assert found.spool.path == str(site / "state" / "spool")
    assert found.web.cert_file == str(site / "tls" / "page.pem")
    assert found.web.key_file == str(site / "tls" / "page.key")
    assert Path(found.web.client_ca_file or "").resolve() == tmp_path / "ca.pem"
    assert found.tracing.ca_file == str(site / "ca.pem")
    tls = getattr(found.endpoints["plant"].settings, "tls")  # noqa: B009  # of MqttSettings
    assert (tls.ca_file, tls.cert_file, tls.key_file) == (
        str(site / "tls" / "ca.pem"),
        str(site / "tls" / "client.pem"),
        "/keys/client.key",
    )
    classpath = getattr(found.endpoints["ems"].settings, "classpath")  # noqa: B009
    assert classpath == (str(site / "jars" / "*.jar"), "/opt/tibjms.jar")
    solace = found.endpoints["solace"].settings
    assert getattr(solace, "token_file") == str(site / "token")  # noqa: B009
    assert getattr(solace, "trust_store") == str(site / "trust")  # noqa: B009


def test_a_path_of_an_included_file_is_relative_to_that_file(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "state.yaml").write_text("spool: {path: spool}\ninclude: more/a.yaml\n")
    (tmp_path / "parts" / "more").mkdir()
    (tmp_path / "parts" / "more" / "a.yaml").write_text(
        "archive: {path: archive}\nendpoints:\n  plant: {kind: memory, broker: '${file:name}'}\n"
        "  ems: {kind: memory, dialect: ems}\n"
    )
    (tmp_path / "parts" / "more" / "name").write_text("the broker\n")
    (tmp_path / "gateway.yaml").write_text("include: parts/state.yaml\n" + ROUTE)

    found = load(tmp_path / "gateway.yaml")

    assert found.spool
    assert found.archive
    assert found.spool.path == str(tmp_path / "parts" / "spool")
    assert found.archive.path == str(tmp_path / "parts" / "more" / "archive")
    assert found.endpoints["plant"].settings.broker_key == "memory:mqtt:the broker"


def test_links_of_files_do_not_move_their_paths(tmp_path: Path) -> None:
    """Kubernetes links each file of a volume into a folder that changes with every update."""
    (tmp_path / "..2026").mkdir()
    (tmp_path / "..data").symlink_to("..2026")
    (tmp_path / "..2026" / "gateway.yaml").write_text("include: state.yaml\n" + ROUTE)
    (tmp_path / "..2026" / "state.yaml").write_text(
        "spool: {path: spool}\nendpoints:\n  plant: {kind: memory}\n  ems: {kind: memory}\n"
    )
    for name in ("gateway.yaml", "state.yaml"):
        (tmp_path / name).symlink_to(f"..data/{name}")

    spool = load(tmp_path / "gateway.yaml").spool

    assert spool
    assert spool.path == str(tmp_path / "spool")


def test_the_default_buffer_of_a_remote_archive(tmp_path: Path) -> None:
    (tmp_path / "gateway.yaml").write_text(
        "archive: {path: s3://bucket/a}\n"
        "endpoints:\n  plant: {kind: memory}\n  ems: {kind: memory}\n" + ROUTE
    )

    archive = load(tmp_path / "gateway.yaml").archive

    assert archive
    assert archive.path == "s3://bucket/a"
    assert archive.buffer == str(tmp_path / "gateway-buffer")


def test_a_file_in_the_working_directory_has_its_plain_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gateway.yaml").write_text(
        "spool: {path: spool}\nendpoints:\n  plant: {kind: memory}\n  ems: {kind: memory}\n" + ROUTE
    )
    monkeypatch.chdir(tmp_path)

    spool = load(Path("gateway.yaml")).spool

    assert spool
    assert spool.path == "spool"


def test_a_folder_whose_name_is_not_utf8(tmp_path: Path) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    folder.mkdir()
    (folder / "gateway.yaml").write_text(
        "spool: {path: 7}\nendpoints:\n  plant: {kind: memory}\n  ems: {kind: memory}\n" + ROUTE
    )

    spool = load(folder / "gateway.yaml").spool

    assert spool
    assert spool.path == str(folder / "7")


def test_a_missing_secret_file_is_named_with_its_folder(tmp_path: Path) -> None:
    (tmp_path / "gateway.yaml").write_text(
        "endpoints:\n  plant: {kind: memory, broker: '${file:secrets/name}'}\n"
        "  ems: {kind: memory}\n" + ROUTE
    )

    with pytest.raises(ConfigErrors) as caught:
        load(tmp_path / "gateway.yaml")

    assert "${file:secrets/name}" in str(caught.value)
    assert str(tmp_path / "secrets" / "name") in str(caught.value)


@pytest.mark.parametrize(
    ("written", "lines"),
    [
        ('""', [3, 4, 6, 11, 14, 17]),
        ('"${env:NOT_SET_UP}"', [3, 4, 6, 11, 14, 17]),
        ("", [3, 4, 6, 14]),  # a key without a value is an absent one where that is possible
    ],
    ids=["text", "reference", "null"],
)
def test_an_empty_path_is_an_error(tmp_path: Path, written: str, lines: list[int]) -> None:
    """An archive would lie in the folder of the file, beside whatever is there."""
    file = tmp_path / "gateway.yaml"
    file.write_text(f"""\
gateway: {{name: plant-1}}
archive:
  path: {written}
  buffer: {written}
spool:
  path: {written}
endpoints:
  plant:
    kind: mqtt
    tls:
      ca_file: {written}
  ems:
    kind: jms
    classpath: {written}
  nats:
    kind: nats
    credentials_file: {written}
{ROUTE}""")

    with pytest.raises(ConfigErrors) as caught:
        load(file, {"NOT_SET_UP": ""})

    assert [each.line for each in caught.value.findings] == lines
    assert {each.rule for each in caught.value.findings} == {"empty"}
