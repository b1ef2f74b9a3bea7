"""Whether a broker is still there, decided only from times: when to ask, and when it is lost.

MQTT 5.0, 3.1.2.10: a client that sends nothing for the keep alive sends a PINGREQ, and closes a
connection on which no answer comes in reasonable time.
"""

from __future__ import annotations

from typing import Final

_ASK_AFTER: Final = 0.75  # of the keep alive


class KeepAlive:
    """The signs of life of one connection.

    Units: monotonic seconds; a keep alive of 0 asks for nothing.
    Mutable: any thread that writes sets `last_write`; the leader calls the methods.
    """

    def __init__(self, now: float) -> None:
        self.last_read = self.last_write = now
        self._written, self._written_at = 0, now  # bytes that the socket had taken, and when
        self._asked_at = 0.0  # when the unanswered ping was sent; 0 without one

    def received(self, now: float) -> None:
        """Note that bytes of the broker came."""
        self.last_read, self._asked_at = now, 0.0

    def lost(self, now: float, keepalive: int, written: int, *, waiting: bool, reads: bool) -> str:
        """Return why the broker counts as gone, or an empty text.

        `written` are the bytes that the socket has taken, `waiting` says whether others are left.
        Without `reads` the answer to a ping may wait in the socket.
        """
        if not waiting or written != self._written:
            self._written, self._written_at = written, now
        elif now - self._written_at >= keepalive:  # although its own bytes may arrive
            return f"the broker reads nothing for {keepalive} s"
        if not reads:
            self._asked_at = self._asked_at and now
        if self._asked_at and now - self._asked_at >= keepalive:
            return f"no answer to a ping for {keepalive} s"
        return ""

    def asks(self, now: float, keepalive: int) -> bool:
        """Return whether a ping is due, which is then sent."""
        pause = keepalive * _ASK_AFTER
        if not keepalive or now - min(self.last_read, self.last_write) < pause:
            return False
        if self._asked_at and now - self.last_write < pause:
            return False
        self._asked_at = self._asked_at or now
        return True
