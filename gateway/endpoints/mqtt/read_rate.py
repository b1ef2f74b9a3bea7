"""The rate at which a connection brings packets, by which its reading is paced.

Brokers send message by message. While they send faster than a thread wakes, a pause lets more
packets gather: handling a batch costs as much as thirty messages, and so does a wake-up. A slower
connection never waits.
"""

from __future__ import annotations

GATHER_PAUSE = 0.004  # seconds
GATHER_PACKETS = 40  # packets that a pause has to bring to be worthwhile
MEASURE_INTERVAL = 0.05  # seconds over which the rate is measured
# Above this rate the connection's own thread reads ahead: while a batch is handled, as many bytes
# arrive as the kernel buffers (64 KB at first), and copying them needs no interpreter.
HEAVY_RATE = 12_000_000  # bytes a second


class ReadRate:
    """Packets and bytes a second of one connection, measured every `MEASURE_INTERVAL`.

    It is `fast` when a pause of `GATHER_PAUSE` brings `GATHER_PACKETS`, and `heavy` above
    `HEAVY_RATE`.
    Mutable: owned by the thread that reads.
    """

    def __init__(self) -> None:
        self.fast = self.heavy = False
        self._since, self._packets, self._bytes = 0.0, 0, 0

    def count(self, packets: int, size: int, now: float) -> None:
        """Count packets and their bytes, read at `now` in seconds."""
        self._packets += packets
        self._bytes += size
        if (passed := now - self._since) >= MEASURE_INTERVAL:
            self.fast = self._packets >= passed * GATHER_PACKETS / GATHER_PAUSE
            self.heavy = self._bytes >= passed * HEAVY_RATE
            self._since, self._packets, self._bytes = now, 0, 0
