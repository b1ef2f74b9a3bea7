"""From missing messages to a clean night: replay, and reconcile again."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest

from gateway.archive.schema import Leg
from gateway.cli import main
from gateway.endpoints.base import Subscription
from gateway.endpoints.registry import make_source
from gateway.endpoints.settings.memory import MemorySettings
from gateway.model.message import DeliveryMode
from gateway.runtime.delivery.rows import fingerprint
from tests.archive.samples import DAY, archive, delivered, received
from tests.archived import archived
from tests.endpoints.exchange import collect, opened

pytestmark = [
    pytest.mark.spark,
    pytest.mark.usefixtures("spark"),
    pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"),
]

CONFIG = """
gateway: {{name: edge}}
endpoints:
  plant: {{kind: memory, dialect: mqtt, broker: plant-{run}}}
  erp: {{kind: memory, dialect: ems, broker: erp-{run}}}
routes:
  orders:
    from: {{endpoint: plant, pattern: "a/{{rest...}}"}}
    to: {{endpoint: erp, template: "a.{{rest...}}"}}
archive: {{path: {archive}}}
"""


def test_missing_messages_become_recovered_in_three_commands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ten received, seven delivered; the replay runs months later, beside other nights."""
    run, root, config = uuid4().hex, tmp_path / "archive", tmp_path / "gateway.yaml"
    config.write_text(CONFIG.format(run=run, archive=root))
    payload = b"buy"
    size, digest = fingerprint(payload)
    headers = {"payload_kind": "bytes"}
    archive(
        root,
        received(range(10), hash=digest, size=size, payload=payload, headers=headers),
        delivered(range(7), hash=digest, size=size),
    )
    reconcile = ["reconcile", str(root), "--date", str(DAY), "--master", "local[1]"]
    replay = [
        "replay", str(root), "--config", str(config), "--route", "orders", "--class", "missing",
        "--from", str(DAY), "--to", f"{DAY}T23:59:59",
    ]  # fmt: skip
    settings = MemorySettings(name="out", dialect="ems", broker=f"erp-{run}")

    with opened(source := make_source(settings, [Subscription(">")])):
        assert main(reconcile) == 1
        assert capsys.readouterr().out.splitlines()[-1] == "missing 3"
        assert main(replay) == 0
        assert "3 arrived, 0 did not" in capsys.readouterr().out
        again = collect(source, 3)
        assert main(reconcile) == 0
        *lines, last = capsys.readouterr().out.splitlines()

    assert last == "missing 0"
    assert {"Clean: all 10 deliveries arrived", "verdict: clean", "recovered 3"} <= set(lines)
    assert [message.payload for message in again] == [payload] * 3
    assert {message.headers.mode for message in again} == {DeliveryMode.AT_LEAST_ONCE}
    replayed = [row for row in archived(root.parent) if row["replayed"]]
    assert [(row["leg"], row["hash"]) for row in replayed] == [(Leg.DELIVERED.value, digest)] * 3
