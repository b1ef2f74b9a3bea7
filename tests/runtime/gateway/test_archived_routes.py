"""A gateway archives the routes that it runs with, before their first row, and no secret."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gateway.archive.routes import StoredRoutes, read_routes, routes_files
from gateway.archive.storage import LocalStorage
from gateway.errors import ArchiveError
from gateway.model.message import Message
from tests.runtime.gateway.running import (
    PLANT_AND_EMS,
    BrokerClient,
    archive_rows,
    configured,
    running,
)

pytestmark = pytest.mark.usefixtures("journals_stay")

ORDERS = """\
routes:
  orders:
    from: {endpoint: plant, pattern: "orders/{rest...}", selector: "token = '${env:TOKEN}'"}
    to:
      endpoint: ems
      template: "ORDERS.{rest...}"
      headers: {set: {token: "${env:TOKEN}"}}
"""
BROKER = '  hosted: {kind: mqtt, host: "${env:TOKEN}", password: "${env:TOKEN}"}\n'
CONFIG = PLANT_AND_EMS.replace("archive:", BROKER + "archive:") + ORDERS


@pytest.fixture(autouse=True)
def _secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "hunter2-hunter2")


def stored() -> list[StoredRoutes]:
    storage = LocalStorage(Path("archive"))
    return read_routes(storage, routes_files(storage))


@pytest.mark.usefixtures("ems")
def test_a_start_and_a_reload_archive_the_routes_without_secrets(plant: BrokerClient) -> None:
    with running(CONFIG) as gateway:
        (first,) = stored()
        assert first.file.since >= gateway.started
        gateway.reload(configured(CONFIG.replace("token:", "mark:")))
        assert len(stored()) == 1  # the same names
        gateway.reload(configured(CONFIG.replace("ORDERS.", "NEW.")))
        plant.publish(Message("orders/1", b"x"))
        _, second = stored()
    with running(CONFIG.replace("ORDERS.", "NEW.")):
        assert len(stored()) == 2

    assert not first.fault
    assert first.rules is not None
    assert second.rules is not None
    assert [each["targets"][0]["templates"] for each in (first.rules[0], second.rules[0])] == [
        ["ORDERS.{rest...}"],
        ["NEW.{rest...}"],
    ]
    assert not archive_rows("delivered")  # the selector takes nothing
    for path in Path("archive").rglob("*"):
        assert path.is_dir() or b"hunter2" not in path.read_bytes()
    assert json.loads(Path("archive", second.file.path).read_bytes())["keyed"] is False


def test_a_reload_that_cannot_archive_its_routes_changes_nothing(
    plant: BrokerClient, ems: BrokerClient
) -> None:
    plain = PLANT_AND_EMS + ORDERS.replace(""", selector: "token = '${env:TOKEN}'\"""", "")
    with running(plain) as gateway:
        folder = Path("archive", "_routes")
        folder.rename("elsewhere")
        folder.write_bytes(b"")
        with pytest.raises(ArchiveError, match="_routes: cannot be written"):
            gateway.reload(configured(plain.replace("ORDERS.", "NEW.")))
        folder.unlink()
        plant.publish(Message("orders/1", b"x"))
        (delivered,) = ems.receive(1)

    assert delivered.address == "ORDERS.1"
