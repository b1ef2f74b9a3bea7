"""RabbitMQ in a gateway process: bindings that follow a reload and a start, and a deleted queue."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.archived import archived
from tests.brokers.rabbitmq_server import Vhost
from tests.brokers.running import Process
from tests.waiting import until

pytestmark = pytest.mark.broker
QUEUE = "plant-source"


def write(folder: Path, vhost: Vhost, words: Sequence[str]) -> Path:
    """Write a mapping with a route for each word."""
    end = {"kind": "rabbitmq", "url": vhost.url, "backoff_min": 0.05, "on_unroutable": "drop"}
    routes = {
        word: {
            "from": {"endpoint": "source", "pattern": f"{word}.{{rest...}}"},
            "to": {"endpoint": "target", "template": f"out.{word}.{{rest...}}"},
        }
        for word in words
    }
    config = {
        "gateway": {"name": "plant"},
        "endpoints": {"source": end, "target": end},
        "routes": routes,
        "archive": {"path": str(folder / "archive")},
    }
    file = folder / "gateway.yaml"
    file.write_text(json.dumps(config))
    return file


@contextmanager
def running(config: Path) -> Iterator[Process]:
    process = Process(config)
    try:
        process.connected()
        yield process
    finally:
        process.end()


def test_bindings_follow_a_reload_and_a_start(tmp_path: Path, rabbitmq: Vhost) -> None:
    with running(write(tmp_path, rabbitmq, ["a", "b"])) as gateway:
        until(lambda: rabbitmq.bindings(QUEUE) == ["a.#", "b.#"])
        write(tmp_path, rabbitmq, ["b", "c"])
        gateway.process.send_signal(signal.SIGHUP)
        until(lambda: rabbitmq.bindings(QUEUE) == ["b.#", "c.#"])
    with running(write(tmp_path, rabbitmq, ["c"])):
        until(lambda: rabbitmq.bindings(QUEUE) == ["c.#"])


def test_a_deleted_queue_is_made_again_and_is_a_gap(tmp_path: Path, rabbitmq: Vhost) -> None:
    with running(write(tmp_path, rabbitmq, ["a"])) as gateway:
        rabbitmq.delete_queue(QUEUE)
        gateway.wait_for("connected", times=2, endpoint="source", side="source")
        until(lambda: rabbitmq.bindings(QUEUE) == ["a.#"])
    reasons = [row["reason"] for row in archived(tmp_path) if row["leg"] == "gap"]

    assert any("was deleted" in reason for reason in reasons), reasons
