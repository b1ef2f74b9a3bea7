"""The facts of its sources that a gateway needs after a restart, in a file.

Subscriptions that brokers keep, places in streams, and whether messages were unsettled:

    FOLDER/<writer>.sessions     JSON: subscriptions by session

The folder is that of the journals, or that of the spool without an archive.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Collection, Sequence
from pathlib import Path

from gateway.archive.durable import make_folders, read_regular, replace_text

log = logging.getLogger(__name__)


class SessionFile:
    """A store of subscriptions (`endpoints.kept_subscriptions`).

    Thread-safe: guarded by self._lock.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._sessions = _read(path)
        self._is_written = True

    def load(self, session: str) -> Sequence[str]:
        with self._lock:
            return self._sessions.get(session, ())

    def save(self, session: str, subscriptions: Collection[str]) -> None:
        wanted = sorted(subscriptions)
        with self._lock:
            if self._is_written and self._sessions.get(session, []) == wanted:
                return
            self._sessions[session] = wanted
            if not wanted:
                self._sessions.pop(session)
            try:
                self._is_written = False  # a full disk is tried again
                make_folders(self._path.parent)
                replace_text(self._path, json.dumps(self._sessions))
                self._is_written = True
            except OSError as error:
                log.warning("%s: cannot be written: %s", self._path, error.strerror)


def _read(path: Path) -> dict[str, list[str]]:
    try:
        found = json.loads(read_regular(path))
        return {str(session): [*map(str, each)] for session, each in found.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, AttributeError, RecursionError) as error:
        log.warning("%s: %s; subscriptions of the last run may stay at a broker", path, error)
        return {}
