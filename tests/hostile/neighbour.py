"""An honest endpoint beside hostile ones: each of its messages passes, and the time is measured."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from time import monotonic
from typing import Final

from gateway.endpoints.base import Sink, Source
from gateway.model.outcome import ACCEPTED
from tests.endpoints.exchange import collect, opened, say, send
from tests.waiting import until

PACE: Final = 0.02  # seconds between messages


class Neighbour:
    """Sends one message after another. Mutable: owned by its thread, which others only watch."""

    def __init__(self, source: Source, sink: Sink, address: str) -> None:
        self._source, self._sink, self._address = source, sink, address
        self._stop = threading.Event()
        self._failure: BaseException | None = None
        self.seconds: list[float] = []  # of each message that passed

    def check(self) -> None:
        """Wait until two further messages have passed, one of which is sent from now on."""
        wanted = len(self.seconds) + 2
        until(
            lambda: self._failure is not None or len(self.seconds) >= wanted,
            "the neighbour stands still",
        )
        if self._failure is not None:
            raise self._failure

    @contextmanager
    def running(self) -> Iterator[None]:
        thread = threading.Thread(target=self._run, daemon=True)
        with opened(self._source, self._sink):
            thread.start()
            yield
            self._stop.set()
            thread.join()

    def _run(self) -> None:
        try:
            while not self._stop.wait(PACE):
                self._pass(len(self.seconds))
        except BaseException as error:  # noqa: BLE001  # for the test
            self._failure = error

    def _pass(self, number: int) -> None:
        begin = monotonic()
        assert send(self._sink, replace(say(number), address=self._address)) == [ACCEPTED]
        assert [each.payload for each in collect(self._source, 1)] == [b"%d" % number]
        self.seconds.append(monotonic() - begin)
