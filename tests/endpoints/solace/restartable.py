"""A restartable SMF broker with Solace endpoints; skips without the vendor's library."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("solace", reason="solace-pubsubplus is not installed: gateway[solace]")

from solace.messaging.config._default_session_props import default_props

from gateway.endpoints.base import Subscription
from gateway.endpoints.settings.solace import SolaceSettings
from gateway.endpoints.solace import SolaceSink, open_sink, open_source
from gateway.endpoints.source_shell import SourceShell
from gateway.model.message import DeliveryMode, Headers, Message
from gateway.trial.brokers.smf import BrokerOptions
from tests.brokers.controlled_smf import SmfBroker
from tests.endpoints.freezing import freeze

PASSWORD = "p"  # noqa: S105  # of the test broker
DIRECT = DeliveryMode.AT_MOST_ONCE
GUARANTEED = Headers(mode=DeliveryMode.AT_LEAST_ONCE)


class RestartableBroker:
    """A broker on one port whose queues survive `stop`.

    Mutable: owned by the test.
    """

    def __init__(self, options: BrokerOptions | None = None) -> None:
        self.broker = SmfBroker(options=options or BrokerOptions())
        self.broker.__enter__()
        self.settings = SolaceSettings(
            url=self.broker.url, username="u", password=PASSWORD, connect_timeout=5.0
        )
        self._running = True
        self.thaw: Callable[[], None] = lambda: None

    def stop(self) -> None:
        self.thaw()
        if self._running:
            self._running = False
            self.broker.__exit__(None, None, None)

    kill = stop  # its connections are aborted, and nothing is written to a disk

    def wipe(self) -> None:
        """Let it come back without anything that it had, but with its faults."""
        self.stop()
        old, new = self.broker, SmfBroker(self.broker.port, self.broker.state.options)
        new.faults.publish |= old.faults.publish
        self.broker = new.__enter__()
        self._running = True

    def freeze(self) -> None:
        self.thaw = freeze(self.broker)

    def start(self) -> None:
        self.broker = SmfBroker(self.broker.port, state=self.broker.state)
        self.broker.__enter__()
        self._running = True

    def source(self, *patterns: str, instance: str = "one", **changes: Any) -> SourceShell:  # noqa: ANN401
        settings = replace(self.settings, **changes)
        return open_source(settings, [Subscription(each) for each in patterns], instance=instance)

    def sink(self, **changes: Any) -> SolaceSink:  # noqa: ANN401
        return open_sink(replace(self.settings, **changes))

    @property
    def queue(self) -> str:
        """Return the name of the queue of `source` with its default instance."""
        return f"gateway/{self.settings.name}/one"

    def depth(self) -> int:
        return self.broker.depth(self.queue)


def wait_less(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the library wait for an answer to a question for three seconds, and not for ten."""
    monkeypatch.setitem(default_props, "SESSION_MODIFYPROP_TIMEOUT_MS", "3000")


@contextmanager
def restartable(options: BrokerOptions | None = None) -> Iterator[RestartableBroker]:
    system = RestartableBroker(options)
    try:
        yield system
    finally:
        system.stop()


def guaranteed_message(topic: str, payload: bytes = b"x", headers: Headers = GUARANTEED) -> Message:
    return Message(topic, payload, headers)
