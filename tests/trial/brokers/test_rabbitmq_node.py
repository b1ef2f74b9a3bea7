"""A RabbitMQ node that does not start leaves no process."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.errors import NotConnectedError
from gateway.trial.brokers import rabbitmq
from gateway.trial.brokers.rabbitmq import RabbitmqNode, missing

pytestmark = pytest.mark.broker


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
