"""Messages through a gateway whose route chooses their partition: Kafka, with the keys apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.model.message import Headers, Message
from tests.brokers.kafka_server import KafkaServer
from tests.conformance.bridged import Bridged
from tests.endpoints.kafka.test_partitions import LINES, PARTITIONS, chosen_by_library, stored

pytestmark = pytest.mark.usefixtures("journals_stay")

ROUTES = """\
  out:
    from: {endpoint: here, pattern: "plant/{line}/{rest...}"}
    to: {endpoint: there, topic: t, key: "{rest...}", lossy: true, partition: "{line}"}
"""
KEYS = 200
OF_A_STRANGER = Headers(properties={"gateway_partition": 0})


def test_kafka_keeps_each_line_in_one_partition_while_its_keys_differ(
    tmp_path: Path, kafka_server: KafkaServer
) -> None:
    expected = chosen_by_library(kafka_server, LINES)
    kafka_server.make_topic("t", PARTITIONS)
    world = Bridged(tmp_path, kafka_server.settings, ROUTES, "t:>")
    sent = [(LINES[number % len(LINES)], number) for number in range(KEYS)]
    with world.running():
        world.here.publish(
            *(
                Message(f"plant/{line}/m/{number}", f"{line}|{number}".encode(), OF_A_STRANGER)
                for line, number in sent
            )
        )
        found = stored(kafka_server, KEYS)

    lines: dict[str, list[int]] = {each: [] for each in LINES}
    for partition, records in found.items():
        for record in records:
            line, _, number = record.value().decode().partition("|")
            assert partition == expected[line]
            assert record.key() == f"m.{number}".encode()
            lines[line].append(int(number))
    assert lines == {each: [n for line, n in sent if line == each] for each in LINES}
    assert world.rows("dead", "rule") == []
