"""The RabbitMQ of the machine: its version, and a node that does not start leaves no process."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.errors import NotConnectedError
from gateway.trial.brokers import rabbitmq
from gateway.trial.brokers.rabbitmq import RabbitmqNode, missing, missing_amqp


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        ("4.0.5", ""),
        ("10.1.0", ""),
        ("3.13.7", "rabbitmq-server 3.13.7 has no AMQP 1.0 before 4.0"),
        ("", "rabbitmq-server of no version has no AMQP 1.0 before 4.0"),
    ],
)
def test_amqp_1_0_needs_a_rabbitmq_4(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: str, reason: str
) -> None:
    for name in ("rabbitmq-server", "rabbitmqctl"):
        (tmp_path / name).write_text(f"#!/bin/sh\necho {told}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setattr(rabbitmq, "FOLDER", str(tmp_path))

    assert missing_amqp() == reason


@pytest.mark.broker
def test_a_node_that_does_not_listen_in_time_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if why := missing():
        pytest.skip(why)

    def too_slow(*_: object) -> None:
        raise NotConnectedError("too slow")

    monkeypatch.setattr(rabbitmq, "wait_until_it_listens", too_slow)
    node = RabbitmqNode(tmp_path)

    with pytest.raises(NotConnectedError):
        node.start()

    assert not node.is_running
