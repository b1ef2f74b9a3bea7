"""A JMS connection that cannot be set up is closed; without a broker."""

from __future__ import annotations

import threading
from typing import cast

import pytest

from gateway.endpoints.jms.connection import JmsConnection
from gateway.endpoints.jms.jvm import JmsLibrary
from gateway.endpoints.settings.jms import JmsSettings


class Library:
    """Stands for the library and its monitor of connections; notes what they close."""

    def __init__(self) -> None:
        self.closed: list[object] = []

    def helper(self, _name: str) -> Library:
        return self

    def close(self, connection: object, _millis: int) -> None:
        self.closed.append(connection)


def test_a_connection_is_closed_when_no_thread_can_watch_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(_timer: threading.Timer) -> None:
        raise RuntimeError("can't start new thread")

    library = Library()
    connection = JmsConnection(JmsSettings(), cast(JmsLibrary, library), "connection")
    monkeypatch.setattr(threading.Timer, "start", refuse)

    with pytest.raises(RuntimeError, match="new thread"):
        connection.set_up(lambda _: None)

    assert library.closed == ["connection"]
