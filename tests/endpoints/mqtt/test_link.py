"""One connection's own thread, spoken to by a test."""

from __future__ import annotations

from gateway.endpoints.mqtt.link import Link
from gateway.endpoints.mqtt.packets import Arrived
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
