"""Servers that answer at once where they have no message, in place of waiting for one.

The library asks again at once, tens of thousands of times a second: a server that ignores
`fetch.wait.max.ms` costs a processor at both ends. The statistics of the library tell.
"""

from __future__ import annotations

import json
from typing import Final

INTERVAL: Final = 5.0  # seconds between statistics
MOST: Final = 100  # such answers in a second; a server that waits gives two


class EmptyAnswers:
    """Whether empty answers `hurry`, as the statistics of one client say. Mutable: of one thread.

    It is decided again with each statistics in whose time the client asked for messages.
    """

    def __init__(self) -> None:
        self.hurry = False
        self._asked = self._messages = self._microseconds = 0

    def note(self, statistics: str) -> None:
        """Take the statistics (`stats_cb`)."""
        found = json.loads(statistics)
        asked = sum(each["req"].get("Fetch", 0) for each in found["brokers"].values())
        messages, now = found["rxmsgs"], found["ts"]
        if (new := asked - self._asked) > 0:
            empty = new - (messages - self._messages)  # an answer with messages has one at least
            self.hurry = empty > MOST * (now - self._microseconds) / 1_000_000
        self._asked, self._messages, self._microseconds = asked, messages, now
