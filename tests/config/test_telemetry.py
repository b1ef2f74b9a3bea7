"""Section `tracing`, and its findings."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.config.load import load
from gateway.config.process import TracingSettings
from gateway.errors import ConfigErrors
from tests.config.test_section_checks import ROUTES

ENVIRONMENT = {"TOKEN": "let-me-in", "BROKEN": "let\nme"}


def read(folder: Path, text: str) -> TracingSettings | None:
    file = folder / "gateway.yaml"
    file.write_text(ROUTES + text)
    return load(file, ENVIRONMENT).tracing


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", None),
        ("tracing: {otlp: 'http://c:4318'}\n", TracingSettings(otlp="http://c:4318", sample=0.01)),
        (
            "tracing: {otlp: 'https://[::1]/a', sample: 1, token: '${env:TOKEN}', ca_file: /c}\n",
            TracingSettings(otlp="https://[::1]/a", sample=1, token="let-me-in", ca_file="/c"),  # noqa: S106
        ),
    ],
)
def test_a_legal_section_is_accepted(
    tmp_path: Path, text: str, expected: TracingSettings | None
) -> None:
    assert read(tmp_path, text) == expected


@pytest.mark.parametrize(
    ("text", "rule", "column"),
    [
        ("tracing: {}\n", "missing-field", 10),
        ("tracing: {otlp: collector}\n", "bad-url", 17),
        ("tracing: {otlp: 'grpc://c:4317'}\n", "bad-url", 17),
        ("tracing: {otlp: 'http://:4318'}\n", "bad-url", 17),
        ("tracing: {otlp: 'http://c:http'}\n", "bad-url", 17),
        ("tracing: {otlp: 'http://me:hunter2@c'}\n", "bad-url", 17),
        ("tracing: {otlp: 'http://c', sample: 1.5}\n", "range", 37),
        ("tracing: {otlp: 'http://c', token: hunter2}\n", "plain-secret", 36),
        ("tracing: {otlp: 'http://c', token: '${env:BROKEN}'}\n", "bad-token", 36),
        ("tracing: {otlp: 'http://c', ca_file: c}\n", "no-certificate", 38),
    ],
)
def test_a_fault_is_a_finding_at_its_location(
    tmp_path: Path, text: str, rule: str, column: int
) -> None:
    with pytest.raises(ConfigErrors) as caught:
        read(tmp_path, text)

    (finding,) = caught.value.findings
    assert (finding.rule, finding.line, finding.column) == (rule, 6, column)
    assert not any(secret in str(finding) for secret in ("hunter2", *ENVIRONMENT.values()))
