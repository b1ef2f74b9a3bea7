"""The ten minutes of `docs/rabbitmq.md`: its mapping and its Python, as they are printed."""

from __future__ import annotations

import re
from contextlib import closing
from pathlib import Path
from textwrap import dedent

import pytest

from docs.tables import ROOT
from tests.brokers.mosquitto import Mosquitto
from tests.brokers.rabbitmq_server import Vhost
from tests.brokers.running import Client, Process
from tests.waiting import until

pytestmark = pytest.mark.broker
PAGE = (ROOT / "docs" / "rabbitmq.md").read_text("utf-8")
SECTION = PAGE.partition("\n## Ten minutes\n")[2].partition("\n## ")[0]


def block(language: str) -> str:
    (text,) = re.findall(rf"```{language}\n(.*?)```", SECTION, re.DOTALL)
    return dedent(text)


def test_a_message_of_the_ten_minutes_arrives(
    tmp_path: Path, rabbitmq: Vhost, mosquitto: Mosquitto, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pika  # noqa: PLC0415  # the fixture skips without it

    (get,) = re.findall(r"`(channel\.basic_get\(.*?\))`", SECTION)
    mapping = block("yaml").replace("amqp://guest:guest@localhost:5672/", rabbitmq.url)
    file = tmp_path / "gateway.yaml"
    file.write_text(mapping.replace("host: localhost", f"host: 127.0.0.1, port: {mosquitto.port}"))
    connection = pika.BlockingConnection(pika.URLParameters(rabbitmq.url))
    names: dict[str, object] = {}
    read: list[tuple[str, bytes]] = []
    with monkeypatch.context() as patch, closing(connection):
        patch.setattr(pika, "BlockingConnection", lambda: connection)
        exec(block("python"), names)  # noqa: S102  # the page's own text
        process = Process(file)
        try:
            process.wait_for("connected", endpoint="work", side="sink")
            process.wait_for("connected", endpoint="plant", side="source")
            with closing(Client(mosquitto.port)) as client:
                client.publish("plant/line1/temp.max", b"21.5")
                until(lambda: taken(get, names, read) == 1)
        finally:
            process.end()

    assert read == [("plant.line1.temp%2Emax", b"21.5")]


def taken(get: str, names: dict[str, object], read: list[tuple[str, bytes]]) -> int:
    """Add key and payload of what the page's last expression reads, if anything; count all."""
    method, _, body = eval(get, names)  # noqa: S307  # likewise
    if method is not None:
        read.append((method.routing_key, body))
    return len(read)
