"""Admission of connections: bounds in total and by address, and eviction of idle ones."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from typing import Final

MAX_CONNECTIONS: Final = 32  # open at once, those in a TLS handshake included
MAX_PER_ADDRESS: Final = 16  # of them from one address
RESERVED_FOR_PROBES: Final = 4  # of either bound: requests for pages do not occupy them
_HOST_BITS: Final = 64  # of an IPv6 address, which one client may choose freely


@dataclass(slots=True, eq=False)
class PeerConnection:
    """A connection; `since` is when it began to wait for its client.

    Mutable: owned by the event loop's thread, except `trusted`.
    """

    address: str
    since: float  # seconds of the monotonic clock
    serving: bool = False  # a request is being answered
    trusted: bool = False  # its latest token was right; owned by the guard of the token
    close: Callable[[], object] = lambda: None


class Connections:
    """The open connections of the server.

    A new connection takes the place of an idle one when a bound is reached. Idle is a connection
    that waits for its client: for a handshake, a request, or the reading of a response.
    Mutable: owned by the event loop's thread.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._open: set[PeerConnection] = set()

    def admit(self, address: str) -> PeerConnection | None:
        """Return a new connection, after closing an idle one if necessary; None if refused."""
        counts = Counter(each.address for each in self._open)
        if len(self._open) >= MAX_CONNECTIONS or counts[address] >= MAX_PER_ADDRESS:
            own_bound = counts[address] >= MAX_PER_ADDRESS
            idle = [
                each
                for each in self._open
                if not each.serving and (each.address == address or not own_bound)
            ]
            if not idle:
                return None
            # The address with the most connections loses its oldest: a flood evicts itself.
            evicted = min(idle, key=lambda each: (-counts[each.address], each.since))
            self.remove(evicted)
            evicted.close()
        connection = PeerConnection(address, self._clock())
        self._open.add(connection)
        return connection

    def remove(self, connection: PeerConnection) -> None:
        """Forget a connection; a second call does nothing."""
        self._open.discard(connection)

    def begin(self, connection: PeerConnection, *, probe: bool) -> bool:
        """Note that a request is being answered; return False if there is no room for a page."""
        serving = [each.address for each in self._open if each.serving]
        own = serving.count(connection.address)
        if not probe and (
            len(serving) >= MAX_CONNECTIONS - RESERVED_FOR_PROBES
            or own >= MAX_PER_ADDRESS - RESERVED_FOR_PROBES
        ):
            return False
        connection.serving = True
        return True

    def end(self, connection: PeerConnection) -> None:
        """Note that the connection waits for its client again."""
        connection.serving, connection.since = False, self._clock()


def address_of(host: str) -> str:
    """Return the address that is counted for a peer: of IPv6 its network of 64 bits."""
    address = ip_address(host.partition("%")[0])
    if isinstance(address, IPv6Address):
        return str(IPv6Address(int(address) >> _HOST_BITS << _HOST_BITS))
    return str(address)
