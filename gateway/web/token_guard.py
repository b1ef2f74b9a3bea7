"""The tokens of the web server, and a bound for the guesses of each address."""

from __future__ import annotations

import hmac
import logging
import threading
import time
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Final

from gateway.web.connection_limits import PeerConnection

log = logging.getLogger(__name__)

TRIES: Final = 10  # wrong tokens of one address at once
INTERVAL: Final = 1.0  # seconds from one further wrong token to the next
_MAX_ADDRESSES: Final = 1_024  # that are remembered: about 150 KB
_WARN_INTERVAL: Final = 60.0  # seconds


class Access(Enum):
    """The answer to a request for a page that needs the token."""

    ALLOWED = "allowed"
    REFUSED = "refused"
    DEFERRED = "deferred"  # not compared: its address has guessed too often


class TokenGuard:
    """Compares tokens in constant time.

    An address that has no tries left is not answered, not even with the right token: otherwise
    the answer would tell it from a wrong one. A connection that has shown the right token keeps
    its access until it shows another. A right token takes no try.
    Mutable: several threads use it.
    """

    def __init__(
        self, tokens: Iterable[str] = (), clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Allow requests with one of `tokens`; all, without any."""
        self._tokens = [each.encode() for each in tokens]
        self._clock = clock
        self._lock = threading.Lock()
        self._all_tries: dict[str, float] = {}  # when each address has all its tries again
        self._next_warning = 0.0

    def use(self, tokens: Iterable[str]) -> None:
        """Take other tokens from now on."""
        with self._lock:
            self._tokens = [each.encode() for each in tokens]

    def check(self, authorization: str, peer: PeerConnection) -> Access:
        """Judge the header `Authorization` of a request; an empty one is not a guess."""
        if not self._tokens:
            return Access.ALLOWED
        if not authorization:
            return Access.REFUSED
        with self._lock:
            now = self._clock()
            debt = max(self._all_tries.get(peer.address, now) - now, 0.0)
            if debt > (TRIES - 1) * INTERVAL and not peer.trusted:
                return Access.DEFERRED
            scheme, _, token = authorization.partition(" ")
            given = token.strip().encode()
            same = [hmac.compare_digest(given, each) for each in self._tokens]
            peer.trusted = any(same) and scheme.lower() == "bearer"
            if peer.trusted:
                return Access.ALLOWED
            self._count(peer.address, now, debt + INTERVAL)
            return Access.REFUSED

    def _count(self, address: str, now: float, debt: float) -> None:
        self._all_tries[address] = now + debt
        if len(self._all_tries) > _MAX_ADDRESSES:  # forget the ones that guessed least
            kept = sorted(self._all_tries.items(), key=lambda each: each[1])[_MAX_ADDRESSES // 2 :]
            self._all_tries = dict(kept)
        if debt > (TRIES - 1) * INTERVAL and now >= self._next_warning:
            self._next_warning = now + _WARN_INTERVAL
            log.warning("web: %s sends wrong tokens; it is slowed down", address)
