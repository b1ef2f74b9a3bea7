"""The facts of its sources that a gateway needs after a restart, in a file.

Subscriptions that brokers keep, places in streams, and whether messages were unsettled:

    FOLDER/<writer>.sessions     JSON: subscriptions by session; null for one that was damaged

The folder is that of the journals, or that of the spool without an archive.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Final, TypeVar

from gateway.archive.durable import make_folders, read_regular, replace_text

T = TypeVar("T")
DAMAGE: Final = (ValueError, TypeError, OverflowError, RecursionError)  # of values in the file

log = logging.getLogger(__name__)


class SessionFile:
    """A store of subscriptions (`endpoints.continuity`).

    Thread-safe: guarded by self._lock.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._sessions: dict[str, list[str] | None] = {}  # None: damaged
        self._absent: list[str] | None = []  # what a session has that is not in the file
        self._is_written = True
        self._read()

    def load(self, session: str, parse: Callable[[str], T]) -> Sequence[T] | None:
        with self._lock:
            saved = self._sessions.get(session, self._absent)
            try:
                return None if saved is None else [parse(each) for each in saved]
            except DAMAGE as error:
                self._sessions[session] = None
                self._say_damaged(error)
                return None

    def save(self, session: str, subscriptions: Collection[str]) -> None:
        wanted = sorted(subscriptions)
        with self._lock:
            if self._is_written and self._sessions.get(session, self._absent) == wanted:
                return
            self._sessions[session] = wanted
            if wanted == self._absent:
                self._sessions.pop(session)
            try:
                self._is_written = False  # a full disk is tried again
                make_folders(self._path.parent)
                replace_text(self._path, json.dumps(self._sessions))
                self._is_written = True
            except OSError as error:
                log.warning("%s: cannot be written: %s", self._path, error.strerror)

    def _read(self) -> None:
        try:
            found = json.loads(read_regular(self._path))
            self._sessions = {
                name: None if each is None else [*map(str, each)] for name, each in found.items()
            }
        except FileNotFoundError:
            pass
        except (OSError, AttributeError, *DAMAGE) as error:
            self._absent = None
            self._say_damaged(error)

    def _say_damaged(self, error: Exception) -> None:
        log.warning(
            "%s: is damaged (%s): what may come twice is marked as redelivered, and subscriptions"
            " of the last run may stay at a broker", self._path, error,
        )  # fmt: skip
