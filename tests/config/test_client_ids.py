"""Default client ids: endpoints of one name at two gateways have different ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.config.load import load

CONFIG = """\
gateway: {{name: {gateway}}}
endpoints:
  plant: {{kind: mqtt, host: plant{client_id}}}
  office: {{kind: solace{client_name}}}
routes:
  a: {{from: {{endpoint: plant, pattern: a}}, to: {{endpoint: office, template: a}}}}
"""


@pytest.mark.parametrize(
    ("client_id", "client_name", "made"),
    [
        pytest.param("", "", ("north-plant", "north-office"), id="default"),
        pytest.param(", client_id: p", ", client_name: o", ("p", "o"), id="written"),
    ],
)
def test_a_default_client_id_has_the_name_of_the_gateway(
    tmp_path: Path, client_id: str, client_name: str, made: tuple[str, str]
) -> None:
    file = tmp_path / "gateway.yaml"
    text = CONFIG.format(gateway="north", client_id=client_id, client_name=client_name)
    file.write_text(text)
    endpoints = load(file).endpoints
    plant, office = endpoints["plant"].settings, endpoints["office"].settings

    assert (getattr(plant, "client_id", ""), getattr(office, "client_name", "")) == made
