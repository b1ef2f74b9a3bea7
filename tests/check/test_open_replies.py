"""`gateway check` names a route by which any publisher reaches the inboxes of clients."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.check.examine import examine
from gateway.config.load import load

REPLIES = [
    ("nats", "%5FINBOX/{rest...}", "_INBOX.{rest...}"),
    ("rabbitmq", "queue:amq/{name}", "queue:amq.{name}"),
]


@pytest.mark.parametrize(("kind", "pattern", "template"), REPLIES)
@pytest.mark.parametrize("guard", ["", ", replies_within: 60"])
def test_an_open_reply_route_is_a_warning(
    tmp_path: Path, kind: str, pattern: str, template: str, guard: str
) -> None:
    file = tmp_path / "gateway.yaml"
    file.write_text(
        f"endpoints: {{there: {{kind: {kind}}}, plant: {{kind: mqtt, host: localhost}}}}\n"
        f"routes: {{back: {{from: {{endpoint: plant, pattern: '{pattern}'}},"
        f" to: {{endpoint: there, template: '{template}'}}{guard}}}}}\n"
    )
    found = [each for each in examine(load(file)) if each.rule == "open-replies"]

    assert len(found) == (0 if guard else 1)
