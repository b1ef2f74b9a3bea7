"""Errors of the file and of the proofs come in one run, whatever part of the file has any."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.check.examine import load_examined
from gateway.errors import ConfigErrors

GOOD = """\
endpoints:
  plant: {kind: memory, dialect: mqtt}
  office: {kind: memory, dialect: mqtt, allow: ["shop/#"]}
  erp: {kind: memory, dialect: ems}
routes:
  twice:
    from: {endpoint: plant, pattern: "line/{line}/{part}"}
    to: {endpoint: erp, template: "LINE.{line}"}
  outside:
    from: {endpoint: plant, pattern: "hall/{rest...}"}
    to: {endpoint: office, template: "hall/{rest...}"}
  never:
    from: {endpoint: plant, pattern: "x/{rest...}", selector: "JMSDeliveryMode = 'often'"}
    to: {endpoint: erp, template: "X.{rest...}"}
"""
OF_GOOD = {"not-injective", "outside-allow", "impossible-selector"}
BAD_ROUTE = """\
  bad:
    from: {endpoint: plant, pattern: "line/{line}/{part}"}
    to: {endpoint: erp, template: "LINE.{lien}"}
"""


def _rules(tmp_path: Path, text: str) -> set[str]:
    path = tmp_path / "gateway.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigErrors) as caught:
        load_examined(path)
    findings = caught.value.findings
    assert [(each.line, each.column) for each in findings] == sorted(
        (each.line, each.column) for each in findings
    )
    assert all(each.severity == "error" for each in findings)
    return {each.rule for each in findings}


@pytest.mark.parametrize(
    ("more", "rule"),
    [
        pytest.param(BAD_ROUTE, "unknown-capture", id="a-route"),
        pytest.param("web: {port: 99999}\n", "range", id="a-section"),
        pytest.param("wbe: {}\n", "unknown-section", id="an-unknown-section"),
        pytest.param("tests: {t: {gvien: x}}\n", "unknown-field", id="a-test"),
    ],
)
def test_an_error_of_the_file_hides_none_of_the_proofs(
    tmp_path: Path, more: str, rule: str
) -> None:
    found = _rules(tmp_path, GOOD + more)

    assert found >= {*OF_GOOD, rule}


def test_an_error_of_the_file_hides_no_absent_file(tmp_path: Path) -> None:
    tls = "  far: {kind: mqtt, host: far, tls: {ca_file: ca.pem}, qos: 9}\n"

    found = _rules(tmp_path, GOOD.replace("routes:\n", f"{tls}routes:\n"))

    assert found == {*OF_GOOD, "absent-file", "choice"}


@pytest.mark.parametrize(
    ("old", "new", "rules"),
    [
        pytest.param(
            'allow: ["shop/#"]', 'allow: ["shop/#", "#/x"]', {"outside-allow"}, id="an-endpoint"
        ),
        pytest.param(
            '"X.{rest...}"}', '"X.{rest...}", lossy: 7}', {"impossible-selector"}, id="a-route"
        ),
    ],
)
def test_nothing_is_proven_about_what_has_an_error(
    tmp_path: Path, old: str, new: str, rules: set[str]
) -> None:
    """An `allow` without its illegal pattern would refuse what the whole one allows."""
    assert not _rules(tmp_path, GOOD.replace(old, new)) & rules
