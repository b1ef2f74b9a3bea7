"""A server of Kafka's protocol for a test: noida-db, on a free loopback port, in its own folder.

It has Kafka's rules of names, groups and rebalances. It acknowledges a message before it stores it:
what it acknowledged within the last second is gone after `kill`.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import pytest

from gateway.endpoints.settings.kafka import KafkaSettings
from gateway.trial.brokers import kafka
from gateway.trial.brokers.listening import free_port
from tests.brokers.server_process import ServerProcess
from tests.waiting import PATIENCE


class KafkaServer(ServerProcess):
    """A server process; its topics survive `stop`. Mutable."""

    store = "data"

    def __init__(self, folder: Path) -> None:
        port = free_port()
        super().__init__(folder, port, kafka.command(port, folder / "data"))
        self.url = f"127.0.0.1:{port}"

    @property
    def settings(self) -> KafkaSettings:
        """The settings of an endpoint `kafka` of the gateway `gateway`."""
        return KafkaSettings(bootstrap_servers=(self.url,)).for_gateway("gateway", "kafka")

    def make_topic(self, name: str, partitions: int = 1, **config: object) -> None:
        """Make a topic; `config` has the words of Kafka's documents with `_` for the dots."""
        from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]  # noqa: PLC0415

        words = {key.replace("_", "."): str(value) for key, value in config.items()}
        new, admin = NewTopic(name, partitions, 1, config=words), self.admin()
        admin.create_topics([new])[name].result(PATIENCE)

    def delete_topic(self, name: str) -> None:
        admin = self.admin()  # it lives until the answer
        admin.delete_topics([name])[name].result(PATIENCE)

    def admin(self) -> Any:  # noqa: ANN401  # the driver's
        from confluent_kafka.admin import AdminClient  # noqa: PLC0415  # the fixture skips without it

        return AdminClient({"bootstrap.servers": self.url})

    def records(self, topic: str, partition: int = 0) -> list[Any]:
        """Return the records of a partition, as another client reads them."""
        from confluent_kafka import Consumer, KafkaError, TopicPartition  # noqa: PLC0415  # as above

        options = {"bootstrap.servers": self.url, "group.id": "t", "enable.partition.eof": True}
        consumer = Consumer(options)
        found: list[Any] = []
        try:
            consumer.assign([TopicPartition(topic, partition, 0)])
            while (record := consumer.poll(PATIENCE)) is not None and record.error() is None:
                found.append(record)
        finally:
            consumer.close()
        error = None if record is None else record.error()
        assert error is not None, "no end of the partition"
        assert error.code() == KafkaError._PARTITION_EOF, error.str()  # noqa: SLF001  # its name
        return found


class StartKafka(Protocol):
    def __call__(self) -> KafkaServer:
        """Start a server."""


def required() -> None:
    """Skip the test without the server, or without the library."""
    for module, extra in (("confluent_kafka", "kafka"), ("noida_db", "dev")):
        if find_spec(module) is None:
            pytest.skip(f"{module} is not installed: gateway[{extra}]")


@pytest.fixture
def start_kafka(tmp_path: Path) -> Iterator[StartKafka]:
    required()
    started: list[KafkaServer] = []

    def start() -> KafkaServer:
        folder = tmp_path / f"kafka-{len(started)}"
        folder.mkdir()
        server = KafkaServer(folder)
        started.append(server)
        server.start()
        return server

    yield start
    for server in started:
        server.kill()


@pytest.fixture
def kafka_server(start_kafka: StartKafka) -> KafkaServer:
    return start_kafka()
