"""`limits` of an endpoint: a known broker by its name, or figures and rules."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from gateway.config.load import Configuration, load
from gateway.dialects.name_limits import NameLimits
from gateway.errors import ConfigErrors
from tests.schema_validation import configuration_validator

CONFIG = """\
endpoints:
  near: {{kind: memory, dialect: mqtt}}
  far: {{kind: memory, dialect: {dialect}, limits: {limits}}}
routes:
  r: {{from: {{endpoint: near, pattern: "#"}}, to: {{endpoint: far}}}}
"""
AWS = NameLimits(
    bytes=256, levels=8, forbidden_first_levels=("$*",), allowed_first_levels=("$aws",)
)
LEGAL = [
    pytest.param("aws-iot", AWS, id="text"),
    pytest.param("{broker: aws-iot}", AWS, id="key"),
    pytest.param(
        "{broker: nats-mqtt, levels: 3, forbidden_characters: '.'}",
        NameLimits(levels=3, forbidden_characters=". "),
        id="broker-and-figures",
    ),
    pytest.param(
        "{forbidden_first_levels: admin, forbidden_patterns: [a/#, b/+]}",
        NameLimits(forbidden_first_levels=("admin",), forbidden_patterns=("a/#", "b/+")),
        id="rules",
    ),
]
ILLEGAL = [
    pytest.param("mqtt", "aws", "did you mean 'aws-iot'", id="unknown-broker"),
    pytest.param("ems", "aws-iot", "aws-iot is a broker of mqtt", id="another-system"),
    pytest.param("mqtt", "{forbidden_patterns: [a, b/#/c]}", "not last", id="no-pattern"),
    pytest.param("mqtt", "{forbidden_characters: /}", "set `levels: 1`", id="separator"),
    pytest.param("mqtt", "[aws-iot]", "expected a mapping", id="list"),
]


def loaded(folder: Path, limits: str, dialect: str = "mqtt") -> Configuration:
    path = folder / "gateway.yaml"
    path.write_text(CONFIG.format(limits=limits, dialect=dialect))
    return load(path)


@pytest.mark.parametrize(("limits", "expected"), LEGAL)
def test_limits_reach_the_dialect_of_the_endpoint(
    tmp_path: Path, limits: str, expected: NameLimits
) -> None:
    refusals = loaded(tmp_path, limits).endpoints["far"].dialect.refusals

    assert refusals is not None
    assert refusals.limits == expected


@pytest.mark.parametrize(("limits", "_expected"), LEGAL)
def test_the_schema_takes_the_same(limits: str, _expected: NameLimits) -> None:
    configuration_validator().validate(yaml.safe_load(CONFIG.format(limits=limits, dialect="mqtt")))


@pytest.mark.parametrize(("dialect", "limits", "text"), ILLEGAL)
def test_a_wrong_limit_is_a_finding_at_its_place(
    tmp_path: Path, dialect: str, limits: str, text: str
) -> None:
    with pytest.raises(ConfigErrors) as caught:
        loaded(tmp_path, limits, dialect)

    (finding,) = caught.value.findings
    assert finding.line == 3
    assert text in str(finding)
