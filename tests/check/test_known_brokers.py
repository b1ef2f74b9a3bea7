from __future__ import annotations

from pathlib import Path

import pytest

from gateway.check.examine import examine, startup_warnings
from gateway.config.load import load

CONFIG = """\
endpoints:
  near: {{kind: memory, dialect: mqtt}}
  far: {{kind: mqtt, {settings}}}
routes:
  r: {{from: {{endpoint: {source}, pattern: a}}, to: {{endpoint: {target}, template: b}}}}
"""
AWS = "host: a1b2c3-ats.iot.eu-central-1.amazonaws.com, tls: {}"


def warnings(folder: Path, settings: str, source: str = "near", target: str = "far") -> list[str]:
    path = folder / "gateway.yaml"
    path.write_text(CONFIG.format(settings=settings, source=source, target=target))
    return [str(each) for each in examine(load(path)) if each.rule == "broker-limits"]


def test_a_host_of_a_known_broker_gets_the_setting_to_write(tmp_path: Path) -> None:
    (warning,) = warnings(tmp_path, AWS)

    assert warning == (
        f"{tmp_path}/gateway.yaml:3:3: warning: endpoint 'far': AWS IoT Core closes the connection"
        " for a name past its limits; write `limits: aws-iot`"
    )


@pytest.mark.parametrize(
    ("settings", "source", "target"),
    [
        pytest.param(f"{AWS}, limits: aws-iot", "near", "far", id="known"),
        pytest.param(f"{AWS}, limits: {{levels: 3}}", "near", "far", id="own-limits"),
        pytest.param("host: broker.example.com", "near", "far", id="another-host"),
        pytest.param(AWS, "far", "near", id="source-only"),
    ],
)
def test_other_endpoints_get_none(tmp_path: Path, settings: str, source: str, target: str) -> None:
    assert warnings(tmp_path, settings, source, target) == []


def test_the_log_of_a_start_has_the_warning_too(tmp_path: Path) -> None:
    (warning,) = warnings(tmp_path, AWS)

    assert [str(each) for each in startup_warnings(load(tmp_path / "gateway.yaml"))] == [warning]
