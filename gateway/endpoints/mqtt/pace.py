"""How fast a line is, and what that means for those who read it."""

from __future__ import annotations

# Brokers send message by message. While they send faster than we wake, a pause lets more gather: a
# batch costs as much as thirty messages, and so does waking up. A slower line never waits.
GATHER = 0.004  # seconds of a pause
MANY = 40  # packets that make a pause worth it
WHILE = 0.05  # seconds over which we look how fast a line is
# A line that brings more is read ahead by its own thread: while a batch is under way, as much would
# come as the system keeps for us (64 KB at first), and copying runs beside the interpreter.
HEAVY = 12_000_000  # bytes a second


class Pace:
    """How fast a line is. Mutable: it counts, and looks after every `WHILE`.

    It is `fast` when a pause of `GATHER` brings `MANY` packets.
    """

    def __init__(self) -> None:
        self.fast = self.heavy = False
        self._since, self._packets, self._bytes = 0.0, 0, 0

    def count(self, packets: int, size: int, now: float) -> None:
        """So many packets and bytes more, at a time in seconds."""
        self._packets += packets
        self._bytes += size
        if (passed := now - self._since) >= WHILE:
            self.fast = self._packets >= passed * MANY / GATHER
            self.heavy = self._bytes >= passed * HEAVY
            self._since, self._packets, self._bytes = now, 0, 0
