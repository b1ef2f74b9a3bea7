"""Two instances of one gateway with a bucket as their archive, each with its own buffer."""

from __future__ import annotations

import pytest

from gateway.archive.journal import converter_process
from gateway.archive.storage import RemoteStorage
from gateway.model.message import Message
from gateway.night.archive.verification.verify import verify_archive
from tests.archive.bucket import Bucket
from tests.runtime.gateway.running import BrokerClient, running
from tests.runtime.gateway.test_short_names import LONG, messages
from tests.waiting import PATIENCE

CONFIG = """\
gateway: {{name: test, instance: {instance}}}
endpoints:
  plant: {{kind: memory, dialect: mqtt, broker: plant}}
  ems: {{kind: memory, dialect: ems, broker: ems}}
archive: {{path: "{url}", buffer: buffer-{instance}}}
routes:
  there:
    from: {{endpoint: plant, pattern: "orders/{{rest...}}"}}
    to: {{endpoint: ems, template: "ORDERS.{{rest...}}", on_too_long: shorten}}
  back:
    from: {{endpoint: ems, pattern: "ORDERS.{{rest...}}"}}
    to: {{endpoint: plant, template: "returned/{{rest...}}"}}
"""


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a slow machine take longer than an instance waits for the bucket."""
    monkeypatch.setattr(converter_process, "FETCH_SECONDS", PATIENCE)


def test_an_instance_returns_the_names_that_another_one_shortened(
    plant: BrokerClient, ems: BrokerClient, bucket: Bucket
) -> None:
    bucket.start()
    with running(CONFIG.format(instance="b", url=bucket.url)):
        plant.publish(*messages(1))
        (sent,) = ems.receive(1)
    plant.receive_available()

    with running(CONFIG.format(instance="a", url=bucket.url)):
        ems.publish(Message(sent.address, b"answer"))
        (returned,) = plant.receive(1)

    assert "~" in sent.address
    assert (returned.address, returned.payload) == (f"returned/0/{LONG}", b"answer")


def test_a_new_machine_continues_the_chain_of_the_one_before_it(
    plant: BrokerClient, ems: BrokerClient, bucket: Bucket
) -> None:
    bucket.start()
    config = CONFIG.replace("buffer-{instance}", "{buffer}")
    for buffer in ("one", "two"):
        with running(config.format(instance="a", url=bucket.url, buffer=buffer)):
            plant.publish(*messages(1))
            ems.receive(1)
        plant.receive_available()

    found = verify_archive(RemoteStorage(bucket.url))

    assert found.seals > 1
    assert [each.rule for each in found.findings] == []


@pytest.mark.nightly
def test_a_bucket_that_is_away_stops_no_start(
    plant: BrokerClient,
    ems: BrokerClient,
    bucket: Bucket,
    caplog: pytest.LogCaptureFixture,
) -> None:
    with running(CONFIG.format(instance="a", url=bucket.url)):
        plant.publish(*messages(1))
        (sent,) = ems.receive(1)

    assert sent.payload == b"0"
    assert "other machines are those of an earlier start" in caplog.text
