"""One connection's own thread, spoken to by a test."""

from __future__ import annotations

import pytest

from gateway.endpoints.mqtt.link import GATHER, MANY, WHILE, Link, Pace
from gateway.endpoints.mqtt.packets import Arrived
from gateway.endpoints.mqtt.sockets import Stream
from gateway.errors import GatewayError
from tests.endpoints.mqtt.test_scripted import WELCOME, Peer, peer
from tests.runtime.waiting import until

__all__ = ["peer"]  # a fixture
TURNS = 200  # in seconds, were each to wait for its quarter of one


class Quiet:
    """An owner that wants nothing; mutable, it counts how often the link looks at the clock."""

    def __init__(self) -> None:
        self.turns = 0

    def arrived(self, arrived: Arrived) -> None:
        """Nothing comes."""

    def wants_more(self) -> bool:
        return True

    def tick(self, now: float) -> GatewayError | None:
        del now
        self.turns += 1
        return None

    def lost(self, failure: GatewayError) -> None:
        """Nobody waits."""


class Rung(Link):
    """Woken just before it waits, when that is easily missed."""

    def _expect(self, mask: int) -> None:
        super()._expect(mask)
        self.wake()


class Opening:
    """A link as something to open."""

    def __init__(self, link: Link) -> None:
        self._link = link

    def open(self) -> None:
        self._link.open(lambda _session_present: ())


def test_a_link_that_is_woken_before_it_waits_does_not_wait(peer: Peer) -> None:
    owner = Quiet()
    link = Rung(peer.settings, "c", clean=True, traffic=owner)
    future = peer.opening(Opening(link))
    peer.write(WELCOME)
    future.result(10)

    until(lambda: owner.turns > TURNS)

    peer.hang_up()
    link.close()


def test_what_a_slow_line_brings_is_acknowledged_at_once(
    peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    acknowledged: list[Stream] = []

    def acknowledge(stream: Stream) -> None:
        acknowledged.append(stream)

    monkeypatch.setattr(Stream, "acknowledge", acknowledge)
    link = Link(peer.settings, "c", clean=True, traffic=Quiet())
    future = peer.opening(Opening(link))
    peer.write(WELCOME)
    future.result(10)
    before = len(acknowledged)

    peer.write(b"\xd0\x00")  # PINGRESP

    until(lambda: len(acknowledged) > before)
    peer.hang_up()
    link.close()


@pytest.mark.parametrize(
    ("packets", "every", "fast"),
    [
        pytest.param(1, 0.001, False, id="a thousand a second, which wait for nobody"),
        pytest.param(2 * MANY, GATHER, True, id="twice what makes a pause worth it"),
        pytest.param(MANY, 2 * GATHER, False, id="half of it"),
        pytest.param(1000, WHILE, True, id="in large batches"),
        pytest.param(1000, 1.0, False, id="a batch now and then"),
    ],
)
def test_only_a_fast_line_pauses(packets: int, every: float, fast: bool) -> None:
    pace = Pace()

    assert [pace.is_fast(packets, turn * every) for turn in range(1, 1001)][-1] is fast


def test_a_line_that_falls_silent_is_no_longer_fast() -> None:
    pace = Pace()
    assert pace.is_fast(10_000, 10.0) is False  # since the clock began
    assert pace.is_fast(10_000, 10.0 + WHILE) is True

    assert pace.is_fast(1, 20.0) is False
