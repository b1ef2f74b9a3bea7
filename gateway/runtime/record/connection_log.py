"""The times at which the sources of a gateway were last connected, kept over restarts.

    ARCHIVE/_sources/<gateway>.json     by endpoint: last sign of the broker, and the open outage

A gateway that starts learns from it how long its sources were away.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Collection
from dataclasses import asdict
from pathlib import Path
from time import monotonic
from typing import Final

from gateway.archive.durable import make_folders, replace_text
from gateway.archive.source_states import SourceConnection, read_states, states_path
from gateway.errors import ArchiveError

log = logging.getLogger(__name__)

SAVE_INTERVAL: Final = 5.0  # seconds between two notes of connected sources on disk


class ConnectionLog:
    """The states of all sources of one gateway.

    Thread-safe: guarded by self._lock.
    """

    def __init__(self, root: Path, gateway: str, endpoints: Collection[str]) -> None:
        """Read the states that an earlier run left for `endpoints`, and those of all taps.

        A tap that the configuration has again missed everything since it was removed.

        Raises:
            ArchiveError: the folder cannot be written.
        """
        self._path = states_path(root, gateway)
        self._lock = threading.Lock()
        self._saved = 0.0
        try:
            make_folders(self._path.parent)
            found = read_states(self._path)
        except OSError as error:
            raise ArchiveError(f"{self._path}: cannot be used: {error.strerror}") from error
        self._states = {
            name: state for name, state in found.items() if state.tap or name in endpoints
        }

    def get(self, endpoint: str) -> SourceConnection | None:
        """Return the state of a source; None before its first attempt to connect."""
        with self._lock:
            return self._states.get(endpoint)

    def put(self, endpoint: str, state: SourceConnection, *, durable: bool) -> None:
        """Set a state; without `durable` it is written within some seconds.

        A state that cannot be written is logged: a full disk stops the archive as well.
        """
        with self._lock:
            self._states[endpoint] = state
            if durable or monotonic() - self._saved >= SAVE_INTERVAL:
                self._write()

    def forget(self, endpoint: str) -> None:
        """Remove the state of a source that the configuration no longer has."""
        with self._lock:
            if self._states.pop(endpoint, None) is not None:
                self._write()

    def _write(self) -> None:
        self._saved = monotonic()
        text = json.dumps({name: asdict(each) for name, each in self._states.items()})
        try:
            replace_text(self._path, text)
        except OSError as error:
            log.warning("%s: cannot be written: %s", self._path, error.strerror)
