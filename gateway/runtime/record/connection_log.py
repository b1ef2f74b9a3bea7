"""The times at which the sources of a gateway were last connected, kept over restarts in its head.

A gateway that starts learns from them how long its sources were away.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from dataclasses import replace
from time import monotonic
from typing import Final

from gateway.archive.heads import SourceConnection
from gateway.archive.journal.local_head import LocalHead
from gateway.errors import ArchiveError

log = logging.getLogger(__name__)

SAVE_INTERVAL: Final = 5.0  # seconds between two notes of connected sources on disk


class ConnectionLog:
    """The states of all sources of one gateway; `ran_before`: an earlier run left some.

    Thread-safe: guarded by self._lock.
    """

    def __init__(self, head: LocalHead, endpoints: Mapping[str, str]) -> None:
        """Read the states that an earlier run left for `endpoints`, and those of all taps.

        `endpoints` has the earlier name of each, or "". A renamed one goes on with that state.

        The run may be that of another instance, where its head can be read.

        A tap that the configuration has again missed everything since it was removed.

        Raises:
            ArchiveError: the head cannot be read.
        """
        self._file = head
        self._lock = threading.Lock()
        self._saved = 0.0
        self._live: set[str] = set()  # sources with a state of this run
        try:
            found = head.newest()
        except OSError as error:
            raise ArchiveError(f"the head of {head.writer}: {error}") from error
        self.ran_before = found is not None
        states = {} if found is None else found.sources
        self._states = dict(states)
        self.rename(endpoints)
        self._states = {
            name: state for name, state in self._states.items() if state.tap or name in endpoints
        }

    def rename(self, endpoints: Mapping[str, str]) -> None:
        """Let renamed endpoints go on with the states of their earlier names."""
        with self._lock:
            for name, was in endpoints.items():
                if name not in self._states and was in self._states:
                    self._states[name] = self._states[was]
                    self._live |= {name} if was in self._live else set()

    def get(self, endpoint: str) -> SourceConnection | None:
        """Return the state of a source; None before its first attempt to connect."""
        with self._lock:
            return self._states.get(endpoint)

    def is_live(self, endpoint: str) -> bool:
        """Return whether this run has a state of a source, also by its earlier name."""
        with self._lock:
            return endpoint in self._live

    def put(self, endpoint: str, state: SourceConnection, *, durable: bool) -> None:
        """Set a state; without `durable` it is written within some seconds.

        A state that cannot be written is logged: a full disk stops the archive as well.
        """
        with self._lock:
            self._states[endpoint] = state
            self._live.add(endpoint)
            if durable or monotonic() - self._saved >= SAVE_INTERVAL:
                self._write()

    def forget(self, endpoint: str) -> None:
        """Remove the state of a source that the configuration no longer has."""
        with self._lock:
            if self._states.pop(endpoint, None) is not None:
                self._write()

    def _write(self) -> None:
        self._saved = monotonic()
        states = dict(self._states)
        try:
            self._file.change(lambda head: replace(head, sources=states))
        except OSError as error:
            log.warning("the states of the sources cannot be written: %s", error)
