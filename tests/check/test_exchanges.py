"""The exchanges of one vhost of RabbitMQ are sets of names apart; one exchange is one set."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.check.examine import examine
from gateway.config.load import load

CONFIG = """\
endpoints:
  one: {{kind: rabbitmq, url: "amqp://h/", exchange: in, queue: q}}
  two: {{kind: rabbitmq, url: "amqp://h/", exchange: {exchange}{broker}}}
  plant: {{kind: mqtt, host: localhost}}
routes:
  there:
    from: {{endpoint: one, pattern: "x.{{rest...}}"}}
    to: {{endpoint: plant, template: "x/{{rest...}}"}}
  back:
    from: {{endpoint: plant, pattern: "x/{{rest...}}"}}
    to: {{endpoint: two, template: "x.{{rest...}}"}}
"""


@pytest.mark.parametrize(
    ("exchange", "broker", "circles"),
    [
        pytest.param("in", "", True, id="one-exchange"),
        pytest.param("out", "", False, id="two-exchanges"),
        pytest.param("out", ", broker_id: rabbit", False, id="two-exchanges-of-a-named-broker"),
    ],
)
def test_equal_keys_circle_through_one_exchange_only(
    tmp_path: Path, exchange: str, broker: str, *, circles: bool
) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_text(CONFIG.format(exchange=exchange, broker=broker))

    rules = {each.rule for each in examine(load(file)) if each.severity == "error"}
    assert ("cycle" in rules) is circles
