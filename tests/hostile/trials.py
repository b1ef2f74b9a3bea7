"""One trial for each cost that a behaviour may have for an endpoint."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from types import MappingProxyType
from typing import Final, TypeAlias

import pytest

from gateway.endpoints.base import Batch, Sink, Source, Subscription
from gateway.endpoints.continuity import ReportsContinuity
from gateway.endpoints.registry import make_sink, make_source
from gateway.endpoints.settings.base import EndpointSettings
from gateway.errors import EndpointError, NotConnectedError, TakenOverError
from gateway.model.outcome import ACCEPTED, RETRY
from tests.endpoints.exchange import QUIET, Answer, opened, receive, say, wait_for_loss
from tests.hostile.behaviours import Cost
from tests.waiting import until

Trial: TypeAlias = Callable[[EndpointSettings, str, str], None]  # with a pattern and an address


def source_of(settings: EndpointSettings, pattern: str) -> Source:
    return make_source(settings, [Subscription(pattern)], instance="r")


def refuse(endpoint: Source | Sink, settings: EndpointSettings) -> None:
    with pytest.raises(EndpointError, match=f"^{settings.name}: "):
        endpoint.open()
    endpoint.close()


def log_in(settings: EndpointSettings, pattern: str, address: str) -> None:
    open_source(settings, pattern, address)
    refuse(make_sink(_impatient(settings)), settings)


def open_source(settings: EndpointSettings, pattern: str, _address: str) -> None:
    refuse(source_of(_impatient(settings), pattern), settings)


def _impatient(settings: EndpointSettings) -> EndpointSettings:
    """Return the settings of an endpoint that gives a silent server up soon."""
    waits = [each for each in ("connect_timeout", "answer_timeout") if hasattr(settings, each)]
    return replace(settings, **dict.fromkeys(waits, 0.5))


def read(settings: EndpointSettings, pattern: str, _address: str) -> None:
    """Receive until the connection is lost, which a source may see while it opens.

    The server may say that another client of the same name is the reason.
    """
    source = source_of(settings, pattern)
    with suppress(NotConnectedError, TakenOverError), opened(source):
        wait_for_loss(source)
    if isinstance(source, ReportsContinuity):
        for loss in source.continuity.take_losses():
            assert (loss.messages or 0) < 1 << 63


def write(settings: EndpointSettings, _pattern: str, address: str) -> None:
    answer = Answer()
    with opened(sink := make_sink(settings)):
        try:
            sink.send([replace(say(1), address=address)], answer)
        except NotConnectedError:
            return
        until(lambda: _is_lost(sink), "the sink is still connected")  # a lane asks so, too
    assert answer.wait() == [RETRY]


def _is_lost(sink: Sink) -> bool:
    try:
        sink.send([], lambda _settlements: None)
    except NotConnectedError:
        return True
    return False


def read_no_further(settings: EndpointSettings, pattern: str, _address: str) -> None:
    """Settle nothing until nothing more is read, then all of it: reading goes on."""
    with opened(source := source_of(settings, pattern)):
        held: list[Batch] = [receive(source)]
        while (batch := source.receive(QUIET)) is not None:
            held.append(batch)
        for each in held:
            each.settle([ACCEPTED] * len(each.messages))
        assert receive(source).messages


def read_on(settings: EndpointSettings, pattern: str, _address: str) -> None:
    with opened(source := source_of(settings, pattern)):
        found = False
        while not found:
            batch = receive(source)
            found = b"honest" in [each.payload for each in batch.messages]
            batch.settle([ACCEPTED] * len(batch.messages))


TRIALS: Final[Mapping[Cost, Trial]] = MappingProxyType(
    {
        Cost.LOG_IN: log_in,
        Cost.SOURCE: open_source,
        Cost.READING: read,
        Cost.SENDING: write,
        Cost.ROOM: read_no_further,
        Cost.NOTHING: read_on,
    }
)
