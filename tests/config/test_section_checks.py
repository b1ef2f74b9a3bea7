"""Section `web`: access to the page, and its findings."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.config.load import load
from gateway.config.process import WebSettings
from gateway.config.section_checks import is_loopback
from gateway.errors import ConfigErrors

ROUTES = """\
endpoints:
  a: {kind: memory, dialect: mqtt}
  b: {kind: memory, dialect: ems}
routes:
  r: {from: {endpoint: a, pattern: "x/#"}, to: {endpoint: b}}
"""
LONG = "0123456789abcdef"
ENVIRONMENT = {"TOKEN": LONG, "SHORT": "0123456789abcde", "NOTHING": "", "SPACED": "a b" * 8}


def read(folder: Path, web: str) -> WebSettings | None:
    file = folder / "gateway.yaml"
    file.write_text(ROUTES + web)
    return load(file, ENVIRONMENT).web


@pytest.mark.parametrize(
    ("web", "expected"),
    [
        ("", None),
        ("web: {}\n", WebSettings()),
        ("web: {address: '::1', port: 9000}\n", WebSettings(address="::1", port=9000)),
        (
            "web: {address: 0.0.0.0, token: '${env:TOKEN}'}\n",
            WebSettings(address="0.0.0.0", token=LONG),  # noqa: S104  # guarded by a token
        ),
        (
            "web: {address: 10.0.0.7, cert_file: /c.pem, client_ca_file: /ca.pem}\n",
            WebSettings(address="10.0.0.7", cert_file="/c.pem", client_ca_file="/ca.pem"),
        ),
    ],
)
def test_a_safe_section_is_accepted(tmp_path: Path, web: str, expected: WebSettings | None) -> None:
    assert read(tmp_path, web) == expected


@pytest.mark.parametrize(
    ("web", "rule", "column"),
    [
        ("web: {address: 0.0.0.0}\n", "open-page", 16),
        ("web: {address: plant.example}\n", "open-page", 16),
        ("web: {address: '127.0.0.1:8047'}\n", "value", 16),
        ("web: {address: '[::]:8047'}\n", "value", 16),
        ("web: {address: 0.0.0.0, token: '${env:ABSENT}'}\n", "missing-secret", 32),
        ("web: {address: 0.0.0.0, token: null}\n", "open-page", 16),
        ("web: {token: 0123456789abcdef}\n", "plain-secret", 14),
        ("web: {token: '${env:SHORT}'}\n", "weak-token", 14),
        ("web: {token: '${env:NOTHING}'}\n", "weak-token", 14),
        ("web: {token: '${env:SPACED}'}\n", "bad-token", 14),
        ("archive: {path: a, seal_key: 0123456789abcdef}\n", "plain-secret", 30),
        ("archive: {path: a, seal_key: '${env:SHORT}'}\n", "weak-key", 30),
        ("archive: {path: a, seal_key: '${file:/dev/null}'}\n", "weak-key", 30),
        ("archive: {path: a, previous_seal_key: '${env:TOKEN}'}\n", "unused", 39),
        ("gateway: {path_key: 0123456789abcdef}\n", "plain-secret", 21),
        ("gateway: {path_key: '${env:SHORT}'}\n", "weak-key", 21),
        ("gateway: {previous_path_key: '${env:TOKEN}'}\n", "unused", 30),
        ("gateway: {max_hops: -1}\n", "range", 21),
        ("web: {client_ca_file: ca.pem}\n", "no-certificate", 23),
        ("web: {key_file: k.pem}\n", "no-certificate", 17),
        ("web: {port: 65536}\n", "range", 13),
        ("web: {prot: 1}\n", "unknown-field", 7),
    ],
)
def test_an_unsafe_section_is_a_finding_at_its_location(
    tmp_path: Path, web: str, rule: str, column: int
) -> None:
    with pytest.raises(ConfigErrors) as caught:
        read(tmp_path, web)

    (finding,) = caught.value.findings
    assert (finding.rule, finding.line, finding.column) == (rule, 6, column)
    assert not any(secret in str(finding) for secret in ENVIRONMENT.values() if secret)


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),  # noqa: S104  # the value under test
        ("::", False),
        ("10.0.0.1", False),
        ("127.0.0.1.example", False),
        ("", False),
    ],
)
def test_only_loopback_addresses_are_loopback(address: str, expected: bool) -> None:
    assert is_loopback(address) is expected
